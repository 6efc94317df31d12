//! 1.0 and 1.1, T1 to T8, T16 to T23: what is decided before any name is looked at.

use namesake::dns::{DropReason, Transport};

use crate::support::*;

const BOTH: [Transport; 2] = [Transport::Udp, Transport::Tcp];

/// Twelve bytes, the id, opcode and RD kept, nothing else.
#[track_caller]
fn header_only(zone: &Zone, query: &[u8], rcode: u16) {
    for transport in BOTH {
        let (_, reply) = zone.reply(query, transport).expect("a reply");
        assert_eq!(reply.rcode(), rcode, "{query:02x?}\n{reply}");
        assert_eq!(reply.bytes.len(), 12, "header only: {query:02x?}\n{reply}");
        assert_eq!(reply.recursion_desired(), query[2] & 1 != 0, "RD kept\n{reply}");
    }
}

/// A small error reply, with or without the question and an OPT.
#[track_caller]
fn small_error(zone: &Zone, query: &[u8], rcode: u16) {
    for transport in BOTH {
        let (_, reply) = zone.reply(query, transport).expect("a reply");
        assert_eq!(reply.rcode(), rcode, "{query:02x?}\n{reply}");
        assert!(reply.bytes.len() <= query.len().max(12) + 11 + 6, "larger than the query\n{reply}");
    }
}

fn header(id: u16, flags: u16, counts: [u16; 4]) -> Vec<u8> {
    [id, flags].into_iter().chain(counts).flat_map(u16::to_be_bytes).collect()
}

#[test]
fn dns_t1_shorter_than_a_header_is_dropped() {
    let zone = zone(F1);
    let query = Ask::new("web.shop.svc.clusterset.local.", A).wire();
    for len in 0..12 {
        assert_eq!(zone.dropped(&query[..len]), DropReason::Short, "{len} bytes");
    }
}

#[test]
fn dns_t2_responses_are_dropped_whatever_else_they_are() {
    let zone = zone(F1);
    for opcode in 0..16 {
        let mut query = Ask::new("web.shop.svc.clusterset.local.", A).opcode(opcode).wire();
        query[2] |= 0x80;
        assert_eq!(zone.dropped(&query), DropReason::Response, "opcode {opcode}");
        assert_eq!(zone.dropped(&query[..12]), DropReason::Response, "a bare header, opcode {opcode}");
        query[4..6].copy_from_slice(&[0, 9]);
        assert_eq!(zone.dropped(&query), DropReason::Response, "9 questions, opcode {opcode}");
    }
}

#[test]
fn dns_t3_other_opcodes_are_notimp_header_only() {
    let zone = zone(F1);
    for opcode in [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        let ask = Ask::new("web.shop.svc.clusterset.local.", A).opcode(opcode);
        header_only(&zone, &ask.wire(), NOTIMP);
        header_only(&zone, &ask.clone().edns(Edns::size(1232)).wire(), NOTIMP);
        header_only(&zone, &ask.other_flags().wire(), NOTIMP);
    }
}

#[test]
fn dns_t3_update_is_notimp() {
    let mut update = Ask::new("clusterset.local.", SOA).opcode(5);
    update.authorities = vec![record(&[b"web", b"shop", b"svc", b"clusterset", b"local"], A, IN, 60, &[10, 0, 0, 1])];
    header_only(&zone(F1), &update.wire(), NOTIMP);
}

#[test]
fn dns_t4_notify_is_notimp() {
    let zone = zone(F1);
    for name in ["clusterset.local.", "example.org."] {
        small_error(&zone, &Ask::new(name, SOA).opcode(4).wire(), NOTIMP);
        small_error(&zone, &Ask::new(name, SOA).opcode(4).edns(Edns::size(1232)).wire(), NOTIMP);
    }
}

