//! Chapter 2, NEG-01 to NEG-07.

use namesake::dns::Transport;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn case_neg_01_the_other_family_is_nodata() {
    let v4 = zone(F1.to_owned() + F2);
    for name in ["web.shop.svc", "db.shop.svc", "db-0.east.db.shop.svc", "_http._tcp.web.shop.svc"] {
        v4.ask(name, AAAA).nodata();
    }
    let v6 = zone(
        clustersetip("shop/web", &["fd00::7"], &["http/80"])
            + &headless("shop/db", PG)
            + &slice("shop/db", "east", PG, &["db-0=fd00:1::11"]),
    );
    for name in ["web.shop.svc", "db.shop.svc", "db-0.east.db.shop.svc", "_http._tcp.web.shop.svc"] {
        v6.ask(name, A).nodata();
    }
}

#[test]
fn case_neg_02_a_missing_name_is_nxdomain_for_every_type() {
    let zone = zone(F1);
    for qtype in [TXT, HINFO, NS, MX, CAA, HTTPS, 4321, CNAME, SOA, PTR, ANY] {
        zone.ask("nope.shop.svc", qtype).nxdomain();
        zone.ask("web.nope.svc", qtype).nxdomain();
    }
    for qtype in [TXT, HINFO, NS, MX, CAA, HTTPS, 4321, CNAME, SOA, PTR] {
        zone.ask("web.shop.svc", qtype).nodata();
    }
}

#[test]
fn case_neg_03_empty_non_terminals_are_nodata() {
    let zone = zone(F2);
    for name in ["svc", "shop.svc", "east.db.shop.svc", "_tcp.db.shop.svc"] {
        zone.ask(name, A).nodata();
    }
    zone.ask("empty-ns.svc", A).nxdomain();
    zone.ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
}

#[test]
fn case_neg_04_headless_without_ready_endpoints_is_nxdomain_and_back() {
    let unready = replace(F2, "ready: true", "ready: false");
    let one = unready.replacen("ready: false", "ready: true", 1);
    let names = [("db.shop.svc", A), ("_pg._tcp.db.shop.svc", SRV), ("db-0.east.db.shop.svc", A)];
    let mut live = Live::new(&unready);
    for _ in 0..3 {
        for (name, qtype) in names {
            live.zone.ask(name, qtype).nxdomain();
        }
        live.apply(&one);
        live.zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
        live.zone.ask("db.shop.svc", AAAA).nodata();
        live.zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-0.east.db.shop.svc"]);
        live.zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
        live.zone.ask("db-1.east.db.shop.svc", A).nxdomain();
        live.apply(&unready);
    }
}

#[test]
fn case_neg_05_outside_the_zone_is_refused() {
    let zone = zone(F1);
    for (name, qtype) in
        [("example.org.", A), ("clusterset.localx.", A), ("xclusterset.local.", A), ("local.", SOA), (".", NS)]
    {
        zone.ask(name, qtype).refused();
    }
}

#[test]
fn case_neg_06_every_negative_answer_has_one_short_lived_soa() {
    let zone = zone(F1.to_owned() + F2);
    let unready = self::zone(replace(F2, "ready: true", "ready: false"));
    for (zone, name, qtype) in [
        (&zone, "web.shop.svc", AAAA),
        (&zone, "nope.shop.svc", TXT),
        (&zone, "svc", A),
        (&zone, "shop.svc", A),
        (&zone, "_tcp.db.shop.svc", A),
        (&unready, "db.shop.svc", A),
        (&unready, "_pg._tcp.db.shop.svc", SRV),
    ] {
        for transport in [Transport::Udp, Transport::Tcp] {
            let mut ask = Ask::new(&zone.absolute(name), qtype);
            ask.transport = transport;
            let answer = zone.send(&ask);
            let [soa] = &answer.message.authorities[..] else { panic!("one SOA\n{answer}") };
            let minimum: u32 = soa.data.rsplit(' ').next().and_then(|m| m.parse().ok()).expect("a number");
            assert_eq!(soa.owner, "clusterset.local.", "{answer}");
            assert!(soa.ttl.min(minimum) <= 5 && answer.count() == 0, "{answer}");
        }
    }
}

#[test]
fn case_neg_07_too_deep_names_are_nxdomain() {
    let zone = zone(F1);
    for name in [
        "web.shop.svc.clusterset.local.clusterset.local.",
        "web.shop.svc.clusterset.local.svc.clusterset.local.",
        "a.b.c.d.e.f.web.shop.svc.clusterset.local.",
    ] {
        for qtype in [A, AAAA, TXT, SRV] {
            zone.ask(name, qtype).nxdomain();
        }
    }
}
