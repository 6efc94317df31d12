//! Queries as bytes over real sockets, and what is looked at of their replies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

pub(crate) const A: u16 = 1;
pub(crate) const AAAA: u16 = 28;
pub(crate) const SRV: u16 = 33;

pub(crate) const NOERROR: u8 = 0;
pub(crate) const NXDOMAIN: u8 = 3;

/// How long a reply may take before it counts as lost. A machine under load may let us wait.
const LOST: Duration = Duration::from_secs(20);

/// A query for a name below `clusterset.local`.
pub(crate) fn query(id: u16, name: &str, qtype: u16) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.').filter(|label| !label.is_empty()).chain(["clusterset", "local"]) {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend(label.bytes());
    }
    query.push(0);
    query.extend(qtype.to_be_bytes());
    query.extend([0, 1]);
    query
}

/// What is looked at of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: u16,
    pub(crate) rcode: u8,
    pub(crate) answers: u16,
}

impl Seen {
    pub(crate) fn of(reply: &[u8]) -> Self {
        assert!(reply.len() >= 12 && reply[2] & 0x80 != 0, "a reply: {reply:02x?}");
        let word = |at: usize| u16::from_be_bytes([reply[at], reply[at + 1]]);
        Self { id: word(0), rcode: reply[3] & 0x0f, answers: word(6) }
    }
}

/// A UDP client that hears from `server` alone.
pub(crate) fn udp(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(LOST)).unwrap();
    socket
}

/// One reply.
pub(crate) fn receive(socket: &UdpSocket) -> io::Result<Seen> {
    let mut reply = [0; 4096];
    let len = socket.recv(&mut reply)?;
    Ok(Seen::of(&reply[..len]))
}

/// Asks and waits for the reply to that.
pub(crate) fn ask(socket: &UdpSocket, id: u16, name: &str, qtype: u16) -> Seen {
    socket.send(&query(id, name, qtype)).unwrap();
    loop {
        let seen = receive(socket).unwrap_or_else(|error| panic!("{name}: no reply: {error}"));
        if seen.id == id {
            return seen;
        }
    }
}

/// A TCP client.
pub(crate) fn tcp(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(LOST)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends a query over TCP.
pub(crate) fn send_tcp(stream: &mut TcpStream, query: &[u8]) -> io::Result<()> {
    let mut framed = u16::try_from(query.len()).unwrap().to_be_bytes().to_vec();
    framed.extend(query);
    stream.write_all(&framed)
}

/// One reply over TCP; an error of kind `UnexpectedEof` at the end of the connection.
pub(crate) fn receive_tcp(stream: &mut TcpStream) -> io::Result<Seen> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut reply)?;
    Ok(Seen::of(&reply))
}
