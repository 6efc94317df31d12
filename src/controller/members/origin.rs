//! Where a member is registered.

use std::fmt;
use std::path::PathBuf;

use super::secrets::Convention;

/// Where a member is registered: who a candidate is, whatever its id.
///
/// The order is that of seniority between candidates with the same id and age: what the operator gave to the controller
/// itself comes before what others wrote into the hub.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A context of the controller's own kubeconfig.
    Context {
        /// The file.
        file: PathBuf,
        /// The context.
        context: String,
    },
    /// A file of a folder.
    File(PathBuf),
    /// A Secret in the hub.
    Secret {
        /// By which convention it was found.
        convention: Convention,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key that holds the kubeconfig, where one Secret may register several clusters.
        key: Option<String>,
    },
    /// A ClusterProfile in the hub.
    Profile {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Origin {
    /// What is the same for a Secret that is found by two conventions.
    pub(super) fn place(&self) -> (u8, String, String, String) {
        match self {
            Self::Context { file, context } => (0, file.display().to_string(), context.clone(), String::new()),
            Self::File(file) => (1, file.display().to_string(), String::new(), String::new()),
            Self::Secret { namespace, name, key, .. } => {
                (2, namespace.clone(), name.clone(), key.clone().unwrap_or_default())
            }
            Self::Profile { namespace, name } => (3, namespace.clone(), name.clone(), String::new()),
        }
    }

    /// The operator's own settings are older than anything in the hub.
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Context { .. } | Self::File(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context { file, context } => write!(f, "context {context:?} of {}", file.display()),
            Self::File(file) => write!(f, "kubeconfig {}", file.display()),
            Self::Secret { namespace, name, key: Some(key), .. } => write!(f, "Secret {namespace}/{name}, key {key:?}"),
            Self::Secret { namespace, name, .. } => write!(f, "Secret {namespace}/{name}"),
            Self::Profile { namespace, name } => write!(f, "ClusterProfile {namespace}/{name}"),
        }
    }
}
