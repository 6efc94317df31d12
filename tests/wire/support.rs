//! A responder small enough to be obviously right, queries for it, and the server around it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use namesake::dns::{Bound, DropReason, Outcome, Reply, Responder, Running, ServerConfig, TcpLimits, Transport};
use namesake::metrics::{Metrics, State};

/// As long as a test ever waits for what should take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Answers A with 192.0.2.1, AAAA with 2001:db8::1 and anything else with nothing. A first label `panic` panics, and
/// `big` over TCP gives a reply of 60,000 bytes.
#[derive(Debug, Default)]
pub(crate) struct Tiny {
    pub(crate) asked: AtomicUsize,
    /// Length of the longest query.
    pub(crate) longest: AtomicUsize,
}

impl Responder for Tiny {
    fn respond(&self, query: &[u8], transport: Transport, out: &mut [u8], _rng: &mut fastrand::Rng) -> Outcome {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(query.len(), Ordering::Relaxed);
        if query.len() < 12 {
            return Outcome::Drop(DropReason::Short);
        }
        if query[2] & 0x80 != 0 {
            return Outcome::Drop(DropReason::Response);
        }
        let question = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
        assert!(!query[12..].starts_with(b"\x05panic"), "as this test wants");
        let qtype = u16::from_be_bytes([query[question - 4], query[question - 3]]);
        out[..question].copy_from_slice(&query[..question]);
        out[2] = 0x84 | (query[2] & 1);
        out[3] = 0;
        out[6..12].fill(0);
        let address: &[u8] = match qtype {
            1 => &[192, 0, 2, 1],
            28 => &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            _ => &[],
        };
        let mut len = question;
        if !address.is_empty() {
            out[7] = 1;
            let fixed = [0xc0, 12, 0, qtype as u8, 0, 1, 0, 0, 0, 5, 0, address.len() as u8];
            out[len..len + 12].copy_from_slice(&fixed);
            out[len + 12..len + 12 + address.len()].copy_from_slice(address);
            len += 12 + address.len();
        }
        if query[12..].starts_with(b"\x03big") && transport == Transport::Tcp {
            out[len..60_000].fill(0);
            len = 60_000;
        }
        Outcome::Reply(Reply { len, rcode: 0, qtype, zone: Some(0), dnssec_ok: false, truncated: false, cut: false })
    }
}

pub(crate) const A: u16 = 1;
pub(crate) const AAAA: u16 = 28;

/// A query without OPT for `name` (without final dot).
pub(crate) fn query(id: u16, name: &str, qtype: u16) -> Vec<u8> {
    let mut query = Vec::new();
    query.extend(id.to_be_bytes());
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend(label.bytes());
    }
    query.push(0);
    query.extend(qtype.to_be_bytes());
    query.extend([0, 1]);
    query
}

/// `query` as TCP carries it.
pub(crate) fn framed(query: &[u8]) -> Vec<u8> {
    let mut framed = u16::try_from(query.len()).unwrap().to_be_bytes().to_vec();
    framed.extend(query);
    framed
}

pub(crate) fn config(address: &str) -> ServerConfig {
    ServerConfig { udp_workers: Some(2), ..ServerConfig::new(vec![address.parse().unwrap()]) }
}

pub(crate) fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new(&["clusterset.local".to_owned()], "kubernetes"))
}

/// A server with its own runtime, so that clients may block.
pub(crate) struct Server<R = Tiny> {
    pub(crate) address: SocketAddr,
    pub(crate) responder: Arc<R>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) running: Option<Running>,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn start(config: &ServerConfig) -> Self {
        Self::start_with(Arc::default(), config)
    }

    pub(crate) fn at(address: &str) -> Self {
        Self::start(&config(address))
    }

    pub(crate) fn with_limits(limits: TcpLimits) -> Self {
        Self::start(&ServerConfig { tcp: limits, ..config("127.0.0.1:0") })
    }

    pub(crate) fn asked(&self) -> usize {
        self.responder.asked.load(Ordering::Relaxed)
    }
}

impl<R: Responder> Server<R> {
    pub(crate) fn start_with(responder: Arc<R>, config: &ServerConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let metrics = metrics();
        let bound = Bound::bind(config).unwrap();
        let running = runtime.block_on(async { bound.serve(&responder, &metrics, None).unwrap() });
        Self { address: running.addresses()[0], responder, metrics, running: Some(running), runtime }
    }

    /// The value of one series, 0 where it does not exist yet.
    pub(crate) fn counted(&self, series: &str) -> u64 {
        let text = self.metrics.render(State::default()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0, |value| value.trim().parse().unwrap())
    }

    /// How often nothing was sent, for one reason.
    pub(crate) fn dropped(&self, reason: &str) -> u64 {
        self.counted(&format!("namesake_dns_drops_total{{reason=\"{reason}\"}}"))
    }

    /// The server's port at another of its addresses.
    pub(crate) fn reached_at(&self, ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), self.address.port())
    }
}

/// A UDP client that takes replies from `server` alone, as resolvers do.
pub(crate) fn client_of(server: SocketAddr) -> UdpSocket {
    let own: SocketAddr = if server.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }.parse().unwrap();
    let socket = UdpSocket::bind(own).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Asks and returns the reply, which must be to this query.
pub(crate) fn ask(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).unwrap();
    let mut reply = vec![0; 4096];
    let len = socket.recv(&mut reply).expect("a reply in time");
    reply.truncate(len);
    assert_eq!(reply[..2], query[..2], "the reply is to this query");
    reply
}

/// Waits until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Resident memory of this process, in kB.
pub(crate) fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
