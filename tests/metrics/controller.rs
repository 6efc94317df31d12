//! What the controller shows: each metric once, as documented, and nothing of clusters that are gone.

use std::collections::BTreeSet;
use std::time::Duration;

use namesake::metrics::{CONTROLLER_TABLE, ClusterState, ControllerMetrics, ControllerState, HUB, TABLE, Watch};

use crate::contract::promtool;
use crate::scrape::Scrape;

/// A state with something in every field.
fn state() -> ControllerState {
    let watch = |resource, up, seconds| Watch {
        resource,
        up,
        age: Some(Duration::from_secs(seconds)),
        errors: vec![("unreachable", u64::from(!up))],
    };
    ControllerState {
        leader: true,
        members_complete: true,
        members_refused: 1,
        registries: vec![("labelled".to_owned(), true), ("folder".to_owned(), false)],
        planning: 4,
        services: 12,
        exports: vec![("east".to_owned(), 12), ("west".to_owned(), 3)],
        imports: vec![("east".to_owned(), 11), ("west".to_owned(), 10)],
        not_imported: vec![("west".to_owned(), "namespace_missing", 2)],
        conflicts: vec![("PortConflict", 1)],
        clusters: vec![
            ClusterState {
                id: "east".to_owned(),
                up: true,
                watches: vec![watch("services", true, 2), watch("serviceexports", true, 7)],
                synced: true,
                queue: 0,
                failing: 0,
            },
            ClusterState {
                id: "west".to_owned(),
                up: false,
                watches: vec![watch("services", false, 90)],
                synced: false,
                queue: 5,
                failing: 2,
            },
        ],
    }
}

fn filled() -> ControllerMetrics {
    let metrics = ControllerMetrics::new();
    metrics.write("east", "serviceimports", "apply", "ok", 0.004);
    metrics.write("east", "serviceimports", "apply", "ok", 0.006);
    metrics.write("east", "serviceexports/status", "apply", "ok", 0.004);
    metrics.write("west", "endpointslices", "delete", "timeout", 5.0);
    metrics.propagated(0.030);
    metrics.planned(0.0001);
    metrics.request("east", "200", "list", 0.02);
    metrics.request("east", "200", "watch", 0.02);
    metrics.request("west", "<error>", "list", 5.0);
    metrics.request(HUB, "200", "get", 0.001);
    metrics
}

#[test]
fn mcs_r96_every_family_is_in_the_table_and_the_table_has_no_other() {
    let text = filled().render(state()).unwrap();
    let scrape = Scrape::parse(&text);
    let shown: BTreeSet<&str> = scrape.families.keys().map(String::as_str).collect();
    let shared = TABLE.iter().filter(|m| m.name.starts_with("process_") || m.name == "namesake_build_info");
    let listed: BTreeSet<&str> = CONTROLLER_TABLE.iter().chain(shared).map(|metric| metric.name).collect();
    assert_eq!(shown, listed);
    for metric in CONTROLLER_TABLE {
        assert!(metric.name.starts_with("namesake_controller_"), "{}", metric.name);
        let family = &scrape.families[metric.name];
        let labels: BTreeSet<String> = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(family.kind, metric.kind.as_str(), "{}", metric.name);
        assert_eq!(family.labels, labels, "{}", metric.name);
        assert_eq!(family.help.trim_end_matches('.'), metric.help.trim_end_matches('.'), "{}", metric.name);
    }
    promtool(&text);
}

