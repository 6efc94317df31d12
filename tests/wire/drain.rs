//! Ending: what has arrived is answered, what comes later learns that nobody is there.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use namesake::dns::{Bound, Drained, Outcome, QueryLog, QueryRecord, Responder, TcpLimits, Transport};

use crate::support::{A, PATIENCE, Server, Tiny, ask, client_of, config, framed, metrics, query, until};

/// In time, and nobody was cut.
const WELL: Drained = Drained { connections_cut: 0, workers_ended: true };

/// Messages may take as long as a test waits: it is not about their own time.
fn patient() -> Server {
    Server::with_limits(TcpLimits { read: PATIENCE, ..TcpLimits::default() })
}

/// Takes its time, so that queries queue up.
#[derive(Default)]
struct Slow(Tiny);

impl Responder for Slow {
    fn respond(&self, query: &[u8], transport: Transport, out: &mut [u8], rng: &mut fastrand::Rng) -> Outcome {
        std::thread::sleep(Duration::from_millis(2));
        self.0.respond(query, transport, out, rng)
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn dns_l15_queued_queries_are_answered_before_the_end() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let slow = Arc::new(Slow::default());
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
        let bound = Bound::bind(&config(address)).unwrap();
        let running = runtime.block_on(async { bound.serve(&slow, &metrics(), None).unwrap() });
        let port = running.addresses()[0].port();
        let ip = if address.starts_with('[') { "[::1]" } else { "127.0.0.1" };
        let udp = client_of(format!("{ip}:{port}").parse().unwrap());
        let mut tcp = connect(format!("{ip}:{port}").parse().unwrap());
        for id in 0..200 {
            udp.send(&query(id, "a.example", A)).unwrap();
        }
        let many: Vec<u8> = (0..100).flat_map(|id| framed(&query(id, "a.example", A))).collect();
        tcp.write_all(&many).unwrap();
        let ended = runtime.block_on(running.drain(PATIENCE));
        assert_eq!(ended, WELL, "{address}");
        for _ in 0..200 {
            udp.recv(&mut [0; 512]).expect("every queued query was answered");
        }
        let mut replies = Vec::new();
        tcp.read_to_end(&mut replies).unwrap();
        assert_eq!(replies.len(), 100 * (2 + 27 + 16), "{address}: every pipelined query was answered");
    }
}

#[test]
fn cfg_06_under_constant_load_every_query_is_answered_or_refused() {
    let mut server = Server::at("127.0.0.1:0");
    let (address, refused) = (server.address, Arc::new(AtomicUsize::new(0)));
    let answered = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (refused, answered) = (Arc::clone(&refused), Arc::clone(&answered));
            std::thread::spawn(move || {
                let client = client_of(address);
                for id in 0_u16.. {
                    let sent = client.send(&query(id, "a.example", A));
                    let received = sent.and_then(|_| client.recv(&mut [0; 512]));
                    match received {
                        Ok(_) => answered.fetch_add(1, Ordering::Relaxed),
                        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        Err(error) => panic!("a query was lost: {error}"),
                    };
                }
            })
        })
        .collect();
    let tcp = std::thread::spawn(move || {
        let mut tcp = connect(address);
        for id in 0_u16.. {
            let sent = tcp.write_all(&framed(&query(id, "a.example", A)));
            let mut reply = [0; 45];
            match sent.and_then(|()| tcp.read_exact(&mut reply)) {
                Ok(()) => assert_eq!(reply[2..4], id.to_be_bytes()),
                // Closed between two queries: the client asks again elsewhere (RFC 7766 §6.2.4).
                Err(_) => return id,
            }
        }
        0
    });
    until("there is load", || answered.load(Ordering::Relaxed) > 5000);
    let began = Instant::now();
    let running = server.running.take().unwrap();
    assert_eq!(server.runtime.block_on(running.drain(PATIENCE)), WELL);
    assert!(began.elapsed() < PATIENCE / 2, "a drain does not last as long as the load does");
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(refused.load(Ordering::Relaxed), 8);
    assert!(tcp.join().unwrap() > 0);
    let asked = server.asked();
    assert!(asked >= answered.load(Ordering::Relaxed));
    until("all sockets are closed", || Bound::bind(&config(&address.to_string())).is_ok());
}

