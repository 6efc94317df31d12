//! The hub's Secrets and ClusterProfiles, followed.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::mpsc;

use super::profiles::LABEL_PROFILE;
use super::secrets::{Candidate, Convention, SecretObject};
use crate::api;
use crate::source::kube::{Collection, Connection, Encoded, Presence, Subject};
use crate::source::{Health, Trouble};

/// What is looked at for members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// The contexts of the controller's own kubeconfig.
    Contexts,
    /// The folder of kubeconfigs.
    Folder,
    /// Secrets of the hub.
    Secrets(Convention),
    /// ClusterProfiles of the hub.
    Profiles,
    /// Secrets of the hub with the kubeconfigs of ClusterProfiles.
    ProfileSecrets,
}

impl Watch {
    /// A short word, for metrics and people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Contexts => "contexts",
            Self::Folder => "folder",
            Self::Secrets(convention) => convention.as_str(),
            Self::Profiles => "cluster-profile",
            Self::ProfileSecrets => "cluster-profile-secrets",
        }
    }
}

/// Namespace and name of an object, or something like that of what is none.
pub(super) type Key = (String, String);

/// What was seen.
pub(super) struct Seen {
    /// By which watch.
    pub(super) watch: Watch,
    /// What.
    pub(super) what: What,
}

/// What was seen.
pub(super) enum What {
    /// A full list begins.
    Begin,
    /// The full list is complete.
    End,
    /// An object, and all the candidates that it gives.
    Candidates(Key, Vec<Candidate>),
    /// A ClusterProfile in JSON.
    Profile(Key, String),
    /// A Secret with the kubeconfig of a ClusterProfile.
    ProfileSecret(Key, Box<SecretObject>),
    /// An object is gone.
    Gone(Key),
}

/// One watch in the hub.
struct InHub {
    watch: Watch,
    collection: Collection,
    names: bool,
    health: Arc<Health<Watch>>,
}

impl InHub {
    fn new(watch: Watch, namespace: Option<&str>, names: bool, health: Arc<Health<Watch>>) -> Self {
        let secrets = |labels| Collection {
            group: "",
            versions: &["v1"],
            plural: "secrets",
            presence: Presence::BuiltIn { since: "every Kubernetes does" },
            namespace: namespace.map(str::to_owned),
            labels,
            page: 50,
            protobuf: false,
        };
        let collection = match watch {
            Watch::Secrets(convention) => secrets(convention.selector()),
            Watch::ProfileSecrets => secrets(Some(LABEL_PROFILE)),
            Watch::Contexts | Watch::Folder | Watch::Profiles => Collection {
                group: api::GROUP,
                versions: &["v1alpha1"],
                plural: "clusterprofiles",
                presence: Presence::Crd("clusterprofiles.multicluster.x-k8s.io"),
                namespace: namespace.map(str::to_owned),
                labels: None,
                page: 100,
                protobuf: false,
            },
        };
        Self { watch, collection, names, health }
    }

    fn seen(&self, what: What) -> Seen {
        Seen { watch: self.watch, what }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Anonymous {
    metadata: Names,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    namespace: String,
    name: String,
}

fn key(json: &str) -> Key {
    let Names { namespace, name } = serde_json::from_str::<Anonymous>(json).unwrap_or_default().metadata;
    (namespace, name)
}

impl Subject for InHub {
    type Item = Seen;

    fn collection(&self) -> &Collection {
        &self.collection
    }

    fn present(&self, object: &Encoded<'_>) -> Option<Seen> {
        let json = object.json()?;
        let key = key(json);
        let what = match self.watch {
            Watch::Secrets(convention) => {
                let secret: SecretObject = serde_json::from_str(json).ok()?;
                What::Candidates(key, secret.candidates(convention, self.names))
            }
            Watch::ProfileSecrets => What::ProfileSecret(key, Box::new(serde_json::from_str(json).ok()?)),
            Watch::Contexts | Watch::Folder | Watch::Profiles => What::Profile(key, json.to_owned()),
        };
        Some(self.seen(what))
    }

    fn absent(&self, object: &Encoded<'_>) -> Option<Seen> {
        Some(self.seen(What::Gone(key(object.json()?))))
    }

    fn begin(&self) -> Seen {
        self.seen(What::Begin)
    }

    fn end(&self) -> Seen {
        self.seen(What::End)
    }

    fn alive(&self) {
        self.health.alive(self.watch);
    }

    fn down(&self, trouble: Trouble) {
        self.health.down(self.watch, trouble);
    }
}

/// Follows what `watch` says, in one namespace or all, until nobody takes what is seen.
pub(super) fn follow(
    hub: &Connection,
    watch: Watch,
    namespace: Option<&str>,
    names: bool,
    health: Arc<Health<Watch>>,
    seen: mpsc::Sender<Seen>,
) -> impl Future<Output = ()> + Send + use<> {
    hub.follow(InHub::new(watch, namespace, names, health), seen)
}