#[test]
fn dns_t5_any_number_of_questions_but_one_is_formerr() {
    let zone = zone(F1);
    let query = Ask::new("web.shop.svc.clusterset.local.", A);
    for count in [0_u16, 2, 3, 255, 256, 65535] {
        let mut bytes = query.wire();
        bytes[4..6].copy_from_slice(&count.to_be_bytes());
        small_error(&zone, &bytes, FORMERR);
    }
    let mut two = query.wire();
    two[5] = 2;
    two.extend(query.question());
    small_error(&zone, &two, FORMERR);
    small_error(&zone, &header(1, 0x0100, [0; 4]), FORMERR);
}

#[test]
fn dns_t6_too_many_records_in_a_query_are_formerr() {
    let zone = zone(F1);
    let plain = Ask::new("web.shop.svc.clusterset.local.", A);
    let record = record(&[b"a"], A, IN, 1, &[1, 2, 3, 4]);
    let mut answers = plain.clone();
    answers.answers = vec![record.clone(); 2];
    small_error(&zone, &answers.wire(), FORMERR);
    let mut authorities = plain.clone();
    authorities.authorities = vec![record.clone(); 2];
    small_error(&zone, &authorities.wire(), FORMERR);
    let mut additionals = plain.clone();
    additionals.additionals = vec![record; 3];
    small_error(&zone, &additionals.wire(), FORMERR);
    for position in [6, 8, 10] {
        let mut counts_only = plain.wire();
        counts_only[position..position + 2].copy_from_slice(&[0xFF, 0xFF]);
        small_error(&zone, &counts_only, FORMERR);
    }
}

#[test]
fn dns_t6_as_many_records_as_allowed_do_not_disturb() {
    let zone = zone(F1);
    let record = record(&[b"a"], A, IN, 1, &[1, 2, 3, 4]);
    let mut ask = Ask::new("web.shop.svc.clusterset.local.", A);
    ask.answers = vec![record.clone()];
    ask.authorities = vec![record.clone()];
    ask.additionals = vec![record.clone()];
    zone.send(&ask).addresses(["10.96.7.7"]);
    zone.send(&ask.clone().edns(Edns::size(1232))).addresses(["10.96.7.7"]);
    ask.additionals = vec![record.clone(); 2];
    zone.send(&ask).addresses(["10.96.7.7"]);
    // The OPT in front of the other record.
    ask.additionals = vec![Edns::size(1232).wire(), record];
    let (_, reply) = zone.reply(&ask.wire(), Transport::Udp).expect("a reply");
    assert!(reply.opt.is_some() && reply.answers.len() == 1, "{reply}");
}

#[test]
fn dns_t6_the_soa_of_an_ixfr_passes() {
    let zone = zone(F1);
    let mut ixfr = Ask::new("clusterset.local.", IXFR).tcp();
    let mut soa = b"\0\0".to_vec();
    soa.extend([0; 20]);
    ixfr.authorities = vec![record(&[b"clusterset", b"local"], SOA, IN, 5, &soa)];
    zone.send(&ixfr).refused();
}

#[test]
fn dns_t7_bad_labels_pointer_loops_and_cuts_are_formerr() {
    let zone = zone(F1);
    for flags in [0x0000, 0x0100] {
        let with = |question: &[u8]| {
            let mut query = header(0x1234, flags, [1, 0, 0, 0]);
            query.extend(question);
            query
        };
        for (what, question) in [
            ("label type 01", &b"\x41abc\0\0\x01\0\x01"[..]),
            ("label type 10", b"\x81abc\0\0\x01\0\x01"),
            ("pointer to itself", b"\xC0\x0C\0\x01\0\x01"),
            ("pointer loop", b"\x01a\xC0\x0C\0\x01\0\x01"),
            ("pointer past the end", b"\xFF\xFF\0\x01\0\x01"),
            ("half a pointer", b"\xC0"),
            ("cut in a label", b"\x05we"),
            ("no final label", b"\x03web"),
            ("no type", b"\x03web\0"),
            ("half a type", b"\x03web\0\0"),
            ("no class", b"\x03web\0\0\x01"),
            ("half a class", b"\x03web\0\0\x01\0"),
        ] {
            let query = with(question);
            let (_, reply) = zone.reply(&query, Transport::Udp).expect(what);
            assert_eq!(reply.rcode(), FORMERR, "{what}\n{reply}");
            header_only(&zone, &query, FORMERR);
        }
    }
}

