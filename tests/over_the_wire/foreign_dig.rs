//! What `dig` can ask of the rows of 1.1, 1.10 and the rest, and how it reads the replies.

use std::net::SocketAddr;
use std::sync::Arc;

use namesake::answers::Chaos;
use testbed::{Dig, dig};

use crate::support::*;

const WEB: &str = "web.shop.svc.clusterset.local.";

/// A server that is asked by foreign clients.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _wire: Wire,
}

impl Served {
    pub(crate) fn of(manifests: &str) -> Self {
        Self::with(namesake::answers::Options::default(), manifests)
    }

    pub(crate) fn with(options: namesake::answers::Options, manifests: &str) -> Self {
        let changes = changes(&options, manifests);
        let wire = Wire::of(&Arc::clone(&namesake::feed::load(options, changes)));
        Self { address: wire.address, _wire: wire }
    }

    /// The reply over each transport, without what differs between them.
    #[track_caller]
    fn both(&self, args: &[&str]) -> [Dig; 2] {
        ["+notcp", "+tcp"].map(|transport| {
            let all: Vec<&str> = [transport].into_iter().chain(args.iter().copied()).collect();
            dig(self.address, &all).unwrap_or_else(|error| panic!("{error}"))
        })
    }

    /// Status and answers of both.
    #[track_caller]
    fn all(&self, args: &[&str], status: &str, check: impl Fn(&Dig)) {
        for reply in self.both(args) {
            assert_eq!(reply.status, status, "{}", reply.text);
            assert!(reply.has("qr") && !reply.has("ra") && !reply.has("ad"), "{}", reply.text);
            check(&reply);
        }
    }
}

#[track_caller]
fn address(reply: &Dig) {
    assert_eq!(reply.data("A"), ["10.96.7.7"], "{}", reply.text);
}

