//! The zone itself over real sockets: `dns.md` 2.6 and the rows that a socket could spoil, asked by raw bytes, by `dig`
//! and by hickory's client.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use hickory_proto::rr::{DNSClass, Name, RecordType};
use namesake::answers::{Options, Store};

use crate::clients::{dig, hickory};
use crate::support::{PATIENCE, Server, ask, client_of, config, framed};
use crate::zones::{
    A, AAAA, ANY, Ask, Edns, F1, Live, Message, NOERROR, NOTIMP, NS, NXDOMAIN, OPTION_COOKIE, REFUSED, SERVFAIL, SOA,
    SRV, TXT, headless, slice, zone,
};

fn served(manifests: &str) -> Server<Store> {
    Server::start_with(zone(manifests).store, &config("127.0.0.1:0"))
}

fn over_udp(server: &Server<Store>, query: &[u8]) -> Message {
    Message::read(&ask(&client_of(server.address), query))
}

fn over_tcp(server: &Server<Store>, query: &[u8]) -> Message {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&framed(query)).unwrap();
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix).expect("a reply in time");
    let mut reply = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut reply).unwrap();
    Message::read(&reply)
}

/// `count` endpoints of `db.shop`.
fn large(count: usize) -> String {
    let endpoints: Vec<_> = (0..count).map(|n| format!("10.1.{}.{}", n / 250, n % 250 + 1)).collect();
    let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
    let ports = &["pg/5432"];
    let slices =
        endpoints.chunks(100).enumerate().map(|(number, some)| slice("shop/db", &format!("c{number}"), ports, some));
    headless("shop/db", ports) + &slices.collect::<String>()
}

#[test]
fn dns_f1_every_readable_query_is_answered_over_both_transports() {
    let server = served(F1);
    let names =
        ["web.shop.svc.clusterset.local.", "nope.shop.svc.clusterset.local.", "clusterset.local.", "example.org.", "."];
    let types = [A, AAAA, SRV, TXT, SOA, NS, ANY, 65, 251, 252, 65_280];
    let mut asked = 0;
    for name in names {
        for qtype in types {
            for class in [1, 3, 255] {
                for opcode in [0, 2, 4, 5] {
                    let ask = Ask::new(name, qtype).class(class).opcode(opcode);
                    for ask in [ask.clone(), ask.edns(Edns::size(1232))] {
                        let (udp, tcp) = (over_udp(&server, &ask.wire()), over_tcp(&server, &ask.wire()));
                        assert_eq!(udp.rcode(), tcp.rcode(), "{udp}{tcp}");
                        asked += 1;
                    }
                }
            }
        }
    }
    assert_eq!(asked, names.len() * types.len() * 3 * 4 * 2);
}

