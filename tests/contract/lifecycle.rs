//! 1.11, as far as replies show it: L2 to L4, L9, L10, L12, L14; and the serial of 1.0.

use std::time::Duration;

use namesake::answers::{Options, Store};
use namesake::model::{Resource, Update};

use crate::support::*;

/// Names below `svc`: what is there depends on the cluster.
const DATA_NAMES: [&str; 8] = [
    "web.shop.svc",
    "nope.shop.svc",
    "shop.svc",
    "nope.svc",
    "_http._tcp.web.shop.svc",
    "_tcp.web.shop.svc",
    "db-0.east.db.shop.svc",
    "a.b.c.d.web.shop.svc",
];

#[track_caller]
fn not_ready(zone: &Zone) {
    for name in DATA_NAMES {
        for qtype in DATA_TYPES {
            zone.ask(name, qtype).servfail().ede(NOT_READY);
        }
    }
}

#[track_caller]
fn infrastructure_answers(zone: &Zone) {
    assert_eq!(zone.ask("", SOA).noerror().count(), 1);
    zone.ask("", NS).record("5 NS ns.dns.clusterset.local.");
    zone.ask("", A).nodata();
    zone.ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
    zone.ask("svc", A).nodata();
    zone.ask("svc", TXT).nodata();
    zone.ask("example.org.", A).refused().ede(NOT_AUTHORITATIVE);
    zone.ask("", AXFR).refused().ede(PROHIBITED);
}

#[test]
fn dns_l3_before_sync_data_names_are_servfail_with_ede_14() {
    let zone = Zone::new(std::sync::Arc::new(Store::new(Options::default())));
    not_ready(&zone);
    not_ready(&Live::unsynced(Options::default()).zone);
}

#[test]
fn dns_l4_before_sync_the_apex_and_its_like_answer() {
    infrastructure_answers(&Live::unsynced(Options::default()).zone);
}

#[test]
fn dns_l2_half_the_lists_are_not_enough() {
    let everything = F1.to_owned() + F2;
    for first in Resource::ALL {
        let mut live = Live::unsynced(Options::default());
        live.resync_one(first, &everything);
        not_ready(&live.zone);
        infrastructure_answers(&live.zone);
        // A running list of the other kind does not count before its end.
        let second = Resource::ALL.into_iter().find(|r| *r != first).expect("the other");
        live.send([Update::ResyncBegin(second)]).apply(&everything);
        not_ready(&live.zone);
        live.send([Update::ResyncEnd(second)]);
        live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]).no_ede();
        live.zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]).no_ede();
        live.zone.ask("nope.shop.svc", A).nxdomain().no_ede();
    }
}

#[test]
fn dns_l9_stale_data_is_served_with_ede_3() {
    let zone = zone(F1.to_owned() + F2);
    zone.store.set_stale(true);
    for (name, qtype) in
        [("web.shop.svc", A), ("db.shop.svc", A), ("_pg._tcp.db.shop.svc", SRV), ("db-0.east.db.shop.svc", A)]
    {
        zone.ask(name, qtype).noerror().ede(STALE_ANSWER);
    }
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    zone.ask("web.shop.svc", AAAA).nodata();
    zone.ask("nope.shop.svc", A).nxdomain();
    zone.store.set_stale(false);
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]).no_ede();
}

#[test]
fn dns_l9_past_max_stale_data_names_are_servfail() {
    let zone = zone(F1);
    zone.store.set_stale(true);
    zone.store.set_expired(true);
    for name in DATA_NAMES {
        zone.ask(name, A).servfail();
    }
    zone.ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
    zone.ask("svc", A).nodata();
    zone.store.set_expired(false);
    zone.store.set_stale(false);
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]).no_ede();
}

#[test]
fn dns_l10_a_relist_shows_no_gap_and_sweeps_at_its_end() {
    let mut live = Live::new(F1.to_owned() + F2);
    live.send(Resource::ALL.map(Update::ResyncBegin));
    let all_there = |zone: &Zone| {
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
    };
    all_there(&live.zone);
    live.apply(F2);
    all_there(&live.zone);
    // A second begin starts over: what the first one saw counts for nothing.
    live.send(Resource::ALL.map(Update::ResyncBegin)).apply(F1);
    all_there(&live.zone);
    live.send(Resource::ALL.map(Update::ResyncEnd));
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.zone.ask("db.shop.svc", A).nxdomain();
    live.zone.ask("db-0.east.db.shop.svc", A).nxdomain();
}

