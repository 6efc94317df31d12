//! Taking the addresses: all of them or none, and never beside another server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::TcpLimits;

/// What a worker's socket may hold while its thread is busy: some 10,000 small queries.
const RECEIVE_BUFFER: usize = 4 << 20;

/// How often a UDP worker looks whether it should stop, when nobody asks.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How long a reply waits for room in the send buffer before it is dropped.
const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// What the kernel may hold of one TCP connection in each direction. It would let a client that reads nothing have
/// 4 MiB of replies (`tcp_wmem`), all of it charged to our memory, and any reply fits in a few rounds of this.
const TCP_BUFFER: usize = 32 << 10;

/// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How often a free pair of ports is looked for where port 0 is asked.
const PORT_TRIES: usize = 64;

/// Where and how to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The addresses, each for UDP and TCP (CFG-02: never one without the other). Port 0 takes a free one.
    ///
    /// `[::]` takes IPv4 too, whatever `net.ipv6.bindv6only` says, unless an IPv4 address with the same port is
    /// listed beside it.
    pub listen: Vec<SocketAddr>,
    /// UDP threads per address; by default one per core.
    pub udp_workers: Option<usize>,
    /// What TCP clients may take.
    pub tcp: TcpLimits,
}

impl ServerConfig {
    /// Listens on `listen`, and for the rest takes the defaults.
    #[must_use]
    pub fn new(listen: Vec<SocketAddr>) -> Self {
        Self { listen, udp_workers: None, tcp: TcpLimits::default() }
    }

    fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.udp_workers.unwrap_or_else(cores).max(1)
    }

    /// What was asked, once each; an error where one address includes another.
    fn places(&self) -> Result<Vec<Place>, BindError> {
        if self.listen.is_empty() {
            return Err(BindError::Nowhere);
        }
        let mut places: Vec<Place> = Vec::with_capacity(self.listen.len());
        for &address in &self.listen {
            let address = canonical(address);
            let fixed = address.port() != 0;
            let beside_v4 = self.listen.iter().any(|o| canonical(*o).is_ipv4() && fixed && o.port() == address.port());
            let place = Place { address, v6_only: beside_v4 || !is_any(address.ip()) };
            if fixed && let Some(other) = places.iter().find(|other| other.includes(&place) || place.includes(other)) {
                return Err(BindError::Twice { first: other.address, second: address });
            }
            places.push(place);
        }
        Ok(places)
    }
}

/// One address that is to be bound.
#[derive(Debug, Clone, Copy)]
struct Place {
    address: SocketAddr,
    v6_only: bool,
}

impl Place {
    /// Whether a datagram to `other` would come here.
    fn includes(&self, other: &Self) -> bool {
        self.address.port() == other.address.port()
            && (self.address.ip() == other.address.ip()
                || (is_any(self.address.ip()) && self.address.is_ipv4() == other.address.is_ipv4()))
    }

