//! 1.7, V8 to V17, V25: which names have SRV records.

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn dns_v8_an_unnamed_port_has_no_name() {
    for zone in [
        zone(clustersetip("shop/db", &["10.96.7.7"], &["/5432", "pg/5433"])),
        zone(headless("shop/db", &[]) + &slice("shop/db", "east", &["/5432", "pg/5433"], &["a=10.1.0.1"])),
    ] {
        let mut ask = labels(&zone.absolute("_._tcp.db.shop.svc"));
        zone.ask_labels(ask.clone(), SRV).nxdomain();
        ask[1] = b"_".to_vec();
        zone.ask_labels(ask, SRV).nxdomain();
        zone.ask("_5432._tcp.db.shop.svc", SRV).nxdomain();
        zone.ask("_pg._tcp.db.shop.svc", SRV).noerror();
    }
}

#[test]
fn dns_v9_an_unnamed_port_is_in_the_bare_name() {
    let web = zone(clustersetip("shop/web", &["10.96.7.7"], &["/5432"]));
    web.ask("web.shop.svc", SRV).srv(["0 100 5432 web.shop.svc"]);
    let db = zone(headless("shop/db", &[]) + &slice("shop/db", "east", &["/5432"], &["a=10.1.0.1"]));
    db.ask("db.shop.svc", SRV).srv(["0 100 5432 a.east.db.shop.svc"]);
}

#[test]
fn dns_v10_another_protocol_does_not_exist() {
    for (zone, service, port) in [(zone(F1), "web", "http"), (zone(F2), "db", "pg")] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("_{port}._udp.{service}.shop.svc"), qtype).nxdomain();
            zone.ask(&format!("_udp.{service}.shop.svc"), qtype).nxdomain();
        }
    }
    let both = zone(clustersetip("shop/web", &["10.96.7.7"], &["http/80", "dns/53/UDP"]));
    both.ask("_http._udp.web.shop.svc", SRV).nxdomain();
    both.ask("_dns._tcp.web.shop.svc", SRV).nxdomain();
    both.ask("_udp.web.shop.svc", SRV).nodata();
}

#[test]
fn dns_v11_one_port_name_under_two_protocols_has_both() {
    let web = zone(clustersetip("shop/dns", &["10.96.7.7"], &["dns/53/TCP", "dns/5353/UDP"]));
    web.ask("_dns._tcp.dns.shop.svc", SRV).srv(["0 100 53 dns.shop.svc"]);
    web.ask("_dns._udp.dns.shop.svc", SRV).srv(["0 100 5353 dns.shop.svc"]);
    let ports = &["dns/53/TCP", "dns/5353/UDP"];
    let headless = zone(headless("shop/dns", ports) + &slice("shop/dns", "east", ports, &["a=10.1.0.1"]));
    headless.ask("_dns._tcp.dns.shop.svc", SRV).srv(["0 100 53 a.east.dns.shop.svc"]);
    headless.ask("_dns._udp.dns.shop.svc", SRV).srv(["0 100 5353 a.east.dns.shop.svc"]);
}

#[test]
fn dns_v12_sctp_works() {
    let zone = zone(clustersetip("shop/web", &["10.96.7.7"], &["sig/2905/SCTP"]));
    zone.ask("_sig._sctp.web.shop.svc", SRV).srv(["0 100 2905 web.shop.svc"]);
    zone.ask("_sctp.web.shop.svc", SRV).nodata();
    zone.ask("_sig._tcp.web.shop.svc", SRV).nxdomain();
}

#[test]
fn dns_v13_upper_case_matches() {
    zone(F1).ask("_HTTP._TCP.Web.Shop.SVC", SRV).srv(["0 100 80 web.shop.svc"]);
    zone(F2).ask("_Pg._Tcp.DB.shop.svc", SRV).targets([
        "5432 db-0.east.db.shop.svc",
        "5432 db-1.east.db.shop.svc",
        "5432 db-0.west.db.shop.svc",
    ]);
}

#[test]
fn dns_v14_one_underscore_is_not_enough() {
    for (zone, service, port) in [(zone(F1), "web", "http"), (zone(F2), "db", "pg")] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("{port}._tcp.{service}.shop.svc"), qtype).nxdomain();
            zone.ask(&format!("_{port}.tcp.{service}.shop.svc"), qtype).nxdomain();
        }
    }
}

#[test]
fn dns_v15_no_underscore_is_host_and_cluster() {
    zone(F1).ask("http.tcp.web.shop.svc", SRV).nxdomain();
    zone(F2).ask("pg.tcp.db.shop.svc", SRV).nxdomain();
}

#[test]
fn dns_v16_addresses_at_a_port_name_are_nodata() {
    for (zone, name) in [(zone(F1), "_http._tcp.web.shop.svc"), (zone(F2), "_pg._tcp.db.shop.svc")] {
        for qtype in DATA_TYPES.into_iter().filter(|t| !matches!(*t, SRV | ANY)) {
            zone.ask(name, qtype).nodata();
        }
        zone.ask(name, ANY).hinfo();
    }
}

#[test]
fn dns_v17_a_protocol_is_an_empty_non_terminal_when_it_has_a_named_port() {
    for (zone, service) in [(zone(F1), "web"), (zone(F2), "db")] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("_tcp.{service}.shop.svc"), qtype).nodata();
        }
    }
    let unnamed = zone(clustersetip("shop/web", &["10.96.7.7"], &["/80"]));
    unnamed.ask("_tcp.web.shop.svc", A).nxdomain();
    let unnamed = zone(headless("shop/db", PG) + &slice("shop/db", "east", &["/5432"], &["a=10.1.0.1"]));
    unnamed.ask("_tcp.db.shop.svc", A).nxdomain();
}

#[test]
fn dns_v25_srv_with_a_cluster_does_not_exist() {
    let zone = zone(F1.to_owned() + F2 + &slice("shop/web", "east", &["http/80"], &["10.1.0.1"]));
    for qtype in DATA_TYPES {
        zone.ask("_pg._tcp.east.db.shop.svc", qtype).nxdomain();
        zone.ask("_tcp.east.db.shop.svc", qtype).nxdomain();
        zone.ask("_http._tcp.east.web.shop.svc", qtype).nxdomain();
    }
}

#[test]
fn dns_v25_srv_with_a_cluster_answers_with_cluster_names() {
    let zone = zone_with(options(|o| o.cluster_names = true), F2);
    zone.ask("_pg._tcp.east.db.shop.svc", SRV).targets(["5432 db-0.east.db.shop.svc", "5432 db-1.east.db.shop.svc"]);
    zone.ask("_pg._tcp.west.db.shop.svc", SRV).targets(["5432 db-0.west.db.shop.svc"]);
    zone.ask("_tcp.west.db.shop.svc", SRV).nodata();
    zone.ask("_pg._udp.west.db.shop.svc", SRV).nxdomain();
    zone.ask("_pg._tcp.north.db.shop.svc", SRV).nxdomain();
}
