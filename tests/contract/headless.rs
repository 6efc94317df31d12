//! 1.5: headless imports, `<svc>.<ns>.svc.Z`.

use std::collections::HashSet;

use namesake::answers::{EmptyHeadless, EndpointPolicy};

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

fn db(slices: &[String]) -> Zone {
    zone(headless("shop/db", PG) + &slices.concat())
}

#[test]
fn dns_h1_one_a_per_distinct_address() {
    let zone = db(&[slice("shop/db", "east", PG, &["db-0=10.1.0.11", "db-1=10.1.0.12", "10.1.0.13"])]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.1.0.13"]);
}

#[test]
fn dns_h1_every_address_of_an_endpoint_counts() {
    let zone = db(&[slice("shop/db", "east", PG, &["db-0=10.1.0.11,10.1.0.99"])]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.99"]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.99"]);
}

#[test]
fn dns_h2_the_union_of_slices_and_clusters_without_duplicates() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11"]),
        slice("shop/db#2", "east", PG, &["db-1=10.1.0.12", "db-0=10.1.0.11"]),
        slice("shop/db", "west", PG, &["db-0=10.2.0.21"]),
        slice("shop/db", "north", PG, &["db-0=10.1.0.11"]),
    ]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
}

#[test]
fn dns_h3_aaaa_of_ipv4_endpoints_is_nodata() {
    zone(F2).ask("db.shop.svc", AAAA).nodata();
    let v6 = db(&[slice("shop/db", "east", PG, &["db-0=fd00::11"])]);
    v6.ask("db.shop.svc", AAAA).addresses(["fd00::11"]);
    v6.ask("db.shop.svc", A).nodata();
}

#[test]
fn dns_h4_dual_stack_has_each_family_whole() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11", "db-1=10.1.0.12"]),
        slice("shop/db#v6", "east", PG, &["db-0=fd00::11", "db-1=fd00::12"]),
    ]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12"]);
    zone.ask("db.shop.svc", AAAA).addresses(["fd00::11", "fd00::12"]);
}

