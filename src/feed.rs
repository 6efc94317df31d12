//! The one writer: takes updates in, rebuilds what they made dirty, swaps it in.
//!
//! ```text
//!  source ─► [bounded queue] ─► Feed ─► Index ─► dirty ─► build ─► Store
//! ```
//!
//! A change is served at once. Only what follows for the same service within [`COALESCE`] is put together, and what
//! is already waiting in the queue is taken in before anything is built, so that a burst which moves endpoints
//! between slices shows no gap. Until every needed list is complete nothing is built at all.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::Receiver;

use crate::answers::{Options, Store, build};
use crate::index::{Effects, Index};
use crate::metrics::{Metrics, ServiceKind};
use crate::model::{Change, ImportKind, Resource, ServiceKey, SkipReason, Skipped, Update};
use crate::source::Health;

/// How long further changes of a service wait after one was served.
pub const COALESCE: Duration = Duration::from_millis(10);

/// How many updates are taken in before what they made dirty is built.
const BURST: usize = 1024;

/// The clocks, read by whoever drives the feed.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For waiting.
    pub instant: Instant,
    /// For the SOA serial and the latency of programming.
    pub wall: SystemTime,
}

impl Now {
    /// Both clocks as they are.
    #[must_use]
    pub fn read() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }

    fn unix_seconds(self) -> u32 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
    }
}

/// How much the feed has done.
#[derive(Debug, Default)]
pub struct Counts {
    updates: [AtomicU64; Resource::ALL.len()],
    rebuilds: AtomicU64,
}

impl Counts {
    /// Changes of this kind taken in, also those that changed nothing.
    #[must_use]
    pub fn updates(&self, resource: Resource) -> u64 {
        self.updates[resource as usize].load(Relaxed)
    }

    /// Services built anew.
    #[must_use]
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds.load(Relaxed)
    }
}

/// The writer's state.
#[derive(Debug)]
pub struct Feed {
    counts: Arc<Counts>,
    index: Arc<RwLock<Index>>,
    store: Arc<Store>,
    health: Arc<Health>,
    metrics: Option<Arc<Metrics>>,
    complete: [bool; Resource::ALL.len()],
    /// Dirty and not built yet.
    pending: HashSet<ServiceKey>,
    /// When a service was built last, if that was within [`COALESCE`].
    recent: HashMap<ServiceKey, Instant>,
    /// When the pending changes of a service were made, as their slices say.
    triggered: HashMap<ServiceKey, SystemTime>,
    /// The record set changed, and its serial waits for the next second.
    unsigned: bool,
}

impl Feed {
    /// A feed of `store`; `health` says which lists are needed, and learns when they are taken in.
    #[must_use]
    pub fn new(store: Arc<Store>, health: Arc<Health>, metrics: Option<Arc<Metrics>>, now: Now) -> Self {
        store.serial().start(now.unix_seconds());
        Self {
            counts: Arc::default(),
            index: Arc::default(),
            store,
            health,
            metrics,
            complete: [false; Resource::ALL.len()],
            pending: HashSet::new(),
            recent: HashMap::new(),
            triggered: HashMap::new(),
            unsigned: false,
        }
    }

    /// What is known, for `explain` and metrics. Answering never touches it.
    #[must_use]
    pub fn index(&self) -> Arc<RwLock<Index>> {
        Arc::clone(&self.index)
    }

    /// How much was done, for metrics.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Takes a burst of updates in and builds what may be built now.
    pub fn take(&mut self, updates: impl IntoIterator<Item = Update>, now: Now) {
        let mut effects = Effects::default();
        let mut completed = Vec::new();
        {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            for update in updates {
                let mut triggered = None;
                match &update {
                    Update::ResyncEnd(resource) => completed.push(*resource),
                    Update::Change(Change::Slice(key, Some(slice))) => {
                        triggered = slice.triggered.map(|at| {
                            let key = ServiceKey { namespace: key.namespace.clone(), name: slice.service.clone() };
                            (key, at)
                        });
                    }
                    _ => {}
                }
                if let Update::Change(change) = &update {
                    self.counts.updates[change.resource() as usize].fetch_add(1, Relaxed);
                }
                let changed = index.apply(update, &mut effects);
                // A slice that a list brings again was programmed long ago, and nothing is built that would forget it.
                self.triggered.extend(triggered.filter(|_| changed));
            }
        }
        for (object, Skipped { reason, what }) in effects.skipped {
            tracing::warn!(object, reason = reason.as_str(), "{object}: {what}");
        }
        // Before the first build nothing is served: that one builds all there is.
        if self.store.state().synced() {
            self.pending.extend(effects.dirty);
        }
        for resource in &completed {
            self.complete[*resource as usize] = true;
        }
        self.flush(now);
        // Readiness hangs on it: whoever is sent here must find what the lists brought.
        for resource in completed {
            self.health.mark_synced(resource);
        }
    }

