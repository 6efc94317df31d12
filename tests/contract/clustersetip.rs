//! 1.4: ClusterSetIP imports, `<svc>.<ns>.svc.Z`.

use crate::support::*;

#[test]
fn dns_c1_one_ipv4_is_one_a() {
    zone(F1).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
}

#[test]
fn dns_c2_aaaa_of_an_ipv4_import_is_nodata() {
    zone(F1).ask("web.shop.svc", AAAA).nodata();
}

#[test]
fn dns_c3_one_ipv6_is_one_aaaa() {
    let zone = zone(clustersetip("shop/web", &["fd00::7"], &["http/80"]));
    zone.ask("web.shop.svc", AAAA).addresses(["fd00::7"]);
    zone.ask("web.shop.svc", A).nodata();
}

#[test]
fn dns_c4_dual_stack_has_each_its_own() {
    for ips in [["10.96.7.7", "fd00::7"], ["fd00::7", "10.96.7.7"]] {
        let zone = zone(clustersetip("shop/web", &ips, &["http/80"]));
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        zone.ask("web.shop.svc", AAAA).addresses(["fd00::7"]);
    }
}

#[test]
fn dns_c5_several_ips_of_a_family_are_all_there_once() {
    let ips = ["10.1.1.1", "10.1.1.2", "10.1.1.1", "fd00::7", "FD00:0::0007", "10.1.1.3"];
    let zone = zone(clustersetip("shop/web", &ips, &["http/80"]));
    zone.ask("web.shop.svc", A).addresses(["10.1.1.1", "10.1.1.2", "10.1.1.3"]);
    zone.ask("web.shop.svc", AAAA).addresses(["fd00::7"]);
}

#[test]
fn dns_c6_no_ip_yet_is_nodata_for_every_type() {
    let absent = import("shop/web", "type: ClusterSetIP, ports: [{name: http, port: 80}]", "");
    for manifests in [clustersetip("shop/web", &[], &["http/80"]), absent] {
        let zone = zone(manifests);
        for qtype in DATA_TYPES {
            zone.ask("web.shop.svc", qtype).nodata();
        }
    }
}

#[test]
fn dns_c7_ips_without_ports_answer_a_and_srv_is_nodata() {
    let absent = import("shop/web", "type: ClusterSetIP, ips: [10.96.7.7]", "");
    for manifests in [clustersetip("shop/web", &["10.96.7.7"], &[]), absent] {
        let zone = zone(manifests);
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        zone.ask("web.shop.svc", SRV).nodata();
        zone.ask("web.shop.svc", TXT).nodata();
        zone.ask("web.shop.svc", ANY).hinfo();
    }
}

#[test]
fn dns_c8_text_that_is_no_ip_is_skipped() {
    let zone =
        zone(clustersetip("shop/web", &["not-an-ip", "10.96.7.8", "web.shop.svc.clusterset.local"], &["http/80"]));
    zone.ask("web.shop.svc", A).addresses(["10.96.7.8"]);
    zone.ask("web.shop.svc", CNAME).nodata();
    zone.ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]).glue(["web.shop.svc 10.96.7.8"]);
}

#[test]
fn dns_c8_nothing_but_bad_text_is_nodata() {
    let zone = zone(clustersetip("shop/web", &["not-an-ip"], &["http/80"]));
    for qtype in [A, AAAA, CNAME, SRV, TXT] {
        zone.ask("web.shop.svc", qtype).nodata();
    }
}

/// Zone options with `ignore empty_service`.
fn ignoring(manifests: String) -> Zone {
    zone_with(options(|o| o.ignore_empty_service = true), manifests)
}

const WEB_PORTS: &[&str] = &["http/80"];

#[test]
fn dns_c9_the_ip_is_served_without_ready_endpoints() {
    let unready = clustersetip("shop/web", &["10.96.7.7"], WEB_PORTS)
        + &slice("shop/web", "east", WEB_PORTS, &["10.1.0.1 notready"]);
    for manifests in [F1.to_owned(), unready] {
        zone(manifests).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    }
}

#[test]
fn dns_c9_ignore_empty_service_hides_it_and_the_names_below() {
    let unready = clustersetip("shop/web", &["10.96.7.7"], WEB_PORTS)
        + &slice("shop/web", "east", WEB_PORTS, &["10.1.0.1 notready", "10.1.0.2 notready terminating serving"]);
    let present = import(
        "shop/web",
        "type: ClusterSetIP, ips: [10.96.7.7], ports: [{name: http, port: 80}]",
        "status: {endpointSliceObjects: Present}",
    );
    for manifests in [F1.to_owned(), unready, present] {
        let zone = ignoring(manifests);
        for name in ["web.shop.svc", "_http._tcp.web.shop.svc", "_tcp.web.shop.svc", "shop.svc"] {
            for qtype in [A, AAAA, SRV, TXT, ANY] {
                zone.ask(name, qtype).nxdomain();
            }
        }
    }
}

#[test]
fn dns_c9_ignore_empty_service_keeps_a_service_with_a_ready_endpoint() {
    let ready = clustersetip("shop/web", &["10.96.7.7"], WEB_PORTS)
        + &slice("shop/web", "east", WEB_PORTS, &["10.1.0.1 notready"])
        + &slice("shop/web", "west", WEB_PORTS, &["10.2.0.1"]);
    ignoring(ready).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
}

