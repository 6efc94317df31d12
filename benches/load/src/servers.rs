//! The servers that are compared: started on one core, waited for until they answer rightly, held still where another
//! one is to be measured alone. How each is set up is in `setup`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use testbed::{Bed, Process};

use crate::cluster::{Result, doing};
use crate::machine::{self, Cpu, SERVER};
use crate::query::{A, Asked, Kind as Question, Mix, Pool, Query, packet};
use crate::set::{Set, ZONE, cluster};
use crate::setup;

/// How long a server may take until it answers; the largest zone takes some a while.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long changes may take to arrive, also those of while it was held still.
const CATCH_UP: Duration = Duration::from_secs(20);

/// A server that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sends every query back: the floor.
    Echo,
    /// Ours, as shipped: with metrics and limits.
    Namesake,
    /// Ours, on the wildcard address, where each reply says which address it leaves from.
    NamesakeAny,
    /// Ours with the query log, into nothing.
    NamesakeLog,
    /// NSD.
    Nsd,
    /// Knot DNS.
    Knot,
    /// BIND.
    Bind,
    /// PowerDNS with its BIND backend and packet cache.
    PowerDns,
    /// hickory-server over a hash map; see [`hickory`](crate::hickory).
    Hickory,
    /// CoreDNS, `kubernetes` with `multicluster`, and the usual block around it.
    CoreDns,
    /// The same with its query log, into nothing.
    CoreDnsLog,
}

const NAMES: [(&str, Kind); 11] = [
    ("echo", Kind::Echo),
    ("namesake", Kind::Namesake),
    ("namesake-any", Kind::NamesakeAny),
    ("namesake-log", Kind::NamesakeLog),
    ("nsd", Kind::Nsd),
    ("knot", Kind::Knot),
    ("bind", Kind::Bind),
    ("powerdns", Kind::PowerDns),
    ("hickory", Kind::Hickory),
    ("coredns", Kind::CoreDns),
    ("coredns-log", Kind::CoreDnsLog),
];

impl Kind {
    /// Whether it reads the set from an API server.
    #[must_use]
    pub fn is_live(self) -> bool {
        use Kind::{CoreDns, CoreDnsLog, Namesake, NamesakeAny, NamesakeLog};
        matches!(self, Namesake | NamesakeAny | NamesakeLog | CoreDns | CoreDnsLog)
    }

    /// Whether it writes a log of queries.
    #[must_use]
    pub fn logs(self) -> bool {
        matches!(self, Self::NamesakeLog | Self::CoreDnsLog)
    }

    /// Whether it is one of the others with something switched on: asked only where that shows.
    #[must_use]
    pub fn is_variant(self) -> bool {
        matches!(self, Self::NamesakeAny | Self::NamesakeLog | Self::CoreDnsLog)
    }

    /// More than so many queries a second of the mix one core does not answer.
    #[must_use]
    pub fn most(self) -> f64 {
        match self {
            Self::CoreDns | Self::CoreDnsLog => 20_000.0,
            Self::Bind | Self::PowerDns | Self::Hickory => 110_000.0,
            _ => f64::INFINITY,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let kind = NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        kind.ok_or_else(|| format!("a server is one of {}", NAMES.map(|(name, _)| name).join(", ")))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name))
    }
}

/// What servers of one set are started with.
pub struct Place<'a> {
    /// Where they run.
    pub bed: &'a Bed,
    /// Our binary.
    pub namesake: &'a Path,
    /// What they serve.
    pub set: Set,
    /// The kubeconfig of the API server that holds the set; nothing if no server needs it.
    pub kubeconfig: Option<PathBuf>,
}

/// What a start took, until the first right answers, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Started {
    /// By the clock.
    pub ready: f64,
    /// CPU time.
    pub cpu: f64,
}

/// A server that runs and answers.
pub struct Server {
    /// Which one.
    pub kind: Kind,
    /// Its process; it ends with this value.
    pub process: Process,
    port: u16,
    admin: u16,
    /// What it took until its first right answers.
    pub started: Started,
}

impl Server {
    /// Starts one and waits until it answers rightly.
    ///
    /// # Errors
    /// With its last words, where it does not.
    pub fn start(kind: Kind, place: &Place<'_>) -> Result<Self> {
        let (port, admin) = (setup::free(place.bed)?, setup::free(place.bed)?);
        let (program, args) = setup::command(kind, place, port, admin)?;
        let begin = Instant::now();
        let process = spawn(place.bed, kind, &program, &args)?;
        let mut server = Self { kind, process, port, admin, started: Started::default() };
        server.wait(place.set, begin)?;
        let ready = begin.elapsed().as_secs_f64();
        let cpu = Cpu::of(&machine::tree(server.process.pid())).since(&Cpu::default()).all;
        server.started = Started { ready, cpu };
        Ok(server)
    }

