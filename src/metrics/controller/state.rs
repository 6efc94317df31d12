//! What is not counted as it happens, but looked at when someone scrapes the controller.

use crate::metrics::Watch;

/// The state of the controller at a scrape, as plain numbers.
#[derive(Debug, Clone, Default)]
pub struct ControllerState {
    /// Whether this process may write.
    pub leader: bool,
    /// Whether the set of members is complete.
    pub members_complete: bool,
    /// Candidates that are no members.
    pub members_refused: u64,
    /// The places of registration, and whether each is followed.
    pub registries: Vec<(String, bool)>,
    /// Services that wait to be planned.
    pub planning: u64,
    /// Services that somebody exports.
    pub services: u64,
    /// Valid exports, by cluster.
    pub exports: Vec<(String, u64)>,
    /// Services that are imported, by cluster.
    pub imports: Vec<(String, u64)>,
    /// Services that are not imported, by cluster and reason.
    pub not_imported: Vec<(String, &'static str, u64)>,
    /// Services whose exports disagree, by reason.
    pub conflicts: Vec<(&'static str, u64)>,
    /// The members.
    pub clusters: Vec<ClusterState>,
}

/// The state of a member at a scrape.
#[derive(Debug, Clone, Default)]
pub struct ClusterState {
    /// Its id.
    pub id: String,
    /// Whether everything is listed and followed.
    pub up: bool,
    /// Its watches.
    pub watches: Vec<Watch>,
    /// Whether it was listed once: before that there is no age.
    pub synced: bool,
    /// Services for which something is to be written.
    pub queue: u64,
    /// Services for which the last write failed.
    pub failing: u64,
}
