//! Every metric, registered once, documented once.
//!
//! ```text
//!  UDP threads ─► DnsShard (one each) ─┐
//!  TCP tasks ───► DnsShard ────────────┤
//!  source, feed, admin ─► Metrics ─────┼─► render(State) ─► text
//!  whoever owns the index ─► State ────┘
//! ```
//!
//! This module knows of nothing else in the crate, so everything may use it. Nothing is global: a process may have
//! several [`Metrics`] (tests do).

mod controller;
mod dns;
mod family;
mod histogram;
mod process;
mod shard;
mod state;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

pub use controller::{CONTROLLER_TABLE, ClusterState, ControllerMetrics, ControllerState, HUB};
use dns::Listener;
pub use dns::rcode_name;
use family::Family;
use histogram::{Histogram, PROGRAMMING, REQUEST, SLIM};
pub use shard::{Answered, DnsShard, Drop};
pub use state::{Skips, State, Watch};
pub use table::{Kind, Metric, TABLE};

/// The content type of [`Metrics::render`]'s text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The commit this was built from, where the build says so.
const REVISION: &str = match option_env!("NAMESAKE_REVISION") {
    Some(revision) => revision,
    None => "",
};

/// Most series of `namesake_records_skipped`: source clusters are named by others, so they need a bound.
const MAX_SKIPPED: usize = 500;

/// CoreDNS's kinds of service, the values of the label `service_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceKind {
    /// With an address of its own; for us a ClusterSetIP import.
    ClusterIp,
    /// Headless with endpoints that a selector found; for us a headless import.
    HeadlessWithSelector,
    /// Headless with endpoints written by hand.
    HeadlessWithoutSelector,
}

impl ServiceKind {
    const TEXTS: [&str; 3] = ["cluster_ip", "headless_with_selector", "headless_without_selector"];
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    counts: Arc<Counts>,
    registry: Registry,
}

