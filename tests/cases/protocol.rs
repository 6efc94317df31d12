//! Chapters 11, 13 and 14, as far as replies show it: PRT-01 to PRT-05, PRT-09, PRT-10, RSV-02, RSV-03, SEC-04.

use std::collections::HashSet;

use namesake::dns::{DropReason, Outcome, Transport, respond};

use crate::support::*;

const PG: &[&str] = &["pg/5432"];

/// A headless `shop/db` of so many endpoints.
fn db(endpoints: usize) -> Zone {
    let all: Vec<_> = (0..endpoints).map(|n| format!("db-{n}=10.1.{}.{}", n / 200, n % 200 + 1)).collect();
    let slices = all.chunks(1000).enumerate().map(|(number, part)| {
        let part: Vec<_> = part.iter().map(String::as_str).collect();
        slice(&format!("shop/db#{number}"), "east", PG, &part)
    });
    zone(headless("shop/db", PG) + &slices.collect::<String>())
}

const DB: &str = "db.shop.svc.clusterset.local.";
const DB_PG: &str = "_pg._tcp.db.shop.svc.clusterset.local.";

#[test]
fn case_prt_01_no_reply_is_larger_than_the_client_takes() {
    let zone = db(100);
    for (edns, limit) in [(None, 512), (Some(512), 512), (Some(1232), 1232), (Some(4096), 1232), (Some(100), 512)] {
        let mut ask = Ask::new(DB, A);
        ask.edns = edns.map(Edns::size);
        let answer = zone.send(&ask);
        assert!(answer.message.bytes.len() <= limit && answer.message.truncated(), "{answer}");
        assert_eq!(answer.message.opt.is_some(), edns.is_some(), "{answer}");
        let tcp = zone.send(&ask.tcp());
        assert!(tcp.count() == 100 && !tcp.message.truncated(), "{tcp}");
    }
}

#[test]
fn case_prt_02_a_truncated_reply_keeps_question_and_opt_and_no_other_section() {
    let zone = db(500);
    for (name, qtype) in [(DB, A), (DB, SRV), (DB_PG, SRV)] {
        let answer = zone.send(&Ask::new(name, qtype).id(0x5AA5).edns(Edns::size(1232).dnssec_ok()));
        let m = &answer.message;
        assert!(m.truncated() && m.question.is_some() && m.opt.is_some() && m.id == 0x5AA5, "{answer}");
        assert!(m.authorities.is_empty() && m.additionals.is_empty(), "{answer}");
    }
}

#[test]
fn case_prt_03_there_is_always_some_reply() {
    for endpoints in [1, 4, 5, 6, 12, 13, 15, 16, 28, 29, 30, 70, 73, 74, 80, 500, 5000] {
        let zone = db(endpoints);
        for (name, qtype) in [(DB, A), (DB, AAAA), (DB_PG, SRV)] {
            for edns in [None, Some(Edns::size(1232))] {
                let mut ask = Ask::new(name, qtype);
                ask.edns = edns;
                let udp = zone.send(&ask);
                let tcp = zone.send(&ask.tcp());
                assert!(!tcp.message.truncated() && tcp.count() >= udp.count(), "{tcp}");
                if qtype != AAAA {
                    assert!(udp.count() > 0, "{udp}");
                    assert!(tcp.count() == endpoints || tcp.reply.cut, "{tcp}");
                    assert_eq!(udp.message.truncated(), udp.count() < endpoints, "TC only for the answer\n{udp}");
                }
            }
        }
    }
}

#[test]
fn case_prt_03_truncated_subsets_vary() {
    let zone = db(500);
    for (name, qtype) in [(DB, A), (DB_PG, SRV)] {
        let first: HashSet<_> =
            (0..100).map(|_| zone.send(&Ask::new(name, qtype)).message.answers[0].data.clone()).collect();
        assert!(first.len() > 50, "{} first records in 100 replies", first.len());
    }
}

