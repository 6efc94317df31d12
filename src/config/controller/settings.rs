//! What was meant: plain, checked values.

use std::path::PathBuf;

use crate::config::{Admin, Log};
use crate::controller::ControllerSettings;
use crate::controller::members::MemberSettings;
use crate::reconcile;
use crate::source::kube::Access;

/// All that `namesake controller` needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Clusters, policies and limits.
    pub controller: ControllerSettings,
    /// Where probes and metrics are served.
    pub admin: Admin,
    /// How things are logged.
    pub log: Log,
    /// What is allowed but probably not meant, for the log at start.
    pub warnings: Vec<String>,
}

/// What a command needs to know that says what the controller would do.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The policies.
    pub policy: reconcile::Settings,
    /// The clusters to look at, where any are named.
    pub clusters: Option<LiveClusters>,
}

/// Clusters that are only looked at.
#[derive(Debug, Clone)]
pub struct LiveClusters {
    /// Where inventories are, if there are any.
    pub hub: Option<Access>,
    /// Where members are looked for.
    pub members: MemberSettings,
}

/// What the machine contributes to the settings.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Whether this is a pod's process: its cluster is the hub then.
    pub in_pod: bool,
    /// The pod's namespace.
    pub namespace: Option<String>,
    /// Who we are among several controllers: unlike every other, also unlike the process that was here before.
    pub identity: String,
    /// Whether IPv6 sockets can be had.
    pub ipv6: bool,
    /// Which kubeconfig kubectl would take, for a context where one is asked for.
    pub kubeconfig: fn(Option<&str>) -> PathBuf,
}
