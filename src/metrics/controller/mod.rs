//! What the controller counts.

mod state;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

pub use state::{ClusterState, ControllerState};
pub use table::CONTROLLER_TABLE;

use super::family::Family;
use super::histogram::{Histogram, PROGRAMMING, REQUEST, TIME};
use super::table::OWN_BUILD_INFO;
use super::{REVISION, lock, process};

/// The value of the label `cluster` for the hub: no cluster can be called so.
pub const HUB: &str = "(hub)";

/// The counters of the controller.
pub struct ControllerMetrics {
    counts: Arc<Counts>,
    registry: Registry,
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Default for ControllerMetrics {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct Counts {
    descs: Vec<Desc>,
    clusters: Mutex<BTreeMap<String, OfCluster>>,
    propagation: Mutex<Histogram>,
    planning: Mutex<Histogram>,
    state: Mutex<ControllerState>,
}

/// What is counted of a cluster.
#[derive(Debug)]
struct OfCluster {
    /// By resource and verb.
    writes: BTreeMap<(&'static str, &'static str), u64>,
    /// By reason.
    errors: BTreeMap<&'static str, u64>,
    write_duration: Histogram,
    /// By verb and code.
    requests: BTreeMap<(String, String), u64>,
    /// By verb.
    request_duration: BTreeMap<String, Histogram>,
}

impl OfCluster {
    fn new() -> Self {
        Self {
            writes: BTreeMap::new(),
            errors: BTreeMap::new(),
            write_duration: Histogram::new(REQUEST),
            requests: BTreeMap::new(),
            request_duration: BTreeMap::new(),
        }
    }
}

impl ControllerMetrics {
    /// None counted yet.
    #[must_use]
    pub fn new() -> Self {
        let counts = Arc::new(Counts {
            descs: CONTROLLER_TABLE.iter().chain([&OWN_BUILD_INFO]).filter_map(|metric| metric.desc().ok()).collect(),
            clusters: Mutex::default(),
            propagation: Mutex::new(Histogram::new(PROGRAMMING)),
            planning: Mutex::new(Histogram::new(TIME)),
            state: Mutex::default(),
        });
        let registry = Registry::new();
        let collectors: [Box<dyn Collector>; 3] = [
            Box::new(Collected(Arc::clone(&counts))),
            Box::new(ProcessCollector::for_self()),
            Box::new(process::ProcessExtras::new()),
        ];
        for collector in collectors {
            if let Err(error) = registry.register(collector) {
                // The names are constants and a test renders them all, so this can't happen; the rest goes on if it does.
                tracing::error!(%error, "some metrics are missing: they could not be registered");
            }
        }
        Self { counts, registry }
    }

    fn of(&self, cluster: &str, count: impl FnOnce(&mut OfCluster)) {
        let mut clusters = lock(&self.counts.clusters);
        match clusters.get_mut(cluster) {
            Some(known) => count(known),
            None => count(clusters.entry(cluster.to_owned()).or_insert_with(OfCluster::new)),
        }
    }

    /// A write to a member ended: `resource` is the plural, with `/status` for a status; `verb` is `apply`, `delete`, `create` or
    /// `replace`; `outcome` is `ok`, or the kind of error.
    pub fn write(
        &self,
        cluster: &str,
        resource: &'static str,
        verb: &'static str,
        outcome: &'static str,
        seconds: f64,
    ) {
        self.of(cluster, |counts| {
            counts.write_duration.observe(seconds);
            if outcome == "ok" {
                *counts.writes.entry((resource, verb)).or_default() += 1;
            } else {
                *counts.errors.entry(outcome).or_default() += 1;
            }
        });
    }

    /// A change of a member was written to the last importer, so many seconds after it was seen.
    pub fn propagated(&self, seconds: f64) {
        lock(&self.counts.propagation).observe(seconds);
    }

    /// A service was planned.
    pub fn planned(&self, seconds: f64) {
        lock(&self.counts.planning).observe(seconds);
    }

    /// A request to the API server of a member (or of the [`HUB`]) was answered (`code` is the HTTP status) or not
    /// (`<error>`); `verb` is `get`, `list`, `watch` and the like. A watch counts until it begins.
    pub fn request(&self, cluster: &str, code: &str, verb: &str, seconds: f64) {
        self.of(cluster, |counts| {
            *counts.requests.entry((verb.to_owned(), code.to_owned())).or_default() += 1;
            if verb != "watch" {
                let duration = counts.request_duration.entry(verb.to_owned());
                duration.or_insert_with(|| Histogram::new(REQUEST)).observe(seconds);
            }
        });
    }

    /// Everything in Prometheus's text format. What was counted of clusters that are not in `state` is forgotten.
    ///
    /// # Errors
    /// What the encoder says; with the constant names of [`CONTROLLER_TABLE`] nothing.
    pub fn render(&self, state: ControllerState) -> prometheus::Result<String> {
        let members: BTreeSet<&str> = state.clusters.iter().map(|cluster| cluster.id.as_str()).collect();
        lock(&self.counts.clusters).retain(|cluster, _| cluster == HUB || members.contains(cluster.as_str()));
        *lock(&self.counts.state) = state;
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// What the registry asks at each scrape.
struct Collected(Arc<Counts>);

impl Collector for Collected {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        let mut build = Family::new(&OWN_BUILD_INFO);
        build.value(&[env!("CARGO_PKG_VERSION"), REVISION], 1.0);
        families.push(build.finish());
        self.0.counted(&mut families);
        looked_at(&lock(&self.0.state), &mut families);
        families
    }
}

impl Counts {
    fn counted(&self, families: &mut Vec<MetricFamily>) {
        let mut writes = Family::new(&table::WRITES);
        let mut errors = Family::new(&table::WRITE_ERRORS);
        let mut write_duration = Family::new(&table::WRITE_DURATION);
        let mut requests = Family::new(&table::REQUESTS);
        let mut request_duration = Family::new(&table::REQUEST_DURATION);
        for (cluster, counts) in &*lock(&self.clusters) {
            for ((resource, verb), count) in &counts.writes {
                writes.value(&[cluster, resource, verb], *count as f64);
            }
            for (reason, count) in &counts.errors {
                errors.value(&[cluster, reason], *count as f64);
            }
            if counts.write_duration.count() > 0 {
                write_duration.histogram(&[cluster], &counts.write_duration);
            }
            for ((verb, code), count) in &counts.requests {
                requests.value(&[cluster, verb, code], *count as f64);
            }
            for (verb, duration) in &counts.request_duration {
                request_duration.histogram(&[cluster, verb], duration);
            }
        }
        families.extend([writes, errors, write_duration, requests, request_duration].map(Family::finish));
        families.push(Family::single_histogram(&table::PLAN_DURATION, &lock(&self.planning)));
        families.push(Family::single_histogram(&table::PROPAGATION, &lock(&self.propagation)));
    }
}

fn looked_at(state: &ControllerState, families: &mut Vec<MetricFamily>) {
    let flag = |holds: bool| f64::from(u8::from(holds));
    for (metric, value) in [
        (&table::LEADER, flag(state.leader)),
        (&table::MEMBERS_COMPLETE, flag(state.members_complete)),
        (&table::MEMBERS_REFUSED, state.members_refused as f64),
        (&table::SERVICES, state.services as f64),
        (&table::PLANNING, state.planning as f64),
    ] {
        families.push(Family::single(metric, value));
    }
    let mut registries = Family::new(&table::REGISTRY_UP);
    for (registry, up) in &state.registries {
        registries.value(&[registry], flag(*up));
    }
    let mut exports = Family::new(&table::EXPORTS);
    for (cluster, count) in &state.exports {
        exports.value(&[cluster], *count as f64);
    }
    let mut imports = Family::new(&table::IMPORTS);
    for (cluster, count) in &state.imports {
        imports.value(&[cluster], *count as f64);
    }
    let mut not_imported = Family::new(&table::NOT_IMPORTED);
    for (cluster, reason, count) in &state.not_imported {
        not_imported.value(&[cluster, reason], *count as f64);
    }
    let mut conflicts = Family::new(&table::CONFLICTS);
    for (reason, count) in &state.conflicts {
        conflicts.value(&[reason], *count as f64);
    }
    families.extend([registries, exports, imports, not_imported, conflicts].map(Family::finish));

    let mut up = Family::new(&table::CLUSTER_UP);
    let mut age = Family::new(&table::SYNC_AGE);
    let mut watch_up = Family::new(&table::WATCH_UP);
    let mut watch_errors = Family::new(&table::WATCH_ERRORS);
    let mut queue = Family::new(&table::QUEUE);
    let mut failing = Family::new(&table::FAILING);
    for cluster in &state.clusters {
        let id = cluster.id.as_str();
        up.value(&[id], flag(cluster.up));
        // As old as the oldest part.
        if cluster.synced
            && let Some(quiet) = cluster.watches.iter().filter_map(|watch| watch.age).max()
        {
            age.value(&[id], quiet.as_secs_f64());
        }
        for watch in &cluster.watches {
            watch_up.value(&[id, watch.resource], flag(watch.up));
            for (reason, count) in &watch.errors {
                watch_errors.nonzero(&[id, watch.resource, reason], *count);
            }
        }
        queue.value(&[id], cluster.queue as f64);
        failing.value(&[id], cluster.failing as f64);
    }
    families.extend([up, age, watch_up, watch_errors, queue, failing].map(Family::finish));
}