    /// Tries `what`; where any port will do, again as long as the one that was free for TCP is taken for UDP.
    fn attempt<T>(self, what: impl Fn(Self) -> Result<T, BindError>) -> Result<T, BindError> {
        let mut tries = if self.address.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            match what(self) {
                Err(BindError::InUse { .. }) if tries > 0 => {}
                result => return result,
            }
        }
    }

    fn socket(&self, transport: Type) -> io::Result<Socket> {
        let protocol = if transport == Type::STREAM { Protocol::TCP } else { Protocol::UDP };
        let socket = Socket::new(Domain::for_address(self.address), transport, Some(protocol))?;
        if self.address.is_ipv6() {
            socket.set_only_v6(self.v6_only)?;
        }
        Ok(socket)
    }

    fn bind(&self, socket: &Socket) -> io::Result<()> {
        socket.bind(&SockAddr::from(self.address))
    }

    /// The lock: no SO_REUSEPORT here, so a second instance is refused.
    fn tcp(&self) -> Result<Socket, BindError> {
        self.socket(Type::STREAM)
            .and_then(|socket| {
                // Or TIME_WAIT connections would keep a restart away. It does not let two listeners share.
                socket.set_reuse_address(true)?;
                // Before listen: connections inherit them, and the window that is offered depends on them.
                socket.set_send_buffer_size(TCP_BUFFER)?;
                socket.set_recv_buffer_size(TCP_BUFFER)?;
                self.bind(&socket)?;
                Ok(socket)
            })
            .map_err(|source| BindError::new(self.address, "TCP", source))
    }

    /// Finds who else has the UDP port, also with SO_REUSEPORT, also with the wildcard: the socket is closed again.
    fn probe_udp(&self) -> Result<(), BindError> {
        self.socket(Type::DGRAM)
            .and_then(|socket| self.bind(&socket))
            .map_err(|source| BindError::new(self.address, "UDP", source))
    }

    /// One worker's socket.
    fn udp(&self) -> Result<Socket, BindError> {
        self.socket(Type::DGRAM)
            .and_then(|socket| {
                socket.set_reuse_port(true)?;
                // Past `net.core.rmem_max` where we may, and up to it otherwise.
                if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
                    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
                }
                socket.set_read_timeout(Some(LOOK_UP))?;
                socket.set_write_timeout(Some(SEND_PATIENCE))?;
                // Before bind: a datagram without the address it was sent to spoils its slot (see `udp`).
                if is_any(self.address.ip()) {
                    match self.address {
                        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?,
                        SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?,
                    }
                }
                self.bind(&socket)?;
                Ok(socket)
            })
            .map_err(|source| BindError::new(self.address, "UDP", source))
    }

    /// Binds the TCP socket and sees that the UDP port is free. With the port that was found, if any was asked.
    fn claim(self) -> Result<(Self, Socket), BindError> {
        let tcp = self.tcp()?;
        let bound = tcp.local_addr().map_err(|source| BindError::new(self.address, "TCP", source))?;
        let mut place = self;
        place.address.set_port(bound.as_socket().map_or(self.address.port(), |bound| bound.port()));
        place.probe_udp()?;
        Ok((place, tcp))
    }

    /// Everything of one address.
    fn listen(self, workers: usize) -> Result<Listening, BindError> {
        let (place, tcp) = self.claim()?;
        tcp.listen(BACKLOG)
            .and_then(|()| tcp.set_nonblocking(true))
            .map_err(|source| BindError::new(place.address, "TCP", source))?;
        let udp = (0..workers).map(|_| place.udp()).collect::<Result<Vec<_>, _>>()?;
        // The kernel reports twice what it grants, for its own bookkeeping.
        let granted = udp.first().and_then(|socket| socket.recv_buffer_size().ok()).unwrap_or(0) / 2;
        if granted < RECEIVE_BUFFER {
            tracing::debug!(
                address = %place.address, granted, asked = RECEIVE_BUFFER,
                "small receive buffer: bursts may be lost; raise net.core.rmem_max"
            );
        }
        Ok(Listening { address: place.address, wildcard: is_any(place.address.ip()), tcp: tcp.into(), udp })
    }
}

/// An IPv4-mapped address as the IPv4 address that it is: no IPv6 socket with V6ONLY takes it.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

fn is_any(address: IpAddr) -> bool {
    address == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || address == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
}

/// One address with its sockets.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    /// Whether replies must say which of our addresses they leave from.
    pub(super) wildcard: bool,
    pub(super) tcp: std::net::TcpListener,
    pub(super) udp: Vec<Socket>,
}

impl Listening {
    /// As CoreDNS writes it in the label `server`.
    pub(super) fn label(&self) -> String {
        if self.wildcard { format!("dns://:{}", self.address.port()) } else { format!("dns://{}", self.address) }
    }
}