#[test]
fn dns_l12_the_first_change_is_served_at_once_and_what_follows_after_10_ms() {
    let ip = |last: u8| clustersetip("shop/web", &[&format!("10.96.7.{last}")], &["http/80"]);
    let mut live = Live::new(ip(1));
    live.wait(Duration::from_secs(1)).burst(&[&ip(2)]);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.2"]);
    live.burst(&[&ip(3), &ip(4)]);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.2"]);
    live.wait(Duration::from_millis(11));
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.4"]);
    // Another service does not wait for this one.
    live.burst(&[&ip(5), F2]);
    live.zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
}

#[test]
fn dns_l14_without_endpoints_headless_and_endpoint_names_do_not_exist() {
    let all = options(|o| {
        o.no_endpoints = true;
        o.endpoint_names = namesake::answers::EndpointNames::All;
    });
    let manifests = F1.to_owned() + F2 + &slice("shop/web", "east", &["http/80"], &["web-0=10.1.0.1"]);
    for options in [options(|o| o.no_endpoints = true), all] {
        let zone = zone_with(options, &manifests);
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        zone.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
        for name in [
            "db.shop.svc",
            "_pg._tcp.db.shop.svc",
            "db-0.east.db.shop.svc",
            "east.db.shop.svc",
            "web-0.east.web.shop.svc",
        ] {
            for qtype in DATA_TYPES {
                zone.ask(name, qtype).nxdomain();
            }
        }
    }
}

#[test]
fn dns_l14_without_endpoints_the_imports_alone_make_it_synced() {
    let mut live = Live::unsynced(options(|o| o.no_endpoints = true));
    not_ready(&live.zone);
    live.resync_one(Resource::Imports, F1);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.zone.ask("db.shop.svc", A).nxdomain();
}

fn serial(zone: &Zone) -> u32 {
    let answer = zone.ask("", SOA);
    let negative = zone.ask("nope", A);
    let of = |data: &str| data.split(' ').nth(2).and_then(|s| s.parse::<u32>().ok()).expect("a serial");
    let serial = of(&answer.message.answers[0].data);
    assert_eq!(of(&negative.message.authorities[0].data), serial, "one serial for all answers");
    serial
}

#[test]
fn dns_1_0_the_serial_grows_on_every_change_and_only_then() {
    let mut live = Live::new(F1.to_owned() + F2);
    let mut last = serial(&live.zone);
    let mut grown = |live: &mut Live, what: &str| {
        live.wait(Duration::from_secs(1));
        let now = serial(&live.zone);
        assert!(now > last, "{what}: {last} to {now}");
        last = now;
    };
    grown(live.apply(clustersetip("shop/web", &["10.96.7.8"], &["http/80"])), "spec.ips");
    grown(live.apply(clustersetip("shop/web", &["10.96.7.8"], &["http/81"])), "spec.ports");
    grown(live.apply(clustersetip("shop/api", &["10.96.7.9"], &["http/80"])), "a new import");
    grown(live.delete_import("shop/api"), "an import deleted");
    grown(live.apply(slice("shop/db", "north", &["pg/5432"], &["db-0=10.3.0.1"])), "a new slice");
    grown(live.delete_slice("shop/db-north"), "a slice deleted");
    grown(live.apply(slice("shop/db", "east", &["pg/5432"], &["db-0=10.1.0.99"])), "an endpoint's address");
    grown(live.apply(slice("shop/db", "east", &["pg/5432"], &["db-0=10.1.0.99 notready"])), "an endpoint's readiness");
    grown(live.resync(F1), "a relist that differs");
    live.resync(F1).apply(F1).wait(Duration::from_secs(5));
    assert_eq!(serial(&live.zone), last, "nothing changed");
    live.apply(slice("shop/web", "east", &["http/80"], &["10.1.0.1"])).wait(Duration::from_secs(5));
    assert_eq!(serial(&live.zone), last, "a slice that no record comes from");
}

#[test]
fn dns_1_0_the_serial_moves_at_most_once_a_second_and_not_ahead_of_the_clock() {
    let mut live = Live::new(F1);
    live.wait(Duration::from_secs(10));
    let seconds = |live: &Live| {
        let since = live.now.wall.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        u32::try_from(since.as_secs()).expect("before 2106")
    };
    for round in 0..40_u8 {
        let ip = format!("10.96.7.{round}");
        live.burst(&[&clustersetip("shop/web", &[&ip], &["http/80"])]).wait(Duration::from_millis(50));
        live.zone.ask("web.shop.svc", A).addresses([&*ip]);
        assert!(serial(&live.zone) <= seconds(&live), "ahead of the clock");
    }
    let before = serial(&live.zone);
    live.wait(Duration::from_secs(1));
    assert!(serial(&live.zone) >= before && serial(&live.zone) <= seconds(&live));
}
