//! What was meant: plain, checked values.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::answers;
use crate::config::{Admin, Log};

/// All that `namesake dns` needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where imports and slices come from.
    pub source: Source,
    /// Choices about answers.
    pub answers: answers::Options,
    /// Where DNS is served, over UDP and TCP; never empty.
    pub listen: Vec<SocketAddr>,
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

/// What the machine contributes to the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Where imports come from when nobody says: in a pod its cluster.
    pub source: Option<Source>,
    /// Whether IPv6 sockets can be had.
    pub ipv6: bool,
    /// Its name.
    pub host: String,
}

/// Limits of TCP (`dns.md` T21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address.
    pub per_client: usize,
    /// How long a query may take to arrive.
    pub read: Duration,
    /// How long a client may take to accept an answer.
    pub write: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
}