#[test]
fn dns_t7_a_name_of_more_than_255_bytes_is_formerr() {
    let zone = zone(F1);
    let label = |len: usize| vec![b'a'; len];
    let long = |last: usize| {
        let mut name = vec![label(63), label(63), label(63), label(last)];
        name.truncate(4);
        Ask::labels(name, A)
    };
    header_only(&zone, &long(62).wire(), FORMERR);
    zone.send(&long(61)).refused();
}

#[test]
fn dns_t7_a_cut_record_is_formerr() {
    let zone = zone(F1);
    let whole = Ask::new("web.shop.svc.clusterset.local.", A).edns(Edns::size(1232)).wire();
    for cut in 1..=11 {
        header_only(&zone, &whole[..whole.len() - cut], FORMERR);
    }
    let mut option_too_long = Ask::new("web.shop.svc.clusterset.local.", A);
    option_too_long.additionals = vec![record(&[], OPT, 1232, 0, b"\0\x0A\0\x09short")];
    small_error(&zone, &option_too_long.wire(), FORMERR);
}

#[test]
fn dns_t7_a_bare_header_with_a_question_count_is_servfail() {
    let zone = zone(F1);
    for flags in [0x0000, 0x0100] {
        header_only(&zone, &header(0xABCD, flags, [1, 0, 0, 0]), SERVFAIL);
    }
}

#[test]
fn dns_t8_trailing_garbage_is_accepted() {
    let zone = zone(F1);
    for edns in [None, Some(Edns::size(1232))] {
        for trailing in [1, 12, 100, 3000] {
            let mut ask = Ask::new("web.shop.svc.clusterset.local.", A);
            ask.edns = edns.clone();
            ask.trailing = vec![0xFF; trailing];
            zone.send(&ask).addresses(["10.96.7.7"]);
        }
    }
}

#[test]
fn dns_t16_other_classes_are_refused() {
    let zone = zone(F1);
    for name in ["web.shop.svc.clusterset.local.", "clusterset.local.", "version.bind.", "id.server.", "nope.org."] {
        for class in [CH, HS, 255, 254, 0, 2, 65280] {
            for qtype in [A, TXT, ANY, SOA] {
                let ask = Ask::new(name, qtype).class(class);
                zone.send(&ask).refused();
                zone.send(&ask.tcp().edns(Edns::size(1232))).refused();
            }
        }
    }
}

#[test]
fn dns_t16_chaos_names_answer_only_with_the_option() {
    let chaos = namesake::answers::Chaos { version: "Namesake 9".into(), hostname: "dns-0".into() };
    let zone = zone_with(options(|o| o.chaos = Some(chaos)), F1);
    for (name, text) in [
        ("version.bind.", "Namesake 9"),
        ("version.server.", "Namesake 9"),
        ("id.server.", "dns-0"),
        ("hostname.bind.", "dns-0"),
    ] {
        for name in [name.to_owned(), name.to_uppercase()] {
            let ask = Ask::new(&name, TXT).class(CH);
            for ask in [ask.clone(), ask.tcp().edns(Edns::size(1232))] {
                let answer = zone.send(&ask);
                answer.noerror();
                let record = &answer.message.answers[0];
                assert_eq!((record.rtype, record.class, &*record.data), (TXT, CH, &*format!("{text:?}")), "{answer}");
                assert_eq!(answer.count(), 1, "{answer}");
            }
        }
    }
    for (name, qtype) in
        [("version.bind.", A), ("authors.bind.", TXT), ("web.shop.svc.clusterset.local.", A), ("bind.", TXT)]
    {
        zone.send(&Ask::new(name, qtype).class(CH)).refused();
    }
    zone.send(&Ask::new("version.bind.", TXT).class(HS)).refused();
    zone.send(&Ask::new("version.bind.", TXT)).refused();
}