/// Sockets that are bound and not served yet: TCP clients connect, UDP queries queue up.
#[derive(Debug)]
pub struct Bound {
    pub(super) listening: Vec<Listening>,
    pub(super) tcp: TcpLimits,
}

impl Bound {
    /// Takes every address of `config`, for TCP and UDP, or says which one could not be had, and why.
    ///
    /// When to call it is the caller's decision (`dns.md` L1): until then clients are refused at once, which a
    /// forwarder takes better than silence.
    ///
    /// # Errors
    ///
    /// [`BindError`], which names the address and the remedy. Nothing stays bound then.
    pub fn bind(config: &ServerConfig) -> Result<Self, BindError> {
        let workers = config.workers();
        let places = config.places()?;
        let listening = places.into_iter().map(|place| place.attempt(|place| place.listen(workers)));
        Ok(Self { listening: listening.collect::<Result<_, _>>()?, tcp: config.tcp.clone() })
    }

    /// The addresses as they are bound, in the order of [`ServerConfig::listen`], with real ports.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listening.iter().map(|listening| listening.address).collect()
    }
}

/// Whether [`Bound::bind`] would succeed now, without answering anybody: for a start that fails at once rather than
/// after the first sync.
///
/// # Errors
///
/// As [`Bound::bind`].
pub fn probe(config: &ServerConfig) -> Result<(), BindError> {
    // Held together, so that the addresses are tried beside each other as they will stand.
    let _claims =
        config.places()?.into_iter().map(|place| place.attempt(Place::claim)).collect::<Result<Vec<_>, _>>()?;
    Ok(())
}

/// Why an address could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No address was given.
    #[error("no address to listen on: give at least one, such as 0.0.0.0:53")]
    Nowhere,
    /// Two of the addresses are one.
    #[error("{second} is already covered by {first}: list each address once, and none beside its wildcard")]
    Twice {
        /// The one that was listed first.
        first: SocketAddr,
        /// The other one.
        second: SocketAddr,
    },
    /// Somebody has it.
    #[error(
        "{address} ({transport}) is in use, by another instance or another server (often systemd-resolved, dnsmasq or \
         mDNS, perhaps on the wildcard address): `ss -lntup 'sport = :{port}'` names it; stop it, or listen on \
         another address or port",
        port = address.port()
    )]
    InUse {
        /// The address.
        address: SocketAddr,
        /// `TCP` or `UDP`.
        transport: &'static str,
    },
    /// Ports below 1024 need a permission.
    #[error(
        "no permission to listen on {address} ({transport}): port {port} needs the capability CAP_NET_BIND_SERVICE \
         (in a pod securityContext.capabilities.add, in systemd AmbientCapabilities=); or listen on a port above \
         1023, such as 1053, and map port 53 to it",
        port = address.port()
    )]
    Denied {
        /// The address.
        address: SocketAddr,
        /// `TCP` or `UDP`.
        transport: &'static str,
    },
    /// The address is nobody's here.
    #[error("{address} is not an address of this host: `ip address` lists them; 0.0.0.0 and [::] stand for all")]
    NotHere {
        /// The address.
        address: SocketAddr,
    },
    /// No IPv6 (or no IPv4).
    #[error("{address}: this host has no {family}: listen on an address of the other family")]
    NoFamily {
        /// The address.
        address: SocketAddr,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// Anything else.
    #[error("cannot listen on {address} ({transport})")]
    Other {
        /// The address.
        address: SocketAddr,
        /// `TCP` or `UDP`.
        transport: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

impl BindError {
    fn new(address: SocketAddr, transport: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse { address, transport },
            io::ErrorKind::PermissionDenied => Self::Denied { address, transport },
            io::ErrorKind::AddrNotAvailable => Self::NotHere { address },
            _ if source.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) => {
                Self::NoFamily { address, family: if address.is_ipv6() { "IPv6" } else { "IPv4" } }
            }
            _ => Self::Other { address, transport, source },
        }
    }
}