#[test]
fn case_prt_04_edns_versions_and_options() {
    let zone = zone(F1);
    let ask = Ask::new("web.shop.svc.clusterset.local.", A);
    for version in [1, 100] {
        let answer = zone.send(&ask.clone().edns(Edns::size(1232).version(version)));
        answer.rcode(BADVERS);
        assert_eq!(answer.message.opt.as_ref().map(|o| o.ttl >> 16 & 0xFF), Some(0), "{answer}");
    }
    for (code, len) in [(OPTION_COOKIE, 8), (OPTION_COOKIE, 3), (100, 5), (65001, 0), (65001, 1), (65001, 99)] {
        let answer = zone.send(&ask.clone().edns(Edns::size(1232).dnssec_ok().option(code, &vec![7; len])));
        answer.addresses(["10.96.7.7"]);
        assert!(answer.message.options().is_empty(), "{answer}");
    }
    let mut two = ask;
    two.additionals = vec![Edns::size(1232).wire(), Edns::size(1232).wire()];
    let (_, reply) = zone.reply(&two.wire(), Transport::Udp).expect("a reply");
    assert_eq!(reply.rcode(), FORMERR, "{reply}");
}

#[test]
fn case_prt_05_responses_are_dropped_and_errors_are_small() {
    let zone = zone(F1);
    let query = Ask::new("web.shop.svc.clusterset.local.", A).wire();
    let mut response = query.clone();
    response[2] |= 0x80;
    assert_eq!(zone.dropped(&response), DropReason::Response);
    for len in 0..12 {
        assert_eq!(zone.dropped(&query[..len]), DropReason::Short);
    }
    for count in [0_u16, 2, 65535] {
        let mut bytes = query.clone();
        bytes[4..6].copy_from_slice(&count.to_be_bytes());
        let (_, reply) = zone.reply(&bytes, Transport::Udp).expect("a reply");
        assert_eq!(reply.rcode(), FORMERR, "{reply}");
        assert!(reply.bytes.len() <= bytes.len(), "{reply}");
    }
    for class in [CH, 255] {
        let (_, reply) = zone
            .reply(&Ask::new("web.shop.svc.clusterset.local.", A).class(class).wire(), Transport::Udp)
            .expect("a reply");
        assert_eq!(reply.rcode(), REFUSED, "{reply}");
        assert!(reply.bytes.len() <= query.len(), "{reply}");
    }
    let mut loops = query[..12].to_vec();
    loops.extend(b"\x03www\xC0\x0C\0\x01\0\x01");
    let (_, reply) = zone.reply(&loops, Transport::Udp).expect("a reply");
    assert_eq!((reply.rcode(), reply.bytes.len()), (FORMERR, 12), "{reply}");
}

#[test]
fn case_prt_05_mutated_packets_never_panic_and_their_replies_are_readable() {
    let zone = zone(F1.to_owned() + F2);
    let mut rng = fastrand::Rng::with_seed(5);
    let seeds: Vec<_> =
        [("web.shop.svc", A), ("db.shop.svc", SRV), ("", ANY), ("x.example", TXT), ("_pg._tcp.db.shop.svc", SRV)]
            .iter()
            .flat_map(|(name, qtype)| {
                let ask = Ask::new(&zone.absolute(name), *qtype);
                [ask.wire(), ask.edns(Edns::size(1232).option(OPTION_COOKIE, b"12345678")).wire()]
            })
            .collect();
    let mut out = vec![0; 65535];
    for round in 0..100_000 {
        let mut bytes = seeds[rng.usize(..seeds.len())].clone();
        for _ in 0..rng.usize(1..6) {
            match rng.u8(..4) {
                0 => bytes.truncate(rng.usize(..=bytes.len())),
                1 => bytes.extend((0..rng.usize(..20)).map(|_| rng.u8(..))),
                _ if bytes.is_empty() => {}
                _ => {
                    let at = rng.usize(..bytes.len());
                    bytes[at] = if rng.bool() { rng.u8(..) } else { bytes[at] ^ 1 << rng.u8(..8) };
                }
            }
        }
        let transport = if round % 2 == 0 { Transport::Udp } else { Transport::Tcp };
        if let Outcome::Reply(reply) = respond(&zone.store, &bytes, transport, &mut out, &mut rng) {
            let message = Message::read(&out[..reply.len]);
            assert!(message.is_response() && message.bytes[..2] == bytes[..2], "{bytes:02x?}\n{message}");
            assert!(transport == Transport::Tcp || reply.len <= 1232, "{bytes:02x?}\n{message}");
        }
    }
}

