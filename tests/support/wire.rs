//! The same queries over real sockets. In the test binary `over_the_wire` every query that [`Zone`](super::Zone)
//! makes also goes to a server on loopback, over the transport it asks for; what comes back must be what `respond` said.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use namesake::answers::Store;
use namesake::dns::{Bound, Running, ServerConfig, Transport};
use namesake::metrics::Metrics;
use tokio::runtime::Runtime;

use super::query::Ask;
use super::types::A;

/// As long as a reply may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most that is read of a UDP query (`dns.md` T20).
const READ: usize = 4096;

/// Whether this is that binary.
pub const WANTED: bool = starts_with(module_path!().as_bytes(), b"over_the_wire::");

const fn starts_with(text: &[u8], with: &[u8]) -> bool {
    if text.len() < with.len() {
        return false;
    }
    let mut at = 0;
    while at < with.len() {
        if text[at] != with[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A server of one store, and a client of it.
pub struct Wire {
    pub address: SocketAddr,
    udp: UdpSocket,
    tcp: Option<TcpStream>,
    _running: Running,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}

impl Wire {
    /// Serves `store` until this is dropped.
    pub fn of(store: &Arc<Store>) -> Self {
        let loopback: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        // One worker, so that UDP replies come in the order of their queries.
        let config = ServerConfig { udp_workers: Some(1), ..ServerConfig::new(vec![loopback]) };
        let metrics = Metrics::new(&store.options().zones, "multicluster");
        let bound = Bound::bind(&config).expect("a port of the loopback");
        let _context = runtime().enter();
        let running = bound.serve(store, &metrics, None).expect("a server");
        let address = running.addresses()[0];
        let udp = UdpSocket::bind(loopback).expect("a port of the loopback");
        udp.connect(address).expect("the loopback");
        udp.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self { address, udp, tcp: None, _running: running }
    }

    /// The reply to `query`; `None` where there is none, which is seen by the next query's reply coming first.
    #[track_caller]
    pub fn reply(&mut self, query: &[u8], transport: Transport, dropped: bool) -> Option<Vec<u8>> {
        match transport {
            Transport::Udp => {
                self.udp.send(query).expect("sent");
                if dropped {
                    self.udp.send(&next()).expect("sent");
                }
                let mut reply = vec![0; READ + 1];
                let len = self.udp.recv(&mut reply).unwrap_or_else(|error| panic!("no reply to {query:02x?}: {error}"));
                reply.truncate(len);
                is_not_next(reply, dropped)
            }
            Transport::Tcp if query.len() < 12 => {
                // No such message can be: the server closes the connection, and answers what came before.
                let mut stream = self.connect();
                send(&mut stream, &next()).and_then(|()| send(&mut stream, query)).expect("sent");
                let first = receive(&mut stream).expect("a reply to the query before");
                assert_eq!(is_not_next(first, true), None);
                assert!(receive(&mut stream).is_err(), "a reply to {query:02x?}");
                None
            }
            Transport::Tcp => {
                let mut stream = self.tcp.take().unwrap_or_else(|| self.connect());
                let sent =
                    send(&mut stream, query).and_then(|()| if dropped { send(&mut stream, &next()) } else { Ok(()) });
                // A connection that rested too long is closed, and the query asked again (RFC 7766 §6.2.4).
                let reply = sent.and_then(|()| receive(&mut stream)).or_else(|_| {
                    stream = self.connect();
                    send(&mut stream, query)?;
                    if dropped {
                        send(&mut stream, &next())?;
                    }
                    receive(&mut stream)
                });
                let reply = reply.unwrap_or_else(|error| panic!("no reply over TCP to {query:02x?}: {error}"));
                self.tcp = Some(stream);
                is_not_next(reply, dropped)
            }
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_nodelay(true).expect("no delay");
        stream
    }
}

/// The id of the query that follows one that is dropped.
const NEXT: u16 = 0x4E58;

fn next() -> Vec<u8> {
    Ask::new("next.example.", A).id(NEXT).wire()
}

fn is_not_next(reply: Vec<u8>, dropped: bool) -> Option<Vec<u8>> {
    (!dropped || reply.get(..2) != Some(&NEXT.to_be_bytes())).then_some(reply)
}

fn send(stream: &mut TcpStream, query: &[u8]) -> io::Result<()> {
    let mut framed = u16::try_from(query.len()).expect("a message").to_be_bytes().to_vec();
    framed.extend(query);
    stream.write_all(&framed)
}

fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// A UDP query as the server reads it.
pub fn as_read(query: &[u8], transport: Transport) -> &[u8] {
    match transport {
        Transport::Udp => query.get(..READ).unwrap_or(query),
        Transport::Tcp => query,
    }
}
