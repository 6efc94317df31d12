//! What people ask, through CoreDNS, with the CRDs of each release.

use testbed::Dig;

use super::objects::{clusterset, rbac};
use super::rig::{Rig, Setup};

#[tokio::test(flavor = "multi_thread")]
async fn main_job_with_the_crds_of_v0_5_2() {
    battery("v0.5.2", "v1beta1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_with_the_crds_of_v0_5_0() {
    battery("v0.5.0", "v1beta1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_with_the_crds_of_v0_4_1() {
    battery("v0.4.1", "v1alpha1").await;
}

async fn battery(crds: &'static str, version: &str) {
    let objects = rbac(None) + "---\n" + &clusterset(version);
    let rig = Rig::start(Setup { crds, objects, ..Setup::default() }).await;
    rig.wait_ready().await;
    addresses(&rig);
    services(&rig);
    negatives(&rig);
    large_set(&rig);
}

/// A positive answer: NOERROR, authoritative, with this TTL.
fn positive(reply: &Dig) -> &Dig {
    assert_eq!(reply.status, "NOERROR", "{}", reply.text);
    assert!(reply.has("aa") && reply.answer.iter().all(|record| record.ttl == 5), "{}", reply.text);
    reply
}

/// `dns_c4`, `dns_h2`, `dns_h5`, `dns_e1`, `dns_e2`: A and AAAA.
fn addresses(rig: &Rig) {
    assert_eq!(positive(&rig.ask("web.demo.svc", "A")).data("A"), ["10.96.0.10"]);
    assert_eq!(positive(&rig.ask("web.demo.svc", "AAAA")).data("AAAA"), ["fd00::10"]);
    assert_eq!(positive(&rig.ask("WEB.Demo.svc", "A")).data("A"), ["10.96.0.10"]);
    let all = ["10.1.0.1", "10.1.0.2", "10.2.0.1"];
    assert_eq!(positive(&rig.ask("db.demo.svc", "A")).data("A"), all, "every cluster's ready endpoints, no others");
    assert_eq!(positive(&rig.ask("db.demo.svc", "AAAA")).data("AAAA"), ["fd01::1"]);
    assert_eq!(positive(&rig.ask("db-0.east.db.demo.svc", "A")).data("A"), ["10.1.0.1"]);
    assert_eq!(positive(&rig.ask("db-0.east.db.demo.svc", "AAAA")).data("AAAA"), ["fd01::1"]);
    assert_eq!(positive(&rig.ask("db-0.west.db.demo.svc", "A")).data("A"), ["10.2.0.1"]);
    assert_eq!(positive(&rig.ask("10-20-3-7.east.big.demo.svc", "A")).data("A"), ["10.20.3.7"]);
}

/// `dns_v1` to `dns_v4`: SRV, with the addresses of its targets.
fn services(rig: &Rig) {
    let glue = |reply: &Dig| {
        let mut glue: Vec<_> =
            reply.additional.iter().map(|record| format!("{} {}", record.name, record.data)).collect();
        glue.sort();
        glue
    };
    let web = rig.ask("_http._tcp.web.demo.svc", "SRV");
    assert_eq!(positive(&web).data("SRV"), ["0 50 80 web.demo.svc.clusterset.local."]);
    assert_eq!(glue(&web), ["web.demo.svc.clusterset.local. 10.96.0.10", "web.demo.svc.clusterset.local. fd00::10"]);
    let db = rig.ask("_pg._tcp.db.demo.svc", "SRV");
    let target = |pod: &str| format!("0 25 5432 {pod}.db.demo.svc.clusterset.local.");
    assert_eq!(positive(&db).data("SRV"), [target("db-0.east"), target("db-0.west"), target("db-1.east")]);
    assert_eq!(glue(&db).len(), 4, "{}", db.text);
}

/// NXDOMAIN and NODATA, both with the zone's SOA.
fn negatives(rig: &Rig) {
    let cases = [
        ("absent.demo.svc", "A", "NXDOMAIN"),
        ("web.absent.svc", "AAAA", "NXDOMAIN"),
        ("db-9.west.db.demo.svc", "A", "NXDOMAIN"),
        ("db-0.north.db.demo.svc", "A", "NXDOMAIN"),
        ("_none._tcp.web.demo.svc", "SRV", "NXDOMAIN"),
        ("db-1.east.db.demo.svc", "AAAA", "NOERROR"),
        ("web.demo.svc", "TXT", "NOERROR"),
        ("east.db.demo.svc", "A", "NOERROR"),
        ("demo.svc", "A", "NOERROR"),
        ("", "A", "NOERROR"),
    ];
    for (name, kind, status) in cases {
        let reply = rig.ask(name, kind);
        assert_eq!((reply.status.as_str(), reply.counts.answer), (status, 0), "{name} {kind}\n{}", reply.text);
        assert!(reply.has("aa"), "{}", reply.text);
        let soa: Vec<_> = reply.authority.iter().map(|record| (record.name.as_str(), record.kind.as_str())).collect();
        assert_eq!(soa, [("clusterset.local.", "SOA")], "{}", reply.text);
    }
}

/// 500 endpoints: a part and TC over UDP, all of them over TCP (`dns_f5`, 1.10).
fn large_set(rig: &Rig) {
    let mut all: Vec<_> = (0..5).flat_map(|part| (0..100).map(move |n| format!("10.20.{part}.{n}"))).collect();
    all.sort();
    let udp = rig.ask_with("big.demo.svc", "A", &["+ignore"]);
    assert!(udp.has("tc") && !udp.tcp && udp.size <= 1232, "{}", udp.text);
    assert!((50..500).contains(&udp.counts.answer), "a part that helps: {}", udp.counts.answer);
    assert!(udp.data("A").iter().all(|address| all.iter().any(|known| known == address)));
    let tcp = rig.ask("big.demo.svc", "A");
    assert!(tcp.tcp && !tcp.has("tc"), "dig asks again over TCP");
    assert_eq!(tcp.data("A"), all);
    assert_eq!(rig.ask_with("big.demo.svc", "A", &["+tcp"]).data("A"), all);
}