#[test]
fn dns_l15_a_message_that_has_begun_is_awaited_and_a_resting_connection_closed() {
    let mut server = patient();
    let (mut begun, mut resting) = (connect(server.address), connect(server.address));
    let message = framed(&query(7, "a.example", A));
    resting.write_all(&message).unwrap();
    resting.read_exact(&mut [0; 45]).unwrap();
    begun.write_all(&message[..9]).unwrap();
    let address = server.address;
    let running = server.running.take().unwrap();
    let draining = server.runtime.spawn(running.drain(PATIENCE));
    assert_eq!(resting.read(&mut [0; 1]).unwrap(), 0, "closed, not reset");
    until("nobody listens", || TcpStream::connect(address).is_err());
    assert!(!draining.is_finished());
    begun.write_all(&message[9..]).unwrap();
    let mut reply = [0; 45];
    begun.read_exact(&mut reply).unwrap();
    assert_eq!(reply[2..4], [0, 7]);
    assert_eq!(begun.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(server.runtime.block_on(draining).unwrap(), WELL);
}

#[test]
fn dns_l15_a_client_that_does_not_finish_is_cut_at_the_end_of_grace() {
    let mut server = patient();
    let mut stuck = connect(server.address);
    // Two messages are on their way: one that is answered, so that the second is known to have been read.
    stuck.write_all(&framed(&query(7, "a.example", A))).unwrap();
    stuck.read_exact(&mut [0; 45]).unwrap();
    stuck.write_all(&[0]).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let running = server.running.take().unwrap();
    let ended = server.runtime.block_on(running.drain(Duration::from_secs(5)));
    assert_eq!(ended, Drained { connections_cut: 1, workers_ended: true });
}

#[test]
fn dns_l15_dropped_without_a_drain_it_ends_all_the_same() {
    let mut server = Server::at("127.0.0.1:0");
    let address = server.address;
    let mut resting = connect(address);
    resting.write_all(&framed(&query(7, "a.example", A))).unwrap();
    resting.read_exact(&mut [0; 45]).unwrap();
    drop(server.running.take());
    assert!(matches!(resting.read(&mut [0; 1]), Ok(0) | Err(_)));
    until("the address is free", || Bound::bind(&config(&address.to_string())).is_ok());
}

/// Takes note of what it is told, and panics when told to.
#[derive(Default)]
struct Notes {
    lines: AtomicUsize,
    broken: AtomicBool,
}

impl QueryLog for Notes {
    fn record(&self, record: &QueryRecord<'_>) {
        assert!(!self.broken.load(Ordering::Relaxed), "as this test wants");
        assert_eq!(record.query[..2], record.reply[..2]);
        assert!(record.peer.ip().is_loopback() && record.peer.is_ipv4(), "mapped addresses are IPv4: {}", record.peer);
        self.lines.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_worker_that_dies_is_noticed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let notes = Arc::new(Notes::default());
    let log: Arc<dyn QueryLog> = notes.clone();
    let bound = Bound::bind(&config("[::]:0")).unwrap();
    let running = runtime.block_on(async { bound.serve(&Arc::new(Tiny::default()), &metrics(), Some(&log)).unwrap() });
    let address = SocketAddr::new("127.0.0.1".parse().unwrap(), running.addresses()[0].port());
    let client = client_of(address);
    ask(&client, &query(1, "a.example", A));
    let mut tcp = connect(address);
    tcp.write_all(&framed(&query(1, "a.example", A))).unwrap();
    tcp.read_exact(&mut [0; 45]).unwrap();
    assert_eq!(notes.lines.load(Ordering::Relaxed), 2, "each transport tells the log");
    let quiet = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(100), running.died()).await });
    assert!(quiet.is_err(), "all are alive");
    notes.broken.store(true, Ordering::Relaxed);
    client.send(&query(2, "a.example", A)).unwrap();
    let dead = runtime.block_on(async { tokio::time::timeout(PATIENCE, running.died()).await });
    let dead = dead.expect("noticed");
    assert!(dead.starts_with("UDP worker"), "{dead}");
}
