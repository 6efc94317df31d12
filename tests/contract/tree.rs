//! 1.14: names are a tree.

use std::collections::BTreeMap;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

/// A bit of everything: both forms, unnamed ports, two-label clusters, cluster ids that collide with hostnames.
fn everything() -> Zone {
    zone(
        clustersetip("shop/web", &["10.96.7.7", "fd00::7"], &["http/80", "dns/53/UDP", "/9/SCTP"])
            + &clustersetip("shop/wait", &[], &["http/80"])
            + &headless("shop/db", PG)
            + &slice("shop/db", "b", PG, &["a=10.1.0.1", "x=10.1.0.2"])
            + &slice("shop/db", "a.b", PG, &["y=10.2.0.1"])
            + &slice("shop/db#v6", "b", &["/7"], &["a=fd00::1"])
            + &headless("lab/none", PG)
            + &slice("lab/none", "b", PG, &["z=10.3.0.1 notready"]),
    )
}

/// Every name of that zone and the types it has; no types is an empty non-terminal.
fn names() -> BTreeMap<&'static str, Vec<u16>> {
    BTreeMap::from([
        ("", vec![SOA, NS]),
        ("dns-version", vec![TXT]),
        ("dns", vec![]),
        ("svc", vec![]),
        ("shop.svc", vec![]),
        ("web.shop.svc", vec![A, AAAA, SRV]),
        ("_tcp.web.shop.svc", vec![]),
        ("_http._tcp.web.shop.svc", vec![SRV]),
        ("_udp.web.shop.svc", vec![]),
        ("_dns._udp.web.shop.svc", vec![SRV]),
        ("wait.shop.svc", vec![]),
        ("_tcp.wait.shop.svc", vec![]),
        ("_http._tcp.wait.shop.svc", vec![]),
        ("db.shop.svc", vec![A, AAAA, SRV]),
        ("_tcp.db.shop.svc", vec![]),
        ("_pg._tcp.db.shop.svc", vec![SRV]),
        ("b.db.shop.svc", vec![]),
        ("a.b.db.shop.svc", vec![A, AAAA, SRV]),
        ("x.b.db.shop.svc", vec![A, SRV]),
        ("y.a.b.db.shop.svc", vec![A, SRV]),
    ])
}

#[test]
fn dns_1_14_every_name_has_its_types_and_no_others() {
    let zone = everything();
    for (name, types) in names() {
        for qtype in [A, AAAA, SRV, TXT, SOA, NS, PTR, CNAME, UNKNOWN] {
            let answer = zone.ask(name, qtype);
            assert_eq!(answer.rcode(NOERROR).count() > 0, types.contains(&qtype), "{answer}");
        }
        let any = zone.ask(name, ANY);
        assert_eq!(any.rcode(NOERROR).count() > 0, !types.is_empty(), "{any}");
    }
}

#[test]
fn dns_1_14_every_other_name_does_not_exist() {
    let zone = everything();
    let names = names();
    let labels = [
        "x", "a", "b", "y", "z", "db", "web", "shop", "svc", "lab", "none", "_tcp", "_udp", "_sctp", "_pg", "_http",
        "dns", "pod",
    ];
    let mut asked = 0;
    for parent in names.keys().copied().chain(["x.web.shop.svc", "lab.svc", "none.lab.svc", "b.none.lab.svc"]) {
        for label in labels {
            let name = format!("{label}.{parent}");
            let name = name.trim_end_matches('.');
            // ns.dns exists too: whether it has data is the operator's choice.
            if names.contains_key(name) || name == "ns.dns" {
                continue;
            }
            for qtype in [A, SRV, TXT, ANY] {
                zone.ask(name, qtype).nxdomain();
            }
            asked += 1;
        }
    }
    assert!(asked > 350, "{asked} names");
}

#[test]
fn dns_1_14_an_endpoint_and_an_empty_non_terminal_share_a_node() {
    let zone = everything();
    zone.ask("a.b.db.shop.svc", A).addresses(["10.1.0.1"]);
    zone.ask("a.b.db.shop.svc", AAAA).addresses(["fd00::1"]);
    zone.ask("y.a.b.db.shop.svc", A).addresses(["10.2.0.1"]);
    let alone = zone_of_a_b();
    alone.ask("a.b.db.shop.svc", A).nodata();
    alone.ask("a.b.db.shop.svc", SRV).nodata();
    alone.ask("y.a.b.db.shop.svc", A).addresses(["10.2.0.1"]);
}

fn zone_of_a_b() -> Zone {
    zone(headless("shop/db", PG) + &slice("shop/db", "a.b", PG, &["y=10.2.0.1"]))
}