#[test]
fn dns_h5_endpoints_that_are_not_ready_are_left_out() {
    let zone = db(&[slice(
        "shop/db",
        "east",
        PG,
        &["db-0=10.1.0.11", "db-1=10.1.0.12 notready", "db-2=10.1.0.13 nil", "db-3=10.1.0.14 bare"],
    )]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.13", "10.1.0.14"]);
    zone.ask("db-1.east.db.shop.svc", A).nxdomain();
    zone.ask("db.shop.svc", SRV).srv([
        "0 33 5432 db-0.east.db.shop.svc",
        "0 33 5432 db-2.east.db.shop.svc",
        "0 33 5432 db-3.east.db.shop.svc",
    ]);
}

const TERMINATING: &str = "db-1=10.1.0.12 notready terminating serving";

#[test]
fn dns_h6_terminating_endpoints_are_left_out() {
    let zone = db(&[slice("shop/db", "east", PG, &["db-0=10.1.0.11", TERMINATING])]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    let only = db(&[slice("shop/db", "east", PG, &[TERMINATING])]);
    only.ask("db.shop.svc", A).nxdomain();
}

#[test]
fn dns_h6_serving_fallback_takes_them_when_nothing_is_ready() {
    let fallback = |slices: String| {
        zone_with(options(|o| o.endpoints = EndpointPolicy::ServingFallback), headless("shop/db", PG) + &slices)
    };
    let some = fallback(slice("shop/db", "east", PG, &["db-0=10.1.0.11", TERMINATING]));
    some.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    let none = fallback(
        slice("shop/db", "east", PG, &[TERMINATING, "db-2=10.1.0.13 notready terminating"])
            + &slice("shop/db", "west", PG, &["db-0=10.2.0.1 notready"]),
    );
    none.ask("db.shop.svc", A).addresses(["10.1.0.12"]);
    none.ask("db-1.east.db.shop.svc", A).addresses(["10.1.0.12"]);
    none.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-1.east.db.shop.svc"]);
    // Ready anywhere is enough: the rule is per service, not per cluster.
    let elsewhere =
        fallback(slice("shop/db", "east", PG, &[TERMINATING]) + &slice("shop/db", "west", PG, &["db-0=10.2.0.1"]));
    elsewhere.ask("db.shop.svc", A).addresses(["10.2.0.1"]);
}

#[test]
fn dns_h7_terminating_but_ready_is_in() {
    let zone = db(&[slice("shop/db", "east", PG, &["db-0=10.1.0.11 terminating serving"])]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
}

#[test]
fn dns_h8_without_ready_endpoints_the_name_and_all_below_are_gone() {
    let unready = slice("shop/db", "east", PG, &["db-0=10.1.0.11 notready"]);
    let empty = slice("shop/db#2", "east", PG, &[]);
    for slices in [vec![], vec![unready.clone()], vec![empty, unready]] {
        let zone = db(&slices);
        for name in
            ["db.shop.svc", "_pg._tcp.db.shop.svc", "_tcp.db.shop.svc", "east.db.shop.svc", "db-0.east.db.shop.svc"]
        {
            for qtype in DATA_TYPES {
                zone.ask(name, qtype).nxdomain();
            }
        }
    }
}

#[test]
fn dns_h8_empty_headless_nodata_keeps_the_name() {
    let zone = zone_with(
        options(|o| o.empty_headless = EmptyHeadless::Nodata),
        headless("shop/db", PG) + &slice("shop/db", "east", PG, &["db-0=10.1.0.11 notready"]),
    );
    for qtype in DATA_TYPES {
        zone.ask("db.shop.svc", qtype).nodata();
    }
    zone.ask("shop.svc", A).nodata();
    zone.ask("db-0.east.db.shop.svc", A).nxdomain();
    zone.ask("nope.shop.svc", A).nxdomain();
}

#[test]
fn dns_h9_slices_without_ports_answer_addresses() {
    let zone = zone(headless("shop/db", &[]) + &slice("shop/db", "east", &[], &["db-0=10.1.0.11"]));
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db.shop.svc", SRV).nodata();
}

#[test]
fn dns_h10_fqdn_slices_are_ignored() {
    let fqdn = slice("shop/db#x", "east", PG, &["db-9=example.org"]).replace("addressType: IPv4", "addressType: FQDN");
    let beside = db(&[fqdn.clone(), slice("shop/db", "east", PG, &["db-0=10.1.0.11"])]);
    beside.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    beside.ask("db.shop.svc", CNAME).nodata();
    beside.ask("db-9.east.db.shop.svc", A).nxdomain();
    beside.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-0.east.db.shop.svc"]);
    db(&[fqdn]).ask("db.shop.svc", A).nxdomain();
}

#[test]
fn dns_h11_the_same_address_twice_is_one_record() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11"]),
        slice("shop/db#2", "east", &["other/1"], &["db-0=10.1.0.11"]),
        slice("shop/db", "west", PG, &["10.1.0.11"]),
    ]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
}

#[test]
fn dns_h12_without_source_cluster_there_is_an_address_but_no_name_and_no_srv() {
    for cluster in ["", "-"] {
        let zone = db(&[
            slice("shop/db#x", cluster, PG, &["db-9=10.9.0.9"]),
            slice("shop/db", "east", PG, &["db-0=10.1.0.11"]),
        ]);
        zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.9.0.9"]);
        zone.ask("db-9.db.shop.svc", A).nxdomain();
        zone.ask("db.shop.svc", SRV).targets(["5432 db-0.east.db.shop.svc"]);
        zone.ask("_pg._tcp.db.shop.svc", SRV).targets(["5432 db-0.east.db.shop.svc"]);
        let only = db(&[slice("shop/db", cluster, PG, &["db-9=10.9.0.9"])]);
        only.ask("db.shop.svc", A).addresses(["10.9.0.9"]);
        only.ask("db.shop.svc", SRV).nodata();
        assert_eq!(only.ask("_pg._tcp.db.shop.svc", SRV).count(), 0);
    }
}

#[test]
fn dns_h13_every_answer_is_shuffled() {
    let addresses: Vec<_> = (1..=8).map(|n| format!("db-{n}=10.1.0.{n}")).collect();
    let zone = db(&[slice("shop/db", "east", PG, &addresses.iter().map(String::as_str).collect::<Vec<_>>())]);
    for ask in [
        Ask::new(&zone.absolute("db.shop.svc"), A),
        Ask::new(&zone.absolute("db.shop.svc"), A).tcp().edns(Edns::size(1232)),
    ] {
        let mut first = std::collections::HashMap::<String, usize>::new();
        let mut orders = HashSet::new();
        for _ in 0..800 {
            let answers = zone.send(&ask).message.answers;
            *first.entry(answers[0].data.clone()).or_default() += 1;
            orders.insert(answers.into_iter().map(|r| r.data).collect::<Vec<_>>());
        }
        // 100 each expected; 50 is more than five standard deviations off.
        assert!(first.len() == 8 && first.values().all(|n| (50..=150).contains(n)), "first addresses: {first:?}");
        assert!(orders.len() >= 8, "{} orders", orders.len());
    }
}

#[test]
fn dns_h13_several_ips_of_a_clustersetip_import_are_shuffled_too() {
    let zone = zone(clustersetip("shop/web", &["10.0.0.1", "10.0.0.2", "10.0.0.3"], &["http/80"]));
    let ask = Ask::new(&zone.absolute("web.shop.svc"), A);
    let first: HashSet<_> = (0..200).map(|_| zone.send(&ask).message.answers[0].data.clone()).collect();
    assert_eq!(first.len(), 3, "{first:?}");
}

#[test]
fn dns_h14_slices_of_a_clustersetip_import_are_not_used() {
    let zone = zone(F1.to_owned() + &slice("shop/web", "east", &["http/8080"], &["web-0=10.1.0.1"]));
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    zone.ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    zone.ask("web-0.east.web.shop.svc", A).nxdomain();
    zone.ask("east.web.shop.svc", A).nxdomain();
}

#[test]
fn dns_h15_no_cluster_is_special() {
    let clusters = ["east", "west", "local", "cluster", "self"];
    let slices: Vec<_> =
        clusters.iter().enumerate().map(|(n, c)| slice("shop/db", c, PG, &[&format!("10.{n}.0.1")])).collect();
    db(&slices).ask("db.shop.svc", A).addresses(["10.0.0.1", "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"]);
}

#[test]
fn dns_h16_types_without_data_are_nodata() {
    let zone = zone(F2);
    for qtype in OTHER_TYPES {
        zone.ask("db.shop.svc", qtype).nodata();
        zone.ask("db-0.east.db.shop.svc", qtype).nodata();
    }
}

#[test]
fn dns_h17_ips_of_a_headless_import_are_ignored() {
    let import = import("shop/db", "type: Headless, ips: [10.96.9.9], ports: [{name: pg, port: 5432}]", "");
    let with = zone(import.clone() + &slice("shop/db", "east", PG, &["db-0=10.1.0.11"]));
    with.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    zone(import).ask("db.shop.svc", A).nxdomain();
}

#[test]
fn dns_h18_endpoints_with_forbidden_addresses_are_absent() {
    for (address, good) in [
        ("127.0.0.1", "10.1.0.11"),
        ("169.254.169.254", "10.1.0.11"),
        ("224.0.0.1", "10.1.0.11"),
        ("0.0.0.0", "10.1.0.11"),
        ("255.255.255.255", "10.1.0.11"),
        ("::1", "fd00::11"),
        ("fe80::1", "fd00::11"),
        ("ff02::1", "fd00::11"),
        ("::", "fd00::11"),
        ("::ffff:10.1.0.11", "fd00::11"),
    ] {
        let bad = format!("db-9={address}");
        let qtype = if good.contains(':') { AAAA } else { A };
        let beside = db(&[slice("shop/db", "east", PG, &[&bad, &format!("db-0={good}")])]);
        beside.ask("db.shop.svc", qtype).addresses([good]);
        beside.ask("db-9.east.db.shop.svc", qtype).nxdomain();
        beside.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-0.east.db.shop.svc"]);
        let alone = db(&[slice("shop/db", "east", PG, &[&bad])]);
        for name in ["db.shop.svc", "east.db.shop.svc", "db-9.east.db.shop.svc", "_pg._tcp.db.shop.svc"] {
            alone.ask(name, qtype).nxdomain();
        }
    }
}