/// What is counted, save the DNS shards' own numbers.
#[derive(Debug)]
struct Counts {
    /// Label values: each zone with its final dot, then `dropped`.
    zones: Vec<String>,
    plugin: &'static str,
    descs: Vec<Desc>,
    listeners: Mutex<Vec<Listener>>,
    plugins: Mutex<BTreeSet<&'static str>>,
    panics: Arc<AtomicU64>,
    reload_failed: AtomicU64,
    query_log_dropped: AtomicU64,
    health_failures: AtomicU64,
    health_duration: Mutex<Histogram>,
    programming: Mutex<[Histogram; ServiceKind::TEXTS.len()]>,
    /// By code, method and host.
    kube_requests: Mutex<BTreeMap<[String; 3], u64>>,
    /// By verb and host.
    kube_duration: Mutex<BTreeMap<[String; 2], Histogram>>,
    kube_throttled: Mutex<BTreeMap<[String; 2], Histogram>>,
    state: Mutex<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics {
    /// The metrics of a server of these zones (without final dot); `plugin` is the label value of CoreDNS's
    /// `coredns_dns_responses_total`.
    #[must_use]
    pub fn new(zones: &[String], plugin: &'static str) -> Self {
        let dotted = zones.iter().map(|zone| format!("{}.", zone.trim_end_matches('.')));
        let counts = Arc::new(Counts {
            zones: dotted.chain(["dropped".to_owned()]).collect(),
            plugin,
            // Those of the process have collectors of their own.
            descs: TABLE.iter().filter(|m| !m.name.starts_with("process_")).filter_map(|m| m.desc().ok()).collect(),
            listeners: Mutex::default(),
            plugins: Mutex::new(BTreeSet::from([plugin])),
            panics: Arc::default(),
            reload_failed: AtomicU64::default(),
            query_log_dropped: AtomicU64::default(),
            health_failures: AtomicU64::default(),
            health_duration: Mutex::new(Histogram::new(SLIM)),
            programming: Mutex::new(std::array::from_fn(|_| Histogram::new(PROGRAMMING))),
            kube_requests: Mutex::default(),
            kube_duration: Mutex::default(),
            kube_throttled: Mutex::default(),
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
                // The names are constants and a test renders them all, so this can't happen; DNS goes on if it does.
                tracing::error!(%error, "some metrics are missing: they could not be registered");
            }
        }
        Self { counts, registry }
    }

    /// Counters for a socket of `server` (`dns://:53`, or `dns://10.0.0.1:53` for a specific address). A UDP shard
    /// has one writer: ask for one for each thread.
    #[must_use]
    pub fn dns_shard(&self, server: &str, tcp: bool) -> Arc<DnsShard> {
        let shard = Arc::new(DnsShard::new(self.counts.zones.len() - 1, tcp, Arc::clone(&self.counts.panics)));
        let listener = Listener { server: server.to_owned(), tcp, shard: Arc::clone(&shard) };
        lock(&self.counts.listeners).push(listener);
        shard
    }

    /// Shows a handler besides our own in `coredns_plugin_enabled`: `log` with a query log, `prometheus`, `errors`.
    pub fn plugin_enabled(&self, name: &'static str) {
        lock(&self.counts.plugins).insert(name);
    }

    /// Counts a panic that was caught.
    pub fn panicked(&self) {
        self.counts.panics.fetch_add(1, Relaxed);
    }

    /// Counts settings that could not be taken over; the old ones go on.
    pub fn reload_failed(&self) {
        self.counts.reload_failed.fetch_add(1, Relaxed);
    }

    /// Counts lines that the query log had no room for.
    pub fn query_log_dropped(&self, lines: u64) {
        self.counts.query_log_dropped.fetch_add(lines, Relaxed);
    }

    /// Counts the admin routes' request to themselves.
    pub fn health_request(&self, took: Duration, failed: bool) {
        lock(&self.counts.health_duration).observe_duration(took);
        if failed {
            self.counts.health_failures.fetch_add(1, Relaxed);
        }
    }

    /// A change was served this long after it happened (`endpoints.kubernetes.io/last-change-trigger-time`).
    pub fn programmed(&self, kind: ServiceKind, took: Duration) {
        if let Some(histogram) = lock(&self.counts.programming).get_mut(kind as usize) {
            histogram.observe_duration(took);
        }
    }

    /// A request to an API server: its method, the server's `host:port`, the status (`None` where no answer came,
    /// CoreDNS's `<error>`), and for lists and the like (not watches, which last) the verb and how long it took.
    pub fn kube_request(&self, method: &str, host: &str, code: Option<u16>, verb: &str, took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        *lock(&self.counts.kube_requests).entry([code, method.to_owned(), host.to_owned()]).or_default() += 1;
        if !verb.eq_ignore_ascii_case("watch") {
            let key = [verb.to_owned(), host.to_owned()];
            lock(&self.counts.kube_duration)
                .entry(key)
                .or_insert_with(|| Histogram::new(REQUEST))
                .observe_duration(took);
        }
    }

    /// A request to an API server waited this long, because of our own limits, before it was sent.
    pub fn kube_throttled(&self, verb: &str, host: &str, waited: Duration) {
        let key = [verb.to_owned(), host.to_owned()];
        lock(&self.counts.kube_throttled)
            .entry(key)
            .or_insert_with(|| Histogram::new(REQUEST))
            .observe_duration(waited);
    }

    /// Everything in Prometheus's text format.
    ///
    /// # Errors
    /// What the encoder says; with the constant names of [`TABLE`] nothing.
    pub fn render(&self, state: State) -> prometheus::Result<String> {
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
        let counts = &*self.0;
        let queue_drops = lock(&counts.state).queue_drops;
        let mut families = dns::collect(&lock(&counts.listeners), &counts.zones, counts.plugin, queue_drops);
        counts.coredns(&mut families);
        counts.own(&mut families);
        families
    }
}

impl Counts {
    /// CoreDNS's families besides `coredns_dns_*`.
    fn coredns(&self, families: &mut Vec<MetricFamily>) {
        let version = env!("CARGO_PKG_VERSION");
        let mut build = Family::new(&table::BUILD_INFO);
        build.value(&[version, REVISION, ""], 1.0);

        let mut enabled = Family::new(&table::PLUGIN_ENABLED);
        let plugins = lock(&self.plugins);
        let servers: BTreeSet<String> = lock(&self.listeners).iter().map(|l| l.server.clone()).collect();
        for server in &servers {
            for zone in self.zones.iter().take(self.zones.len() - 1) {
                for name in plugins.iter() {
                    enabled.value(&[server, zone, "", name], 1.0);
                }
            }
        }

        let mut programming = Family::new(&table::PROGRAMMING_DURATION);
        for (kind, histogram) in ServiceKind::TEXTS.into_iter().zip(&*lock(&self.programming)) {
            if histogram.count() > 0 {
                programming.histogram(&[kind], histogram);
            }
        }
        let mut requests = Family::new(&table::KUBE_REQUESTS);
        for ([code, method, host], count) in &*lock(&self.kube_requests) {
            requests.nonzero(&[code, method, host], *count);
        }
        let mut duration = Family::new(&table::KUBE_DURATION);
        for ([verb, host], histogram) in &*lock(&self.kube_duration) {
            duration.histogram(&[verb, host], histogram);
        }
        let mut throttled = Family::new(&table::KUBE_THROTTLED);
        for ([verb, host], histogram) in &*lock(&self.kube_throttled) {
            throttled.histogram(&[verb, host], histogram);
        }
        families.extend([build, enabled, programming, requests, duration, throttled].map(Family::finish));
        families.push(Family::single_histogram(&table::HEALTH_DURATION, &lock(&self.health_duration)));
        for (metric, count) in [
            (&table::HEALTH_FAILURES, &self.health_failures),
            (&table::PANICS, &self.panics),
            (&table::RELOAD_FAILED, &self.reload_failed),
            (&table::QUERY_LOG_DROPPED, &self.query_log_dropped),
        ] {
            families.push(Family::single(metric, count.load(Relaxed) as f64));
        }
    }

