//! The loop: what the members say → the world → plans → what is to be written to each of them.
//!
//! ```text
//!  MemberChange ──┐
//!  MemberUpdates ─┼─► World ─► dirty services ─► plan_service ─► an outbox for each member ─► jobs
//!  Done (of jobs) ┘     ▲                                                                      │
//!                       └────────────── answers, failures ◄────────────────────────────────────┘
//! ```
//!
//! One task owns the world and never waits for an API server: jobs run beside it. What a job's answers say is taken in
//! at once, so a plan never repeats a write only because the watch has not shown it yet.

mod dirty;
mod echo;
mod following;
mod membership;
mod outgoing;
mod tally;
mod twins;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tracing::warn;

use super::ControllerSettings;
use super::apply::Done;
use super::members::MemberChange;
use super::status::Status;
use crate::metrics::ControllerMetrics;
use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::objects::Time;
use crate::reconcile::world::Kind;
use crate::reconcile::{Dirty, Settings, World, plan_service};
use crate::source::kube::MemberUpdate;
use crate::source::member::Observed;
use dirty::Queue;
use following::{Following, poll_updates};
use tally::Tally;

/// How long plans are made before updates have their turn again.
const PLANNING: Duration = Duration::from_millis(5);

/// How often clocks and reachability are looked at.
const TICK: Duration = Duration::from_millis(500);

/// How long at the start members are waited for before anything is written: who is heard by then counts as the others
/// are remembered (R82), but what is complete from the beginning needs no second thoughts.
const SETTLE: Duration = Duration::from_secs(5);

/// How many ended jobs may wait to be taken in.
const JOBS: usize = 1024;

/// The loop's state.
pub struct Engine {
    settings: Settings,
    writes: super::WriteLimits,
    world: World,
    members: BTreeMap<ClusterId, Following>,
    dirty: Queue,
    tally: Tally,
    /// Services that members have changed, and whether that led to a write.
    changed: HashMap<ServiceKey, (Instant, bool)>,
    status: Arc<Status>,
    metrics: Arc<ControllerMetrics>,
    leading: watch::Receiver<bool>,
    ended: (mpsc::Sender<Ended>, mpsc::Receiver<Ended>),
    began: Instant,
    /// Whether anything may be written yet.
    settled: bool,
}

/// A job that has ended.
struct Ended {
    cluster: ClusterId,
    serial: u64,
    done: Done,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("members", &self.members).finish_non_exhaustive()
    }
}

impl Engine {
    /// Nothing is known yet. It writes while `leading` says so.
    #[must_use]
    pub fn new(
        settings: &ControllerSettings,
        status: Arc<Status>,
        metrics: Arc<ControllerMetrics>,
        leading: watch::Receiver<bool>,
    ) -> Self {
        Self {
            settings: settings.policy.clone(),
            writes: settings.writes,
            world: {
                let mut world = World::new(settings.policy.auto_export.clone());
                world.set_unlisted_since(now());
                world
            },
            members: BTreeMap::new(),
            dirty: Queue::default(),
            tally: Tally::default(),
            changed: HashMap::new(),
            status,
            metrics,
            leading,
            ended: mpsc::channel(JOBS),
            began: Instant::now(),
            settled: false,
        }
    }

