//! What is counted for every query: fixed arrays that one thread writes, without allocation, lock or contention.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::histogram::{SIZE_BUCKETS, TIME_BUCKETS, size_bucket, time_bucket};

/// What one reply looked like, for the counters.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// Index into the zones given to [`Metrics::new`](super::Metrics::new); `None` is CoreDNS's zone `dropped`.
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

impl Drop {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 5] = [Self::Short, Self::Response, Self::Send, Self::Connections, Self::Slow];

    /// The label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Response => "response",
            Self::Send => "send",
            Self::Connections => "connections",
            Self::Slow => "slow",
        }
    }
}

/// The types that CoreDNS counts by name (`plugin/metrics/vars/monitor.go`); the rest is `other`.
pub(super) const TYPES: [(u16, &str); 19] = [
    (1, "A"),
    (2, "NS"),
    (5, "CNAME"),
    (6, "SOA"),
    (12, "PTR"),
    (15, "MX"),
    (16, "TXT"),
    (28, "AAAA"),
    (33, "SRV"),
    (43, "DS"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (50, "NSEC3"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (251, "IXFR"),
    (252, "AXFR"),
    (255, "ANY"),
];

const OTHER: u8 = TYPES.len() as u8;

/// How many values the label `type` has.
pub(super) const TYPE_SLOTS: usize = TYPES.len() + 1;

/// Type → position in [`TYPES`].
static TYPE_SLOT: [u8; 256] = {
    let mut slots = [OTHER; 256];
    let mut index = 0;
    while index < TYPES.len() {
        slots[TYPES[index].0 as usize] = index as u8;
        index += 1;
    }
    slots
};

/// How many rcodes are counted one by one (BADCOOKIE, 23, is the last that has a name); the next slot is the rest.
pub(super) const RCODES: usize = 24;

/// The counters of one zone. Own cache lines: another shard's thread must not be disturbed.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct ZoneCounters {
    /// By family, then by type.
    pub(super) requests: [[AtomicU64; TYPE_SLOTS]; 2],
    pub(super) responses: [AtomicU64; RCODES + 1],
    pub(super) dnssec_ok: AtomicU64,
    pub(super) duration: [AtomicU64; TIME_BUCKETS],
    pub(super) duration_nanos: AtomicU64,
    pub(super) query_size: [AtomicU64; SIZE_BUCKETS],
    pub(super) query_bytes: AtomicU64,
    pub(super) reply_size: [AtomicU64; SIZE_BUCKETS],
    pub(super) reply_bytes: AtomicU64,
}

impl ZoneCounters {
    fn new() -> Self {
        Self {
            requests: [const { [const { AtomicU64::new(0) }; TYPE_SLOTS] }; 2],
            responses: [const { AtomicU64::new(0) }; RCODES + 1],
            dnssec_ok: AtomicU64::new(0),
            duration: [const { AtomicU64::new(0) }; TIME_BUCKETS],
            duration_nanos: AtomicU64::new(0),
            query_size: [const { AtomicU64::new(0) }; SIZE_BUCKETS],
            query_bytes: AtomicU64::new(0),
            reply_size: [const { AtomicU64::new(0) }; SIZE_BUCKETS],
            reply_bytes: AtomicU64::new(0),
        }
    }
}

/// Adds to a counter. With one writer a load and a store do, and cost a twentieth of a locked addition.
#[inline(always)]
fn add<const SHARED: bool>(counter: &AtomicU64, n: u64) {
    if SHARED {
        counter.fetch_add(n, Relaxed);
    } else {
        counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
    }
}

#[inline(always)]
fn add_at<const SHARED: bool>(counters: &[AtomicU64], index: usize) {
    if let Some(counter) = counters.get(index) {
        add::<SHARED>(counter, 1);
    }
}

/// The counters of one socket, summed up at a scrape.
///
/// A UDP socket's are written by the one thread that owns the socket: **give every thread its own shard**, or counts
/// get lost. A TCP listener's may be written by any number of tasks.
#[derive(Debug)]
pub struct DnsShard {
    shared: bool,
    /// One of each zone, and the last for `dropped`.
    pub(super) zones: Box<[ZoneCounters]>,
    pub(super) cut: AtomicU64,
    pub(super) drops: [AtomicU64; Drop::ALL.len()],
    panics: Arc<AtomicU64>,
}

impl DnsShard {
    pub(super) fn new(zones: usize, shared: bool, panics: Arc<AtomicU64>) -> Self {
        Self {
            shared,
            zones: (0..=zones).map(|_| ZoneCounters::new()).collect(),
            cut: AtomicU64::new(0),
            drops: [const { AtomicU64::new(0) }; Drop::ALL.len()],
            panics,
        }
    }

    /// Counts a reply.
    #[inline]
    pub fn answered(&self, answered: &Answered) {
        if self.shared {
            self.count::<true>(answered);
        } else {
            self.count::<false>(answered);
        }
    }

    /// Counts a drop.
    #[inline]
    pub fn dropped(&self, why: Drop) {
        if self.shared {
            add_at::<true>(&self.drops, why as usize);
        } else {
            add_at::<false>(&self.drops, why as usize);
        }
    }

    /// Counts a panic that cost one query (`coredns_panics_total`).
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    #[inline(always)]
    fn count<const SHARED: bool>(&self, answered: &Answered) {
        let zone = answered.zone.and_then(|zone| self.zones.get(zone as usize)).or(self.zones.last());
        let Some(zone) = zone else { return };
        let kind = TYPE_SLOT.get(answered.qtype as usize).copied().unwrap_or(OTHER);
        let [ipv4, ipv6] = &zone.requests;
        add_at::<SHARED>(if answered.ipv6 { ipv6 } else { ipv4 }, kind as usize);
        add_at::<SHARED>(&zone.responses, (answered.rcode as usize).min(RCODES));
        let nanos = nanos(answered.duration);
        add_at::<SHARED>(&zone.duration, time_bucket(nanos));
        add::<SHARED>(&zone.duration_nanos, nanos);
        add_at::<SHARED>(&zone.query_size, size_bucket(answered.query_len));
        add::<SHARED>(&zone.query_bytes, answered.query_len as u64);
        add_at::<SHARED>(&zone.reply_size, size_bucket(answered.reply_len));
        add::<SHARED>(&zone.reply_bytes, answered.reply_len as u64);
        if answered.dnssec_ok {
            add::<SHARED>(&zone.dnssec_ok, 1);
        }
        if answered.cut {
            add::<SHARED>(&self.cut, 1);
        }
    }
}

/// Nanoseconds in 64 bits: 584 years.
#[inline(always)]
fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}
