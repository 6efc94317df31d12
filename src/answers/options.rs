//! What an operator can choose about answers. Plain values; `config` reads and checks them.

use std::net::IpAddr;

/// What counts as an endpoint to answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointPolicy {
    /// Ready endpoints only (KEP-1645 DNS specification §2.4.1).
    #[default]
    Ready,
    /// Ready ones; where a service has none, those that are terminating and still serving (`dns.md` H6).
    ServingFallback,
}

/// Which imports have `<hostname>.<cluster>.<service>` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointNames {
    /// Headless ones, as the specification says (§2.3.4 forbids more).
    #[default]
    Headless,
    /// ClusterSetIP ones too, as CoreDNS answers (`dns.md` E5).
    All,
}

/// What a headless import without endpoints says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyHeadless {
    /// NXDOMAIN, as the specification says (§2.4.1).
    #[default]
    Nxdomain,
    /// NOERROR without data (`dns.md` W20).
    Nodata,
}

/// Choices about answers. The defaults are those of `dns.md`'s Take columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The zones that are served, without final dot, in lower case; at least one.
    pub zones: Vec<String>,
    /// TTL of records, in seconds, 0 to 3600.
    pub ttl: u32,
    /// TTL of negative answers, in seconds: of the SOA and its MINIMUM (RFC 2308 §3).
    pub negttl: u32,
    /// Largest UDP answer, in bytes, 512 to 4096, and the size our OPT states (RFC 6891 §6.2.3).
    pub bufsize: u16,
    /// Whether `<cluster>.<service>` names answer (against the specification; `dns.md` E7).
    pub cluster_names: bool,
    /// Which imports have endpoint names.
    pub endpoint_names: EndpointNames,
    /// Whether an endpoint without hostname is named after its pod (`dns.md` 1.6).
    pub endpoint_pod_names: bool,
    /// What a headless import without endpoints says.
    pub empty_headless: EmptyHeadless,
    /// Whether a ClusterSetIP import without ready endpoints does not exist (`dns.md` C9).
    pub ignore_empty_service: bool,
    /// What counts as an endpoint.
    pub endpoints: EndpointPolicy,
    /// Whether slices are left alone altogether (`dns.md` L14).
    pub no_endpoints: bool,
    /// Most endpoints in one answer; a random part of a larger set (`dns.md` Z5).
    pub max_endpoints: Option<usize>,
    /// The namespaces that are served; empty means all (`dns.md` N8).
    pub namespaces: Vec<String>,
    /// The text at `dns-version.<zone>` (`dns.md` D1).
    pub dns_version: String,
    /// Addresses of `ns.dns.<zone>` (`dns.md` A2).
    pub nameserver: Vec<IpAddr>,
    /// What an NSID query is told (RFC 5001), if anything.
    pub nsid: Option<Vec<u8>>,
    /// What `version.bind` and its like in class CHAOS are told, if anything (`dns.md` T16).
    pub chaos: Option<Chaos>,
}

/// Answers of class CHAOS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chaos {
    /// `version.bind.`, `version.server.`
    pub version: String,
    /// `id.server.`, `hostname.bind.`
    pub hostname: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            zones: vec!["clusterset.local".to_owned()],
            ttl: 5,
            negttl: 5,
            bufsize: 1232,
            cluster_names: false,
            endpoint_names: EndpointNames::default(),
            endpoint_pod_names: false,
            empty_headless: EmptyHeadless::default(),
            ignore_empty_service: false,
            endpoints: EndpointPolicy::default(),
            no_endpoints: false,
            max_endpoints: None,
            namespaces: Vec::new(),
            dns_version: "1.0.0".to_owned(),
            nameserver: Vec::new(),
            nsid: None,
            chaos: None,
        }
    }
}
