//! 1.6: names of endpoints and clusters.

use namesake::answers::EndpointNames;

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

fn db(slices: &[String]) -> Zone {
    zone(headless("shop/db", PG) + &slices.concat())
}

/// An endpoint without hostname is named after its address: the SRV target and the owner of its address agree.
#[track_caller]
fn named(zone: &Zone, label: &str, address: &str) {
    let name = format!("{label}.east.db.shop.svc");
    zone.ask(&name, if address.contains(':') { AAAA } else { A }).addresses([address]);
    let target = format!("0 100 5432 {name}");
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv([&target]).glue([&format!("{name} {address}")]);
}

#[test]
fn dns_1_6_an_endpoint_without_hostname_has_its_dashed_address() {
    for (address, canonical, label) in [
        ("10.1.0.13", "10.1.0.13", "10-1-0-13"),
        ("2001:db8::5:1", "2001:db8::5:1", "2001-db8--5-1"),
        ("2001:db8::", "2001:db8::", "2001-db8--0"),
        ("::5", "::5", "0--5"),
        ("2001:0DB8:0:0:0::1", "2001:db8::1", "2001-db8--1"),
        ("fd00:1:2:3:4:5:6:7", "fd00:1:2:3:4:5:6:7", "fd00-1-2-3-4-5-6-7"),
    ] {
        named(&db(&[slice("shop/db", "east", PG, &[address])]), label, canonical);
    }
}

#[test]
fn dns_1_6_endpoint_pod_names_take_the_pod_unless_there_is_a_hostname() {
    let manifests = |endpoint: &str| headless("shop/db", PG) + &slice("shop/db", "east", PG, &[endpoint]);
    let pods = |endpoint: &str| zone_with(options(|o| o.endpoint_pod_names = true), manifests(endpoint));
    named(&pods("10.1.0.13 pod=db-abc"), "db-abc", "10.1.0.13");
    named(&pods("db-0=10.1.0.13 pod=db-abc"), "db-0", "10.1.0.13");
    named(&pods("10.1.0.13"), "10-1-0-13", "10.1.0.13");
    named(&pods(&format!("10.1.0.13 pod={}", "p".repeat(63))), &"p".repeat(63), "10.1.0.13");
    named(&pods(&format!("10.1.0.13 pod={}", "p".repeat(64))), "10-1-0-13", "10.1.0.13");
    named(&zone(manifests("10.1.0.13 pod=db-abc")), "10-1-0-13", "10.1.0.13");
}

#[test]
fn dns_e1_an_endpoint_has_its_name() {
    let zone = zone(F2);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db-1.east.db.shop.svc", A).addresses(["10.1.0.12"]);
    zone.ask("db-0.west.db.shop.svc", A).addresses(["10.2.0.21"]);
    zone.ask("db-0.east.db.shop.svc", ANY).hinfo();
    let v6 = db(&[slice("shop/db", "east", PG, &["db-0=fd00::11"])]);
    v6.ask("db-0.east.db.shop.svc", AAAA).addresses(["fd00::11"]);
}

#[test]
fn dns_e2_one_hostname_on_several_endpoints_has_all_addresses() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11", "db-0=10.1.0.12"]),
        slice("shop/db#2", "east", PG, &["db-0=10.1.0.13"]),
        slice("shop/db", "west", PG, &["db-0=10.2.0.21"]),
    ]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.1.0.13"]);
    zone.ask("_pg._tcp.db.shop.svc", SRV).targets(["5432 db-0.east.db.shop.svc", "5432 db-0.west.db.shop.svc"]).glue([
        "db-0.east.db.shop.svc 10.1.0.11",
        "db-0.east.db.shop.svc 10.1.0.12",
        "db-0.east.db.shop.svc 10.1.0.13",
        "db-0.west.db.shop.svc 10.2.0.21",
    ]);
}

#[test]
fn dns_e3_the_other_family_of_an_endpoint_is_nodata() {
    zone(F2).ask("db-0.east.db.shop.svc", AAAA).nodata();
    db(&[slice("shop/db", "east", PG, &["db-0=fd00::11"])]).ask("db-0.east.db.shop.svc", A).nodata();
}

