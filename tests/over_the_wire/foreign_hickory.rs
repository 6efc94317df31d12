//! hickory's client, over UDP and TCP: every kind of name and of negative answer, and EDNS as it writes it.

use std::str::FromStr;
use std::time::Duration;

use hickory_net::client::{Client, ClientHandle};
use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::tcp::TcpClientStream;
use hickory_net::udp::UdpClientStream;
use hickory_net::xfer::DnsHandle;
use hickory_proto::op::{DnsResponse, Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};

use crate::foreign_dig::Served;
use crate::support::{F1, F2, headless, slice};

type Asker = Client<TokioRuntimeProvider>;

/// A client for each transport.
async fn clients(served: &Served) -> [(&'static str, Asker); 2] {
    let stream = UdpClientStream::builder(served.address, TokioRuntimeProvider::default()).build();
    let (udp, background) = Client::from_sender(stream);
    tokio::spawn(background);
    let (stream, sender) =
        TcpClientStream::new(served.address, None, Some(Duration::from_secs(10)), TokioRuntimeProvider::default());
    let (tcp, background) = Client::<TokioRuntimeProvider>::new(stream.await.unwrap(), sender);
    tokio::spawn(background);
    [("UDP", udp), ("TCP", tcp)]
}

async fn ask(client: &mut Asker, name: &str, qtype: RecordType) -> DnsResponse {
    client.query(Name::from_str(name).unwrap(), DNSClass::IN, qtype).await.unwrap()
}

/// The data of the answers, sorted.
fn data(response: &DnsResponse) -> Vec<String> {
    let mut data: Vec<_> = response.answers.iter().map(|record| record.data.to_string()).collect();
    data.sort();
    data
}

#[tokio::test]
async fn dns_c1_h2_e1_v1_v3_every_kind_of_name_over_the_wire() {
    let served = Served::of(&(F1.to_owned() + F2));
    for (transport, mut client) in clients(&served).await {
        for (name, qtype, wanted) in [
            ("web.shop.svc", RecordType::A, vec!["10.96.7.7"]),
            ("_http._tcp.web.shop.svc", RecordType::SRV, vec!["0 100 80 web.shop.svc.clusterset.local."]),
            ("db.shop.svc", RecordType::A, vec!["10.1.0.11", "10.1.0.12", "10.2.0.21"]),
            ("db-0.west.db.shop.svc", RecordType::A, vec!["10.2.0.21"]),
            (
                "_pg._tcp.db.shop.svc",
                RecordType::SRV,
                vec![
                    "0 33 5432 db-0.east.db.shop.svc.clusterset.local.",
                    "0 33 5432 db-0.west.db.shop.svc.clusterset.local.",
                    "0 33 5432 db-1.east.db.shop.svc.clusterset.local.",
                ],
            ),
            ("dns-version", RecordType::TXT, vec!["1.0.0"]),
        ] {
            let response = ask(&mut client, &format!("{name}.clusterset.local."), qtype).await;
            assert_eq!(response.metadata.response_code, ResponseCode::NoError, "{transport} {name}");
            assert!(response.metadata.authoritative && !response.metadata.truncation, "{transport} {name}");
            assert_eq!(data(&response), wanted, "{transport} {name}");
        }
    }
}

#[tokio::test]
async fn dns_d10_negative_answers_have_their_soa_over_the_wire() {
    let served = Served::of(&(F1.to_owned() + F2));
    for (transport, mut client) in clients(&served).await {
        for (name, qtype, rcode) in [
            ("web.shop.svc", RecordType::AAAA, ResponseCode::NoError),
            ("shop.svc", RecordType::A, ResponseCode::NoError),
            ("_tcp.db.shop.svc", RecordType::TXT, ResponseCode::NoError),
            ("nope.shop.svc", RecordType::A, ResponseCode::NXDomain),
            ("a.b.c.d.web.shop.svc", RecordType::HTTPS, ResponseCode::NXDomain),
        ] {
            let response = ask(&mut client, &format!("{name}.clusterset.local."), qtype).await;
            assert_eq!(response.metadata.response_code, rcode, "{transport} {name}");
            assert!(response.answers.is_empty() && response.metadata.authoritative, "{transport} {name}");
            let soa: Vec<_> = response.authorities.iter().map(|record| (record.record_type(), record.ttl)).collect();
            assert_eq!(soa, [(RecordType::SOA, 5)], "{transport} {name}");
        }
        let refused = ask(&mut client, "example.org.", RecordType::A).await;
        assert_eq!(refused.metadata.response_code, ResponseCode::Refused, "{transport}");
        assert!(!refused.metadata.authoritative && refused.authorities.is_empty(), "{transport}");
    }
}

#[tokio::test]
async fn dns_t11_t14_t15_what_it_writes_itself_over_the_wire() {
    use futures_util::StreamExt;
    let served = Served::of(F1);
    let query = Query::query(Name::from_str("web.shop.svc.clusterset.local.").unwrap(), RecordType::A);
    for (transport, client) in clients(&served).await {
        let send = async |message: Message| client.send(message.into()).next().await.expect("a reply").unwrap();
        let with = |version: Option<u8>| {
            let mut message = Message::query();
            message.metadata.recursion_desired = true;
            message.add_query(query.clone());
            message.edns = version.map(|version| {
                let mut edns = Edns::new();
                edns.set_version(version).set_max_payload(4096).set_dnssec_ok(true);
                edns
            });
            message
        };
        let plain = send(with(None)).await;
        assert!(plain.edns.is_none() && plain.answers.len() == 1, "{transport}");
        let edns = send(with(Some(0))).await;
        let opt = edns.edns.as_ref().expect("an OPT");
        assert_eq!((opt.max_payload(), opt.version(), opt.flags().dnssec_ok), (1232, 0, true), "{transport}");
        let badvers = send(with(Some(7))).await;
        // 16, which hickory calls by its other name.
        assert_eq!(u16::from(badvers.metadata.response_code), 16, "{transport}");
        assert_eq!((badvers.answers.len(), badvers.edns.as_ref().map(Edns::version)), (0, Some(0)), "{transport}");
    }
}

#[tokio::test]
async fn dns_z1_z2_a_large_set_over_the_wire() {
    let pods: Vec<_> = (0..500).map(|n| format!("pod-{n}=10.1.{}.{}", n / 200, n % 200 + 1)).collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    let served = Served::of(&(headless("shop/big", &["pg/5432"]) + &slice("shop/big", "east", &["pg/5432"], &pods)));
    let [(_, mut udp), (_, mut tcp)] = clients(&served).await;
    let name = "big.shop.svc.clusterset.local.";
    let cut = ask(&mut udp, name, RecordType::A).await;
    assert!(cut.metadata.truncation && cut.answers.len() >= 28, "{} answers", cut.answers.len());
    let whole = ask(&mut tcp, name, RecordType::A).await;
    assert!(!whole.metadata.truncation && whole.answers.len() == 500, "{} answers", whole.answers.len());
}
