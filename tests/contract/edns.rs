//! 1.1, T9 to T15: EDNS.

use namesake::dns::Transport;

use crate::support::*;

const WEB: &str = "web.shop.svc.clusterset.local.";

#[test]
fn dns_t9_two_opts_are_formerr_with_an_opt() {
    let zone = zone(F1);
    for (first, second) in [(1232, 1232), (512, 4096)] {
        let mut ask = Ask::new(WEB, A);
        ask.additionals = vec![Edns::size(first).wire(), Edns::size(second).wire()];
        for transport in [Transport::Udp, Transport::Tcp] {
            let (_, reply) = zone.reply(&ask.wire(), transport).expect("a reply");
            assert_eq!(reply.rcode(), FORMERR, "{reply}");
            let opt = reply.opt.as_ref().unwrap_or_else(|| panic!("with OPT\n{reply}"));
            assert_eq!((opt.class, opt.ttl >> 16 & 0xFF), (1232, 0), "{reply}");
        }
    }
}

#[test]
fn dns_t10_an_opt_whose_owner_is_not_the_root_is_formerr() {
    let zone = zone(F1);
    for owner in [&[&b"a"[..]][..], &[b"clusterset", b"local"]] {
        let mut ask = Ask::new(WEB, A);
        ask.additionals = vec![record(owner, OPT, 1232, 0, &[])];
        let (_, reply) = zone.reply(&ask.wire(), Transport::Udp).expect("a reply");
        assert_eq!(reply.rcode(), FORMERR, "{reply}");
    }
}

#[test]
fn dns_t11_another_version_is_badvers() {
    let zone = zone(F1);
    for version in [1, 2, 100, 255] {
        for name in [WEB, "nope.clusterset.local.", "example.org."] {
            let ask = Ask::new(name, A).edns(Edns::size(4096).version(version).dnssec_ok());
            for ask in [ask.clone(), ask.tcp()] {
                let answer = zone.send(&ask);
                answer.rcode(BADVERS);
                assert_eq!(answer.message.opt.as_ref().map(|o| o.ttl), Some(0x0100_8000), "version 0, DO\n{answer}");
            }
        }
    }
}

#[test]
fn dns_t12_unknown_options_are_ignored_and_not_echoed() {
    let zone = zone(F1);
    for code in [0, 1, 4, 5, 8, 13, 100, 65001, 65535] {
        for len in [0, 1, 7, 255] {
            let edns = Edns::size(1232).option(code, &vec![0x5A; len]);
            zone.send(&Ask::new(WEB, A).edns(edns)).addresses(["10.96.7.7"]);
        }
    }
    let many = (0..50).fold(Edns::size(1232), |edns, n| edns.option(65001 + n % 3, &[0; 3]));
    zone.send(&Ask::new(WEB, A).edns(many)).addresses(["10.96.7.7"]);
}

#[test]
fn dns_t13_known_options_are_not_echoed() {
    let zone = zone(F1);
    let edns = Edns::size(1232)
        .option(OPTION_NSID, b"")
        .option(OPTION_EXPIRE, b"")
        .option(OPTION_COOKIE, b"12345678")
        .option(OPTION_KEEPALIVE, b"")
        .option(OPTION_PADDING, &[0; 31]);
    let udp = zone.send(&Ask::new(WEB, A).edns(edns.clone()));
    assert_eq!(udp.addresses(["10.96.7.7"]).message.options(), [], "{udp}");
    let tcp = zone.send(&Ask::new(WEB, A).edns(edns).tcp());
    let others =
        tcp.addresses(["10.96.7.7"]).message.options().into_iter().filter(|(code, _)| *code != OPTION_KEEPALIVE);
    assert_eq!(others.count(), 0, "{tcp}");
}

#[test]
fn dns_t13_nsid_is_told_when_configured_and_asked_for() {
    let zone = zone_with(options(|o| o.nsid = Some(b"dns-0".to_vec())), F1);
    let asking = Edns::size(1232).option(OPTION_NSID, b"");
    for name in [WEB, "nope.clusterset.local.", "example.org."] {
        let answer = zone.send(&Ask::new(name, A).edns(asking.clone()));
        assert!(answer.message.options().contains(&(OPTION_NSID, b"dns-0".to_vec())), "{answer}");
        let silent = zone.send(&Ask::new(name, A).edns(Edns::size(1232)));
        assert!(!silent.message.options().iter().any(|(code, _)| *code == OPTION_NSID), "{silent}");
    }
}

#[test]
fn dns_t14_do_is_copied_and_nothing_else_changes() {
    let zone = zone(F1.to_owned() + F2);
    for (name, qtype) in [("web.shop.svc", A), ("_pg._tcp.db.shop.svc", SRV), ("nope.shop.svc", A), ("", SOA), ("", NS)]
    {
        let name = zone.absolute(name);
        let with = zone.send(&Ask::new(&name, qtype).edns(Edns::size(1232).dnssec_ok()));
        let without = zone.send(&Ask::new(&name, qtype).edns(Edns::size(1232)));
        let sets = |a: &Answer<'_>| {
            [&a.message.answers, &a.message.authorities, &a.message.additionals].map(|s| Message::set(s))
        };
        assert_eq!(sets(&with), sets(&without), "{with}{without}");
    }
}

#[test]
fn dns_t15_the_opt_states_our_own_size() {
    for bufsize in [512, 1232, 4096] {
        let zone = zone_with(options(|o| o.bufsize = bufsize), F1);
        for size in [0, 1, 512, 1232, 4096, 65535] {
            for ask in [Ask::new(WEB, A), Ask::new("example.org.", A), Ask::new("nope.clusterset.local.", A).tcp()] {
                let answer = zone.send(&ask.edns(Edns::size(size)));
                assert_eq!(answer.message.opt.as_ref().map(|o| o.class), Some(bufsize), "{answer}");
            }
        }
    }
}