#[test]
fn dns_e4_unready_absent_and_misplaced_endpoints_do_not_exist() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11", "db-1=10.1.0.12 notready"]),
        slice("shop/db", "west", PG, &["db-2=10.2.0.21"]),
    ]);
    for name in ["db-1.east", "db-9.east", "db-2.east", "db-0.west", "db-0.north", "db-0.db"] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("{name}.db.shop.svc"), qtype).nxdomain();
        }
    }
}

#[test]
fn dns_e5_a_clustersetip_import_has_no_endpoint_names_by_default() {
    let manifests = F1.to_owned() + &slice("shop/web", "east", &["http/8080"], &["web-0=10.1.0.1", "10.1.0.2"]);
    let default = zone(&manifests);
    for name in ["web-0.east.web.shop.svc", "10-1-0-2.east.web.shop.svc", "east.web.shop.svc"] {
        for qtype in DATA_TYPES {
            default.ask(name, qtype).nxdomain();
        }
    }
    let all = zone_with(options(|o| o.endpoint_names = EndpointNames::All), &manifests);
    all.ask("web-0.east.web.shop.svc", A).addresses(["10.1.0.1"]);
    all.ask("10-1-0-2.east.web.shop.svc", A).addresses(["10.1.0.2"]);
    all.ask("web-0.east.web.shop.svc", AAAA).nodata();
    all.ask("web-9.east.web.shop.svc", A).nxdomain();
    all.ask("east.web.shop.svc", A).nodata();
    all.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    all.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
}

#[test]
fn dns_e6_two_label_cluster_ids_resolve() {
    let zone = db(&[slice("shop/db", "prod.eu-1", PG, &["db-0=10.1.0.11", "10.1.0.12"])]);
    zone.ask("db-0.prod.eu-1.db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db-0.prod.eu-1.db.shop.svc", AAAA).nodata();
    zone.ask("10-1-0-12.prod.eu-1.db.shop.svc", A).addresses(["10.1.0.12"]);
    zone.ask("_pg._tcp.db.shop.svc", SRV)
        .srv(["0 50 5432 db-0.prod.eu-1.db.shop.svc", "0 50 5432 10-1-0-12.prod.eu-1.db.shop.svc"])
        .glue(["db-0.prod.eu-1.db.shop.svc 10.1.0.11", "10-1-0-12.prod.eu-1.db.shop.svc 10.1.0.12"]);
    for name in ["db-0.eu-1.prod", "db-9.prod.eu-1", "db-0.prod.eu-2", "db-0.test.eu-1", "db-0.eu-1", "prod"] {
        zone.ask(&format!("{name}.db.shop.svc"), A).nxdomain();
    }
}

#[test]
fn dns_e7_a_cluster_has_no_record() {
    let zone = zone(F1.to_owned() + F2 + &slice("shop/web", "east", &["http/8080"], &["web-0=10.1.0.1"]));
    for qtype in DATA_TYPES {
        zone.ask("east.db.shop.svc", qtype).nodata();
        zone.ask("north.db.shop.svc", qtype).nxdomain();
        zone.ask("east.web.shop.svc", qtype).nxdomain();
    }
    let unready = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11"]),
        slice("shop/db", "west", PG, &["db-0=10.2.0.21 notready"]),
    ]);
    unready.ask("west.db.shop.svc", A).nxdomain();
}

#[test]
fn dns_e7_cluster_names_answer_when_opted_in() {
    let zone = zone_with(options(|o| o.cluster_names = true), F2);
    zone.ask("east.db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12"]);
    zone.ask("west.db.shop.svc", A).addresses(["10.2.0.21"]);
    zone.ask("west.db.shop.svc", AAAA).nodata();
    zone.ask("west.db.shop.svc", ANY).hinfo();
    zone.ask("north.db.shop.svc", A).nxdomain();
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
    zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
}

