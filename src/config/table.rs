//! Every setting, once: its name, its default and its explanation.

use super::keys::{Key, Section, Shape, Spec};

const fn one(
    key: Key,
    name: &'static str,
    section: Section,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Spec {
    Spec { key, name, shape: Shape::One, section, value, default, help }
}

const fn many(
    key: Key,
    name: &'static str,
    section: Section,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Spec {
    Spec { key, name, shape: Shape::Many, section, value, default, help }
}

const fn switch(key: Key, name: &'static str, section: Section, help: &'static str) -> Spec {
    Spec { key, name, shape: Shape::Switch, section, value: "true|false", default: "false", help }
}

/// Every setting, in the order of the help.
pub const KEYS: &[Spec] = &[
    // --- source
    one(
        Key::From,
        "from",
        Section::Source,
        "DIR",
        "",
        "Serve the ServiceImports and EndpointSlices in the YAML files of this folder; edits are picked up. Needs no cluster",
    ),
    one(
        Key::Kubeconfig,
        "kubeconfig",
        Section::Source,
        "FILE",
        "",
        "Watch the cluster of this kubeconfig. Without it and without --from: the cluster whose pod this is",
    ),
    one(
        Key::Context,
        "context",
        Section::Source,
        "NAME",
        "",
        "The context in the kubeconfig; default is its current one",
    ),
    // --- zone
    many(Key::Zone, "zone", Section::Zone, "NAME", "clusterset.local", "A zone to serve"),
    one(
        Key::Ttl,
        "ttl",
        Section::Zone,
        "SECONDS",
        "5",
        "TTL of records, 0 to 3600. CoreDNS's `cache` in front raises less than 5 to 5",
    ),
    one(
        Key::Negttl,
        "negttl",
        Section::Zone,
        "SECONDS",
        "",
        "TTL of negative answers, 0 to 3600; default is the ttl, at most 5",
    ),
    many(
        Key::Namespaces,
        "namespaces",
        Section::Zone,
        "NAME",
        "",
        "Serve these namespaces only; the names of all others do not exist",
    ),
    one(
        Key::Endpoints,
        "endpoints",
        Section::Zone,
        "ready|serving-fallback",
        "ready",
        "Which endpoints are answered: ready ones; or, where a service has none, those terminating but still serving",
    ),
    switch(
        Key::NoEndpoints,
        "no_endpoints",
        Section::Zone,
        "Do not watch EndpointSlices at all: ClusterSetIP services only, headless names do not exist",
    ),
    one(
        Key::MaxEndpoints,
        "max_endpoints",
        Section::Zone,
        "N",
        "",
        "At most this many endpoints in an answer, a random part of a larger set; default is what the message holds",
    ),
    // --- names
    one(
        Key::EmptyHeadless,
        "empty_headless",
        Section::Names,
        "nxdomain|nodata",
        "nxdomain",
        "What a headless service without ready endpoints answers",
    ),
    switch(
        Key::IgnoreEmptyService,
        "ignore_empty_service",
        Section::Names,
        "A ClusterSetIP service without ready endpoints does not exist",
    ),
    one(
        Key::EndpointNames,
        "endpoint_names",
        Section::Names,
        "headless|all",
        "headless",
        "Which services have <hostname>.<cluster>.<service> names; `all` is what CoreDNS does",
    ),
    switch(
        Key::EndpointPodNames,
        "endpoint_pod_names",
        Section::Names,
        "Name an endpoint without hostname after its pod instead of its address",
    ),
    switch(
        Key::ClusterNames,
        "cluster_names",
        Section::Names,
        "Answer <cluster>.<service> too, as Lighthouse does (KEP-1645 says it must not exist)",
    ),
    // --- identity
    one(Key::DnsVersion, "dns_version", Section::Identity, "TEXT", "1.0.0", "The TXT record at dns-version.<zone>"),
    many(
        Key::Nameserver,
        "nameserver",
        Section::Identity,
        "IP",
        "",
        "An address of ns.dns.<zone>, the zone's NS; default is the listen addresses that are no wildcard",
    ),
    one(
        Key::Nsid,
        "nsid",
        Section::Identity,
        "TEXT",
        "",
        "What a query for the NSID is told (RFC 5001); default nothing",
    ),
    one(
        Key::Chaos,
        "chaos",
        Section::Identity,
        "TEXT",
        "",
        "Answer CH TXT version.bind with this, and id.server with the nsid or host name; default is to refuse",
    ),
    // --- serving
    many(
        Key::Listen,
        "listen",
        Section::Serving,
        "ADDR:PORT",
        ":53",
        "Serve DNS here, over UDP and TCP. `:PORT` is every address of the machine, IPv4 and IPv6",
    ),
    one(
        Key::Bufsize,
        "bufsize",
        Section::Serving,
        "BYTES",
        "1232",
        "The largest answer over UDP, 512 to 4096; what does not fit is asked again over TCP",
    ),
    one(
        Key::UdpWorkers,
        "udp_workers",
        Section::Serving,
        "N",
        "auto",
        "Threads for UDP, each with a socket per listen address; `auto` is one per core",
    ),
    // --- tcp
    one(Key::TcpConnections, "tcp_connections", Section::Tcp, "N", "4096", "The most connections at a time"),
    one(
        Key::TcpConnectionsPerClient,
        "tcp_connections_per_client",
        Section::Tcp,
        "N",
        "1024",
        "The most connections at a time from one address; a forwarder brings those of all its clients",
    ),
    one(Key::TcpRead, "tcp_read", Section::Tcp, "DURATION", "3s", "How long a query may take to arrive"),
    one(Key::TcpWrite, "tcp_write", Section::Tcp, "DURATION", "5s", "How long a client may take to accept an answer"),
    one(Key::TcpIdle, "tcp_idle", Section::Tcp, "DURATION", "10s", "How long a connection may be silent"),
    // --- admin
    one(
        Key::Admin,
        "admin",
        Section::Admin,
        "ADDR:PORT",
        "127.0.0.1:8053",
        "Serve /health, /ready, /metrics and /explain here, over HTTP; `none` for not at all",
    ),
    one(Key::Health, "health", Section::Admin, "ADDR:PORT", "", "Serve /health here instead; `none` for not at all"),
    one(Key::Ready, "ready", Section::Admin, "ADDR:PORT", "", "Serve /ready here instead; `none` for not at all"),
    one(Key::Metrics, "metrics", Section::Admin, "ADDR:PORT", "", "Serve /metrics here instead; `none` for not at all"),
    one(Key::LogFormat, "log_format", Section::Admin, "text|json", "text", "How log lines are written"),
    one(
        Key::LogLevel,
        "log_level",
        Section::Admin,
        "LEVEL",
        "info",
        "The least that is logged: error, warn, info, debug or trace; or a filter such as info,namesake::source=debug",
    ),
    switch(
        Key::QueryLog,
        "query_log",
        Section::Admin,
        "Log every query in CoreDNS's format. When the log is slower than the answers, lines are dropped and counted",
    ),
    // --- lifecycle
    one(
        Key::StartupTimeout,
        "startup_timeout",
        Section::Lifecycle,
        "DURATION",
        "5s",
        "How long to wait for the first complete lists before DNS is served; until they are there: SERVFAIL",
    ),
    one(
        Key::MaxStale,
        "max_stale",
        Section::Lifecycle,
        "DURATION",
        "never",
        "Answer SERVFAIL when the API server has been silent for this long; `never` keeps the last data for ever",
    ),
    one(
        Key::Lameduck,
        "lameduck",
        Section::Lifecycle,
        "DURATION",
        "0s",
        "On SIGTERM be unready, but go on answering, for this long; a second signal ends at once",
    ),
    one(
        Key::Grace,
        "grace",
        Section::Lifecycle,
        "DURATION",
        "5s",
        "After that, how long queries that have arrived may take to be answered",
    ),
];