#[test]
fn dns_c9_unknown_endpoints_are_not_empty() {
    let absent = import(
        "shop/web",
        "type: ClusterSetIP, ips: [10.96.7.7], ports: [{name: http, port: 80}]",
        "status: {endpointSliceObjects: Absent}",
    );
    ignoring(absent).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
}

#[test]
fn dns_c10_without_its_import_nothing_exists() {
    let zone = zone(slice("shop/web", "east", WEB_PORTS, &["web-0=10.1.0.1"]) + F2);
    for name in ["web.shop.svc", "web-0.east.web.shop.svc", "_http._tcp.web.shop.svc", "east.web.shop.svc"] {
        for qtype in DATA_TYPES {
            zone.ask(name, qtype).nxdomain();
        }
    }
}

#[test]
fn dns_c11_an_import_being_deleted_is_still_served() {
    let deleting = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop, deletionTimestamp: "2026-11-29T10:00:00Z", finalizers: [example.org/x]}
spec: {type: ClusterSetIP, ips: ["10.96.7.7"], ports: [{name: http, port: 80}]}
"#;
    zone(deleting).ask("web.shop.svc", A).addresses(["10.96.7.7"]);
}

#[test]
fn dns_c12_a_change_of_type_swaps_the_records_at_once() {
    let endpoints = slice("shop/web", "east", WEB_PORTS, &["web-0=10.1.0.1"]);
    let mut live = Live::new(clustersetip("shop/web", &["10.96.7.7"], WEB_PORTS) + &endpoints);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.zone.ask("web-0.east.web.shop.svc", A).nxdomain();
    live.apply(import("shop/web", "type: Headless, ips: [10.96.7.7], ports: [{name: http, port: 80}]", ""));
    live.zone.ask("web.shop.svc", A).addresses(["10.1.0.1"]);
    live.zone.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web-0.east.web.shop.svc"]);
    live.zone.ask("web-0.east.web.shop.svc", A).addresses(["10.1.0.1"]);
    live.apply(clustersetip("shop/web", &["10.96.7.7"], WEB_PORTS));
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    live.zone.ask("_http._tcp.web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
    live.zone.ask("web-0.east.web.shop.svc", A).nxdomain();
}

#[test]
fn dns_c13_affinity_and_traffic_policy_change_nothing() {
    let spec = "type: ClusterSetIP, ips: [10.96.7.7], ports: [{name: http, port: 80}], sessionAffinity: ClientIP, \
                sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}, internalTrafficPolicy: Local, \
                trafficDistribution: PreferClose, ipFamilies: [IPv4]";
    let zone = zone(import("shop/web", spec, ""));
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    zone.ask("web.shop.svc", SRV).srv(["0 100 80 web.shop.svc"]);
}

#[test]
fn dns_c14_none_and_empty_inside_ips_are_skipped() {
    let beside = zone(clustersetip("shop/web", &["None", "", "10.96.7.7"], WEB_PORTS));
    beside.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    let alone = zone(clustersetip("shop/web", &["None", ""], WEB_PORTS));
    for qtype in [A, AAAA, CNAME, SRV] {
        alone.ask("web.shop.svc", qtype).nodata();
    }
}

#[test]
fn dns_c15_an_empty_or_unknown_type_is_clustersetip() {
    for kind in ["type: \"\",", "type: SuperCluster,", "type: headless,", ""] {
        let zone = zone(
            import("shop/web", &format!("{kind} ips: [10.96.7.7], ports: [{{name: http, port: 80}}]"), "")
                + &slice("shop/web", "east", WEB_PORTS, &["web-0=10.1.0.1"]),
        );
        zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        zone.ask("web-0.east.web.shop.svc", A).nxdomain();
    }
}

const FORBIDDEN: [&str; 14] = [
    "127.0.0.1",
    "127.255.0.9",
    "169.254.1.1",
    "169.254.169.254",
    "224.0.0.1",
    "239.255.255.255",
    "0.0.0.0",
    "255.255.255.255",
    "::1",
    "fe80::1",
    "febf::1",
    "ff02::1",
    "::",
    "::ffff:10.96.7.7",
];

#[test]
fn dns_c16_addresses_nobody_may_have_are_skipped() {
    for address in FORBIDDEN {
        let beside = zone(clustersetip("shop/web", &[address, "10.96.7.7", "fd00::7"], WEB_PORTS));
        beside.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
        beside.ask("web.shop.svc", AAAA).addresses(["fd00::7"]);
        let alone = zone(clustersetip("shop/web", &[address], WEB_PORTS));
        for qtype in [A, AAAA, SRV] {
            alone.ask("web.shop.svc", qtype).nodata();
        }
        alone.ask("_http._tcp.web.shop.svc", SRV).nodata();
    }
}

#[test]
fn dns_c16_addresses_that_look_odd_but_are_allowed_are_served() {
    let zone =
        zone(clustersetip("shop/web", &["8.8.8.8", "100.64.0.1", "240.0.0.1", "fec0::1", "2001:db8::1"], WEB_PORTS));
    zone.ask("web.shop.svc", A).addresses(["8.8.8.8", "100.64.0.1", "240.0.0.1"]);
    zone.ask("web.shop.svc", AAAA).addresses(["fec0::1", "2001:db8::1"]);
}
