//! 1.7, V1 to V7, V18 to V29: what SRV answers hold.

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

fn db(slices: &[String]) -> Zone {
    zone(headless("shop/db", PG) + &slices.concat())
}

#[test]
fn dns_v1_srv_of_a_clustersetip_import_is_the_service() {
    let zone = zone(F1);
    zone.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]).glue(["web.shop.svc 10.96.7.7"]);
}

#[test]
fn dns_v2_dual_stack_srv_is_one_record_of_weight_50() {
    let zone = zone(clustersetip("shop/web", &["10.96.7.7", "fd00::7"], &["http/80"]));
    let answer = zone.ask("_http._tcp.web.shop.svc", SRV);
    answer.srv(["0 50 80 web.shop.svc"]).glue(["web.shop.svc 10.96.7.7", "web.shop.svc fd00::7"]);
}

#[test]
fn dns_v3_srv_of_a_headless_import_is_one_per_endpoint() {
    let zone = zone(F2);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .srv(["0 33 5432 db-0.east.db.shop.svc", "0 33 5432 db-1.east.db.shop.svc", "0 33 5432 db-0.west.db.shop.svc"])
        .glue([
            "db-0.east.db.shop.svc 10.1.0.11",
            "db-1.east.db.shop.svc 10.1.0.12",
            "db-0.west.db.shop.svc 10.2.0.21",
        ]);
}

/// The weights of a headless set of `endpoints` endpoints with `ports` ports each, asked at the bare name.
fn weights(endpoints: usize, ports: usize) -> Vec<String> {
    let ports: Vec<_> = (0..ports).map(|p| format!("p{p}/{}", 1000 + p)).collect();
    let ports: Vec<_> = ports.iter().map(String::as_str).collect();
    let endpoints: Vec<_> = (0..endpoints).map(|e| format!("h{e}=10.1.{}.{}", e / 200, e % 200 + 1)).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "east", &ports, &endpoints));
    let answer = zone.ask("db.shop.svc", SRV);
    assert_eq!(answer.noerror().count(), ports.len() * endpoints.len());
    let mut weights: Vec<_> =
        answer.message.answers.iter().map(|r| r.data.split(' ').nth(1).expect("a weight").to_owned()).collect();
    weights.dedup();
    weights
}

#[test]
fn dns_v4_the_weight_is_100_by_the_number_of_address_port_pairs() {
    for (endpoints, ports, weight) in [
        (1, 1, "100"),
        (2, 1, "50"),
        (3, 1, "33"),
        (6, 1, "16"),
        (3, 2, "16"),
        (50, 1, "2"),
        (51, 1, "1"),
        (100, 1, "1"),
        (101, 1, "1"),
        (150, 2, "1"),
    ] {
        assert_eq!(weights(endpoints, ports), [weight], "{endpoints} endpoints, {ports} ports");
    }
}

#[test]
fn dns_v4_only_matched_ports_count() {
    let zone = zone(
        headless("shop/db", PG)
            + &slice("shop/db", "east", &["pg/5432", "metrics/9187"], &["a=10.1.0.1", "b=10.1.0.2"]),
    );
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 50 5432 a.east.db.shop.svc", "0 50 5432 b.east.db.shop.svc"]);
    zone.ask("_metrics._tcp.db.shop.svc", SRV).srv(["0 50 9187 a.east.db.shop.svc", "0 50 9187 b.east.db.shop.svc"]);
}

#[test]
fn dns_v4_pairs_count_before_duplicates_go() {
    let twice = db(&[
        slice("shop/db", "east", PG, &["a=10.1.0.1"]),
        slice("shop/db#2", "east", PG, &["a=10.1.0.1", "b=10.1.0.2"]),
    ]);
    twice.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 33 5432 a.east.db.shop.svc", "0 33 5432 b.east.db.shop.svc"]);
    let protocols = zone(clustersetip("shop/web", &["10.96.7.7"], &["tcp/42", "udp/42/UDP"]));
    protocols.ask("web.shop.svc", SRV).srv(["0 50 42 web.shop.svc"]);
    protocols.ask("_tcp._tcp.web.shop.svc", SRV).srv(["0 100 42 web.shop.svc"]);
    let listed_twice = zone(clustersetip("shop/web", &["10.96.7.7", "10.96.7.7"], &["http/80"]));
    listed_twice.ask("web.shop.svc", SRV).srv(["0 50 80 web.shop.svc"]);
}

