//! Chapter 1, DNS-01 to DNS-10.

use std::collections::HashMap;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn case_dns_01_every_exporting_cluster_is_answered() {
    zone(F2).ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]).ttl(5);
}

#[test]
fn case_dns_01_in_whatever_order_the_slices_come() {
    let slices: Vec<_> =
        (1..=5).map(|n| slice("shop/db", &format!("c{n}"), PG, &[&format!("db-0=10.{n}.0.1")])).collect();
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..20 {
        let mut order: Vec<_> = slices.iter().map(String::as_str).collect();
        let import = headless("shop/db", PG);
        order.push(&import);
        rng.shuffle(&mut order);
        let mut live = Live::new("");
        for object in order {
            live.apply(object);
        }
        live.zone.ask("db.shop.svc", A).addresses(["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1", "10.5.0.1"]);
    }
}

#[test]
fn case_dns_02_there_is_no_cluster_of_our_own() {
    let zone = zone(F2);
    zone.ask("db-1.east.db.shop.svc", A).addresses(["10.1.0.12"]);
    zone.ask("db-0.west.db.shop.svc", A).addresses(["10.2.0.21"]);
}

#[test]
fn case_dns_03_the_first_address_changes() {
    let zone = zone(F2);
    let ask = Ask::new(&zone.absolute("db.shop.svc"), A).edns(Edns::size(1232));
    let mut first = HashMap::<String, usize>::new();
    for _ in 0..200 {
        let answer = zone.send(&ask);
        answer.addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
        *first.entry(answer.message.answers[0].data.clone()).or_default() += 1;
    }
    // 67 each expected; 30 is more than five standard deviations off.
    assert!(first.len() == 3 && first.values().all(|n| *n > 30), "{first:?}");
}

#[test]
fn case_dns_04_mcs_r89_a_clusters_name_has_no_address() {
    let zone = zone(F1.to_owned() + F2 + &slice("shop/web", "east", &["http/80"], &["web-0=10.1.0.1"]));
    zone.ask("east.web.shop.svc", A).nxdomain();
    zone.ask("east.db.shop.svc", A).nodata();
}

#[test]
fn case_dns_05_none_in_ips_is_skipped() {
    let f2 = replace(F2, "type: Headless,", "type: Headless, ips: [\"None\"],");
    zone(f2).ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
    let mixed = clustersetip("shop/web", &["not-an-ip", "10.96.7.8"], &["http/80"]);
    zone(mixed).ask("web.shop.svc", A).addresses(["10.96.7.8"]);
}

#[test]
fn case_dns_06_an_import_without_address_is_nodata_until_it_has_one() {
    let mut live = Live::new(replace(F1, r#"ips: ["10.96.7.7"]"#, "ips: []"));
    live.zone.ask("web.shop.svc", A).nodata();
    live.apply(F1);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.apply(replace(F1, r#"ips: ["10.96.7.7"]"#, "ips: []"));
    live.zone.ask("web.shop.svc", A).nodata();
}

#[test]
fn case_dns_07_the_apex_and_its_name_server() {
    for (nameserver, addresses) in [(vec![], 0), (vec!["192.0.2.53".parse().expect("an address")], 1)] {
        let zone = zone_with(options(|o| o.nameserver = nameserver), F1);
        assert_eq!(zone.ask("", SOA).noerror().count(), 1);
        let ns = zone.ask("", NS);
        let target = ns.noerror().message.answers[0].data.clone();
        assert!(ns.message.additionals.iter().all(|r| r.owner == target), "{ns}");
        assert_eq!(ns.message.additionals.len(), addresses, "{ns}");
        assert_eq!(zone.ask(&target, A).rcode(NOERROR).count(), addresses);
        zone.ask("", A).nodata();
    }
}

#[test]
fn case_dns_08_reverse_lookups_are_refused() {
    for name in ["11.0.1.10.in-addr.arpa.", "7.7.96.10.in-addr.arpa."] {
        zone(F1.to_owned() + F2).ask(name, PTR).refused();
    }
}

#[test]
fn case_dns_09_slices_belong_by_namespace_and_label_alone() {
    let unlabelled = slice("shop/db", "north", PG, &["10.9.0.1"]);
    let unlabelled = replace(&unlabelled, "multicluster.kubernetes.io/service-name", "kubernetes.io/service-name");
    let zone =
        zone(F2.to_owned() + &headless("lab/db", PG) + &slice("lab/db", "east", PG, &["db-0=10.8.0.1"]) + &unlabelled);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
    zone.ask("db.lab.svc", A).addresses(["10.8.0.1"]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db-0.east.db.lab.svc", A).addresses(["10.8.0.1"]);
}

#[test]
fn case_dns_09_a_slice_that_changes_its_service_moves() {
    let mut live =
        Live::new(headless("shop/a", PG) + &headless("shop/b", PG) + &slice("shop/a", "east", PG, &["10.1.0.1"]));
    live.zone.ask("a.shop.svc", A).addresses(["10.1.0.1"]);
    live.zone.ask("b.shop.svc", A).nxdomain();
    let moved = slice("shop/a", "east", PG, &["10.1.0.1"]);
    live.apply(replace(&moved, r#"service-name: "a""#, r#"service-name: "b""#));
    live.zone.ask("a.shop.svc", A).nxdomain();
    live.zone.ask("b.shop.svc", A).addresses(["10.1.0.1"]);
    live.apply(replace(&moved, "multicluster.kubernetes.io/service-name", "kubernetes.io/service-name"));
    live.zone.ask("b.shop.svc", A).nxdomain();
}

#[test]
fn case_dns_10_a_service_without_backends_resolves_unless_told_otherwise() {
    zone(F1).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    let unready = replace(F2, "ready: true", "ready: false");
    zone(&unready).ask("db.shop.svc", A).nxdomain();
    let ignoring = zone_with(options(|o| o.ignore_empty_service = true), F1.to_owned() + &unready);
    ignoring.ask("web.shop.svc", A).nxdomain();
    ignoring.ask("db.shop.svc", A).nxdomain();
}

#[test]
fn case_dns_10_ignore_empty_service_follows_the_endpoints() {
    let ports = &["http/80"];
    let mut live = Live::with(options(|o| o.ignore_empty_service = true), F1);
    live.zone.ask("web.shop.svc", A).nxdomain();
    live.apply(slice("shop/web", "east", ports, &["10.1.0.1 notready"]));
    live.zone.ask("web.shop.svc", A).nxdomain();
    live.apply(slice("shop/web", "east", ports, &["10.1.0.1"]));
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.delete_slice("shop/web-east");
    live.zone.ask("web.shop.svc", A).nxdomain();
}
