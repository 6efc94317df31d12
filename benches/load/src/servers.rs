//! The servers that are compared: how each is set up and started, on one core, with one worker, and without what
//! would keep it from answering (rate limits) or make its answers longer (additional records, where that can be said).

use std::fmt;
use std::fs;
use std::io::BufWriter;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use testbed::{Bed, Process};

use crate::cluster::{Result, doing};
use crate::machine::{self, Cpu, SERVER};
use crate::query::{A, Asked, Kind as Question, Mix, Pool, Query, packet};
use crate::set::{Set, ZONE, cluster};
use crate::zone;

/// How long a server may take until it answers; the largest zone takes some a while.
const PATIENCE: Duration = Duration::from_secs(120);

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
    /// CoreDNS, `kubernetes` with `multicluster`, and the usual block around it.
    CoreDns,
    /// The same with its query log, into nothing.
    CoreDnsLog,
}

const NAMES: [(&str, Kind); 10] = [
    ("echo", Kind::Echo),
    ("namesake", Kind::Namesake),
    ("namesake-any", Kind::NamesakeAny),
    ("namesake-log", Kind::NamesakeLog),
    ("nsd", Kind::Nsd),
    ("knot", Kind::Knot),
    ("bind", Kind::Bind),
    ("powerdns", Kind::PowerDns),
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

    /// More than so many queries a second of the mix one core does not answer.
    #[must_use]
    pub fn most(self) -> f64 {
        match self {
            Self::CoreDns | Self::CoreDnsLog => 20_000.0,
            Self::Bind | Self::PowerDns => 110_000.0,
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
        let (port, admin) = (free(place.bed)?, free(place.bed)?);
        let (program, args) = command(kind, place, port, admin)?;
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
                    let why = ended.map_or("does not answer".to_owned(), |status| format!("ended ({status})"));
                    return Err(format!("{} {why}; its last words:\n{}", self.kind, self.process.log_tail(20)));
                }
            }
        }
        Ok(())
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

fn free(bed: &Bed) -> Result<u16> {
    bed.port().map_err(doing("a port"))
}

/// Starts a program on the server's core, its standard output into nothing where that is the log of queries.
fn spawn(bed: &Bed, kind: Kind, program: &Path, args: &[String]) -> Result<Process> {
    // `taskset` and the shell replace themselves by the program, so its pid is the child's.
    let script = if kind.logs() { "exec taskset -c \"$0\" \"$@\" >/dev/null" } else { "exec taskset -c \"$0\" \"$@\"" };
    let builder = bed.process(&format!("{kind}-server"), "/bin/sh").arg("-c").arg(script);
    builder.arg(SERVER.to_string()).arg(program).args(args).spawn().map_err(doing(kind))
}

/// The zone file of a set, written once in a bed.
fn zone_file(place: &Place<'_>) -> Result<PathBuf> {
    let path = place.bed.dir().join(format!("zone-{}", place.set));
    if !path.exists() {
        let mut out = BufWriter::new(fs::File::create(&path).map_err(doing("the zone file"))?);
        zone::write(place.set, &mut out).map_err(doing("the zone file"))?;
    }
    Ok(path)
}