#[test]
fn dns_t17_names_outside_every_zone_are_refused_with_ede_20() {
    let zone = zone(F1);
    for name in ["example.org.", "xclusterset.local.", "clusterset.localx.", "clusterset.local.org.", "local.", "."] {
        for qtype in DATA_TYPES {
            let answer = zone.ask(name, qtype);
            answer.refused().ede(NOT_AUTHORITATIVE);
            assert_eq!(answer.reply.zone, None, "counted under no zone");
        }
    }
}

#[test]
fn dns_t18_above_the_served_zone_is_refused() {
    let zone = zone_with(options(|o| o.zones = vec!["sub.clusterset.local".into()]), F1);
    zone.ask("web.shop.svc", A).addresses(["10.96.7.7"]);
    for name in ["clusterset.local.", "web.shop.svc.clusterset.local.", "other.clusterset.local."] {
        zone.ask(name, A).refused().ede(NOT_AUTHORITATIVE);
    }
}

#[test]
fn dns_t20_queries_of_4096_bytes_are_read() {
    let zone = zone(F1);
    for padding in [600, 2000, 4000] {
        let edns = Edns::size(1232).option(OPTION_PADDING, &vec![0; padding]);
        zone.send(&Ask::new("web.shop.svc.clusterset.local.", A).edns(edns)).addresses(["10.96.7.7"]);
    }
}

#[test]
fn dns_t22_names_longer_than_255_are_left_out_and_a_reply_comes_all_the_same() {
    let label = |c: char| c.to_string().repeat(63);
    let (service, namespace, cluster) = (label('s'), label('n'), label('c'));
    let key = format!("{namespace}/{service}");
    let name = format!("{service}.{namespace}.svc");
    let long = format!("{}=10.0.0.1", label('h'));
    let manifests = headless(&key, &["p/1"])
        + &slice(&key, &cluster, &["p/1"], &[&long])
        + &slice(&key, "c", &["p/1"], &["h=10.0.0.2"]);
    let mixed = zone(&manifests);
    mixed.ask(&name, A).addresses(["10.0.0.1", "10.0.0.2"]);
    let target = format!("1 h.c.{name}");
    mixed.ask(&name, SRV).targets([&target]);
    mixed.ask(&format!("_p._tcp.{name}"), SRV).targets([&target]).glue([&format!("h.c.{name} 10.0.0.2")]);
    mixed.ask(&format!("h.c.{name}"), A).addresses(["10.0.0.2"]);
    let only = zone(headless(&key, &["p/1"]) + &slice(&key, &cluster, &["p/1"], &[&long]));
    only.ask(&name, A).addresses(["10.0.0.1"]);
    only.ask(&name, SRV).nodata();
    let answer = only.send(&Ask::new(&only.absolute(&format!("_p._tcp.{name}")), SRV));
    assert_eq!(answer.count(), 0, "{answer}");
}

#[test]
fn dns_t23_tsig_is_ignored() {
    let zone = zone(F1);
    let mut ask = Ask::new("web.shop.svc.clusterset.local.", A);
    let mut rdata = b"\x0bhmac-sha256\0".to_vec();
    rdata.extend([0, 0, 0x65, 0, 0, 0, 0x01, 0x2C, 0, 4, 1, 2, 3, 4, 0xBE, 0xEF, 0, 0, 0, 0]);
    ask.additionals = vec![record(&[b"key"], TSIG, 255, 0, &rdata)];
    zone.send(&ask).addresses(["10.96.7.7"]);
    zone.send(&ask.clone().tcp()).addresses(["10.96.7.7"]);
    // RFC 8945 has the TSIG last, behind the OPT.
    ask.additionals.insert(0, Edns::size(1232).wire());
    let (_, reply) = zone.reply(&ask.wire(), Transport::Udp).expect("a reply");
    assert_eq!((reply.rcode(), reply.answers.len(), reply.additionals.len()), (NOERROR, 1, 0), "{reply}");
    assert!(reply.opt.is_some(), "{reply}");
}