#[test]
fn mcs_r96_the_values_are_those_that_were_counted() {
    let scrape = Scrape::parse(&filled().render(state()).unwrap());
    for (series, value) in [
        ("namesake_controller_leader", 1.0),
        ("namesake_controller_members_complete", 1.0),
        ("namesake_controller_members_refused", 1.0),
        (r#"namesake_controller_registry_up{registry="folder"}"#, 0.0),
        ("namesake_controller_planning_queue", 4.0),
        ("namesake_controller_services", 12.0),
        (r#"namesake_controller_exports{cluster="west"}"#, 3.0),
        (r#"namesake_controller_imports{cluster="west"}"#, 10.0),
        (r#"namesake_controller_not_imported{cluster="west",reason="namespace_missing"}"#, 2.0),
        (r#"namesake_controller_conflicts{reason="PortConflict"}"#, 1.0),
        (r#"namesake_controller_cluster_up{cluster="east"}"#, 1.0),
        (r#"namesake_controller_cluster_up{cluster="west"}"#, 0.0),
        // As old as the oldest of its watches.
        (r#"namesake_controller_cluster_sync_age_seconds{cluster="east"}"#, 7.0),
        (r#"namesake_controller_cluster_watch_up{cluster="west",resource="services"}"#, 0.0),
        (
            r#"namesake_controller_cluster_watch_errors_total{cluster="west",reason="unreachable",resource="services"}"#,
            1.0,
        ),
        (r#"namesake_controller_cluster_queue{cluster="west"}"#, 5.0),
        (r#"namesake_controller_cluster_failing{cluster="west"}"#, 2.0),
        (r#"namesake_controller_writes_total{cluster="east",resource="serviceimports",verb="apply"}"#, 2.0),
        (r#"namesake_controller_writes_total{cluster="east",resource="serviceexports/status",verb="apply"}"#, 1.0),
        (r#"namesake_controller_write_errors_total{cluster="west",reason="timeout"}"#, 1.0),
        (r#"namesake_controller_write_duration_seconds_count{cluster="east"}"#, 3.0),
        (r#"namesake_controller_write_duration_seconds_count{cluster="west"}"#, 1.0),
        ("namesake_controller_propagation_seconds_count", 1.0),
        (r#"namesake_controller_propagation_seconds_bucket{le="0.016"}"#, 0.0),
        (r#"namesake_controller_propagation_seconds_bucket{le="0.032"}"#, 1.0),
        ("namesake_controller_plan_duration_seconds_count", 1.0),
        (r#"namesake_controller_requests_total{cluster="west",code="<error>",verb="list"}"#, 1.0),
        (r#"namesake_controller_requests_total{cluster="(hub)",code="200",verb="get"}"#, 1.0),
        (r#"namesake_controller_requests_total{cluster="east",code="200",verb="watch"}"#, 1.0),
        (r#"namesake_controller_request_duration_seconds_count{cluster="east",verb="list"}"#, 1.0),
    ] {
        assert_eq!(scrape.value(series), value, "{series}");
    }
    // A watch lasts; it is a request, but no latency. What was never listed has no age. A failed write is none.
    for absent in [
        r#"namesake_controller_request_duration_seconds_count{cluster="east",verb="watch"}"#,
        r#"namesake_controller_cluster_sync_age_seconds{cluster="west"}"#,
        r#"namesake_controller_writes_total{cluster="west",resource="endpointslices",verb="delete"}"#,
    ] {
        assert!(!scrape.series.contains_key(absent), "{absent}");
    }
}

#[test]
fn mcs_r96_series_of_a_cluster_that_left_end_and_begin_anew_when_it_returns() {
    let metrics = filled();
    let mut without = state();
    without.clusters.retain(|cluster| cluster.id != "west");
    for counts in [&mut without.exports, &mut without.imports] {
        counts.retain(|(cluster, _)| cluster != "west");
    }
    without.not_imported.clear();
    let left = metrics.render(without).unwrap();
    assert!(!left.contains("west"), "{left}");
    assert!(left.contains(r#"cluster="east""#) && left.contains(r#"cluster="(hub)""#));
    metrics.write("west", "endpointslices", "delete", "timeout", 5.0);
    let back = Scrape::parse(&metrics.render(state()).unwrap());
    assert_eq!(back.value(r#"namesake_controller_write_errors_total{cluster="west",reason="timeout"}"#), 1.0);
}

#[test]
fn mcs_r96_a_new_controller_shows_zeros_where_alerts_need_them_and_no_empty_series() {
    let scrape = Scrape::parse(&ControllerMetrics::new().render(ControllerState::default()).unwrap());
    for series in [
        "namesake_controller_leader",
        "namesake_controller_members_complete",
        "namesake_controller_services",
        "namesake_controller_propagation_seconds_count",
        "namesake_controller_plan_duration_seconds_count",
    ] {
        assert_eq!(scrape.value(series), 0.0, "{series}");
    }
    assert!(scrape.series.keys().all(|series| !series.contains("cluster=")), "{:?}", scrape.series.keys());
}