#[test]
fn dns_v5_the_priority_is_0() {
    for (manifests, name) in [(F1, "_http._tcp.web.shop.svc"), (F2, "_pg._tcp.db.shop.svc"), (F2, "db.shop.svc")] {
        let zone = zone(manifests);
        let answer = zone.ask(name, SRV);
        assert!(answer.noerror().message.answers.iter().all(|r| r.data.starts_with("0 ")), "{answer}");
    }
}

#[test]
fn dns_v6_answers_are_distinct_by_target_and_port_and_glue_by_target_and_address() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["a=10.1.0.1"]),
        slice("shop/db#2", "east", PG, &["a=10.1.0.1"]),
        slice("shop/db#3", "east", &["pg/6432"], &["a=10.1.0.1"]),
        slice("shop/db#4", "east", PG, &["a=10.1.0.4"]),
    ]);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .targets(["5432 a.east.db.shop.svc", "6432 a.east.db.shop.svc"])
        .glue(["a.east.db.shop.svc 10.1.0.1", "a.east.db.shop.svc 10.1.0.4"]);
}

#[test]
fn dns_v7_the_bare_name_has_every_port() {
    let web = zone(clustersetip("shop/web", &["10.96.7.7"], &["http/80", "/42/UDP", "quic/443/UDP"]));
    web.ask("web.shop.svc", SRV)
        .srv(["0 33 80 web.shop.svc", "0 33 42 web.shop.svc", "0 33 443 web.shop.svc"])
        .glue(["web.shop.svc 10.96.7.7"]);
    zone(F2).ask("db.shop.svc", SRV).targets([
        "5432 db-0.east.db.shop.svc",
        "5432 db-1.east.db.shop.svc",
        "5432 db-0.west.db.shop.svc",
    ]);
}

#[test]
fn dns_v7_one_number_under_two_protocols_is_one_record() {
    let zone = zone(clustersetip("demo/hello", &["10.96.7.7"], &["tcp/42/TCP", "udp/42/UDP"]));
    zone.ask("hello.demo.svc", SRV).targets(["42 hello.demo.svc"]);
}

#[test]
fn dns_v18_without_ports_the_bare_name_is_nodata_and_port_names_do_not_exist() {
    for (manifests, service) in [
        (clustersetip("shop/web", &["10.96.7.7"], &[]), "web"),
        (headless("shop/db", &[]) + &slice("shop/db", "east", &[], &["db-0=10.1.0.11"]), "db"),
    ] {
        let zone = zone(manifests);
        zone.ask(&format!("{service}.shop.svc"), SRV).nodata();
        zone.ask(&format!("_p._tcp.{service}.shop.svc"), SRV).nxdomain();
        zone.ask(&format!("_tcp.{service}.shop.svc"), SRV).nxdomain();
    }
}

#[test]
fn dns_v19_a_port_without_ips_is_nodata() {
    let zone = zone(clustersetip("shop/web", &[], &["http/80"]));
    for qtype in DATA_TYPES {
        zone.ask("_http._tcp.web.shop.svc", qtype).nodata();
        zone.ask("_tcp.web.shop.svc", qtype).nodata();
    }
    zone.ask("_https._tcp.web.shop.svc", SRV).nxdomain();
}

#[test]
fn dns_v20_headless_ports_are_those_of_the_slices() {
    let zone = zone(
        headless("shop/db", &["pg/1"])
            + &slice("shop/db", "east", &["pg/5432"], &["a=10.1.0.1"])
            + &slice("shop/db#2", "east", &["pg/5433", "extra/7"], &["b=10.1.0.2"])
            + &slice("shop/db", "west", &["other/8"], &["c=10.2.0.1"]),
    );
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 50 5432 a.east.db.shop.svc", "0 50 5433 b.east.db.shop.svc"]);
    zone.ask("_extra._tcp.db.shop.svc", SRV).srv(["0 100 7 b.east.db.shop.svc"]);
    zone.ask("_other._tcp.db.shop.svc", SRV).srv(["0 100 8 c.west.db.shop.svc"]);
}