    /// Builds what may be built now: all that is pending, but for services built a moment ago.
    pub fn flush(&mut self, now: Now) {
        let needed = self.health.needed();
        if needed.iter().any(|resource| !self.complete[*resource as usize]) {
            return;
        }
        let index = Arc::clone(&self.index);
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        if !self.store.state().synced() {
            for key in index.services() {
                self.build(&index, key, true, now);
            }
            self.triggered = HashMap::new(); // they are older than we are: no latency of ours
            self.store.set_synced();
        }
        self.recent.retain(|_, at| now.instant.saturating_duration_since(*at) < COALESCE);
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|key| {
            let waits = self.recent.contains_key(key);
            if !waits {
                self.build(&index, key, false, now);
                self.recent.insert(key.clone(), now.instant);
            }
            waits
        });
        self.pending = pending;
        // The room that a list of everything took is not needed until the next one.
        self.pending.shrink_to(BURST);
        self.recent.shrink_to(BURST);
        self.triggered.shrink_to(BURST);
        self.sign(now);
    }

    /// When to call [`Feed::flush`] again, if anything waits.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let waiting = self.pending.iter().filter_map(|key| self.recent.get(key)).min().map(|at| *at + COALESCE);
        let unsigned = self.unsigned.then(|| Instant::now() + Duration::from_millis(100));
        waiting.into_iter().chain(unsigned).min()
    }

    fn build(&mut self, index: &RwLockReadGuard<'_, Index>, key: &ServiceKey, first: bool, now: Now) {
        self.counts.rebuilds.fetch_add(1, Relaxed);
        let view = index.view(key);
        let kind = view.as_ref().map(|view| view.import.kind);
        let built = view.map(|view| build(&view, self.store.options())).unwrap_or_default();
        if built.too_long > 0 {
            let reason = SkipReason::NameTooLong;
            let count = built.too_long;
            tracing::warn!(
                service = %key,
                reason = reason.as_str(),
                "{key}: {count} endpoint names would be longer than 255 octets and are left out; shorten hostname, \
                 cluster id, service or namespace"
            );
        }
        let changed = self.store.put(key, built.answers);
        self.unsigned |= changed;
        let triggered = self.triggered.remove(key);
        if let (Some(metrics), Some(at), Some(kind)) = (self.metrics.as_ref().filter(|_| !first), triggered, kind) {
            let kind = match kind {
                ImportKind::ClusterSetIp => ServiceKind::ClusterIp,
                ImportKind::Headless => ServiceKind::HeadlessWithSelector,
            };
            metrics.programmed(kind, now.wall.duration_since(at).unwrap_or_default());
        }
    }

    /// Gives a changed record set its serial, at most once a second.
    fn sign(&mut self, now: Now) {
        if self.unsigned && self.store.serial().advance(now.unix_seconds()) {
            self.unsigned = false;
        }
    }
}

/// Runs `feed` on what `updates` delivers, until its senders are gone.
pub async fn run(mut feed: Feed, mut updates: Receiver<Update>) {
    let mut burst = Vec::with_capacity(BURST);
    loop {
        let due = feed.due().map(tokio::time::Instant::from_std);
        let wait = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = updates.recv_many(&mut burst, BURST) => {
                if count == 0 {
                    return;
                }
                feed.take(burst.drain(..), Now::read());
            }
            () = wait => feed.flush(Now::read()),
        }
    }
}

/// A store of these objects, complete and synced: for `explain --from`, tests and benches.
#[must_use]
pub fn load(options: Options, changes: Vec<Change>) -> Arc<Store> {
    let store = Arc::new(Store::new(options));
    let health = Arc::new(Health::new(true));
    let mut feed = Feed::new(Arc::clone(&store), health, None, Now::read());
    feed.take(resync(changes), Now::read());
    store
}

/// The updates of a full replacement of everything by `changes`.
pub fn resync(changes: Vec<Change>) -> impl Iterator<Item = Update> {
    let begin = Resource::ALL.map(Update::ResyncBegin);
    let end = Resource::ALL.map(Update::ResyncEnd);
    begin.into_iter().chain(changes.into_iter().map(Update::Change)).chain(end)
}