/// F1, F2, and a headless service of so many endpoints.
fn objects(endpoints: usize) -> String {
    let all: Vec<_> = (0..endpoints).map(|n| format!("pod-{n}=10.1.{}.{}", n / 200, n % 200 + 1)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let slices: String = all
        .chunks(100)
        .enumerate()
        .map(|(n, part)| slice(&format!("shop/big#{n}"), "east", &["pg/5432"], part))
        .collect();
    F1.to_owned() + F2 + &headless("shop/big", &["pg/5432"]) + &slices
}

#[test]
fn dns_t3_t4_other_opcodes_over_the_wire() {
    let served = Served::of(F1);
    for opcode in ["+opcode=UPDATE", "+opcode=NOTIFY", "+opcode=STATUS", "+opcode=IQUERY", "+opcode=7"] {
        served.all(&[opcode, WEB, "A"], "NOTIMP", |reply| {
            assert!(reply.answer.is_empty() && reply.authority.is_empty(), "{}", reply.text);
        });
    }
}

#[test]
fn dns_t5_two_questions_or_none_over_the_wire() {
    // dig has +header-only for a message without a question.
    Served::of(F1).all(&["+header-only", "+noedns", WEB, "A"], "FORMERR", |reply| {
        assert_eq!(reply.counts.answer, 0, "{}", reply.text);
    });
}

#[test]
fn dns_t11_other_edns_versions_over_the_wire() {
    let served = Served::of(F1);
    for version in ["+edns=1", "+edns=100"] {
        served.all(&[version, "+noednsnegotiation", WEB, "A"], "BADVERS", |reply| {
            let edns = reply.edns.as_ref().expect("an OPT");
            assert_eq!((edns.version, edns.udp), (0, 1232), "{}", reply.text);
            assert!(reply.answer.is_empty(), "{}", reply.text);
        });
    }
    // Left to itself, dig then asks again with version 0.
    served.all(&["+edns=1", WEB, "A"], "NOERROR", address);
}

#[test]
fn dns_t12_t13_options_over_the_wire() {
    let served = Served::of(F1);
    for option in [
        "+ednsopt=65001:0a0b0c",
        "+cookie=0123456789abcdef",
        "+nsid",
        "+subnet=192.0.2.0/24",
        "+padding=64",
        "+keepalive",
        "+expire",
    ] {
        served.all(&[option, WEB, "A"], "NOERROR", |reply| {
            address(reply);
            let edns = reply.edns.as_ref().expect("an OPT");
            let unasked: Vec<_> = edns.options.iter().filter(|line| !line.contains("TCP-KEEPALIVE")).collect();
            assert!(unasked.is_empty(), "{option}: {}", reply.text);
        });
    }
    let named = Served::with(options(|o| o.nsid = Some(b"dns-0".to_vec())), F1);
    named.all(&["+nsid", WEB, "A"], "NOERROR", |reply| assert!(reply.text.contains("dns-0"), "{}", reply.text));
    named.all(&[WEB, "A"], "NOERROR", |reply| assert!(!reply.text.contains("dns-0"), "{}", reply.text));
}

#[test]
fn dns_t14_t15_do_and_the_size_of_the_server_over_the_wire() {
    let served = Served::of(F1);
    for (flag, flags) in [("+dnssec", vec!["do"]), ("+nodnssec", vec![])] {
        for size in ["+bufsize=512", "+bufsize=4096", "+bufsize=65535"] {
            served.all(&[flag, size, WEB, "A"], "NOERROR", |reply| {
                address(reply);
                let edns = reply.edns.as_ref().expect("an OPT");
                assert_eq!(
                    (&edns.flags[..], edns.udp),
                    (&flags.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>()[..], 1232),
                    "{}",
                    reply.text
                );
            });
        }
    }
    served.all(&["+noedns", WEB, "A"], "NOERROR", |reply| assert!(reply.edns.is_none(), "{}", reply.text));
}

#[test]
fn dns_t16_other_classes_over_the_wire() {
    let served = Served::of(F1);
    for class in ["CH", "HS", "CLASS255"] {
        served.all(&[WEB, class, "A"], "REFUSED", |reply| assert!(reply.answer.is_empty(), "{}", reply.text));
    }
    served.all(&["version.bind.", "CH", "TXT"], "REFUSED", |_| {});
    let chaos = Chaos { version: "Namesake 9".into(), hostname: "dns-0".into() };
    let telling = Served::with(options(|o| o.chaos = Some(chaos)), F1);
    for (name, text) in [("version.bind.", "\"Namesake 9\""), ("id.server.", "\"dns-0\"")] {
        telling.all(&[name, "CH", "TXT"], "NOERROR", |reply| assert_eq!(reply.data("TXT"), [text], "{}", reply.text));
    }
}

#[test]
fn dns_t17_t18_names_outside_over_the_wire() {
    let served = Served::with(options(|o| o.zones = vec!["sub.clusterset.local".into()]), F1);
    for name in ["example.org.", "clusterset.local.", WEB, "local.", "."] {
        served.all(&[name, "A"], "REFUSED", |reply| {
            assert!(!reply.has("aa") && reply.authority.is_empty(), "{}", reply.text);
            assert_eq!(
                reply.edns.as_ref().expect("an OPT").errors.iter().map(|(code, _)| *code).collect::<Vec<_>>(),
                [20]
            );
        });
    }
    served.all(&["web.shop.svc.sub.clusterset.local.", "A"], "NOERROR", address);
}

#[test]
fn dns_t20_long_queries_over_the_wire() {
    let served = Served::of(F1);
    for length in [600, 1400, 3900] {
        let option = format!("+ednsopt=65001:{}", "00".repeat(length));
        served.all(&[&option, WEB, "A"], "NOERROR", address);
    }
}

#[test]
fn dns_t22_names_that_are_too_long_over_the_wire() {
    let label = |c: &str| c.repeat(63);
    let key = format!("{}/{}", label("n"), label("s"));
    let name = format!("{}.{}.svc.clusterset.local.", label("s"), label("n"));
    let long = format!("{}=10.0.0.1", label("h"));
    let objects = headless(&key, &["p/1"])
        + &slice(&key, &label("c"), &["p/1"], &[&long])
        + &slice(&key, "c", &["p/1"], &["h=10.0.0.2"]);
    let served = Served::of(&objects);
    served.all(&[&name, "A"], "NOERROR", |reply| assert_eq!(reply.data("A"), ["10.0.0.1", "10.0.0.2"]));
    served.all(&[&name, "SRV"], "NOERROR", |reply| {
        assert_eq!(reply.data("SRV"), [format!("0 100 1 h.c.{name}")], "{}", reply.text);
    });
}

#[test]
fn dns_t23_a_signature_is_ignored_over_the_wire() {
    // dig says that it wanted a signed reply, and shows the one it got.
    let served = Served::of(F1);
    let key = "hmac-sha256:key.:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";
    for reply in served.both(&["-y", key, WEB, "A"]) {
        assert_eq!(reply.status, "NOERROR", "{}", reply.text);
        address(&reply);
        assert!(!reply.text.contains("TSIG PSEUDOSECTION:\n;; ANSWER"), "{}", reply.text);
    }
}

#[test]
fn dns_z1_z2_truncation_and_tcp_over_the_wire() {
    let served = Served::of(&objects(500));
    let big = "big.shop.svc.clusterset.local.";
    for (size, fit) in [("+noedns", 28..=30), ("+bufsize=1232", 70..=76), ("+bufsize=65535", 70..=76)] {
        let cut = dig(served.address, &["+ignore", size, big, "A"]).unwrap();
        assert!(cut.has("tc") && !cut.tcp && fit.contains(&cut.data("A").len()), "{size}: {}", cut.text);
        // dig follows TC by itself.
        let whole = dig(served.address, &[size, big, "A"]).unwrap();
        assert!(whole.tcp && !whole.has("tc") && whole.data("A").len() == 500, "{size}: {}", whole.text);
    }
    let srv = dig(served.address, &[big, "SRV"]).unwrap();
    assert!(srv.tcp && srv.data("SRV").len() == 500, "{}", srv.size);
}

#[test]
fn dns_f2_f7_what_a_forwarder_asks_over_the_wire() {
    let served = Served::of(F1);
    // CoreDNS's health check, and a query as it passes one on.
    let health = dig(served.address, &["+noedns", "+rec", ".", "NS"]).unwrap();
    assert!(health.status == "REFUSED" && health.edns.is_none(), "{}", health.text);
    served.all(&["+cdflag", "+adflag", "+norec", "+cookie", WEB, "A"], "NOERROR", |reply| {
        address(reply);
        assert!(reply.has("cd") && !reply.has("rd") && reply.has("aa"), "{}", reply.text);
    });
}

#[test]
fn dns_o7_x1_any_and_transfers_over_the_wire() {
    let served = Served::of(F1);
    for reply in served.both(&[WEB, "ANY"]) {
        assert_eq!(reply.data("HINFO"), ["\"RFC8482\" \"\""], "{}", reply.text);
    }
    let transfer = dig(served.address, &["+tcp", "clusterset.local.", "AXFR"]);
    let said = match transfer {
        Ok(reply) => reply.text,
        Err(error) => error.to_string(),
    };
    assert!(said.contains("Transfer failed") && !said.contains("10.96.7.7"), "{said}");
    let ixfr = dig(served.address, &["+notcp", "clusterset.local.", "IXFR=1"]);
    let said = ixfr.map_or_else(|error| error.to_string(), |reply| reply.text);
    assert!(!said.contains("10.96.7.7"), "{said}");
}
