//! Every metric, registered once, documented once.
//!
//! This module knows of nothing else in the crate, so everything may use it.

use std::sync::Arc;
use std::time::Duration;

/// What one reply looked like, for the counters.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// Index into the zones given to [`Metrics::new`]; `None` is CoreDNS's zone `dropped`.
    pub zone: Option<u8>,
    /// The query's type.
    pub qtype: u16,
    /// The rcode, with the upper bits of the OPT.
    pub rcode: u16,
    /// Whether the client came by IPv6 (an IPv4-mapped address is IPv4).
    pub ipv6: bool,
    /// Length of the query, in bytes.
    pub query_len: usize,
    /// Length of the reply, in bytes.
    pub reply_len: usize,
    /// Whether the query had DO set.
    pub dnssec_ok: bool,
    /// Whether a set was cut by whole endpoints.
    pub cut: bool,
    /// From the query's arrival in our hands to the finished reply.
    pub duration: Duration,
}

/// Why a datagram or connection got nothing: values of the label `reason` of `namesake_dns_drops_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    /// Shorter than a header.
    Short,
    /// A response, not a query.
    Response,
    /// The reply could not be sent (no route, full buffer, source port 0).
    Send,
    /// The connection limit, of all or of one client, was reached.
    Connections,
    /// A TCP client was too slow to send or to read.
    Slow,
}

/// The counters of one socket, written by one thread (or one listener's tasks) and summed up at a scrape.
#[derive(Debug)]
pub struct DnsShard {}

impl DnsShard {
    /// Counts a reply.
    pub fn answered(&self, _answered: &Answered) {}

    /// Counts a drop.
    pub fn dropped(&self, _why: Drop) {}

    /// Counts a panic that cost one query (`coredns_panics_total`).
    pub fn panicked(&self) {}
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {}

impl Metrics {
    /// The metrics of a server of these zones (without final dot); `plugin` is the label value of CoreDNS's
    /// `coredns_dns_responses_total`.
    #[must_use]
    pub fn new(_zones: &[String], _plugin: &'static str) -> Self {
        Self {}
    }

    /// Counters for a socket of `server` (`dns://:53`, or `dns://10.0.0.1:53` for a specific address).
    #[must_use]
    pub fn dns_shard(&self, _server: &str, _tcp: bool) -> Arc<DnsShard> {
        Arc::new(DnsShard {})
    }
}
