//! What was meant: plain, checked values.

use std::path::PathBuf;

use crate::config::{Admin, Log};
use crate::controller::ControllerSettings;

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
