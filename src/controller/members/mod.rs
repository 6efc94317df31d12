//! Which clusters are members, live: from the operator's own kubeconfigs, and from Secrets and ClusterProfiles in a hub.
//!
//! ```text
//!  contexts, folder ─────┐
//!  Secrets (hub) ────────┼─► candidates ─► registry (pure) ─► MemberChange
//!  ClusterProfiles (hub) ┘        │              ▲
//!                                 └─► probe ─────┘   one task per candidate: connects, and hears the
//!                                                    cluster's own ClusterProperty (R90 to R92)
//! ```
//!
//! A cluster that can't be reached is a member all the same, where its registration says its id; and one whose
//! registration is broken is not one that has left. Nothing here writes.

mod hub;
mod identity;
mod kubeconfig;
mod origin;
mod own;
mod probe;
mod profiles;
mod refusal;
mod registry;
mod run;
mod secrets;

#[cfg(test)]
mod identity_tests;
#[cfg(test)]
mod kubeconfig_tests;
#[cfg(test)]
mod registry_tests;
#[cfg(test)]
mod secrets_tests;

use std::path::PathBuf;

pub use hub::Watch;
pub use identity::{Claim, IdRules, Identity, Properties, identify, parse};
pub use origin::Origin;
pub use refusal::{BadId, BadKubeconfig, Refusal};
pub use run::Members;
pub use secrets::Convention;

use crate::model::ClusterId;
use crate::source::kube::Connection;

/// A member given as a context of the controller's own kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextMember {
    /// The kubeconfig.
    pub file: PathBuf,
    /// The context in it.
    pub context: String,
    /// The cluster's id; none where its ClusterProperty says it.
    pub id: Option<String>,
}

/// An inventory in the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory {
    /// Secrets by a convention.
    Secrets(Convention),
    /// ClusterProfiles.
    Profiles,
}

/// Where members are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberSettings {
    /// Contexts of the controller's own kubeconfig.
    pub contexts: Vec<ContextMember>,
    /// A folder of kubeconfigs, each called `<id>.kubeconfig`.
    pub folder: Option<PathBuf>,
    /// Inventories in the hub, each in one namespace or, with none, in all.
    pub inventories: Vec<(Inventory, Option<String>)>,
    /// Whether the name that Cluster API, Sveltos or a ClusterProfile gives a cluster may be its id, where nobody says
    /// better.
    pub inventory_names: bool,
    /// What is asked of ids.
    pub rules: IdRules,
}

/// A member cluster that can be spoken to.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its id.
    pub id: ClusterId,
    /// Where it is registered.
    pub origin: Origin,
    /// Its API server.
    pub connection: Connection,
}

/// What changed in the set of members.
#[derive(Debug, Clone)]
pub enum MemberChange {
    /// A member is there; or one that was there is reached in another way: what follows it is to begin anew there, and
    /// nothing of it is to be deleted meanwhile.
    Present(Member),
    /// A member is registered, but can't be used: it counts as one that can't be reached (R84), never as one that left.
    Unusable {
        /// Its id.
        id: ClusterId,
        /// Where it is registered.
        origin: Origin,
        /// Why.
        refusal: Refusal,
    },
    /// A member was taken out of the set (R83).
    Left(ClusterId),
    /// A candidate that is no member; `None`: it is no longer refused. It is not touched.
    Refused {
        /// Where it is registered.
        origin: Origin,
        /// Why.
        refusal: Option<Refusal>,
    },
    /// Whether the set of members is complete: every place was read, and the id of each candidate is known. A cluster
    /// that is no member then has left, also if that was while nobody looked.
    Complete(bool),
}
