//! 1.13: the worked examples, to the byte where they show bytes.

use crate::support::*;

#[test]
fn dns_1_13_clustersetip_dual_stack_srv() {
    let zone = zone(clustersetip("demo/hello", &["10.0.171.4", "fd00::4"], &["http/80/TCP"]));
    let answer = zone.send(&Ask::new("_http._tcp.hello.demo.svc.clusterset.local.", SRV).edns(Edns::size(1232)));
    answer.srv(["0 50 80 hello.demo.svc"]).ttl(5);
    answer.glue(["hello.demo.svc 10.0.171.4", "hello.demo.svc fd00::4"]);
    assert_eq!(answer.message.counts, [1, 1, 0, 3], "{answer}");
    assert_eq!(answer.message.flags, 0x8500, "qr aa rd\n{answer}");
    let opt = answer.message.opt.as_ref().expect("an OPT");
    assert_eq!((opt.class, opt.ttl, opt.rdata.len()), (1232, 0, 0), "version 0, no flags, udp: 1232\n{answer}");
}

#[test]
fn dns_1_13_headless_stateful_set_in_two_clusters() {
    let sql = &["sql/5432"];
    let zone = zone(
        headless("demo/db", sql)
            + &slice("demo/db", "east", sql, &["db-0=10.1.0.5"])
            + &slice("demo/db", "west", sql, &["db-0=10.2.0.7"]),
    );
    zone.ask("db.demo.svc", A).addresses(["10.1.0.5", "10.2.0.7"]);
    zone.ask("db-0.east.db.demo.svc", A).addresses(["10.1.0.5"]);
    zone.ask("_sql._tcp.db.demo.svc", SRV).srv(["0 50 5432 db-0.east.db.demo.svc", "0 50 5432 db-0.west.db.demo.svc"]);
    zone.ask("east.db.demo.svc", A).nodata();
    zone.ask("_tcp.db.demo.svc", A).nodata();
    zone.ask("north.db.demo.svc", A).nxdomain();
}

#[test]
fn dns_1_13_negative() {
    let answer = zone(F1);
    let answer = answer.send(&Ask::new("north.db.demo.svc.clusterset.local.", A));
    answer.nxdomain();
    assert_eq!((answer.message.flags, answer.message.counts), (0x8503, [1, 0, 1, 0]), "qr aa rd\n{answer}");
    let soa = &answer.message.authorities[0];
    let text = soa.text();
    let (start, end) =
        ("clusterset.local. 5 SOA ns.dns.clusterset.local. hostmaster.clusterset.local. ", " 7200 1800 86400 5");
    assert!(text.starts_with(start) && text.ends_with(end), "{text}");
}

#[test]
fn dns_1_12_what_the_conformance_suite_looks_up() {
    let ports = &["tcp/42/TCP", "udp/42/UDP"];
    let web = zone(clustersetip("ns/hello", &["10.96.0.9", "fd00::9"], ports));
    web.ask("hello.ns.svc", A).addresses(["10.96.0.9"]);
    web.ask("hello.ns.svc", AAAA).addresses(["fd00::9"]);
    web.ask("hello.ns.svc", SRV).targets(["42 hello.ns.svc"]);
    let headless = zone(
        headless("ns/hello", ports)
            + &slice("ns/hello", "c1", ports, &["10.1.0.1"])
            + &slice("ns/hello#v6", "c1", ports, &["fd00:1::1"])
            + &slice("ns/hello", "c2", ports, &["hello-0=10.2.0.1"]),
    );
    headless.ask("hello.ns.svc", A).addresses(["10.1.0.1", "10.2.0.1"]);
    headless.ask("hello.ns.svc", AAAA).addresses(["fd00:1::1"]);
    // As many as there are addresses over all families; each begins with the hostname or the dashed address.
    headless.ask("hello.ns.svc", SRV).targets([
        "42 10-1-0-1.c1.hello.ns.svc",
        "42 fd00-1--1.c1.hello.ns.svc",
        "42 hello-0.c2.hello.ns.svc",
    ]);
    headless.ask("hello-0.c2.hello.ns.svc", A).addresses(["10.2.0.1"]);
}
