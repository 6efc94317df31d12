//! Who is heard, told in every member: a Lease for each source cluster (controller.md R84; the "Endpoint TTL" of
//! KEP-1645).
//!
//! ```text
//!  MemberChange ─► Keeper ─► MemberChange          the ways to the members, on their way to the loop
//!  Status ───────────┴─► Ledger (pure) ─► a job for each member with something due
//! ```
//!
//! The endpoints of a cluster that falls silent are removed by the controller, after the TTL. When the controller is dead
//! as well, nobody is left to do that; but then these Leases stand still too, in the very cluster whose clients ask. There
//! `kubectl get lease -n namesake` shows them, `namesake-source-<cluster>`, and `spec.renewTime` says since when nobody has
//! vouched for that cluster. Whoever serves its endpoints may leave out those of a source whose Lease has expired, and must
//! not where there is no Lease: then nobody has promised any.

mod job;
mod ledger;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use self::job::{Ended, Job};
use self::ledger::{Clusters, Ledger, Outcome};
use super::members::MemberChange;
use super::settings::SourceLeases;
use super::status::{Status, View};
use crate::metrics::ControllerMetrics;
use crate::model::ClusterId;
use crate::reconcile::observed::Reach;
use crate::source::kube::Connection;

/// How often it is looked what is due.
const TICK: Duration = Duration::from_secs(1);

/// How often the same trouble in a member is logged.
const SAID: Duration = Duration::from_secs(60);

/// Keeps the Leases of all sources.
pub struct Keeper {
    settings: SourceLeases,
    /// The only member to write to, if there is one.
    only: Option<ClusterId>,
    status: Arc<Status>,
    metrics: Arc<ControllerMetrics>,
    ledger: Ledger,
    ways: BTreeMap<ClusterId, Connection>,
    jobs: JoinSet<Ended>,
    running: BTreeMap<ClusterId, AbortHandle>,
    said: BTreeMap<ClusterId, Instant>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Keeper {
    /// Nothing is done yet.
    #[must_use]
    pub fn new(
        settings: SourceLeases,
        only: Option<ClusterId>,
        status: Arc<Status>,
        metrics: Arc<ControllerMetrics>,
    ) -> Self {
        let ledger = Ledger::new(settings.duration);
        let (ways, running, said) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { settings, only, status, metrics, ledger, ways, jobs: JoinSet::new(), running, said }
    }

    /// Keeps them until nobody tells of members any more. Every change is passed on to `changes`.
    pub async fn run(mut self, mut members: mpsc::Receiver<MemberChange>, changes: mpsc::Sender<MemberChange>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                change = members.recv() => {
                    let Some(change) = change else { return };
                    self.member_changed(&change);
                    if changes.send(change).await.is_err() {
                        return;
                    }
                }
                Some(ended) = self.jobs.join_next() => {
                    // One that was called off has nothing to tell.
                    if let Ok((id, began, outcome)) = ended {
                        self.ended(&id, began, outcome);
                    }
                }
                _ = tick.tick() => self.begin(),
            }
        }
    }

    fn member_changed(&mut self, change: &MemberChange) {
        match change {
            MemberChange::Present(member) => {
                self.call_off(&member.id);
                self.ways.insert(member.id.clone(), member.connection.clone());
            }
            MemberChange::Unusable { id, .. } => {
                self.call_off(id);
                self.ways.remove(id);
            }
            MemberChange::Left(id) => {
                self.call_off(id);
                if let Some(connection) = self.ways.remove(id)
                    && self.may_write(id)
                {
                    // What is ours in it goes (R83). Should that fail, the loop tells the operator what to do.
                    let job = self.job(id, connection);
                    self.jobs.spawn(async move { job.clear().await });
                }
            }
            MemberChange::Refused { .. } | MemberChange::Complete(_) => {}
        }
    }

    fn call_off(&mut self, id: &ClusterId) {
        if let Some(job) = self.running.remove(id) {
            job.abort();
        }
        self.ledger.forget(id);
        self.said.remove(id);
    }

    fn may_write(&self, id: &ClusterId) -> bool {
        self.only.as_ref().is_none_or(|only| only == id) && self.status.lock().may_write()
    }

    fn job(&self, id: &ClusterId, connection: Connection) -> Job {
        let (settings, status, metrics) = (self.settings.clone(), self.status.clone(), self.metrics.clone());
        Job { id: id.clone(), connection, settings, status, metrics }
    }

    /// Begins what is due, where we may write at all.
    fn begin(&mut self) {
        let clusters = {
            let view = self.status.lock();
            if !view.may_write() {
                drop(view);
                return self.ledger.clear();
            }
            clusters(&view)
        };
        for (id, work) in self.ledger.due(&clusters, self.only.as_ref(), Instant::now()) {
            let Some(connection) = self.ways.get(&id) else {
                self.ledger.forget(&id);
                continue;
            };
            let job = self.job(&id, connection.clone());
            let task = self.jobs.spawn(async move { job.run(work).await });
            self.running.insert(id, task);
        }
    }

    fn ended(&mut self, id: &ClusterId, began: Instant, outcome: Result<Outcome, (Outcome, String)>) {
        self.running.remove(id);
        let outcome = match outcome {
            Ok(outcome) => {
                self.said.remove(id);
                outcome
            }
            Err((outcome, trouble)) => {
                if self.said.get(id).is_none_or(|at| at.elapsed() > SAID) {
                    self.said.insert(id.clone(), Instant::now());
                    tracing::warn!(cluster = %id, "the Leases that say which clusters are heard: {trouble}");
                }
                outcome
            }
        };
        self.ledger.done(id, &outcome, began, Instant::now());
    }
}

/// What is known of the clusters.
fn clusters(view: &View) -> Clusters {
    let members = view.clusters.iter().filter(|(_, cluster)| !cluster.leaving);
    let live = members.clone().filter(|(_, it)| it.unusable.is_none() && it.reach == Reach::Live);
    Clusters {
        live: live.map(|(id, _)| id.clone()).collect(),
        members: members.map(|(id, _)| id.clone()).collect(),
        complete: view.complete,
    }
}
