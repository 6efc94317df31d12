//! Chapter 0, D1 to D23: where the peers disagree, and what we take.

use std::collections::HashSet;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn dns_d1_dns_version_is_1_0_0() {
    zone("").ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
}

#[test]
fn dns_d2_the_bare_name_has_srv() {
    zone(F1).ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
}

#[test]
fn dns_d3_endpoints_without_hostname_have_dashed_addresses() {
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "east", PG, &["2001:db8::"]));
    zone.ask("db.shop.svc", SRV).srv(["0 100 5432 2001-db8--0.east.db.shop.svc"]);
}

#[test]
fn dns_d4_headless_without_ready_endpoints_is_nxdomain() {
    zone(headless("shop/db", PG)).ask("db.shop.svc", A).nxdomain();
}

#[test]
fn dns_d5_a_cluster_of_a_headless_import_is_nodata() {
    zone(F2).ask("east.db.shop.svc", A).nodata();
    zone(F2).ask("north.db.shop.svc", A).nxdomain();
}

#[test]
fn dns_d6_clustersetip_imports_have_no_endpoint_names() {
    let zone = zone(F1.to_owned() + &slice("shop/web", "east", &["http/80"], &["web-0=10.1.0.1"]));
    zone.ask("web-0.east.web.shop.svc", A).nxdomain();
}

#[test]
fn dns_d7_two_label_cluster_ids_resolve() {
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "a.b", PG, &["h=10.1.0.1"]));
    zone.ask("h.a.b.db.shop.svc", A).addresses(["10.1.0.1"]);
}

#[test]
fn dns_d8_empty_non_terminals_are_nodata() {
    let zone = zone(F1);
    for name in ["_tcp.web.shop.svc", "dns", "svc", "shop.svc"] {
        zone.ask(name, A).nodata();
    }
}

#[test]
fn dns_d9_one_rcode_per_name_for_all_types() {
    let zone = zone(F1.to_owned() + F2);
    for name in [
        "",
        "dns",
        "ns.dns",
        "dns-version",
        "hostmaster",
        "svc",
        "pod",
        "shop.svc",
        "nope.svc",
        "web.shop.svc",
        "nope.shop.svc",
        "db.shop.svc",
        "east.db.shop.svc",
        "db-0.east.db.shop.svc",
        "db-9.east.db.shop.svc",
        "_tcp.web.shop.svc",
        "_http._tcp.web.shop.svc",
        "_http._udp.web.shop.svc",
        "http.tcp.web.shop.svc",
    ] {
        let rcodes: HashSet<_> = DATA_TYPES.iter().map(|t| zone.ask(name, *t).message.rcode()).collect();
        assert_eq!(rcodes.len(), 1, "{name}: {rcodes:?}");
    }
}

#[test]
fn dns_d10_negative_answers_carry_the_soa() {
    let zone = zone(F1);
    assert_eq!(zone.ask("web.shop.svc", AAAA).nodata().message.authorities.len(), 1);
    assert_eq!(zone.ask("nope.shop.svc", A).nxdomain().message.authorities.len(), 1);
}

#[test]
fn dns_d11_the_negative_ttl_is_its_own() {
    let zone = zone_with(options(|o| (o.ttl, o.negttl) = (30, 3)), F1);
    assert_eq!(zone.ask("nope.shop.svc", A).message.authorities[0].ttl, 3);
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]).ttl(30);
}

#[test]
fn dns_d12_before_sync_every_data_name_is_servfail() {
    let zone = Live::unsynced(namesake::answers::Options::default()).zone;
    zone.ask("web.shop.svc", A).servfail().ede(NOT_READY);
    zone.ask("nope.shop.svc", A).servfail().ede(NOT_READY);
}

#[test]
fn dns_d13_no_ports_is_no_reason_to_hide_an_address() {
    let zone = zone(clustersetip("shop/web", &["10.96.7.7"], &[]));
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    zone.ask("web.shop.svc", SRV).nodata();
}

#[test]
fn dns_d14_a_port_name_has_no_address() {
    zone(F1).ask("_http._tcp.web.shop.svc", A).nodata();
}

#[test]
fn dns_d15_the_ns_resolves_in_the_zone() {
    let zone = zone_with(options(|o| o.nameserver = vec!["192.0.2.53".parse().expect("an address")]), F1);
    zone.ask("", NS).record("5 NS ns.dns.clusterset.local.").glue(["ns.dns 192.0.2.53"]);
    zone.ask("ns.dns", A).addresses(["192.0.2.53"]);
}

#[test]
fn dns_d16_any_is_hinfo() {
    zone(F1).ask("web.shop.svc", ANY).hinfo();
    zone(F1).ask("shop.svc", ANY).nodata();
}

#[test]
fn dns_d17_no_option_is_echoed() {
    let edns = Edns::size(1232).option(OPTION_COOKIE, b"12345678").option(OPTION_PADDING, &[0; 9]);
    let zone = zone(F1);
    assert!(zone.send(&Ask::new("web.shop.svc.clusterset.local.", A).edns(edns)).message.options().is_empty());
}

#[test]
fn dns_d18_the_opt_states_our_size() {
    let zone = zone(F1);
    let answer = zone.send(&Ask::new("web.shop.svc.clusterset.local.", A).edns(Edns::size(4096)));
    assert_eq!(answer.message.opt.as_ref().map(|o| o.class), Some(1232));
}

#[test]
fn dns_d19_tc_only_for_an_incomplete_answer() {
    let endpoints: Vec<_> =
        (1..=12).map(|n| format!("db-{n:02}=10.1.0.{n},10.1.1.{n},10.1.2.{n},10.1.3.{n}")).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let zone = zone(headless("shop/db", PG) + &slice("shop/db", "east", PG, &endpoints));
    let answer = zone.send(&Ask::new("db.shop.svc.clusterset.local.", SRV).edns(Edns::size(1232)));
    assert!(!answer.message.truncated() && answer.count() == 12, "{answer}");
    assert!(answer.message.additionals.len() < 48, "{answer}");
}

#[test]
fn dns_d20_the_serial_grows() {
    let mut live = Live::new(F1);
    let serial = |live: &Live| live.zone.data("", SOA)[0].split(' ').nth(2).and_then(|s| s.parse::<u32>().ok());
    let before = serial(&live);
    live.apply(clustersetip("shop/web", &["10.96.7.8"], &["http/80"])).wait(std::time::Duration::from_secs(1));
    assert!(serial(&live) > before);
}

#[test]
fn dns_d21_the_weight_is_coredns_s() {
    zone(F1).ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    zone(F2).ask("_pg._tcp.db.shop.svc", SRV).noerror();
    assert!(zone(F2).data("_pg._tcp.db.shop.svc", SRV).iter().all(|r| r.starts_with("0 33 ")));
}

#[test]
fn dns_d22_out_of_zone_is_refused_with_ede_20() {
    zone(F1).ask("example.org.", A).refused().ede(NOT_AUTHORITATIVE);
}

#[test]
fn dns_d23_imports_of_both_versions_are_read() {
    for version in ["v1alpha1", "v1beta1"] {
        let manifest = clustersetip("shop/web", &["10.96.7.7"], &["http/80"]);
        let manifest = replace(&manifest, "v1beta1", version);
        zone(manifest).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    }
}
