//! Why a candidate is no member, or a member can't be used. `Display` says what to do next; where it is, the
//! [`Origin`](super::Origin) says.

use crate::model::ClusterId;

/// What is wrong with a kubeconfig that others wrote. They may name nothing that would be read or run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKubeconfig {
    /// The key is not there.
    #[error("there is no kubeconfig: it has {found}; put it under the key {wanted:?}")]
    NoKey {
        /// The key that was looked for.
        wanted: &'static str,
        /// The keys that are there.
        found: String,
    },
    /// It does not decode.
    #[error(
        "key {key:?} is no kubeconfig ({message}); put one there, as `kubectl config view --flatten --minify` writes it"
    )]
    Unreadable {
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A part is missing.
    #[error("key {key:?}: {what}; write it with `kubectl config view --flatten --minify`")]
    Incomplete {
        /// The key.
        key: String,
        /// What is missing.
        what: String,
    },
    /// It asks for something that is not done for a kubeconfig from the hub.
    #[error("key {key:?}: {field} is refused, since {why}; {remedy}")]
    Refused {
        /// The key.
        key: String,
        /// The field, as it is written.
        field: String,
        /// Why.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

/// What is wrong with a cluster's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// Nobody says what the id is.
    #[error(
        "nobody says what the id of this cluster is; {remedy}, or create the ClusterProperty cluster.clusterset.k8s.io \
         in it"
    )]
    Unknown {
        /// How to say it where the cluster is registered.
        remedy: &'static str,
    },
    /// It can't be an id.
    #[error("{from}: {text:?} can't be a cluster id, {rule}; give another one")]
    Malformed {
        /// Who says it.
        from: &'static str,
        /// What it says.
        text: String,
        /// What an id is.
        rule: &'static str,
    },
    /// The cluster itself says otherwise.
    #[error(
        "it is registered as {setting}, but its own ClusterProperty cluster.clusterset.k8s.io says {property:?}; \
         change one of them"
    )]
    Disagreement {
        /// What it is registered as.
        setting: String,
        /// What it says itself.
        property: String,
    },
    /// It is in another clusterset.
    #[error(
        "its ClusterProperty clusterset.k8s.io says that it is in {theirs:?}, and this is {ours:?}; take it out, or \
         correct the property"
    )]
    OtherSet {
        /// Its clusterset.
        theirs: String,
        /// Ours.
        ours: String,
    },
}

/// Why a candidate is no member, or a member can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its kubeconfig is not taken.
    #[error(transparent)]
    Kubeconfig(#[from] BadKubeconfig),
    /// Its id is not taken.
    #[error(transparent)]
    Id(#[from] BadId),
    /// An older one has its id.
    #[error("the id {id} is that of {by} already, which is older; give this cluster another id, or remove one of them")]
    Duplicate {
        /// The id.
        id: ClusterId,
        /// Where the older one is registered.
        by: String,
    },
    /// There is no credential to be had without running a program.
    #[error(
        "its credentials are to be had by a program alone ({providers}), and Namesake runs none; label a Secret with a \
         kubeconfig x-k8s.io/cluster-profile={name}"
    )]
    NoInlineCredentials {
        /// The access providers that it names.
        providers: String,
        /// The profile's name.
        name: String,
    },
    /// More than one kubeconfig is offered.
    #[error("several Secrets have its kubeconfig: {secrets}; leave one of them")]
    Ambiguous {
        /// Their names.
        secrets: String,
    },
    /// There is no client of it.
    #[error("{0}")]
    NoClient(String),
    /// It is about to be connected to.
    #[error("not connected yet")]
    Connecting,
    /// It can't be asked for its id.
    #[error("it can't be asked what its id is: {0}")]
    Unidentified(String),
}

impl Refusal {
    /// Whether it ends by itself: nobody has to do anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Connecting | Self::Unidentified(_))
    }
}