    /// Runs until nobody tells of members any more.
    pub async fn run(mut self, mut changes: mpsc::Receiver<MemberChange>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wake = self.wake();
            let idle = self.dirty.is_empty() || !self.settled;
            tokio::select! {
                biased;
                change = changes.recv() => match change {
                    Some(change) => self.member_changed(change),
                    None => return,
                },
                Some(ended) = self.ended.1.recv() => self.jobs_ended(ended),
                _ = tick.tick() => self.tick(),
                changed = self.leading.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                updates = std::future::poll_fn(|context| poll_updates(&mut self.members, context)) => {
                    self.updates(updates);
                }
                () = sleep_until(wake) => {}
                () = std::future::ready(()), if !idle => {}
            }
            self.plan_some();
            self.dispatch();
        }
    }

    fn updates(&mut self, updates: Vec<(ClusterId, Vec<MemberUpdate>)>) {
        let mut milestone = false;
        for (cluster, updates) in updates {
            for update in updates {
                milestone |= matches!(update, MemberUpdate::End(_) | MemberUpdate::Served(_));
                self.update(&cluster, update);
            }
        }
        if milestone {
            self.look_at_members(now());
        }
    }

    /// Takes in what a member's watch says.
    fn update(&mut self, cluster: &ClusterId, update: MemberUpdate) {
        let Some(following) = self.members.get_mut(cluster) else { return };
        let mut source = false;
        match &update {
            MemberUpdate::Object(object) | MemberUpdate::Gone(object, _) => {
                let version = match &update {
                    MemberUpdate::Gone(_, version) => *version,
                    _ => echo::version(object),
                };
                if following.echoes.is_old(object, version) {
                    self.world.keep(cluster, object.kind(), &echo::key(object));
                    return;
                }
                if following.outbox.is_busy() {
                    following.echoes.shown(object, version);
                }
                if let Observed::Namespace(name, _) = &**object {
                    following.outbox.namespace_changed(name);
                }
                source = matches!(object.kind(), Kind::Exports | Kind::Services | Kind::Slices);
            }
            MemberUpdate::End(kind) => following.echoes.listed(*kind, following.outbox.is_busy()),
            MemberUpdate::Served(served) => {
                if let Some(live) = &mut following.live {
                    live.version = Some(served.version);
                }
            }
            MemberUpdate::Unreadable { kind, namespace, name, skipped } => {
                let kind = crate::source::member::kind_name(*kind);
                warn!(%cluster, "{kind} {namespace}/{name} can't be read: {}; what was known of it stays", skipped.what);
            }
            MemberUpdate::Begin(_) => {}
        }
        for dirty in update.tell(&mut self.world, cluster) {
            let counts = source && self.settled && *self.leading.borrow();
            if let (true, Dirty::Services(keys)) = (counts, &dirty) {
                for key in keys {
                    self.changed.entry(key.clone()).or_insert_with(|| (Instant::now(), false));
                }
            }
            self.mark(dirty);
        }
    }

    /// Notes what is to be planned.
    fn mark(&mut self, dirty: Dirty) {
        match dirty {
            Dirty::Nothing => {}
            Dirty::Services(keys) => keys.into_iter().for_each(|key| self.dirty.push(key)),
            Dirty::Namespace(name) => self.world.keys_in(&name).for_each(|key| self.dirty.push(key)),
            Dirty::All => self.world.keys().for_each(|key| self.dirty.push(key)),
        }
    }

    /// Plans for a moment.
    fn plan_some(&mut self) {
        if !self.may_plan() {
            return;
        }
        let begin = Instant::now();
        while let Some(key) = self.dirty.pop() {
            self.plan(&key);
            if begin.elapsed() >= PLANNING {
                return;
            }
        }
    }

    /// Plans one service, and puts what is to be written into the outboxes.
    fn plan(&mut self, key: &ServiceKey) {
        let begin = Instant::now();
        let plan = plan_service(&self.world, key, &self.settings, now());
        self.metrics.planned(begin.elapsed().as_secs_f64());
        self.dirty.again(key, plan.plan.again);
        self.tally.planned(&plan);
        self.put(key, plan.plan);
    }

    /// At the start plans would be made of half the world.
    fn may_plan(&mut self) -> bool {
        if !self.settled {
            let heard = self.world.members_listed()
                && self.world.members().values().all(crate::reconcile::world::Member::is_heard)
                && self.members.values().all(|it| it.live.as_ref().is_none_or(|live| live.version.is_some()));
            self.settled = heard || self.began.elapsed() >= SETTLE;
        }
        self.settled
    }

    fn tick(&mut self) {
        let now = now();
        self.dirty.tick(now);
        self.look_at_members(now);
        self.tell_status();
    }
}

/// The clock that plans are made by: the time of day at the start, and what has passed since. A clock that is set while
/// we run makes no member older than it is.
fn now() -> Time {
    static START: OnceLock<(Duration, Instant)> = OnceLock::new();
    let (at, since) = START.get_or_init(|| {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (at, Instant::now())
    });
    Time(i64::try_from((*at + since.elapsed()).as_secs()).unwrap_or(i64::MAX))
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}
