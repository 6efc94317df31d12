//! 2.6: what CoreDNS's `forward` and `cache` need of an upstream, as far as replies show it.

use namesake::dns::Transport;

use crate::support::*;

#[test]
fn dns_f2_the_health_check_is_refused_without_an_opt() {
    let zone = zone(F1);
    let answer = zone.send(&Ask::new(".", NS));
    answer.refused();
    assert!(answer.message.opt.is_none() && answer.message.bytes.len() == 12 + 5, "{answer}");
}

#[test]
fn dns_f4_servfail_is_bare() {
    let zone = Live::unsynced(namesake::answers::Options::default()).zone;
    let answer = zone.send(&Ask::new("web.shop.svc.clusterset.local.", A));
    answer.servfail();
    assert_eq!(answer.message.bytes.len(), 12 + answer.ask.question().len(), "{answer}");
}

#[test]
fn dns_f6_no_answer_exceeds_the_querys_limit() {
    let endpoints: Vec<_> = (1..=200).map(|n| format!("db-{n}=10.1.0.{n}")).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let ports = &["pg/5432", "metrics/9187"];
    let manifests = headless("shop/db", ports) + &slice("shop/db", "east", ports, &endpoints);
    let zone = zone_with(options(|o| o.bufsize = 4096), manifests);
    for name in ["db.shop.svc", "_pg._tcp.db.shop.svc", "nope.shop.svc", "db-1.east.db.shop.svc", ""] {
        for qtype in [A, AAAA, SRV, ANY, SOA, NS] {
            let ask = Ask::new(&zone.absolute(name), qtype);
            zone.send(&ask);
            for size in (0..1600).step_by(7) {
                zone.send(&ask.clone().edns(Edns::size(size)));
            }
        }
    }
}

#[test]
fn dns_f6_a_short_buffer_is_a_smaller_limit() {
    let endpoints: Vec<_> = (1..=200).map(|n| format!("10.1.0.{n}")).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let zone = zone(headless("shop/db", &["pg/5432"]) + &slice("shop/db", "east", &["pg/5432"], &endpoints));
    let query = Ask::new("_pg._tcp.db.shop.svc.clusterset.local.", SRV).edns(Edns::size(1232)).wire();
    for transport in [Transport::Udp, Transport::Tcp] {
        for len in (0..1232).step_by(3) {
            let mut out = vec![0; len];
            let outcome =
                namesake::dns::respond(&zone.store, &query, transport, &mut out, &mut fastrand::Rng::with_seed(1));
            if let namesake::dns::Outcome::Reply(reply) = outcome {
                assert!(reply.len <= len, "{} bytes in a buffer of {len}", reply.len);
                Message::read(&out[..reply.len]);
            }
        }
    }
}

#[test]
fn dns_f7_cd_is_copied_ad_is_not_and_no_option_comes_back() {
    let zone = zone(F1);
    let edns = Edns::size(4096).dnssec_ok().option(OPTION_COOKIE, b"12345678").option(8, &[0, 1, 24, 0, 10, 0, 0]);
    let answer = zone.send(&Ask::new("web.shop.svc.clusterset.local.", A).other_flags().edns(edns));
    answer.addresses(["10.96.7.7"]);
    assert!(answer.message.checking_disabled() && !answer.message.authentic_data(), "{answer}");
    assert!(answer.message.options().is_empty(), "{answer}");
}

#[test]
fn dns_f10_a_forwarded_notify_is_notimp() {
    let (_, reply) =
        zone(F1).reply(&Ask::new("clusterset.local.", SOA).opcode(4).wire(), Transport::Udp).expect("a reply");
    assert_eq!(reply.rcode(), NOTIMP, "{reply}");
}
