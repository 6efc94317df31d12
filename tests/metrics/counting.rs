//! Sums are exact, and labels stay bounded whatever is asked.

use std::time::Duration;

use namesake::answers::{Options, Store};
use namesake::dns::{Outcome, Transport, respond};
use namesake::metrics::{Answered, Drop, Metrics, ServiceKind, Skips, State};

use crate::scrape::{Scrape, answered, filled, state, zones};

#[test]
fn shards_add_up_and_keep_protocol_and_zone_apart() {
    let metrics = Metrics::new(&zones(), "multicluster");
    let first = metrics.dns_shard("dns://:53", false);
    let second = metrics.dns_shard("dns://:53", false);
    let tcp = metrics.dns_shard("dns://:53", true);
    let elsewhere = metrics.dns_shard("dns://10.0.0.1:53", false);
    for shard in [&first, &second, &tcp, &elsewhere] {
        shard.answered(&answered());
        shard.answered(&Answered { zone: Some(1), query_len: 500, reply_len: 1_500, ..answered() });
        shard.dropped(Drop::Response);
    }
    let scrape = Scrape::of(&metrics);
    let zone = r#"view="",zone="other.example.""#;
    let requests = |server: &str, proto: &str| {
        scrape.value(&format!(
            r#"coredns_dns_requests_total{{family="1",proto="{proto}",server="{server}",type="A",{zone}}}"#
        ))
    };
    assert_eq!(requests("dns://:53", "udp"), 2.0);
    assert_eq!(requests("dns://:53", "tcp"), 1.0);
    assert_eq!(requests("dns://10.0.0.1:53", "udp"), 1.0);
    assert_eq!(scrape.value(r#"namesake_dns_drops_total{reason="response"}"#), 4.0);

    let duration = "coredns_dns_request_duration_seconds";
    assert_eq!(scrape.value(&format!(r#"{duration}_count{{server="dns://:53",{zone}}}"#)), 3.0);
    let sum = scrape.value(&format!(r#"{duration}_sum{{server="dns://:53",{zone}}}"#));
    assert!((sum - 3.0 * 0.000_213_417).abs() < 1e-12, "{sum}");
    assert_eq!(scrape.value(&format!(r#"{duration}_bucket{{server="dns://:53",{zone},le="0.00025"}}"#)), 3.0);
    let size = r#"coredns_dns_response_size_bytes_bucket{proto="udp",server="dns://:53","#;
    assert_eq!(scrape.value(&format!(r#"{size}{zone},le="1023"}}"#)), 0.0);
    assert_eq!(scrape.value(&format!(r#"{size}{zone},le="2047"}}"#)), 2.0);
    let bytes = r#"coredns_dns_request_size_bytes_sum{proto="udp",server="dns://:53","#;
    assert_eq!(scrape.value(&format!("{bytes}{zone}}}")), 1_000.0);
}

#[test]
fn many_tasks_of_one_tcp_listener_lose_no_count() {
    let metrics = Metrics::new(&zones(), "multicluster");
    let shard = metrics.dns_shard("dns://:53", true);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50_000).for_each(|_| shard.answered(&answered())));
        }
    });
    let series = r#"coredns_dns_request_duration_seconds_count{server="dns://:53",view="",zone="clusterset.local."}"#;
    assert_eq!(Scrape::of(&metrics).value(series), 200_000.0);
}

#[test]
fn odd_rcodes_types_and_zones_have_a_place() {
    let metrics = Metrics::new(&zones(), "multicluster");
    let shard = metrics.dns_shard("dns://:53", false);
    for rcode in [12, 13, 15, 24, 4_095, u16::MAX] {
        shard.answered(&Answered { rcode, ..answered() });
    }
    shard.answered(&Answered { rcode: 16, qtype: 65_280, ..answered() });
    shard.answered(&Answered { zone: Some(200), rcode: 3, duration: Duration::MAX, ..answered() });
    let scrape = Scrape::of(&metrics);
    let responses = |plugin: &str, rcode: &str, zone: &str| {
        let labels = format!(r#"plugin="{plugin}",rcode="{rcode}",server="dns://:53",view="",zone="{zone}""#);
        scrape.value(&format!("coredns_dns_responses_total{{{labels}}}"))
    };
    assert_eq!(responses("", "other", "clusterset.local."), 6.0);
    assert_eq!(responses("", "BADVERS", "clusterset.local."), 1.0);
    assert_eq!(responses("", "NXDOMAIN", "dropped"), 1.0);
}

/// A query with one question whose name is `labels` of random bytes, half of the time below our zone.
fn random_query(rng: &mut fastrand::Rng, query: &mut Vec<u8>) {
    query.clear();
    query.extend([rng.u8(..), rng.u8(..), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for _ in 0..rng.usize(1..4) {
        let length = rng.usize(1..20);
        query.push(length as u8);
        query.extend(std::iter::repeat_with(|| rng.u8(..)).take(length));
    }
    if rng.bool() {
        query.extend(b"\x0aclusterset\x05local");
    }
    query.push(0);
    // Half of them types that may have a name, so that every label value comes up soon.
    query.extend(if rng.bool() { rng.u16(..300) } else { rng.u16(..) }.to_be_bytes());
    query.extend(if rng.u8(..) < 250 { [0, 1] } else { rng.u16(..).to_be_bytes() });
}

#[test]
fn scl_05_random_names_and_types_do_not_grow_the_label_sets() {
    let metrics = Metrics::new(&["clusterset.local".to_owned()], "multicluster");
    let shards = [metrics.dns_shard("dns://:53", false), metrics.dns_shard("dns://:53", true)];
    let store = Store::new(Options::default());
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut query, mut out) = (Vec::new(), vec![0; 65_535]);
    let mut sizes = Vec::new();
    for count in 1..=100_000 {
        random_query(&mut rng, &mut query);
        let tcp = rng.bool();
        let transport = if tcp { Transport::Tcp } else { Transport::Udp };
        if let Outcome::Reply(reply) = respond(&store, &query, transport, &mut out, &mut rng) {
            shards[usize::from(tcp)].answered(&Answered {
                zone: reply.zone,
                qtype: reply.qtype,
                rcode: reply.rcode,
                ipv6: rng.bool(),
                query_len: query.len(),
                reply_len: reply.len,
                dnssec_ok: reply.dnssec_ok,
                cut: reply.cut,
                duration: Duration::from_nanos(rng.u64(..10_000_000_000)),
            });
        }
        if count % 50_000 == 0 {
            sizes.push(Scrape::of(&metrics).series.len());
        }
    }
    let scrape = Scrape::of(&metrics);
    assert_eq!(sizes[0], sizes[1], "the second half of the queries made no new series");
    assert!(sizes[1] < 400, "{} series", sizes[1]);
    // 20 types, 2 protocols, 2 families, the zone and `dropped`.
    assert!(scrape.names("coredns_dns_requests_total").len() <= 20 * 2 * 2 * 2);
    let total: f64 = scrape.names("coredns_dns_requests_total").iter().map(|series| scrape.value(series)).sum();
    assert_eq!(total, 100_000.0);
}

#[test]
fn scl_05_source_clusters_that_others_name_are_bounded_and_escaped() {
    let metrics = Metrics::new(&zones(), "multicluster");
    let skips = |cluster| Skips { reason: "bad_port", source_cluster: cluster, count: 1 };
    let mut skipped: Vec<Skips> = (0..3_000).map(|n| skips(format!("c{n}"))).collect();
    skipped.push(Skips { count: 5, ..skips("a\"b\\c\nd\u{e9}".to_owned()) });
    let text = metrics.render(State { skipped, ..state() }).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("namesake_records_skipped{")).collect();
    assert_eq!(lines.len(), 501);
    assert!(
        lines.contains(&"namesake_records_skipped{reason=\"bad_port\",source_cluster=\"a\\\"b\\\\c\\nd\u{e9}\"} 5")
    );
    assert!(lines.contains(&r#"namesake_records_skipped{reason="bad_port",source_cluster="other"} 2501"#), "{lines:?}");
}

#[test]
fn scl_06_programming_latency_covers_every_kind_and_api_errors_and_age_are_there() {
    let metrics = filled();
    metrics.programmed(ServiceKind::HeadlessWithSelector, Duration::from_millis(20));
    metrics.programmed(ServiceKind::HeadlessWithoutSelector, Duration::from_secs(600));
    let scrape = Scrape::of(&metrics);
    let programming = "coredns_kubernetes_dns_programming_duration_seconds";
    for kind in ["cluster_ip", "headless_with_selector", "headless_without_selector"] {
        assert_eq!(scrape.value(&format!(r#"{programming}_count{{service_kind="{kind}"}}"#)), 1.0);
    }
    let beyond = format!(r#"{programming}_bucket{{service_kind="headless_without_selector",le="524.288"}}"#);
    assert_eq!(scrape.value(&beyond), 0.0);
    let error = r#"coredns_kubernetes_rest_client_requests_total{code="<error>",host="10.96.0.1:443",method="GET"}"#;
    assert_eq!(scrape.value(error), 1.0);
    assert_eq!(scrape.value(r#"namesake_watch_errors_total{reason="unreachable",resource="serviceimports"}"#), 1.0);
    assert_eq!(scrape.value(r#"namesake_watch_last_event_age_seconds{resource="serviceimports"}"#), 1.5);
}

#[test]
fn rsv_05_serial_and_last_event_tell_the_replica_that_lags() {
    let metrics = filled();
    let scrape = Scrape::of(&metrics);
    assert_eq!(scrape.value(r#"namesake_soa_serial{zone="clusterset.local."}"#), 1_796_000_000.0);
    assert_eq!(scrape.value(r#"namesake_watch_up{resource="endpointslices"}"#), 0.0);
    assert_eq!(scrape.value(r#"namesake_watch_last_event_age_seconds{resource="endpointslices"}"#), 90.0);
}