#[test]
fn dns_f2_the_health_check_of_forward_is_answered() {
    let server = served(F1);
    let reply = over_udp(&server, &[0xab, 0xcd, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
    assert_eq!(reply.rcode(), REFUSED, "{reply}");
    assert!(reply.opt.is_none() && reply.bytes.len() == 17, "{reply}");
}

#[test]
fn dns_f4_l2_before_the_first_sync_it_is_servfail_and_dig_sees_why() {
    let live = Live::unsynced(Options::default());
    let server = Server::start_with(Arc::clone(&live.zone.store), &config("127.0.0.1:0"));
    let bare = over_udp(&server, &Ask::new("web.shop.svc.clusterset.local.", A).wire());
    assert_eq!(bare.rcode(), SERVFAIL, "{bare}");
    assert!(bare.answers.is_empty() && bare.authorities.is_empty() && bare.additionals.is_empty(), "{bare}");
    for transport in ["+notcp", "+tcp"] {
        let said = dig(server.address, &[transport, "web.shop.svc.clusterset.local", "A"]);
        assert!(said.contains("status: SERVFAIL") && said.contains("EDE: 14"), "{said}");
    }
}

#[test]
fn dns_f5_what_does_not_fit_is_a_random_part_with_tc_and_whole_over_tcp() {
    let server = served(&large(500));
    let name = "db.shop.svc.clusterset.local.";
    for ask in [Ask::new(name, A), Ask::new(name, A).edns(Edns::size(1232))] {
        let mut seen = BTreeSet::new();
        for _ in 0..300 {
            let reply = over_udp(&server, &ask.wire());
            assert!(reply.truncated() && !reply.answers.is_empty(), "{reply}");
            seen.extend(Message::set(&reply.answers));
        }
        assert!(seen.len() > 450, "only {} of 500 endpoints were ever told", seen.len());
        let whole = over_tcp(&server, &ask.wire());
        assert!(!whole.truncated(), "{whole}");
        assert_eq!(whole.answers.len(), 500);
    }
    // As a resolver does it: UDP, TC, TCP.
    let said = dig(server.address, &["db.shop.svc.clusterset.local", "A"]);
    assert!(said.contains("Truncated, retrying in TCP mode") && said.contains("ANSWER: 500"), "{said}");
}

#[test]
fn dns_f6_no_datagram_exceeds_the_querys_limit() {
    let server = served(&large(500));
    let client = client_of(server.address);
    for qtype in [A, SRV, ANY] {
        let plain = Ask::new("db.shop.svc.clusterset.local.", qtype);
        assert!(ask(&client, &plain.wire()).len() <= 512);
        for size in (0..4096).step_by(101) {
            let limit = usize::from(size.clamp(512, 1232));
            let reply = ask(&client, &plain.clone().edns(Edns::size(size)).wire());
            assert!(reply.len() <= limit, "{} bytes where {limit} were asked", reply.len());
        }
    }
}

#[test]
fn dns_f7_the_clients_opt_is_answered_and_none_of_its_options_return() {
    let server = served(F1);
    let options = ["+dnssec", "+cookie=0011223344556677", "+subnet=10.0.0.0/24", "+cdflag", "+adflag", "+padding=128"];
    for transport in ["+notcp", "+tcp"] {
        let arguments = [&[transport][..], &options, &["web.shop.svc.clusterset.local", "A"]].concat();
        let said = dig(server.address, &arguments);
        assert!(said.contains("status: NOERROR") && said.contains("flags: do; udp: 1232"), "{said}");
        for option in ["COOKIE", "CLIENT-SUBNET", "PAD"] {
            assert!(!said.contains(option), "{option} came back\n{said}");
        }
    }
}

#[test]
fn dns_f10_a_forwarded_notify_is_notimp() {
    let server = served(F1);
    let query = Ask::new("clusterset.local.", SOA).opcode(4).wire();
    for reply in [over_udp(&server, &query), over_tcp(&server, &query)] {
        assert_eq!(reply.rcode(), NOTIMP, "{reply}");
    }
}

#[test]
fn dns_t20_a_query_above_512_bytes_gets_its_answer() {
    let server = served(F1);
    // An OPT of nearly 4,000 bytes: cut anywhere, it would be a format error.
    let edns = Edns::size(1232).option(12, &[0; 3900]).option(OPTION_COOKIE, b"12345678");
    let query = Ask::new("web.shop.svc.clusterset.local.", A).edns(edns).wire();
    assert!(query.len() > 3900 && query.len() <= 4096);
    let reply = over_udp(&server, &query);
    assert_eq!((reply.rcode(), reply.answers.len()), (NOERROR, 1), "{reply}");
}

#[test]
fn dns_t21_hickory_reads_every_kind_of_answer_over_both_transports() {
    let server = served(&(F1.to_owned() + &large(500)));
    let name = |text: &str| text.parse::<Name>().unwrap();
    server.runtime.block_on(async {
        for (transport, mut client) in hickory(server.address).await {
            use hickory_net::client::ClientHandle;
            let mut query = async |text, qtype| client.query(name(text), DNSClass::IN, qtype).await.unwrap();
            let one = query("web.shop.svc.clusterset.local.", RecordType::A).await;
            assert_eq!(one.answers.len(), 1, "{transport}");
            let negative = query("nope.shop.svc.clusterset.local.", RecordType::A).await;
            assert_eq!(u16::from(negative.metadata.response_code), NXDOMAIN, "{transport}");
            assert_eq!(negative.authorities.len(), 1, "the SOA over {transport}");
            let many = query("db.shop.svc.clusterset.local.", RecordType::A).await;
            assert_eq!(many.metadata.truncation, transport == "UDP");
            assert_eq!(many.answers.len() == 500, transport == "TCP");
        }
    });
}

#[test]
fn dns_metrics_name_the_server_the_transport_and_the_family() {
    let count = |server: &Server<Store>, label: &str, proto: &str, family: u8| {
        server.counted(&format!(
            "coredns_dns_requests_total{{family=\"{family}\",proto=\"{proto}\",server=\"{label}\",type=\"A\",view=\"\",\
             zone=\"clusterset.local.\"}}"
        ))
    };
    let query = Ask::new("web.shop.svc.clusterset.local.", A).wire();
    let any = Server::start_with(zone(F1).store, &config("[::]:0"));
    let label = format!("dns://:{}", any.address.port());
    for (ip, times) in [("127.0.0.1", 3), ("::1", 5)] {
        for _ in 0..times {
            ask(&client_of(any.reached_at(ip)), &query);
        }
    }
    assert_eq!((count(&any, &label, "udp", 1), count(&any, &label, "udp", 2)), (3, 5));
    let specific = served(F1);
    over_tcp(&specific, &query);
    assert_eq!(count(&specific, &format!("dns://{}", specific.address), "tcp", 1), 1);
}
