//! 1.3: the levels `svc`, namespace and pod.

use crate::support::*;

#[test]
fn dns_n1_svc_is_nodata_even_with_no_imports() {
    for zone in [zone(""), zone(F1)] {
        for qtype in DATA_TYPES {
            zone.ask("svc", qtype).nodata();
        }
    }
}

#[test]
fn dns_n2_txt_at_svc_is_nodata() {
    zone(F1).ask("svc", TXT).nodata();
}

#[test]
fn dns_n3_there_are_no_pods() {
    let zone = zone(F1);
    for qtype in DATA_TYPES {
        zone.ask("pod", qtype).nxdomain();
    }
    zone.ask("shop.pod", A).nxdomain();
}

#[test]
fn dns_n4_a_namespace_with_names_below_is_nodata() {
    for manifests in [F1, F2] {
        for qtype in DATA_TYPES {
            zone(manifests).ask("shop.svc", qtype).nodata();
        }
    }
}

#[test]
fn dns_n4_a_namespace_whose_only_import_has_no_name_does_not_exist() {
    let empty = headless("shop/db", &["pg/5432"]);
    zone(&empty).ask("shop.svc", A).nxdomain();
    zone(empty + F1).ask("shop.svc", A).nodata();
    let ignored = zone_with(options(|o| o.ignore_empty_service = true), F1);
    ignored.ask("shop.svc", A).nxdomain();
    let reserved = options(|o| o.empty_headless = namesake::answers::EmptyHeadless::Nodata);
    zone_with(reserved, headless("shop/db", &["pg/5432"])).ask("shop.svc", A).nodata();
}

#[test]
fn dns_n4_a_namespace_with_slices_but_no_import_does_not_exist() {
    zone(slice("shop/db", "east", &["pg/5432"], &["db-0=10.1.0.11"])).ask("shop.svc", A).nxdomain();
}

#[test]
fn dns_n5_a_namespace_without_import_does_not_exist() {
    zone(F1).ask("default.svc", A).nxdomain();
}

#[test]
fn dns_n6_an_unknown_namespace_does_not_exist() {
    let zone = zone(F1);
    for qtype in DATA_TYPES {
        zone.ask("nope.svc", qtype).nxdomain();
        zone.ask("web.nope.svc", qtype).nxdomain();
    }
}

#[test]
fn dns_n7_txt_at_a_namespace_follows_existence() {
    zone(F1).ask("shop.svc", TXT).nodata();
    zone(F1).ask("nope.svc", TXT).nxdomain();
}

#[test]
fn dns_n8_a_namespace_that_is_not_exposed_does_not_exist() {
    let manifests = F1.to_owned() + F2 + &clustersetip("lab/web", &["10.96.7.8"], &["http/80"]);
    let zone = zone_with(options(|o| o.namespaces = vec!["lab".into(), "prod".into()]), manifests);
    zone.ask("web.lab.svc", A).addresses(["10.96.7.8"]);
    zone.ask("lab.svc", A).nodata();
    for name in
        ["shop.svc", "web.shop.svc", "_http._tcp.web.shop.svc", "db.shop.svc", "db-0.east.db.shop.svc", "prod.svc"]
    {
        zone.ask(name, A).nxdomain();
    }
}

#[test]
fn dns_n9_pod_addresses_are_not_made_up() {
    let zone = zone(F1);
    for (name, qtype) in [("1-2-3-4.shop.pod", A), ("fd00--1.shop.pod", AAAA), ("10-96-7-7.shop.pod", A)] {
        zone.ask(name, qtype).nxdomain();
    }
}
