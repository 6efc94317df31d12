//! One look-up and one connection, made with sockets of the network namespace that the thread is in.
//!
//! Nothing is asked twice: a packet that is lost, an answer that is wrong and a connection that is refused are what is
//! counted here, and a second try would hide them.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::time::timeout;

/// How long a look-up waits: what resolvers of C libraries do.
const LOOKUP: Duration = Duration::from_secs(5);

/// How long a connection may take until it has failed, where nothing else is said: less than most clients give it, and
/// time for the kernel to send its first packet again, which comes after 1 and 3 s.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Why there was no service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The nameserver did not answer.
    Silence,
    /// The nameserver says that there is no such name.
    NoName,
    /// The nameserver gave another code: mostly SERVFAIL.
    Code(u16),
    /// The name is there and has no address.
    NoAddress,
    /// Nobody listens at the address, or the node rejects what goes there.
    Refused,
    /// No answer to the connection's first packet, or none on the connection.
    TimedOut,
    /// A router on the way, or the own node, knows no way there.
    Unreachable,
    /// The connection was there, and ended before the answer was.
    Cut,
    /// The client itself could make no socket: nothing that a service is to blame for.
    Own,
}

impl Trouble {
    /// Whether it happened while the name was looked up.
    pub fn is_lookup(self) -> bool {
        matches!(self, Self::Silence | Self::NoName | Self::Code(_) | Self::NoAddress)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silence => "DNS silent",
            Self::NoName => "NXDOMAIN",
            Self::Code(2) => "SERVFAIL",
            Self::Code(code) => return write!(f, "rcode {code}"),
            Self::NoAddress => "no address",
            Self::Refused => "refused",
            Self::TimedOut => "timed out",
            Self::Unreachable => "unreachable",
            Self::Cut => "cut",
            Self::Own => "no socket",
        })
    }
}

/// Asks `server` for the records of a name, over UDP.
pub async fn look_up(server: IpAddr, name: &str, kind: RecordType) -> Result<Vec<RData>, Trouble> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0)).await.map_err(|_| Trouble::Own)?;
    let id = fastrand::u16(..);
    let query = query(id, name, kind);
    // Connected: what does not come from the nameserver is no answer. A rejection by ICMP ends the wait as it does for
    // a C library.
    socket.connect((server, 53)).await.map_err(|_| Trouble::Unreachable)?;
    socket.send(&query).await.map_err(|_| Trouble::Silence)?;
    let mut buffer = [0; 1500];
    let received = async {
        loop {
            let length = socket.recv(&mut buffer).await.map_err(|_| Trouble::Silence)?;
            match Message::from_vec(&buffer[..length]) {
                Ok(message) if message.metadata.id == id => return Ok(message),
                _ => {}
            }
        }
    };
    let message = timeout(LOOKUP, received).await.map_err(|_| Trouble::Silence)??;
    match message.metadata.response_code {
        ResponseCode::NoError => Ok(message.answers.into_iter().map(|record| record.data).collect()),
        ResponseCode::NXDomain => Err(Trouble::NoName),
        code => Err(Trouble::Code(code.into())),
    }
}

/// The addresses of a name.
pub async fn addresses(server: IpAddr, name: &str, kind: RecordType) -> Result<Vec<IpAddr>, Trouble> {
    let records = look_up(server, name, kind).await?;
    let found: Vec<_> = records
        .iter()
        .filter_map(|data| match data {
            RData::A(a) => Some(IpAddr::V4(a.0)),
            RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.0)),
            _ => None,
        })
        .collect();
    if found.is_empty() { Err(Trouble::NoAddress) } else { Ok(found) }
}

/// A query as stub resolvers write it: one question, recursion wanted, room for 1232 bytes.
fn query(id: u16, name: &str, kind: RecordType) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend([0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1]);
    for label in name.trim_end_matches('.').split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(u16::from(kind).to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// A connection that was tried.
pub struct Connection {
    /// The client's port: conntrack knows the connection by it.
    pub port: u16,
    /// What the server said: the name of its pod.
    pub said: Result<String, Trouble>,
}

/// Connects, and reads what the server says until it closes.
pub async fn connect(to: SocketAddr, patience: Duration) -> Connection {
    let own = |_| Trouble::Own;
    let prepared = (|| {
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(own)?;
        let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        socket.bind((any, 0).into()).map_err(own)?;
        let port = socket.local_addr().map_err(own)?.port();
        Ok((socket, port))
    })();
    let (socket, port) = match prepared {
        Ok(prepared) => prepared,
        Err(trouble) => return Connection { port: 0, said: Err(trouble) },
    };
    let talk = async {
        let mut stream = socket.connect(to).await.map_err(|e| trouble(&e))?;
        let mut said = String::new();
        match stream.read_to_string(&mut said).await {
            Ok(_) if said.is_empty() => Err(Trouble::Cut),
            Ok(_) => Ok(said.trim().to_owned()),
            Err(_) => Err(Trouble::Cut),
        }
    };
    let said = timeout(patience, talk).await.unwrap_or(Err(Trouble::TimedOut));
    Connection { port, said }
}

fn trouble(error: &std::io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionRefused => Trouble::Refused,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Trouble::Unreachable,
        ErrorKind::TimedOut => Trouble::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Trouble::Cut,
        _ => Trouble::Own,
    }
}
