//! What dashboards and alerts hang on.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use namesake::metrics::TABLE;

use crate::scrape::{Scrape, Shown, filled, state};

const TIME: &str = "0.00025 0.0005 0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192";
const SLIM: &str = "0.00025 0.0025 0.025 0.25 2.5";
const SIZE: &str = "0 100 200 300 400 511 1023 2047 4095 8291 16000 32000 48000 64000";
const PROG: &str = "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 32.768 \
                    65.536 131.072 262.144 524.288";
const DEFAULT: &str = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10";

/// CoreDNS's families that we show, from `dns.md` 2.4: name, type, labels, buckets.
const COREDNS: &[(&str, &str, &str, &str)] = &[
    ("coredns_build_info", "gauge", "version revision goversion", ""),
    ("coredns_panics_total", "counter", "", ""),
    ("coredns_plugin_enabled", "gauge", "server zone view name", ""),
    ("coredns_dns_requests_total", "counter", "server zone view proto family type", ""),
    ("coredns_dns_request_duration_seconds", "histogram", "server zone view", TIME),
    ("coredns_dns_request_size_bytes", "histogram", "server zone view proto", SIZE),
    ("coredns_dns_response_size_bytes", "histogram", "server zone view proto", SIZE),
    ("coredns_dns_do_requests_total", "counter", "server zone view", ""),
    ("coredns_dns_responses_total", "counter", "server zone view rcode plugin", ""),
    ("coredns_kubernetes_dns_programming_duration_seconds", "histogram", "service_kind", PROG),
    ("coredns_kubernetes_rest_client_request_duration_seconds", "histogram", "verb host", DEFAULT),
    ("coredns_kubernetes_rest_client_rate_limiter_duration_seconds", "histogram", "verb host", DEFAULT),
    ("coredns_kubernetes_rest_client_requests_total", "counter", "code method host", ""),
    ("coredns_health_request_duration_seconds", "histogram", "", SLIM),
    ("coredns_health_request_failures_total", "counter", "", ""),
    ("coredns_reload_failed_total", "counter", "", ""),
    ("process_cpu_seconds_total", "counter", "", ""),
    ("process_resident_memory_bytes", "gauge", "", ""),
    ("process_virtual_memory_bytes", "gauge", "", ""),
    ("process_virtual_memory_max_bytes", "gauge", "", ""),
    ("process_open_fds", "gauge", "", ""),
    ("process_max_fds", "gauge", "", ""),
    ("process_start_time_seconds", "gauge", "", ""),
    ("process_network_receive_bytes_total", "counter", "", ""),
    ("process_network_transmit_bytes_total", "counter", "", ""),
];

#[test]
fn dns_2_4_names_types_labels_and_buckets_are_corednss() {
    let scrape = Scrape::of(&filled());
    for (name, kind, labels, bounds) in COREDNS {
        let Shown { kind: shown_kind, labels: shown_labels, bounds: shown_bounds, .. } =
            scrape.families.get(*name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(shown_kind, kind, "{name}");
        let labels: BTreeSet<String> = labels.split_whitespace().map(str::to_owned).collect();
        assert_eq!(*shown_labels, labels, "{name}");
        let mut bounds: Vec<&str> = bounds.split_whitespace().collect();
        if *kind == "histogram" {
            bounds.push("+Inf");
        }
        assert_eq!(*shown_bounds, bounds, "{name}");
    }
}

#[test]
fn dns_2_4_label_values_are_corednss() {
    let scrape = Scrape::of(&filled());
    for series in [
        r#"coredns_dns_requests_total{family="1",proto="udp",server="dns://:53",type="A",view="",zone="clusterset.local."}"#,
        r#"coredns_dns_requests_total{family="2",proto="udp",server="dns://:53",type="TXT",view="",zone="dropped"}"#,
        r#"coredns_dns_requests_total{family="1",proto="tcp",server="dns://:53",type="A",view="",zone="clusterset.local."}"#,
        r#"coredns_dns_responses_total{plugin="",rcode="REFUSED",server="dns://:53",view="",zone="dropped"}"#,
        r#"coredns_dns_do_requests_total{server="dns://:53",view="",zone="clusterset.local."}"#,
        r#"coredns_plugin_enabled{name="log",server="dns://:53",view="",zone="other.example."}"#,
        r#"coredns_kubernetes_rest_client_requests_total{code="<error>",host="10.96.0.1:443",method="GET"}"#,
    ] {
        assert_eq!(scrape.value(series), 1.0, "{series}");
    }
    let answers = r#"coredns_dns_responses_total{plugin="multicluster",rcode="NOERROR",server="dns://:53",view="",zone="clusterset.local."}"#;
    assert_eq!(scrape.value(answers), 2.0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(scrape.value(&format!(r#"coredns_build_info{{goversion="",revision="",version="{version}"}}"#)), 1.0);
    // A watch lasts; it is a request, but no latency.
    assert_eq!(scrape.names("coredns_kubernetes_rest_client_request_duration_seconds_count").len(), 1);
}

#[test]
fn every_family_is_in_the_table_and_the_table_has_no_other() {
    let scrape = Scrape::of(&filled());
    let shown: BTreeSet<&str> = scrape.families.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|metric| metric.name).collect();
    assert_eq!(shown, listed);
    assert_eq!(listed.len(), TABLE.len(), "a name stands twice");
    for metric in TABLE {
        let family = &scrape.families[metric.name];
        let labels: BTreeSet<String> = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(family.kind, metric.kind.as_str(), "{}", metric.name);
        assert_eq!(family.labels, labels, "{}", metric.name);
        assert_eq!(family.help.trim_end_matches('.'), metric.help.trim_end_matches('.'), "{}", metric.name);
        let ours = metric.name.starts_with("namesake_");
        assert!(ours || metric.name.starts_with("coredns_") || metric.name.starts_with("process_"), "{}", metric.name);
    }
}

#[test]
fn promtool_finds_nothing_to_say() {
    promtool(&filled().render(state()).unwrap());
}

/// Fails where promtool has something to say of a scrape.
pub(crate) fn promtool(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is needed: install the package prometheus");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
}

#[test]
fn a_new_server_shows_zeros_where_alerts_need_them_and_no_empty_series() {
    let metrics = namesake::metrics::Metrics::new(&crate::scrape::zones(), "multicluster");
    let _shard = metrics.dns_shard("dns://:53", false);
    let scrape = Scrape::parse(&metrics.render(namesake::metrics::State::default()).unwrap());
    assert_eq!(scrape.value("namesake_synced"), 0.0);
    assert_eq!(scrape.value("coredns_panics_total"), 0.0);
    assert_eq!(scrape.value(r#"namesake_dns_drops_total{reason="send"}"#), 0.0);
    assert!(scrape.families.keys().all(|name| !name.starts_with("coredns_dns_")), "{:?}", scrape.families.keys());
}