fn command(kind: Kind, place: &Place<'_>, port: u16, admin: u16) -> Result<(PathBuf, Vec<String>)> {
    let bed = place.bed;
    let dir = bed.dir().join(format!("{kind}-{port}"));
    fs::create_dir_all(&dir).map_err(doing(dir.display()))?;
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(doing(path.display()))?;
        Ok::<_, String>(path.display().to_string())
    };
    let here = dir.display();
    let kubeconfig = || place.kubeconfig.as_ref().map(|path| path.display()).ok_or("no API server holds the set");
    let zone = || zone_file(place).map(|path| path.display().to_string());
    let (program, args): (PathBuf, Vec<String>) = match kind {
        Kind::Echo => {
            let own = std::env::current_exe().map_err(doing("finding this program"))?;
            (own, vec!["echo".into(), format!("127.0.0.1:{port}"), format!("[::1]:{port}")])
        }
        Kind::Namesake | Kind::NamesakeAny | Kind::NamesakeLog => {
            let mut args = vec!["dns".into(), format!("--kubeconfig={}", kubeconfig()?)];
            args.push(format!("--admin=127.0.0.1:{admin}"));
            if kind == Kind::NamesakeAny {
                args.push(format!("--listen=:{port}"));
            } else {
                args.extend([format!("--listen=127.0.0.1:{port}"), format!("--listen=[::1]:{port}")]);
            }
            if kind == Kind::NamesakeLog {
                args.push("--query-log".into());
            }
            (place.namesake.to_owned(), args)
        }
        Kind::Nsd => {
            let text = format!(
                "server:\n  server-count: 1\n  ip-address: 127.0.0.1@{port}\n  ip-address: ::1@{port}\n  username: \"\"\n  \
                 zonesdir: \"\"\n  database: \"\"\n  pidfile: \"{here}/pid\"\n  xfrdfile: \"{here}/xfrd\"\n  \
                 zonelistfile: \"{here}/zones\"\n  xfrdir: \"{here}\"\n  rrl-ratelimit: 0\n  rrl-whitelist-ratelimit: 0\n  \
                 minimal-responses: yes\nremote-control:\n  control-enable: no\n\
                 zone:\n  name: {ZONE}\n  zonefile: \"{}\"\n",
                zone()?
            );
            ("nsd".into(), vec!["-d".into(), "-c".into(), file("nsd.conf", &text)?])
        }
        Kind::Knot => {
            let text = format!(
                "server:\n  rundir: {here}\n  listen: [127.0.0.1@{port}, ::1@{port}]\n  udp-workers: 1\n  tcp-workers: 1\n  \
                 background-workers: 1\ndatabase:\n  storage: {here}\nlog:\n  - target: stderr\n    any: warning\n\
                 zone:\n  - domain: {ZONE}\n    file: {}\n    journal-content: none\n    zonefile-sync: -1\n",
                zone()?
            );
            ("knotd".into(), vec!["-c".into(), file("knot.conf", &text)?])
        }
        Kind::Bind => {
            let text = format!(
                "options {{ directory \"{here}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 port {port} {{ ::1; }};\n\
                 recursion no; minimal-responses yes; pid-file none; session-keyfile none; querylog no; notify no;\n\
                 dnssec-validation no; allow-transfer {{ none; }}; }};\ncontrols {{ }};\n\
                 zone \"{ZONE}\" {{ type primary; file \"{}\"; }};\n",
                zone()?
            );
            let args = ["-g", "-n", "1", "-U", "1", "-c"].map(String::from).to_vec();
            ("named".into(), [args, vec![file("named.conf", &text)?]].concat())
        }
        Kind::PowerDns => {
            let zones = file("zones.conf", &format!("zone \"{ZONE}\" {{ type master; file \"{}\"; }};\n", zone()?))?;
            let text = format!(
                "launch=bind\nbind-config={zones}\nlocal-address=127.0.0.1, ::1\nlocal-port={port}\nreceiver-threads=1\n\
                 distributor-threads=1\nreuseport=no\ndaemon=no\nguardian=no\nsocket-dir={here}\ndisable-syslog=yes\n\
                 loglevel=3\nsecurity-poll-suffix=\nversion-string=anonymous\nmax-tcp-connections=100\n",
            );
            file("pdns.conf", &text)?;
            ("pdns_server".into(), vec![format!("--config-dir={here}")])
        }
        Kind::CoreDns | Kind::CoreDnsLog => {
            let (health, ready) = (free(bed)?, free(bed)?);
            let log = if kind.logs() { "  log\n" } else { "" };
            let text = format!(
                "{ZONE}:{port} {{\n  bind 127.0.0.1 ::1\n  errors\n{log}  health 127.0.0.1:{health}\n  ready 127.0.0.1:{ready}\n  \
                 prometheus 127.0.0.1:{admin}\n  kubernetes cluster.local {ZONE} {{\n    kubeconfig {}\n    \
                 multicluster {ZONE}\n  }}\n  loadbalance\n  reload\n}}\n",
                kubeconfig()?
            );
            let folder = testbed::binaries().map_err(doing("CoreDNS"))?;
            (folder.join("coredns"), vec!["-conf".into(), file("Corefile", &text)?])
        }
    };
    Ok((found(&program)?, args))
}

/// Where a program is: servers are often outside of a user's path.
fn found(program: &Path) -> Result<PathBuf> {
    if program.is_absolute() {
        return Ok(program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let name = program.display();
    folders
        .find_map(|folder| Some(folder.join(program)).filter(|path| path.is_file()))
        .ok_or_else(|| format!("there is no {name}: `benches/run` installs it, or leave it out with --servers"))
}
