//! What was meant: plain, checked values.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::answers;

/// All that `namesake dns` needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where imports and slices come from.
    pub source: Source,
    /// Choices about answers.
    pub answers: answers::Options,
    /// Where DNS is served, over UDP and TCP; never empty.
    pub listen: Vec<Bind>,
    /// Threads for UDP; `None` is one per core.
    pub udp_workers: Option<NonZeroUsize>,
    /// Limits of TCP.
    pub tcp: TcpLimits,
    /// Where probes and metrics are served.
    pub admin: Admin,
    /// How things are logged.
    pub log: Log,
    /// How long to wait for the first complete lists before DNS is served (`dns.md` L1).
    pub startup_timeout: Duration,
    /// Silence of the API server after which data names answer SERVFAIL; `None` is never (`dns.md` L9).
    pub max_stale: Option<Duration>,
    /// How long to go on answering, unready, after the first signal (`dns.md` L15).
    pub lameduck: Duration,
    /// How long queries that have arrived may take after that.
    pub grace: Duration,
    /// What is allowed but probably not meant, for the log at start.
    pub warnings: Vec<String>,
}

/// Where imports and slices come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// YAML files.
    Folder(PathBuf),
    /// The API server of a kubeconfig.
    Kube {
        /// The file; `None` is kubectl's own choice ($KUBECONFIG, else ~/.kube/config).
        kubeconfig: Option<PathBuf>,
        /// The context; `None` is the current one.
        context: Option<String>,
    },
    /// The API server of the cluster whose pod this is.
    InCluster,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bind {
    /// The address.
    pub address: SocketAddr,
    /// Whether it may be left out where the machine has no such family: the IPv6 half of `:PORT`.
    pub optional: bool,
}

/// Limits of TCP (`dns.md` T21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address.
    pub per_client: usize,
    /// Queries of one connection that are answered at a time.
    pub pipeline: usize,
    /// How long a query may take to arrive.
    pub read: Duration,
    /// How long a client may take to accept an answer.
    pub write: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
}

/// Where probes and metrics are served. An address that stands in several lists serves all of those routes; an empty
/// list is "not at all".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// `/explain`, and whatever was not moved to an address of its own.
    pub explain: Vec<Bind>,
    /// `/health`.
    pub health: Vec<Bind>,
    /// `/ready`.
    pub ready: Vec<Bind>,
    /// `/metrics`.
    pub metrics: Vec<Bind>,
}

/// How things are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Text or JSON.
    pub format: LogFormat,
    /// A filter in the syntax of `tracing_subscriber::EnvFilter`, which has been checked.
    pub filter: String,
    /// Whether every query is logged.
    pub queries: bool,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}