    /// The families that are ours.
    fn own(&self, families: &mut Vec<MetricFamily>) {
        let state = lock(&self.state);
        let mut build = Family::new(&table::OWN_BUILD_INFO);
        build.value(&[env!("CARGO_PKG_VERSION"), REVISION], 1.0);
        let mut imports = Family::new(&table::IMPORTS);
        for (kind, count) in &state.imports {
            imports.value(&[kind], *count as f64);
        }
        let mut up = Family::new(&table::WATCH_UP);
        let mut age = Family::new(&table::WATCH_AGE);
        for watch in &state.watches {
            up.value(&[watch.resource], f64::from(u8::from(watch.up)));
            if let Some(quiet) = watch.age {
                age.value(&[watch.resource], quiet.as_secs_f64());
            }
        }
        let mut errors = Family::new(&table::WATCH_ERRORS);
        for watch in &state.watches {
            for (reason, count) in &watch.errors {
                errors.nonzero(&[watch.resource, reason], *count);
            }
        }
        let mut serials = Family::new(&table::SOA_SERIAL);
        for (zone, serial) in &state.soa_serials {
            serials.value(&[&format!("{}.", zone.trim_end_matches('.'))], f64::from(*serial));
        }
        let mut updates = Family::new(&table::UPDATES);
        for (resource, count) in &state.updates {
            updates.value(&[resource], *count as f64);
        }
        families.extend([build, imports, up, age, errors, serials, updates].map(Family::finish));
        families.push(skipped(&state.skipped));
        families.push(Family::single(&table::SYNCED, f64::from(u8::from(state.synced))));
        families.push(Family::single(&table::ENDPOINTS, state.endpoints as f64));
        families.push(Family::single(&table::REBUILDS, state.rebuilds as f64));
    }
}

/// What is skipped, in a bounded number of series: the clusters with least go together as `other`.
fn skipped(skips: &[Skips]) -> MetricFamily {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut sorted: Vec<&Skips> = skips.iter().filter(|skips| skips.count > 0).collect();
    sorted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.source_cluster.cmp(&b.source_cluster)));
    for (position, skips) in sorted.into_iter().enumerate() {
        let cluster = if position < MAX_SKIPPED { skips.source_cluster.as_str() } else { "other" };
        *sums.entry((skips.reason, cluster)).or_default() += skips.count;
    }
    let mut family = Family::new(&table::SKIPPED);
    for ((reason, cluster), count) in sums {
        family.value(&[reason, cluster], count as f64);
    }
    family.finish()
}
