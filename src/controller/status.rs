//! What the controller knows of itself, for readiness, metrics and people: written by the loop, read by admin routes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::members::{Origin, Watch};
use crate::model::ClusterId;
use crate::reconcile::observed::Reach;
use crate::reconcile::world::Kind;
use crate::source::Health;

/// The state of the controller, shared.
#[derive(Debug, Default)]
pub struct Status {
    view: Mutex<View>,
}

impl Status {
    /// Looks at it, or changes it. Nothing slow is to be done meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the controller.
#[derive(Debug, Default)]
pub struct View {
    /// Whether the set of members is complete: every place was read, and the id of each candidate is known.
    pub complete: bool,
    /// Whether this process may write.
    pub writing: Writing,
    /// Until when this process may write if the lease is not renewed before; `None` where there is no lease.
    pub until: Option<Instant>,
    /// What is wrong with the lease, if anything is.
    pub lease: Option<String>,
    /// The members.
    pub clusters: BTreeMap<ClusterId, ClusterView>,
    /// The ids of what is registered, as far as they are known.
    pub ids: BTreeMap<Origin, ClusterId>,
    /// Candidates that are no members, and why.
    pub refused: BTreeMap<Origin, String>,
    /// The watches of the hub and of the folder of kubeconfigs.
    pub registries: Option<Arc<Health<Watch>>>,
    /// Services that are still to be planned.
    pub planning: usize,
    /// What is exported and imported.
    pub totals: Totals,
}

impl View {
    /// Whether this process may write at this moment. It looks at the clock: a process that was halted for a while has
    /// lost the lease before any of its tasks has noticed.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.writing.may_write() && self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// Whether this process may write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Writing {
    /// It is the only one, or is taken for that: there is no lease.
    #[default]
    Alone,
    /// It holds the lease.
    Leader,
    /// Another one holds it: who, where that is known.
    Standby(Option<String>),
}

impl Writing {
    /// Whether it may write.
    #[must_use]
    pub fn may_write(&self) -> bool {
        !matches!(self, Self::Standby(_))
    }
}

/// One member.
#[derive(Debug)]
pub struct ClusterView {
    /// Where it is registered.
    pub origin: String,
    /// Why its registration can't be used, if it can't.
    pub unusable: Option<String>,
    /// It was taken out of the set, and is being cleared of what is ours.
    pub leaving: bool,
    /// How far it is known.
    pub reach: Reach,
    /// Its watches, where it has any.
    pub health: Option<Arc<Health<Kind>>>,
    /// The version of the Multi-Cluster Services API that is written there, where it is known.
    pub version: Option<&'static str>,
    /// Services for which something is to be written there.
    pub waiting: usize,
    /// Services for which writing failed the last time.
    pub failing: usize,
    /// What the last failed write met.
    pub last_error: Option<String>,
}

/// Counts over all services.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Services that somebody exports.
    pub services: u64,
    /// Valid ServiceExports, by cluster.
    pub exports: BTreeMap<ClusterId, u64>,
    /// Clusters × services that have all they should have, by importing cluster.
    pub imports: BTreeMap<ClusterId, u64>,
    /// Clusters × services that don't import although they might, by importing cluster and reason.
    pub not_imported: BTreeMap<(ClusterId, &'static str), u64>,
    /// Services whose exports disagree, by the KEP's reason.
    pub conflicts: BTreeMap<&'static str, u64>,
}