#[test]
fn case_prt_09_slice_ports_with_nothing_in_them() {
    let with_ports = |ports: &str| {
        let slice = slice("shop/db", "east", &[], &["db-0=10.1.0.11"]);
        zone(headless("shop/db", PG) + &replace(&slice, "ports: []", &format!("ports: {ports}")))
    };
    for ports in ["[{}]", "[{name: x}]", "null", "[{name: null, port: null, protocol: null, appProtocol: null}]"] {
        let zone = with_ports(ports);
        zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
        zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
        zone.ask("db.shop.svc", SRV).nodata();
        zone.ask("_x._tcp.db.shop.svc", SRV).nxdomain();
    }
    with_ports("[{port: 1}]").ask("db.shop.svc", SRV).srv(["0 100 1 db-0.east.db.shop.svc"]);
    with_ports("[{port: 1, name: x}]").ask("_x._tcp.db.shop.svc", SRV).srv(["0 100 1 db-0.east.db.shop.svc"]);
}

#[test]
fn case_prt_09_odd_endpoints_do_not_hide_the_others() {
    let odd = r#"
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: odd, namespace: shop, labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}}
addressType: IPv4
ports: [{name: pg, port: 5432}]
endpoints:
- {addresses: []}
- {}
- {addresses: null, conditions: null, hostname: null}
- {addresses: ["fd00::9"], hostname: db-9}
- {addresses: ["not-an-ip"], hostname: db-8}
- {addresses: ["10.1.0.11"], hostname: db-0, conditions: null}
"#;
    let zone = zone(headless("shop/db", PG) + odd);
    zone.ask("db.shop.svc", A).addresses(["10.1.0.11"]);
    zone.ask("db.shop.svc", AAAA).nodata();
    zone.ask("db-9.east.db.shop.svc", AAAA).nxdomain();
    zone.ask("db-8.east.db.shop.svc", A).nxdomain();
    zone.ask("_pg._tcp.db.shop.svc", SRV).srv(["0 100 5432 db-0.east.db.shop.svc"]);
    let nothing = r#"
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: nothing, namespace: shop, labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}}
addressType: IPv4
endpoints: null
"#;
    self::zone(headless("shop/db", PG) + nothing).ask("db.shop.svc", A).nxdomain();
}

#[test]
fn case_prt_10_case_of_letters() {
    let zone = zone(F1.to_owned() + F2);
    let mut rng = fastrand::Rng::with_seed(10);
    for round in 0..200 {
        for (name, qtype) in [
            ("web.shop.svc", A),
            ("db.shop.svc", A),
            ("_pg._tcp.db.shop.svc", SRV),
            ("_http._tcp.web.shop.svc", SRV),
            ("db-0.east.db.shop.svc", A),
            ("dns-version", TXT),
            ("", SOA),
            ("shop.svc", A),
            ("nope.shop.svc", A),
        ] {
            // `send` holds the question, the owners and the lower-case targets to the byte.
            let answer = zone.send(&Ask::new(&zone.absolute(name), qtype).random_case(&mut rng).id(round));
            answer.rcode(if name.starts_with("nope") { NXDOMAIN } else { NOERROR });
            assert_eq!(answer.count() > 0, !matches!(name, "shop.svc" | "nope.shop.svc"), "{answer}");
        }
    }
}

#[test]
fn case_rsv_02_no_failure_for_a_type_we_do_not_have_and_as_many_records_as_fit() {
    let zone = db(40);
    for qtype in DATA_TYPES {
        assert_eq!(zone.ask(DB, qtype).message.rcode(), NOERROR);
    }
    let udp = zone.send(&Ask::new(DB, A));
    assert_eq!((udp.count(), udp.message.truncated()), ((512 - 12 - 34) / 16, true), "{udp}");
}

#[test]
fn case_rsv_03_owner_as_asked_and_targets_in_lower_case() {
    let zone = zone(F2);
    let answer = zone.send(&Ask::new("_PG._Tcp.Db.SHOP.Svc.ClusterSet.Local.", SRV));
    assert!(
        answer.noerror().message.answers.iter().all(|r| r.owner == "_PG._Tcp.Db.SHOP.Svc.ClusterSet.Local."),
        "{answer}"
    );
    answer.targets(["5432 db-0.east.db.shop.svc", "5432 db-1.east.db.shop.svc", "5432 db-0.west.db.shop.svc"]);
}

#[test]
fn case_sec_04_transfers_are_refused() {
    for nameserver in [vec![], vec!["192.0.2.1".parse().expect("an address"), "192.0.2.2".parse().expect("an address")]]
    {
        let zone = zone_with(options(|o| o.nameserver = nameserver), F1.to_owned() + F2);
        for qtype in [AXFR, IXFR] {
            zone.ask("", qtype).refused().ede(PROHIBITED);
        }
    }
}
