//! Reading a scrape, and metrics in which every family has a value.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use namesake::metrics::{Answered, Drop, Metrics, ServiceKind, Skips, State, Watch};

/// The zones of the tests.
pub(crate) fn zones() -> Vec<String> {
    vec!["clusterset.local".to_owned(), "other.example".to_owned()]
}

/// An ordinary answer.
pub(crate) fn answered() -> Answered {
    Answered {
        zone: Some(0),
        qtype: 1,
        rcode: 0,
        ipv6: false,
        query_len: 60,
        reply_len: 96,
        dnssec_ok: false,
        cut: false,
        duration: Duration::from_nanos(213_417),
    }
}

/// A state with something in every field.
pub(crate) fn state() -> State {
    State {
        synced: true,
        imports: vec![("ClusterSetIP", 3), ("Headless", 2)],
        endpoints: 40,
        watches: vec![
            Watch {
                resource: "serviceimports",
                up: true,
                age: Some(Duration::from_millis(1_500)),
                errors: vec![("unreachable", 1)],
            },
            Watch { resource: "endpointslices", up: false, age: Some(Duration::from_secs(90)), errors: vec![] },
        ],
        skipped: vec![Skips { reason: "bad_port", source_cluster: "east".to_owned(), count: 2 }],
        soa_serials: vec![("clusterset.local".to_owned(), 1_796_000_000)],
        updates: vec![("serviceimports", 5), ("endpointslices", 9)],
        rebuilds: 7,
        queue_drops: 3,
    }
}

/// Metrics in which every family has a value.
pub(crate) fn filled() -> Metrics {
    let metrics = Metrics::new(&zones(), "multicluster");
    let udp = metrics.dns_shard("dns://:53", false);
    let tcp = metrics.dns_shard("dns://:53", true);
    udp.answered(&answered());
    udp.answered(&Answered { zone: None, rcode: 5, qtype: 16, ipv6: true, ..answered() });
    tcp.answered(&Answered { dnssec_ok: true, cut: true, reply_len: 65_000, ..answered() });
    udp.dropped(Drop::Short);
    tcp.dropped(Drop::Slow);
    metrics.plugin_enabled("log");
    metrics.panicked();
    metrics.reload_failed();
    metrics.query_log_dropped(2);
    metrics.health_request(Duration::from_micros(300), false);
    metrics.health_request(Duration::from_secs(3), true);
    metrics.programmed(ServiceKind::ClusterIp, Duration::from_millis(3));
    metrics.kube_request("GET", "10.96.0.1:443", Some(200), "list", Duration::from_millis(7));
    metrics.kube_request("GET", "10.96.0.1:443", None, "watch", Duration::from_secs(50));
    metrics.kube_throttled("list", "10.96.0.1:443", Duration::from_millis(1));
    metrics
}

/// One family as text shows it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// The names of the labels of its series, without `le`.
    pub(crate) labels: BTreeSet<String>,
    /// The values of `le`, in order of appearance.
    pub(crate) bounds: Vec<String>,
}

/// A scrape: its families, and its series (`name{label="value"}`) with their values.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) families: BTreeMap<String, Shown>,
    pub(crate) series: BTreeMap<String, f64>,
}

impl Scrape {
    pub(crate) fn of(metrics: &Metrics) -> Self {
        Self::parse(&metrics.render(state()).unwrap())
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                current = name.to_owned();
                scrape.families.entry(current.clone()).or_default().help = help.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current, "TYPE follows HELP");
                scrape.families.get_mut(name).unwrap().kind = kind.to_owned();
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let earlier = scrape.series.insert(series.to_owned(), value.parse().unwrap());
                assert!(earlier.is_none(), "twice: {series}");
                let family = scrape.families.get_mut(&current).unwrap();
                for (label, value) in labels(series) {
                    if label != "le" {
                        family.labels.insert(label);
                    } else if !family.bounds.contains(&value) {
                        family.bounds.push(value);
                    }
                }
            }
        }
        scrape
    }

    /// The value of a series that must be there.
    pub(crate) fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.series.keys()))
    }

    /// The series of a family, as they are written.
    pub(crate) fn names(&self, family: &str) -> Vec<&str> {
        let name = |series: &str| series.split('{').next().unwrap_or_default() == family;
        self.series.keys().map(String::as_str).filter(|series| name(series)).collect()
    }
}

/// The labels of a series; the values of these tests hold neither commas nor quotes.
fn labels(series: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = series.split_once('{') else { return Vec::new() };
    let pairs = rest.trim_end_matches('}').split(',').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}