    /// Where it answers over IPv4.
    #[must_use]
    pub fn v4(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Where it answers over IPv6.
    #[must_use]
    pub fn v6(&self) -> SocketAddr {
        (Ipv6Addr::LOCALHOST, self.port).into()
    }

    /// Where its metrics are, if it has any.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.admin).into()
    }

    /// The address that an endpoint's name has, if it has one.
    #[must_use]
    pub fn address_of(&self, set: Set, headless: u32, endpoint: u32) -> Option<Ipv4Addr> {
        let name = endpoint_name(set, headless, endpoint);
        let mut reply = [0; 4096];
        let length = self.ask(&packet(&name, A), Duration::from_secs(1), &mut reply)?;
        address(&reply[..length])
    }

    /// Holds it still, so that another one has the core to itself.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn pause(&self) -> Result<()> {
        self.process.signal("STOP").map_err(doing(self.kind))
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn resume(&self) -> Result<()> {
        self.process.signal("CONT").map_err(doing(self.kind))
    }

    /// Waits until an endpoint's name has this address: until what was written before has arrived.
    ///
    /// # Errors
    /// Where it does not come.
    pub fn caught_up(&self, set: Set, last: (u32, u32, Ipv4Addr)) -> Result<()> {
        self.caught_up_within(set, last, CATCH_UP)
    }

    /// The same, however long it may take.
    ///
    /// # Errors
    /// Where it does not come.
    pub fn caught_up_within(
        &self,
        set: Set,
        (headless, endpoint, wanted): (u32, u32, Ipv4Addr),
        within: Duration,
    ) -> Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let got = self.address_of(set, headless, endpoint);
            if got == Some(wanted) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{} answers {got:?} and not what was written last, {wanted}", self.kind));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until queries of each kind get their answers.
    fn wait(&self, set: Set, begin: Instant) -> Result<()> {
        let deadline = begin + PATIENCE;
        for kind in [Question::HeadlessA, Question::EndpointA, Question::ServiceA, Question::ServiceSrv] {
            let asked = Asked { set, mix: Mix::Only(kind), edns: true, skew: false };
            let pool = Pool::new(asked, 50);
            let mut right = 0;
            while right < pool.len() {
                if self.answers(pool.get(right)) {
                    right += 1;
                    continue;
                }
                let ended = self.process.exited().map_err(doing(self.kind))?;
                if ended.is_some() || Instant::now() > deadline {
                    return Err(self.lost("does not answer"));
                }
            }
        }
        Ok(())
    }

    /// An error that also says whether the server has ended, and its last words.
    #[must_use]
    pub fn lost(&self, what: &str) -> String {
        let ended =
            self.process.exited().ok().flatten().map_or(String::new(), |status| format!(", and ended ({status})"));
        format!("{}: {what}{ended}; its last words:\n{}", self.kind, self.process.log_tail(20))
    }

    /// Whether a query gets the answer that it should, within 20 ms.
    fn answers(&self, query: Query<'_>) -> bool {
        let mut reply = [0; 4096];
        let length = self.ask(query.packet, Duration::from_millis(20), &mut reply);
        let header = length.and_then(|length| reply[..length].first_chunk());
        let right = header.is_some_and(|header| self.kind == Kind::Echo || query.expected.fits(header));
        if !right {
            // A port that nobody has yet refuses at once.
            std::thread::sleep(Duration::from_millis(2));
        }
        right
    }

    /// Asks once, over UDP: the length of the reply.
    fn ask(&self, packet: &[u8], within: Duration, reply: &mut [u8]) -> Option<usize> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        socket.set_read_timeout(Some(within)).ok()?;
        socket.connect(self.v4()).ok()?;
        socket.send(packet).ok()?;
        socket.recv(reply).ok()
    }
}

/// `pod-3.cluster-1.db-6.ns-6.svc.clusterset.local`.
#[must_use]
pub fn endpoint_name(set: Set, headless: u32, endpoint: u32) -> String {
    format!("pod-{endpoint}.cluster-{}.{}.svc.{ZONE}", cluster(headless), set.headless(headless))
}

/// The address in a reply of one record and no others: at its end.
#[must_use]
pub fn address(reply: &[u8]) -> Option<Ipv4Addr> {
    let one = reply.get(6..12)? == [0, 1, 0, 0, 0, 0];
    reply.last_chunk::<4>().filter(|_| one).map(|octets| Ipv4Addr::from(*octets))
}

/// Starts a program on the server's core, its standard output into nothing where that is the log of queries.
fn spawn(bed: &Bed, kind: Kind, program: &Path, args: &[String]) -> Result<Process> {
    // `taskset` and the shell replace themselves by the program, so its pid is the child's.
    let script = if kind.logs() { "exec taskset -c \"$0\" \"$@\" >/dev/null" } else { "exec taskset -c \"$0\" \"$@\"" };
    let builder = bed.process(&format!("{kind}-server"), "/bin/sh").arg("-c").arg(script);
    builder.arg(SERVER.to_string()).arg(program).args(args).spawn().map_err(doing(kind))
}
