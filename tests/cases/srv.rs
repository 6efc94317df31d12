//! Chapter 3, SRV-01 to SRV-06.

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

#[test]
fn case_srv_01_every_target_has_its_cluster_and_resolves() {
    let zone = zone(F2);
    let answer = zone.ask("_pg._tcp.db.shop.svc", SRV);
    answer.targets(["5432 db-0.east.db.shop.svc", "5432 db-1.east.db.shop.svc", "5432 db-0.west.db.shop.svc"]);
    for record in &answer.message.answers {
        let target = record.data.rsplit(' ').next().expect("a target");
        let glue: Vec<_> =
            answer.message.additionals.iter().filter(|r| r.owner == target).map(|r| r.data.clone()).collect();
        assert_eq!(zone.data(target, A), glue, "{target}");
        assert_eq!(glue.len(), 1, "{target}");
    }
}

#[test]
fn case_srv_02_an_unnamed_slice_port_has_no_port_name() {
    let unnamed = slice("shop/db", "east", &["/5432"], &["db-0=10.1.0.11"]);
    let zone = zone(headless("shop/db", PG) + &unnamed);
    zone.ask("_pg._tcp.db.shop.svc", SRV).nxdomain();
    zone.ask("db.shop.svc", SRV).srv(["0 100 5432 db-0.east.db.shop.svc"]);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
}

#[test]
fn case_srv_03_endpoints_without_hostname_have_one_name_everywhere() {
    let manifests = headless("shop/db", PG) + &slice("shop/db", "east", PG, &["10.1.0.11 pod=db-abc"]);
    for (pod_names, label, other) in [(false, "10-1-0-11", "db-abc"), (true, "db-abc", "10-1-0-11")] {
        let zone = zone_with(options(|o| o.endpoint_pod_names = pod_names), &manifests);
        let name = format!("{label}.east.db.shop.svc");
        zone.ask("_pg._tcp.db.shop.svc", SRV)
            .srv([&*format!("0 100 5432 {name}")])
            .glue([&*format!("{name} 10.1.0.11")]);
        zone.ask(&name, A).addresses(["10.1.0.11"]);
        zone.ask(&format!("{other}.east.db.shop.svc"), A).nxdomain();
    }
}

#[test]
fn case_srv_04_no_ports_at_all_still_has_addresses() {
    let ports = "ports: [{name: pg, port: 5432, protocol: TCP}]";
    for none in ["ports: []", "ports: null"] {
        let zone = zone(replace(F2, ports, none));
        zone.ask("db.shop.svc", A).addresses(["10.1.0.11", "10.1.0.12", "10.2.0.21"]);
        zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
        zone.ask("db.shop.svc", SRV).nodata();
        zone.ask("_pg._tcp.db.shop.svc", SRV).nxdomain();
        zone.ask("_x._y.db.shop.svc", SRV).nxdomain();
    }
}

#[test]
fn case_srv_05_each_cluster_has_its_own_port_number() {
    let west = slice("shop/db", "west", &["pg/6432"], &["db-0=10.2.0.21"]);
    let mut live = Live::new(F2);
    live.apply(west);
    live.zone.ask("_pg._tcp.db.shop.svc", SRV).targets([
        "5432 db-0.east.db.shop.svc",
        "5432 db-1.east.db.shop.svc",
        "6432 db-0.west.db.shop.svc",
    ]);
    let web = zone(F1.to_owned() + &slice("shop/web", "west", &["http/8080"], &["10.2.0.1"]));
    web.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
}

#[test]
fn case_srv_06_the_port_has_the_services_name_not_the_targets() {
    let ports = &["http-admin/9990"];
    let zone = zone(
        clustersetip("shop/web", &["10.96.7.7"], ports)
            + &headless("shop/db", ports)
            + &slice("shop/db", "east", ports, &["db-0=10.1.0.11"]),
    );
    zone.ask("_http-admin._tcp.web.shop.svc", SRV).srv(["0 100 9990 web.shop.svc"]);
    zone.ask("_http-admin._tcp.db.shop.svc", SRV).srv(["0 100 9990 db-0.east.db.shop.svc"]);
    zone.ask("_admin._tcp.web.shop.svc", SRV).nxdomain();
    zone.ask("_admin._tcp.db.shop.svc", SRV).nxdomain();
}
