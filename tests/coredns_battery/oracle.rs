//! Asking: CoreDNS over loopback sockets in bounded windows, ours in this process.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use namesake::answers::Store;
use namesake::dns::{Outcome, Transport, respond};

use crate::support::Ask;

/// Queries under way at once.
const WINDOW: usize = 64;

/// How long nothing may come before what is missing is asked again, at each try. What stays silent at the last one is
/// silent: loopback does not lose so much, and `dns.md` V26 is the only case.
const PATIENCE: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(1500), Duration::from_millis(3000)];

/// The replies of the server at `address`, in order; `None` where it never answers.
pub fn ask_coredns(address: SocketAddr, asks: &[&Ask]) -> Vec<Option<Vec<u8>>> {
    let mut replies = vec![None; asks.len()];
    for transport in [Transport::Udp, Transport::Tcp] {
        for patience in PATIENCE {
            let open: Vec<_> =
                (0..asks.len()).filter(|i| asks[*i].transport == transport && replies[*i].is_none()).collect();
            for window in open.chunks(WINDOW) {
                let wires: Vec<_> =
                    window.iter().enumerate().map(|(id, i)| asks[*i].clone().id(id as u16 + 1).wire()).collect();
                let found = match transport {
                    Transport::Udp => udp(address, &wires, patience),
                    Transport::Tcp => tcp(address, &wires, patience),
                };
                for (id, reply) in found {
                    replies[window[usize::from(id) - 1]] = Some(reply);
                }
            }
        }
    }
    replies
}

fn id_of(reply: &[u8], count: usize) -> Option<u16> {
    let id = u16::from_be_bytes([*reply.first()?, *reply.get(1)?]);
    (1..=count).contains(&usize::from(id)).then_some(id)
}

/// One window over UDP, from a socket of its own: a late reply to another window never comes here.
fn udp(address: SocketAddr, wires: &[Vec<u8>], patience: Duration) -> HashMap<u16, Vec<u8>> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a UDP socket");
    socket.connect(address).expect("a UDP socket to CoreDNS");
    for wire in wires {
        socket.send(wire).expect("sending to CoreDNS");
    }
    socket.set_read_timeout(Some(patience)).expect("a time-out");
    let (mut found, mut buffer) = (HashMap::new(), vec![0; 65535]);
    while found.len() < wires.len() {
        match socket.recv(&mut buffer) {
            Ok(len) => {
                if let Some(id) = id_of(&buffer[..len], wires.len()) {
                    found.insert(id, buffer[..len].to_vec());
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(e) => panic!("CoreDNS at {address}: {e}"),
        }
    }
    found
}

/// One window over one TCP connection. CoreDNS answers one after the other and goes on after a query that it can't
/// answer; where it ends the connection instead, what is missing is asked again by the caller.
fn tcp(address: SocketAddr, wires: &[Vec<u8>], patience: Duration) -> HashMap<u16, Vec<u8>> {
    let mut stream = TcpStream::connect(address).expect("a TCP connection to CoreDNS");
    let framed: Vec<u8> =
        wires.iter().flat_map(|wire| [&(wire.len() as u16).to_be_bytes()[..], wire].concat()).collect();
    stream.write_all(&framed).expect("writing to CoreDNS");
    stream.set_read_timeout(Some(patience)).expect("a time-out");
    let (mut found, mut input, mut buffer) = (HashMap::new(), Vec::new(), vec![0; 65535]);
    while found.len() < wires.len() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => input.extend_from_slice(&buffer[..len]),
            Err(_) => break, // no more within the time-out, or the connection is gone
        }
        while let Some(reply) = frame(&input) {
            let taken = reply.len() + 2;
            if let Some(id) = id_of(reply, wires.len()) {
                found.insert(id, reply.to_vec());
            }
            input.drain(..taken);
        }
    }
    found
}

/// The first whole message of a TCP stream.
fn frame(input: &[u8]) -> Option<&[u8]> {
    let len = usize::from(u16::from_be_bytes([*input.first()?, *input.get(1)?]));
    input.get(2..2 + len)
}

/// Our reply; `None` where we stay silent.
pub fn ask_us(store: &Store, ask: &Ask, rng: &mut fastrand::Rng) -> Option<Vec<u8>> {
    let mut out = vec![0; 65535];
    match respond(store, &ask.wire(), ask.transport, &mut out, rng) {
        Outcome::Reply(reply) => Some(out[..reply.len].to_vec()),
        Outcome::Drop(_) => None,
    }
}
