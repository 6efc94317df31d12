//! What a setting is: its name in all three layers, its shape and its texts. The settings themselves are in `table`.

use super::table::KEYS;

/// A setting. Its texts are in [`KEYS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is explained in KEYS, where people read it too")]
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

/// How a setting is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    One,
    /// Any number of values: a repeated flag, a list in the file, commas in a variable.
    Many,
    /// On or off: a bare flag, `true` or `false` elsewhere.
    Switch,
}

/// What a setting is about: the headings of `--help` and of the example file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the titles say it")]
pub enum Section {
    Source,
    Zone,
    Names,
    Identity,
    Serving,
    Tcp,
    Admin,
    Lifecycle,
}

impl Section {
    /// Every section, in reading order.
    pub const ALL: [Self; 8] =
        [Self::Source, Self::Zone, Self::Names, Self::Identity, Self::Serving, Self::Tcp, Self::Admin, Self::Lifecycle];

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Source => "Where imports and slices come from",
            Self::Zone => "What is answered",
            Self::Names => "Which names exist",
            Self::Identity => "What the server says of itself",
            Self::Serving => "Where DNS is served",
            Self::Tcp => "TCP limits",
            Self::Admin => "Probes, metrics and logs",
            Self::Lifecycle => "Start, stop and old data",
        }
    }
}

/// The texts of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Which.
    pub key: Key,
    /// Its key in the file. The flag is `--` and the name with `-` for `_`; the variable is `NAMESAKE_` and the name
    /// in capitals.
    pub name: &'static str,
    /// How it is written.
    pub shape: Shape,
    /// What it is about.
    pub section: Section,
    /// What stands for its value in the help.
    pub value: &'static str,
    /// Its default as it would be written, or empty where there is none.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

impl Spec {
    /// The flag, with its dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("NAMESAKE_{}", self.name.to_ascii_uppercase())
    }
}

impl Key {
    /// Its texts.
    #[must_use]
    pub fn spec(self) -> &'static Spec {
        KEYS.iter().find(|spec| spec.key == self).unwrap_or(&KEYS[0])
    }

    /// The setting of this name in the file.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Spec> {
        KEYS.iter().find(|spec| spec.name == name)
    }
}
