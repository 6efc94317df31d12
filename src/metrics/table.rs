//! The name, type, help and labels of every metric, exactly once: the scrape, the README's table and the tests all
//! read them here.

use super::histogram::{PROGRAMMING, REQUEST, SIZE, SLIM, TIME};

/// What kind of metric one is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// Counts by upper bounds.
    Histogram(&'static [f64]),
}

impl Kind {
    /// The word of the exposition format's `# TYPE` line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
}

pub(super) const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels }
}

pub(super) const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels }
}

pub(super) const fn histogram(
    name: &'static str,
    bounds: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(bounds), help, labels }
}

/// Declares the constants and lists them in a table, so that none can be forgotten.
macro_rules! table {
    ($(#[$doc:meta])* $table:ident; $($constant:ident = $metric:expr;)*) => {
        $(pub(super) const $constant: Metric = $metric;)*
        $(#[$doc])*
        pub const $table: &[Metric] = &[$($constant),*];
    };
}
pub(super) use table;

table! {
    /// Every metric that the DNS half can show. Those of CoreDNS keep its names, labels, buckets and help texts
    /// (`dns.md` 2.4), so that dashboards and alerts keep working; ours begin with `namesake_`.
    TABLE;
    BUILD_INFO = gauge("coredns_build_info", &["version", "revision", "goversion"],
        "A metric with a constant '1' value labeled by version, revision, and goversion from which Namesake was built.");
    PANICS = counter("coredns_panics_total", &[], "A metrics that counts the number of panics.");
    PLUGIN_ENABLED = gauge("coredns_plugin_enabled", &["server", "zone", "view", "name"],
        "A metric that indicates whether a plugin is enabled on per server and zone basis.");
    REQUESTS = counter("coredns_dns_requests_total", &["server", "zone", "view", "proto", "family", "type"],
        "Counter of DNS requests made per zone, protocol and family.");
    REQUEST_DURATION = histogram("coredns_dns_request_duration_seconds", TIME, &["server", "zone", "view"],
        "Histogram of the time (in seconds) each request took per zone.");
    REQUEST_SIZE = histogram("coredns_dns_request_size_bytes", SIZE, &["server", "zone", "view", "proto"],
        "Size of the request in bytes, per zone and protocol.");
    RESPONSE_SIZE = histogram("coredns_dns_response_size_bytes", SIZE, &["server", "zone", "view", "proto"],
        "Size of the returned response in bytes.");
    DO_REQUESTS = counter("coredns_dns_do_requests_total", &["server", "zone", "view"],
        "Counter of DNS requests with DO bit set per zone.");
    RESPONSES = counter("coredns_dns_responses_total", &["server", "zone", "view", "rcode", "plugin"],
        "Counter of response status codes.");
    HEALTH_DURATION = histogram("coredns_health_request_duration_seconds", SLIM, &[],
        "Histogram of the time (in seconds) each request took.");
    HEALTH_FAILURES = counter("coredns_health_request_failures_total", &[],
        "The number of times the health check failed.");
    RELOAD_FAILED = counter("coredns_reload_failed_total", &[],
        "Counter of the number of failed reload attempts.");
    PROGRAMMING_DURATION = histogram("coredns_kubernetes_dns_programming_duration_seconds", PROGRAMMING,
        &["service_kind"], "Histogram of the time (in seconds) it took to program a dns instance.");
    KUBE_DURATION = histogram("coredns_kubernetes_rest_client_request_duration_seconds", REQUEST, &["verb", "host"],
        "Request latency in seconds. Broken down by verb and host.");
    KUBE_THROTTLED = histogram("coredns_kubernetes_rest_client_rate_limiter_duration_seconds", REQUEST,
        &["verb", "host"], "Client side rate limiter latency in seconds. Broken down by verb and host.");
    KUBE_REQUESTS = counter("coredns_kubernetes_rest_client_requests_total", &["code", "method", "host"],
        "Number of HTTP requests, partitioned by status code, method, and host.");

    OWN_BUILD_INFO = gauge("namesake_build_info", &["version", "revision"],
        "Constant 1; the labels say which build this is.");
    SYNCED = gauge("namesake_synced", &[],
        "1 once every needed list was complete; there is no way back to 0.");
    IMPORTS = gauge("namesake_imports", &["type"], "ServiceImports that are known, by spec.type.");
    ENDPOINTS = gauge("namesake_endpoints", &[], "Ready endpoints that are known, one for each address, in all slices.");
    WATCH_UP = gauge("namesake_watch_up", &["resource"], "1 while the watch delivers, else 0.");
    WATCH_AGE = gauge("namesake_watch_last_event_age_seconds", &["resource"],
        "Seconds since the source last proved that this data is up to date: an event, a bookmark, a new watch or a list.");
    WATCH_ERRORS = counter("namesake_watch_errors_total", &["resource", "reason"],
        "How often a watch or list was in trouble.");
    SKIPPED = gauge("namesake_records_skipped", &["reason", "source_cluster"],
        "Objects, or parts of objects, that are there and not served, by reason and the cluster they come from.");
    UPDATES = counter("namesake_updates_total", &["resource"], "Objects taken in from the source.");
    REBUILDS = counter("namesake_service_rebuilds_total", &[],
        "How often the answers of a service were built anew.");
    SOA_SERIAL = gauge("namesake_soa_serial", &["zone"],
        "Serial of the zone's SOA: replicas with equal data converge to close values; one that lags stands still.");
    TRUNCATED_SETS = counter("namesake_dns_truncated_sets_total", &[],
        "Answers in which a set was cut by whole endpoints because no message holds it.");
    DROPS = counter("namesake_dns_drops_total", &["reason"], "Datagrams and connections that got no answer; `queue`: the kernel had no room for them, so there is too little CPU.");
    QUERY_LOG_DROPPED = counter("namesake_query_log_dropped_total", &[],
        "Lines of the query log that were dropped because its queue was full.");

    PROCESS_CPU = counter("process_cpu_seconds_total", &[], "Total user and system CPU time spent in seconds.");
    PROCESS_OPEN_FDS = gauge("process_open_fds", &[], "Number of open file descriptors.");
    PROCESS_MAX_FDS = gauge("process_max_fds", &[], "Maximum number of open file descriptors.");
    PROCESS_VIRTUAL = gauge("process_virtual_memory_bytes", &[], "Virtual memory size in bytes.");
    PROCESS_VIRTUAL_MAX = gauge("process_virtual_memory_max_bytes", &[],
        "Maximum amount of virtual memory available in bytes.");
    PROCESS_RESIDENT = gauge("process_resident_memory_bytes", &[], "Resident memory size in bytes.");
    PROCESS_START = gauge("process_start_time_seconds", &[],
        "Start time of the process since unix epoch in seconds.");
    PROCESS_THREADS = gauge("process_threads", &[], "Number of OS threads in the process.");
    PROCESS_RECEIVED = counter("process_network_receive_bytes_total", &[],
        "Number of bytes received by the process over the network.");
    PROCESS_TRANSMITTED = counter("process_network_transmit_bytes_total", &[],
        "Number of bytes sent by the process over the network.");
}
