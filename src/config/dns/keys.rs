//! The settings of `namesake dns` by name.

use super::table;
use crate::config::keys::{Keyed, Section, Spec};

/// A setting. Its texts are in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is explained in the table, where people read it too")]
pub enum Key {
    From,
    Kubeconfig,
    Context,
    Zone,
    Ttl,
    Negttl,
    Namespaces,
    Endpoints,
    NoEndpoints,
    MaxEndpoints,
    EmptyHeadless,
    IgnoreEmptyService,
    EndpointNames,
    EndpointPodNames,
    ClusterNames,
    DnsVersion,
    Nameserver,
    Nsid,
    Chaos,
    Listen,
    Bufsize,
    UdpWorkers,
    TcpConnections,
    TcpConnectionsPerClient,
    TcpRead,
    TcpWrite,
    TcpIdle,
    Admin,
    Health,
    Ready,
    Metrics,
    LogFormat,
    LogLevel,
    QueryLog,
    StartupTimeout,
    MaxStale,
    Lameduck,
    Grace,
}

impl Keyed for Key {
    const COMMAND: &'static str = "dns";
    const PREFIX: &'static str = "NAMESAKE_";
    const TABLE: &'static [Spec<Self>] = table::KEYS;
    const SECTIONS: &'static [Section] = &[
        Section::Source,
        Section::Zone,
        Section::Names,
        Section::Identity,
        Section::Serving,
        Section::Tcp,
        Section::Admin,
        Section::Lifecycle,
    ];
}