#[test]
fn dns_e8_the_right_half_of_a_cluster_id_is_an_empty_non_terminal() {
    let zone = db(&[slice("shop/db", "prod.eu-1", PG, &["db-0=10.1.0.11"])]);
    for qtype in DATA_TYPES {
        zone.ask("eu-1.db.shop.svc", qtype).nodata();
        zone.ask("prod.eu-1.db.shop.svc", qtype).nodata();
        zone.ask("test.eu-1.db.shop.svc", qtype).nxdomain();
    }
}

#[test]
fn dns_e9_a_hostname_without_cluster_is_no_name() {
    for qtype in DATA_TYPES {
        zone(F2).ask("db-0.db.shop.svc", qtype).nxdomain();
    }
}

#[test]
fn dns_e10_srv_of_an_endpoint_has_its_ports() {
    let ports = &["pg/5432", "metrics/9187", "/7/UDP"];
    let zone = zone(
        headless("shop/db", PG)
            + &slice("shop/db", "east", ports, &["db-0=10.1.0.11", "db-1=10.1.0.12"])
            + &slice("shop/db", "west", &["pg/6432"], &["db-0=10.2.0.21"]),
    );
    let name = "db-0.east.db.shop.svc";
    let answer = zone.ask(name, SRV);
    answer.targets([&*format!("5432 {name}"), &format!("9187 {name}"), &format!("7 {name}")]);
    answer.glue([&*format!("{name} 10.1.0.11")]);
    zone.ask("db-0.west.db.shop.svc", SRV).srv(["0 100 6432 db-0.west.db.shop.svc"]);
}

#[test]
fn dns_e11_four_labels_left_of_the_service_are_nothing() {
    let zone = db(&[
        slice("shop/db", "east", PG, &["db-0=10.1.0.11"]),
        slice("shop/db", "prod.eu-1", PG, &["db-0=10.1.0.12"]),
    ]);
    for name in [
        "a.db-0.prod.eu-1",
        "a.db-0.east",
        "db-0.x.east",
        "a.b.c.d",
        "a.b.c.d.e.f.g",
        "_pg._tcp.db-0.east",
        "_pg._tcp.east",
        "a._pg._tcp",
        "a._tcp",
    ] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("{name}.db.shop.svc"), qtype).nxdomain();
        }
    }
}

#[test]
fn dns_e12_a_hostname_with_an_underscore_in_front_is_ignored() {
    let zone = db(&[slice("shop/db", "east", PG, &["_db=10.1.0.13"])]);
    zone.ask("_db.east.db.shop.svc", A).nxdomain();
    named(&zone, "10-1-0-13", "10.1.0.13");
}

#[test]
fn dns_e13_srv_form_needs_both_underscores() {
    let zone = db(&[slice("shop/db", "tcp", PG, &["pg=10.1.0.11"])]);
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 pg.tcp.db.shop.svc"]);
    zone.ask("pg.tcp.db.shop.svc", A).addresses(["10.1.0.11"]);
    for name in ["_pg.tcp", "pg._tcp"] {
        for qtype in DATA_TYPES {
            zone.ask(&format!("{name}.db.shop.svc"), qtype).nxdomain();
        }
    }
}

#[test]
fn dns_e14_cluster_ids_match_case_blind_and_targets_are_lower_case() {
    let zone = db(&[slice("shop/db", "East-1", PG, &["db-0=10.1.0.11"])]);
    for name in ["db-0.east-1.db.shop.svc", "db-0.EAST-1.db.shop.svc", "DB-0.East-1.DB.SHOP.SVC"] {
        zone.ask(name, A).addresses(["10.1.0.11"]);
    }
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-0.east-1.db.shop.svc"]);
}

#[test]
fn dns_e14_a_cluster_id_that_is_too_long_keeps_the_addresses() {
    let zone = db(&[slice("shop/db", &"c".repeat(64), PG, &["db-0=10.1.0.11"])]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    assert_eq!(zone.ask("_pg._tcp.db.shop.svc", SRV).count(), 0);
    zone.ask("db.shop.svc", SRV).nodata();
}
