use std::io::{Read as _, Write as _};

use super::*;
use crate::dns::{Outcome, Reply, Transport};
use crate::metrics::Metrics;

/// Answers with much.
struct Large;

impl Responder for Large {
    fn respond(&self, _: &[u8], _: Transport, _: &mut [u8], _: &mut fastrand::Rng) -> Outcome {
        let len = 10_000;
        let (rcode, qtype, zone) = (0, 1, None);
        Outcome::Reply(Reply { len, rcode, qtype, zone, dnssec_ok: false, truncated: false, cut: false })
    }
}

/// Takes its time for a reply of a header.
struct Slow;

impl Responder for Slow {
    fn respond(&self, query: &[u8], _: Transport, out: &mut [u8], _: &mut fastrand::Rng) -> Outcome {
        std::thread::sleep(Duration::from_millis(2));
        out[..HEADER].copy_from_slice(&query[..HEADER]);
        let (rcode, qtype, zone) = (0, 1, None);
        Outcome::Reply(Reply { len: HEADER, rcode, qtype, zone, dnssec_ok: false, truncated: false, cut: false })
    }
}

/// A connection, with its client.
async fn connection<R: Responder>(responder: R) -> (Connection<R>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, peer) = listener.accept().await.unwrap();
    let shard = Metrics::new(&[], "multicluster").dns_shard("dns://:53", true);
    let limits = TcpLimits::default();
    let connection = Connection {
        stream,
        peer,
        handler: Arc::new(Handler::new(Arc::new(responder), shard, None, Transport::Tcp)),
        stop: Stop::default(),
        input: Vec::new(),
        output: Vec::new(),
        closing: None,
        owed: None,
        _place: Connections::new(&limits, None).admit(peer.ip()).unwrap(),
        limits,
    };
    (connection, client)
}

/// The shortest message, with its length.
const SHORTEST: [u8; PREFIX + HEADER] = [0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[tokio::test]
async fn prt_08_replies_are_collected_up_to_a_bound_whatever_is_pipelined() {
    let (mut connection, _client) = connection(Large).await;
    connection.input = SHORTEST.repeat(1000);
    let mut rounds = 0;
    while !connection.input.is_empty() {
        connection.answer(Instant::now());
        assert!(connection.output.len() <= REPLIES + PREFIX + usize::from(u16::MAX));
        connection.output.clear();
        rounds += 1;
    }
    assert_eq!(rounds, 500, "two replies are more than the bound, one is not");
}

/// A connection that stops now, with so many queries unread.
async fn stopping(queries: usize) -> (Connection<Slow>, TcpStream) {
    let (mut connection, mut client) = connection(Slow).await;
    client.write_all(&SHORTEST.repeat(queries)).await.unwrap();
    connection.stop.ask(Duration::from_secs(60));
    connection.closing = Some(Instant::now());
    (connection, client)
}

#[tokio::test]
async fn dns_l15_what_had_arrived_when_we_stop_is_answered_however_long_that_takes() {
    let (connection, mut client) = stopping(200).await;
    connection.run().await;
    let mut replies = Vec::new();
    client.read_to_end(&mut replies).await.unwrap();
    assert_eq!(replies.len(), 200 * SHORTEST.len());
}

#[tokio::test]
async fn dns_l15_a_client_that_asks_with_every_reply_is_not_answered_for_ever() {
    let (connection, client) = stopping(50).await;
    let mut client = client.into_std().unwrap();
    client.set_nonblocking(false).unwrap();
    let asking = std::thread::spawn(move || {
        let mut replies = 0;
        while client.read_exact(&mut SHORTEST.clone()).is_ok() {
            replies += 1;
            if client.write_all(&SHORTEST).is_err() {
                break;
            }
        }
        replies
    });
    tokio::time::timeout(Duration::from_secs(20), connection.run()).await.expect("it ends");
    let replies = asking.join().unwrap();
    assert!((50..1_000).contains(&replies), "{replies}"); // what was owed, and what one read brought beside it
}