#[test]
fn dns_v21_clustersetip_ports_are_those_of_the_import() {
    let zone = zone(F1.to_owned() + &slice("shop/web", "east", &["http/8080", "admin/9"], &["10.1.0.1"]));
    zone.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    zone.ask("_admin._tcp.web.shop.svc", SRV).nxdomain();
    zone.ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
}

#[test]
fn dns_v22_targets_without_hostname_have_the_dashed_address() {
    let zone = db(&[slice("shop/db", "east", PG, &["10.1.0.11 pod=db-abc"])]);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .srv(["0 100 5432 10-1-0-11.east.db.shop.svc"])
        .glue(["10-1-0-11.east.db.shop.svc 10.1.0.11"]);
}

#[test]
fn dns_v23_dual_stack_without_hostname_is_one_srv_per_address() {
    let zone = db(&[slice("shop/db", "east", PG, &["10.1.0.11"]), slice("shop/db#v6", "east", PG, &["fd00::11"])]);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .srv(["0 50 5432 10-1-0-11.east.db.shop.svc", "0 50 5432 fd00--11.east.db.shop.svc"])
        .glue(["10-1-0-11.east.db.shop.svc 10.1.0.11", "fd00--11.east.db.shop.svc fd00::11"]);
}

#[test]
fn dns_v24_dual_stack_with_hostname_is_one_srv_with_both_families_as_glue() {
    let zone =
        db(&[slice("shop/db", "east", PG, &["db-0=10.1.0.11"]), slice("shop/db#v6", "east", PG, &["db-0=fd00::11"])]);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .srv(["0 50 5432 db-0.east.db.shop.svc"])
        .glue(["db-0.east.db.shop.svc 10.1.0.11", "db-0.east.db.shop.svc fd00::11"]);
}

#[test]
fn dns_v26_endpoints_without_cluster_are_left_out_of_srv() {
    let zone = db(&[slice("shop/db", "", PG, &["x=10.9.0.1"]), slice("shop/db", "east", PG, &["a=10.1.0.1"])]);
    for name in ["db.shop.svc", "_pg._tcp.db.shop.svc"] {
        zone.ask(name, SRV).targets(["5432 a.east.db.shop.svc"]).glue(["a.east.db.shop.svc 10.1.0.1"]);
    }
}

#[test]
fn dns_v27_bad_strings_are_in_no_srv() {
    let zone = zone(clustersetip("shop/web", &["example.org", "not-an-ip"], &["http/80"]));
    zone.ask("_http._tcp.web.shop.svc", SRV).nodata();
    zone.ask("web.shop.svc", SRV).nodata();
}

#[test]
fn dns_v28_additional_records_that_do_not_fit_are_dropped_without_tc() {
    let endpoints: Vec<_> = (10..23).map(|n| format!("pod-00000{n:02}=10.1.0.{n},10.1.1.{n}")).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let zone = zone(
        headless("mcs-demo/hello", &["http/80"]) + &slice("mcs-demo/hello", "cluster-1", &["http/80"], &endpoints),
    );
    let ask = Ask::new(&zone.absolute("_http._tcp.hello.mcs-demo.svc"), SRV).edns(Edns::size(1232));
    for _ in 0..20 {
        let answer = zone.send(&ask);
        assert!(!answer.message.truncated() && answer.count() == 13, "{answer}");
        let glue = &answer.message.additionals;
        assert!(glue.len() < 26, "all of it can't fit\n{answer}");
        for record in glue {
            let rrset = glue.iter().filter(|r| r.owner == record.owner && r.rtype == record.rtype);
            assert_eq!(rrset.count(), 2, "whole RRsets only\n{answer}");
        }
    }
    let all = zone.send(&ask.tcp());
    assert_eq!(all.message.additionals.len(), 26, "{all}");
}

#[test]
fn dns_v29_a_port_without_protocol_is_tcp_in_both_forms() {
    let web = zone(clustersetip("shop/web", &["10.96.7.7"], &["http/80/-"]));
    web.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    web.ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    let db = zone(headless("shop/db", PG) + &slice("shop/db", "east", &["pg/5432/-"], &["a=10.1.0.1"]));
    db.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 a.east.db.shop.svc"]);
    db.ask("db.shop.svc", SRV).srv(["0 100 5432 a.east.db.shop.svc"]);
}
