//! Chapter 4, HDL-01 to HDL-06.

use std::collections::BTreeMap;
use std::time::Duration;

use namesake::model::Resource;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn case_hdl_01_only_an_explicit_false_is_not_ready() {
    let endpoints = [
        "db-0=10.1.0.10",
        "db-1=10.1.0.11 notready",
        "db-2=10.1.0.12 nil",
        "db-3=10.1.0.13 bare",
        "db-4=10.1.0.14 notready terminating serving",
        "db-5=10.1.0.15 nil terminating serving",
    ];
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "east", PG, &endpoints));
    zone.ask("db.shop.svc", A).addresses(["10.1.0.10", "10.1.0.12", "10.1.0.13", "10.1.0.15"]);
    for name in ["db-1", "db-4"] {
        zone.ask(&format!("{name}.east.db.shop.svc"), A).nxdomain();
    }
}

#[test]
fn case_hdl_02_published_not_ready_endpoints_resolve() {
    // The source's EndpointSlice controller says ready for all; the copy says the same, and that is what counts.
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "east", PG, &["db-0=10.1.0.10 terminating"]));
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.10"]);
}

#[test]
fn case_hdl_03_duplicates_are_one_record_and_the_ready_copy_wins() {
    let repeated = |flag: &str| slice("shop/db#2", "east", PG, &[&format!("db-0=10.1.0.11{flag}")]);
    for flag in ["", " notready"] {
        let zone = zone(F2.to_owned() + &repeated(flag));
        zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
        zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
        zone.ask("_pg._tcp.db.shop.svc", SRV).targets([
            "5432 db-0.east.db.shop.svc",
            "5432 db-1.east.db.shop.svc",
            "5432 db-0.west.db.shop.svc",
        ]);
    }
    let both = zone(F2.to_owned() + &slice("shop/db#2", "west", PG, &["db-7=10.1.0.11"]));
    both.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
    both.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
    both.ask("db-7.west.db.shop.svc", A).addresses(["10.1.0.11"]);
}

#[test]
fn case_hdl_04_answers_are_the_union_of_the_slices_that_are_there() {
    let objects: BTreeMap<_, _> = [
        ("db-east-1", (slice("shop/db#1", "east", PG, &["db-0=10.1.0.1"]), "10.1.0.1")),
        ("db-east-2", (slice("shop/db#2", "east", PG, &["db-1=10.1.0.2"]), "10.1.0.2")),
        ("db-east-v6", (slice("shop/db#v6", "east", PG, &["db-0=fd00::1"]), "fd00::1")),
    ]
    .into();
    let names: Vec<_> = objects.keys().copied().collect();
    let mut rng = fastrand::Rng::with_seed(4);
    let mut live = Live::new(headless("shop/db", PG));
    let mut present = BTreeMap::new();
    for _ in 0..200 {
        let name = names[rng.usize(..names.len())];
        if present.remove(name).is_some() {
            live.delete_slice(&format!("shop/{name}"));
        } else {
            live.apply(&objects[name].0);
            present.insert(name, objects[name].1);
        }
        let family = |v6: bool| -> Vec<_> {
            present.values().filter(|a| a.contains(':') == v6).map(|a| (*a).to_owned()).collect()
        };
        assert_eq!(live.zone.data("db.shop.svc", A), family(false));
        assert_eq!(live.zone.data("db.shop.svc", AAAA), family(true));
        let exists = if present.is_empty() { NXDOMAIN } else { NOERROR };
        live.zone.ask("db.shop.svc", TXT).rcode(exists);
        let one = present.contains_key("db-east-1") || present.contains_key("db-east-v6");
        live.zone.ask("db-0.east.db.shop.svc", TXT).rcode(if one { NOERROR } else { NXDOMAIN });
    }
}

/// 3,000 endpoints in 30 slices of one cluster; `without` leaves endpoints out, `with` adds one to a slice.
fn node_slice(number: usize, without: Option<usize>, with: Option<usize>) -> String {
    let nodes = (number * 100..number * 100 + 100).filter(|n| Some(*n) != without).chain(with);
    let endpoints: Vec<_> = nodes.map(|n| format!("node-{n}=10.7.{}.{}", n / 100, n % 100 + 1)).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    slice(&format!("shop/db#{number}"), "east", PG, &endpoints)
}

#[test]
fn case_hdl_05_an_endpoint_that_moves_between_slices_is_gone_no_longer_than_between_the_events() {
    let all: String = (0..30).map(|n| node_slice(n, None, None)).collect();
    let mut live = Live::new(headless("shop/db", PG) + &all);
    let name = "node-7.east.db.shop.svc";
    let address = ["10.7.0.8"];
    live.zone.ask(name, A).addresses(address);
    // Both events in one burst of the watch: no gap.
    let (losing, gaining) = (node_slice(0, Some(7), None), node_slice(1, None, Some(7)));
    live.apply(losing.clone() + &gaining);
    live.zone.ask(name, A).addresses(address);
    live.apply(node_slice(1, None, None) + &node_slice(0, None, None));
    live.zone.ask(name, A).addresses(address);
    // 50 ms between them: the gap ends with the second event, not with a resync.
    live.wait(Duration::from_secs(1)).burst(&[&losing]);
    live.zone.ask(name, A).nxdomain();
    live.wait(Duration::from_millis(50)).burst(&[&gaining]);
    live.zone.ask(name, A).addresses(address);
    // The gaining slice first, as a careful controller writes: no gap at any distance.
    live.burst(&[&node_slice(0, None, None)]).wait(Duration::from_millis(50));
    live.zone.ask(name, A).addresses(address);
    live.burst(&[&node_slice(1, None, None)]).wait(Duration::from_millis(50));
    live.zone.ask(name, A).addresses(address);
}

#[test]
fn case_hdl_06_a_disabled_feature_answers_and_does_not_panic() {
    let import = headless("shop/db", PG);
    let off = zone_with(options(|o| o.no_endpoints = true), &import);
    let missing = zone(&import);
    for zone in [&off, &missing] {
        for qtype in [A, SRV, AAAA, ANY, TXT] {
            zone.ask("db.shop.svc", qtype).nxdomain();
            zone.ask("db-0.east.db.shop.svc", qtype).nxdomain();
        }
    }
    let mut waiting = Live::unsynced(options(|_| ()));
    waiting.resync_one(Resource::Imports, &import);
    for qtype in [A, SRV, AAAA] {
        waiting.zone.ask("db.shop.svc", qtype).servfail();
    }
}
