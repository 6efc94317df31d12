//! 1.8: other names and types.

use crate::support::*;

/// One name of each kind that has data.
const WITH_DATA: [&str; 5] =
    ["web.shop.svc", "db.shop.svc", "_http._tcp.web.shop.svc", "_pg._tcp.db.shop.svc", "db-0.east.db.shop.svc"];
/// Empty non-terminals.
const EMPTY: [&str; 6] = ["svc", "shop.svc", "_tcp.web.shop.svc", "_tcp.db.shop.svc", "east.db.shop.svc", "dns"];
const MISSING: [&str; 6] =
    ["nope", "nope.svc", "nope.shop.svc", "x.web.shop.svc", "db-9.east.db.shop.svc", "_x._tcp.web.shop.svc"];

fn both() -> Zone {
    zone(F1.to_owned() + F2)
}

#[test]
fn dns_o1_an_asterisk_is_a_label_like_any_other() {
    let zone = both();
    for name in [
        "*",
        "*.svc",
        "*.shop.svc",
        "web.*.svc",
        "*.web.shop.svc",
        "*.db.shop.svc",
        "*.east.db.shop.svc",
        "db-0.*.db.shop.svc",
        "_*._tcp.web.shop.svc",
        "_http.*.web.shop.svc",
        "*._tcp.web.shop.svc",
        "*.*.db.shop.svc",
        "any.shop.svc",
        "endpoint.db.shop.svc",
        "any.any.web.shop.svc",
    ] {
        for qtype in [A, AAAA, SRV, TXT, ANY, SOA] {
            zone.ask(name, qtype).nxdomain();
        }
    }
}

#[test]
fn dns_o2_ptr_at_a_forward_name_follows_existence() {
    let zone = both();
    for name in WITH_DATA.into_iter().chain(EMPTY) {
        zone.ask(name, PTR).nodata();
    }
    for name in MISSING {
        zone.ask(name, PTR).nxdomain();
    }
}

#[test]
fn dns_o3_reverse_names_are_not_ours() {
    let zone = both();
    for name in ["7.7.96.10.in-addr.arpa.", "11.0.1.10.in-addr.arpa.", "in-addr.arpa.", "1.0.0.0.d.f.ip6.arpa."] {
        zone.ask(name, PTR).refused().ede(NOT_AUTHORITATIVE);
    }
}

#[test]
fn dns_o4_cname_at_an_existing_name_is_nodata() {
    let zone = both();
    for name in WITH_DATA.into_iter().chain(EMPTY) {
        zone.ask(name, CNAME).nodata();
    }
}

#[test]
fn dns_o5_types_nobody_has_are_nodata_at_existing_names() {
    let zone = both();
    for name in WITH_DATA.into_iter().chain(EMPTY) {
        for qtype in [MX, HTTPS, SVCB, UNKNOWN, HINFO, CAA] {
            zone.ask(name, qtype).nodata();
        }
    }
}

#[test]
fn dns_o6_txt_at_an_existing_name_is_nodata() {
    let zone = both();
    for name in WITH_DATA.into_iter().chain(EMPTY) {
        zone.ask(name, TXT).nodata();
    }
    zone.ask("nope.shop.svc", TXT).nxdomain();
}

#[test]
fn dns_o7_any_is_hinfo_where_there_is_data_and_nodata_where_there_is_none() {
    let zone = both();
    for name in WITH_DATA {
        zone.ask(name, ANY).hinfo();
    }
    for name in EMPTY {
        zone.ask(name, ANY).nodata();
    }
}

#[test]
fn dns_o8_any_at_a_missing_name_is_nxdomain() {
    let zone = both();
    for name in MISSING {
        zone.ask(name, ANY).nxdomain();
    }
}

#[test]
fn dns_o9_the_zone_is_unsigned() {
    let zone = both();
    for qtype in [RRSIG, DNSKEY, NSEC, DS, 50, 51, 59, 60] {
        for name in WITH_DATA.into_iter().chain(EMPTY) {
            zone.ask(name, qtype).nodata();
        }
        for name in MISSING {
            zone.ask(name, qtype).nxdomain();
        }
        zone.ask("", qtype).nodata();
    }
}

#[test]
fn dns_o10_types_that_are_no_data_types() {
    let zone = both();
    for name in WITH_DATA.into_iter().chain(EMPTY).chain(MISSING).chain([""]) {
        for qtype in [0, OPT, TKEY, TSIG] {
            zone.ask(name, qtype).rcode(FORMERR);
        }
        for qtype in [MAILB, MAILA] {
            zone.ask(name, qtype).rcode(NOTIMP);
        }
    }
}

#[test]
fn dns_o11_upper_case_matches_and_the_owner_keeps_the_case() {
    let zone = both();
    let answer = zone.send(&Ask::new("WEB.Shop.sVc.ClusterSet.LOCAL.", A));
    assert_eq!(answer.addresses(["10.96.7.7"]).message.answers[0].owner, "WEB.Shop.sVc.ClusterSet.LOCAL.", "{answer}");
    zone.ask("DNS-VERSION", TXT).record("28800 TXT \"1.0.0\"");
    zone.ask("NS.Dns", A).nodata();
    zone.ask("SVC", A).nodata();
    zone.ask("EAST.db.shop.svc", A).nodata();
}

