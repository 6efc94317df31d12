//! Clients that we did not write.

use std::net::SocketAddr;
use std::process::Command;
use std::str::FromStr;

use hickory_net::client::{Client, ClientHandle};
use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::tcp::TcpClientStream;
use hickory_net::udp::UdpClientStream;
use hickory_proto::rr::{DNSClass, Name, RecordType};

use crate::support::{PATIENCE, Server};

/// What dig says.
pub(crate) fn dig(server: SocketAddr, arguments: &[&str]) -> String {
    let output = Command::new("dig")
        .arg(format!("@{}", server.ip()))
        .arg(format!("-p{}", server.port()))
        .args([format!("+time={}", PATIENCE.as_secs()).as_str(), "+tries=1"])
        .args(arguments)
        .output()
        .expect("dig is installed (bind9-dnsutils)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A client of hickory's for each transport. Over UDP too it asks once, as what counts queries relies on.
pub(crate) async fn hickory(server: SocketAddr) -> [(&'static str, Client<TokioRuntimeProvider>); 2] {
    let stream = UdpClientStream::builder(server, TokioRuntimeProvider::default());
    let stream = stream.with_max_retries(0).with_timeout(Some(PATIENCE)).build();
    let (udp, background) = Client::from_sender(stream);
    tokio::spawn(background);
    let (stream, sender) = TcpClientStream::new(server, None, Some(PATIENCE), TokioRuntimeProvider::default());
    let (tcp, background) = Client::with_timeout(stream.await.unwrap(), sender, PATIENCE);
    tokio::spawn(background);
    [("UDP", udp), ("TCP", tcp)]
}

fn short(server: &Server, arguments: &[&str]) -> String {
    dig(server.address, &[&["+short", "+noedns"], arguments].concat())
}

#[test]
fn dns_t21_dig_is_answered_over_both_transports_and_families() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let server = Server::at(address);
        for transport in ["+notcp", "+tcp"] {
            assert_eq!(short(&server, &[transport, "web.example", "A"]), "192.0.2.1", "{address} {transport}");
            assert_eq!(short(&server, &[transport, "web.example", "AAAA"]), "2001:db8::1", "{address} {transport}");
        }
    }
}

#[test]
fn dns_t21_dig_keeps_a_connection_open_for_several_queries() {
    let server = Server::at("127.0.0.1:0");
    let several = ["+tcp", "+keepopen", "web.example", "A", "web.example", "AAAA", "web.example", "A"];
    assert_eq!(short(&server, &several), "192.0.2.1\n2001:db8::1\n192.0.2.1");
}

#[test]
fn dns_t21_hickory_asks_many_at_once_over_each_transport() {
    let server = Server::at("127.0.0.1:0");
    let name = Name::from_str("web.example.").unwrap();
    server.runtime.block_on(async {
        for (_, client) in hickory(server.address).await {
            // Its multiplexer holds 32 queries at once.
            let asked = (0..30).map(|number| {
                let mut client = client.clone();
                let qtype = if number % 2 == 0 { RecordType::A } else { RecordType::AAAA };
                let name = name.clone();
                tokio::spawn(async move { (qtype, client.query(name, DNSClass::IN, qtype).await.unwrap()) })
            });
            for asked in asked.collect::<Vec<_>>() {
                let (qtype, response) = asked.await.unwrap();
                assert_eq!(response.answers.len(), 1);
                assert_eq!(response.answers[0].record_type(), qtype);
            }
        }
    });
    assert_eq!(server.asked(), 60);
}
