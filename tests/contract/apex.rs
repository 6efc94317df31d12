//! 1.2: the apex and the names of the infrastructure.

use crate::support::*;

const NEGATIVE_SOA_NAMES: &str = "ns.dns.clusterset.local. hostmaster.clusterset.local.";

fn nameservers() -> Zone {
    let addresses = ["192.0.2.53", "2001:db8::53"].map(|a| a.parse().expect("an address")).to_vec();
    zone_with(options(|o| o.nameserver = addresses), F1)
}

#[track_caller]
fn soa(zone: &Zone) -> Vec<String> {
    let answer = zone.ask("", SOA);
    assert_eq!(answer.noerror().count(), 1, "{answer}");
    let record = &answer.message.answers[0];
    let mut fields: Vec<_> = record.data.to_lowercase().split(' ').map(str::to_owned).collect();
    fields.insert(0, record.ttl.to_string());
    fields
}

#[test]
fn dns_a1_the_apex_has_its_soa() {
    let fields = soa(&zone(F1));
    assert_eq!(fields[0], "5", "TTL");
    assert_eq!(fields[1..3].join(" "), NEGATIVE_SOA_NAMES);
    assert_eq!(fields[4..], ["7200", "1800", "86400", "5"]);
}

#[test]
fn dns_a1_the_soa_is_the_same_in_negative_answers() {
    let zone = zone(F1);
    let positive = soa(&zone);
    let negative = zone.ask("nope", A);
    assert_eq!(negative.nxdomain().message.authorities[0].data.to_lowercase(), positive[1..].join(" "));
}

#[test]
fn dns_a1_the_soa_has_ttl_min_t_300_and_minimum_n() {
    for (ttl, negttl, soa_ttl) in [(0, 0, "0"), (30, 5, "30"), (300, 60, "300"), (301, 5, "300"), (3600, 300, "300")] {
        let zone = zone_with(
            options(|o| {
                o.ttl = ttl;
                o.negttl = negttl;
            }),
            F1,
        );
        let fields = soa(&zone);
        assert_eq!((&*fields[0], &*fields[7]), (soa_ttl, &*negttl.to_string()), "ttl {ttl}, negttl {negttl}");
        zone.ask("nope", A).nxdomain();
        zone.ask("web.shop.svc", AAAA).nodata();
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    }
}

#[test]
fn dns_a1_the_serial_is_a_recent_time() {
    let serial: u64 = soa(&zone(F1))[3].parse().expect("a number");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    assert!(serial <= now && serial + 60 > now, "serial {serial} at {now}");
}

#[test]
fn dns_a2_the_apex_has_one_ns_that_lies_in_the_zone() {
    zone(F1).ask("", NS).record("5 NS ns.dns.clusterset.local.");
    zone(F1).ask("", NS).glue([]);
}

#[test]
fn dns_a2_the_ns_comes_with_its_addresses() {
    nameservers().ask("", NS).glue(["ns.dns 192.0.2.53", "ns.dns 2001:db8::53"]);
}

#[test]
fn dns_a3_other_types_at_the_apex_are_nodata() {
    let zone = zone(F1);
    for qtype in [A, AAAA, SRV, MX, HINFO, DS, PTR, CNAME, HTTPS, SVCB, CAA, DNSKEY, UNKNOWN] {
        zone.ask("", qtype).nodata();
    }
}

#[test]
fn dns_a4_txt_at_the_apex_is_nodata() {
    zone(F1).ask("", TXT).nodata();
}

#[test]
fn dns_a5_any_at_the_apex_is_hinfo() {
    zone(F1).ask("", ANY).hinfo();
}

#[test]
fn dns_a6_transfer_of_the_apex_is_refused() {
    let zone = zone(F1);
    zone.ask("", AXFR).refused().ede(PROHIBITED);
    zone.ask("", IXFR).refused().ede(PROHIBITED);
}

#[test]
fn dns_a7_dns_version_is_1_0_0_for_eight_hours() {
    zone(F1).ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
    zone("").ask("dns-version", TXT).record("28800 TXT \"1.0.0\"");
    let other = zone_with(options(|o| o.dns_version = "1.1.0".into()), F1);
    other.ask("dns-version", TXT).record("28800 TXT \"1.1.0\"");
}

#[test]
fn dns_a8_other_types_at_dns_version_are_nodata() {
    let zone = zone(F1);
    for qtype in DATA_TYPES.into_iter().filter(|t| !matches!(*t, TXT | ANY)) {
        zone.ask("dns-version", qtype).nodata();
    }
    zone.ask("dns-version", ANY).hinfo();
    zone.ask("x.dns-version", TXT).nxdomain();
}

#[test]
fn dns_a9_the_name_server_has_its_addresses() {
    let zone = nameservers();
    zone.ask("ns.dns", A).addresses(["192.0.2.53"]);
    zone.ask("ns.dns", AAAA).addresses(["2001:db8::53"]);
    zone.ask("ns.dns", ANY).hinfo();
    zone.ask("x.ns.dns", A).nxdomain();
}

#[test]
fn dns_a9_a_name_server_without_known_addresses_is_nodata() {
    zone(F1).ask("ns.dns", A).nodata();
    zone(F1).ask("ns.dns", AAAA).nodata();
}

#[test]
fn dns_a10_other_types_at_the_name_server_are_nodata() {
    for zone in [zone(F1), nameservers()] {
        for qtype in OTHER_TYPES.into_iter().chain([SRV]) {
            zone.ask("ns.dns", qtype).nodata();
        }
    }
}

#[test]
fn dns_a11_dns_is_an_empty_non_terminal() {
    let zone = zone(F1);
    for qtype in DATA_TYPES {
        zone.ask("dns", qtype).nodata();
    }
    zone.ask("other.dns", A).nxdomain();
}

#[test]
fn dns_a12_hostmaster_is_no_name() {
    for qtype in DATA_TYPES {
        zone(F1).ask("hostmaster", qtype).nxdomain();
    }
}

#[test]
fn dns_a13_other_first_labels_are_no_names() {
    let zone = zone(F1);
    for name in ["foo", "foo.bar", "web.shop", "shop", "svc.svc", "shop.svc.svc", "web.shop.svc.x", "services.svc2"] {
        for qtype in DATA_TYPES {
            zone.ask(name, qtype).nxdomain();
        }
    }
}

#[test]
fn dns_a14_soa_below_the_apex_follows_existence() {
    let zone = zone(F1.to_owned() + F2);
    for name in
        ["svc", "shop.svc", "web.shop.svc", "db-0.east.db.shop.svc", "_http._tcp.web.shop.svc", "east.db.shop.svc"]
    {
        zone.ask(name, SOA).nodata();
    }
    for name in ["nope", "nope.svc", "nope.shop.svc", "x.web.shop.svc", "_x._tcp.web.shop.svc"] {
        zone.ask(name, SOA).nxdomain();
    }
}