#[test]
fn dns_o12_odd_bytes_in_labels_match_nothing() {
    let zone = both();
    let name = |first: &[u8]| {
        let mut name = labels("x.shop.svc.clusterset.local.");
        name[0] = first.to_vec();
        name
    };
    for label in [
        &b"web\0"[..],
        b"\0",
        b"we.b",
        b"web.shop",
        b"\xC3\xBC",
        b"w\\eb",
        b"web ",
        b"\xFF\xFE",
        b"[eb",
        b"w@b",
        b"web\r",
    ] {
        for qtype in [A, SRV, TXT, ANY] {
            zone.ask_labels(name(label), qtype).nxdomain();
        }
    }
    // A label with a dot inside is not two labels, wherever it stands.
    for labels in [
        vec![&b"web.shop"[..], b"svc", b"clusterset", b"local"],
        vec![b"web", b"shop.svc", b"clusterset", b"local"],
        vec![b"db-0.east", b"db", b"shop", b"svc", b"clusterset", b"local"],
        vec![b"prod.eu", b"db", b"shop", b"svc", b"clusterset", b"local"],
    ] {
        zone.ask_labels(labels.iter().map(|l| l.to_vec()).collect(), A).nxdomain();
    }
    let apex = vec![b"web".to_vec(), b"shop".to_vec(), b"svc".to_vec(), b"clusterset.local".to_vec()];
    zone.ask_labels(apex, A).refused();
}

#[test]
fn dns_o12_case_folding_is_ascii_only() {
    let zone = zone(clustersetip("shop/a-b", &["10.96.7.7"], &["http/80"]));
    zone.ask("A-B.shop.svc", A).addresses(["10.96.7.7"]);
    // Bytes that differ from a letter's or a hyphen's by the case bit alone are other bytes.
    for label in [&b"a\rb"[..], b"\xE1-b", b"\xC1-b", b"!-b"] {
        let mut name = labels("x.shop.svc.clusterset.local.");
        name[0] = label.to_vec();
        zone.ask_labels(name, A).nxdomain();
    }
    let mut zone_name = labels("a-b.shop.svc.clusterset.local.");
    zone_name[3] = b"c\x4Custer\x53et".to_vec();
    zone.ask_labels(zone_name, A).addresses(["10.96.7.7"]);
}

#[test]
fn dns_o13_names_with_a_search_suffix_are_not_ours() {
    let zone = both();
    for name in [
        "web.shop.svc.clusterset.local.shop.svc.cluster.local.",
        "web.shop.svc.clusterset.local.svc.cluster.local.",
        "web.shop.svc.clusterset.local.cluster.local.",
    ] {
        zone.ask(name, A).refused().ede(NOT_AUTHORITATIVE);
    }
}

#[test]
fn dns_o14_local_and_the_root_are_not_ours() {
    let zone = both();
    for name in ["local.", "."] {
        for qtype in DATA_TYPES {
            zone.ask(name, qtype).refused().ede(NOT_AUTHORITATIVE);
        }
    }
}

#[test]
fn dns_o15_nothing_is_behind_us() {
    both().ask("nope.shop.svc", A).nxdomain();
}

#[test]
fn dns_1_0_any_zone_name_and_several_zones() {
    let zones = ["clusterset.local", "mesh.example.org", "x", "deep.clusterset.local"];
    let zone = zone_with(options(|o| o.zones = zones.map(str::to_owned).to_vec()), F1.to_owned() + F2);
    for origin in zones {
        let in_zone = |name: &str| format!("{name}.{origin}.");
        zone.ask(&in_zone("web.shop.svc"), A).addresses(["10.96.7.7"]);
        zone.ask(&in_zone("nope.shop.svc"), A).nxdomain();
        zone.ask(&in_zone("shop.svc"), A).nodata();
        zone.ask(&in_zone("dns-version"), TXT).record("28800 TXT \"1.0.0\"");
        zone.ask(&format!("{origin}."), NS).record(&format!("5 NS ns.dns.{origin}."));
        let target = format!("0 100 80 web.shop.svc.{origin}.");
        zone.ask(&in_zone("_http._tcp.web.shop.svc"), SRV)
            .srv([&target])
            .glue([&format!("web.shop.svc.{origin}. 10.96.7.7")]);
        zone.ask(&in_zone("_pg._tcp.db.shop.svc"), SRV).targets([
            &*format!("5432 db-0.east.db.shop.svc.{origin}."),
            &format!("5432 db-1.east.db.shop.svc.{origin}."),
            &format!("5432 db-0.west.db.shop.svc.{origin}."),
        ]);
    }
    zone.ask("example.org.", A).refused();
    zone.ask("org.", A).refused();
}
