//! What is served of one service: an immutable snapshot, packed, with what a query needs ready to copy.
//!
//! ```text
//!  a, aaaa     addresses of the service name                  4 or 16 octets an address
//!  ports       of a ClusterSetIP import
//!  endpoints   sorted by cluster and host, packed             16 octets an endpoint
//!    text      their host labels                              1 + length
//!    table     open-addressing index over `<host>.<cluster>`  about 6 octets a host
//! ```
//!
//! Records are assembled from these when someone asks: what they have in common is not worth keeping a million times.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::rrtype;
use crate::model::{Port, Protocol};

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

impl Family {
    /// The type of its records.
    #[must_use]
    pub const fn rrtype(self) -> u16 {
        match self {
            Self::V4 => rrtype::A,
            Self::V6 => rrtype::AAAA,
        }
    }

    /// Octets of an address.
    #[must_use]
    pub const fn address_len(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// Which ports an SRV query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortFilter<'a> {
    /// All, named or not: at the bare service name, and at an endpoint's.
    Any,
    /// `_<name>._<protocol>`, the name without its underscore and in lower case.
    Named(&'a [u8], Protocol),
}

impl PortFilter<'_> {
    /// Whether it asks for this port.
    #[must_use]
    pub fn takes(&self, port: &Port) -> bool {
        match *self {
            Self::Any => true,
            Self::Named(name, protocol) => {
                port.protocol == protocol && port.name.as_ref().is_some_and(|n| n.as_str().as_bytes() == name)
            }
        }
    }
}

/// One endpoint address with a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    /// Where its host label (with length octet) stands in `text`. Equal hosts of a cluster share it.
    pub(super) host: u32,
    /// The IPv4 address, or the place in `v6`.
    pub(super) address: u32,
    /// Its place in `clusters`.
    pub(super) cluster: u32,
    /// Its place in `sets`; the topmost bit tells an IPv6 address.
    pub(super) set: u32,
}

/// The bit of [`Packed::set`] that tells an IPv6 address.
pub(super) const V6: u32 = 1 << 31;

impl Packed {
    pub(super) fn family(&self) -> Family {
        if self.set & V6 == 0 { Family::V4 } else { Family::V6 }
    }
}

/// A cluster that has endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClusterPart {
    /// Its one or two labels on the wire, without the root's octet.
    pub(super) wire: Box<[u8]>,
    /// Its first endpoint.
    pub(super) start: u32,
}

/// The ports that a group of endpoints listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortSet {
    pub(super) ports: Arc<[Port]>,
    /// How many endpoints have it.
    pub(super) endpoints: u32,
}

/// The endpoints that have names.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    pub(super) packed: Box<[Packed]>,
    pub(super) v6: Box<[[u8; 16]]>,
    pub(super) text: Box<[u8]>,
    pub(super) clusters: Box<[ClusterPart]>,
    pub(super) sets: Box<[PortSet]>,
    pub(super) table: Box<[u32]>,
    pub(super) hasher: RandomState,
}

impl PartialEq for Endpoints {
    /// The table follows from the rest.
    fn eq(&self, other: &Self) -> bool {
        self.packed == other.packed
            && self.v6 == other.v6
            && self.text == other.text
            && self.clusters == other.clusters
            && self.sets == other.sets
    }
}

/// IPv4 addresses in octets. The one or two of most services lie in the snapshot itself: one line of memory less to wait
/// for.
pub(super) type FewV4 = SmallVec<[[u8; 4]; 4]>;

/// What is served of one service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceAnswers {
    /// The addresses of the service name.
    pub(super) a: FewV4,
    pub(super) aaaa: Box<[[u8; 16]]>,
    pub(super) ports: Arc<[Port]>,
    pub(super) endpoints: Option<Box<Endpoints>>,
    pub(super) headless: bool,
    /// Whether endpoint names answer.
    pub(super) hosts: bool,
    /// Whether cluster names answer.
    pub(super) cluster_names: bool,
    /// How many addresses a ClusterSetIP import lists, those listed twice counted twice: SRV weights need it.
    pub(super) listed: u8,
}

impl ServiceAnswers {
    /// How many addresses of a family the service name has.
    #[must_use]
    pub fn address_count(&self, family: Family) -> usize {
        match family {
            Family::V4 => self.a.len(),
            Family::V6 => self.aaaa.len(),
        }
    }

    /// How many endpoints have names.
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.endpoints.as_ref().map_or(0, |e| e.packed.len())
    }
}

impl Endpoints {
    /// The host label of an endpoint, with its length octet.
    #[inline]
    pub(super) fn host(&self, endpoint: &Packed) -> &[u8] {
        let rest = self.text.get(endpoint.host as usize..).unwrap_or_default();
        let len = rest.first().map_or(0, |len| usize::from(*len) + 1);
        rest.get(..len).unwrap_or_default()
    }

    /// The labels of an endpoint's cluster on the wire.
    #[inline]
    pub(super) fn cluster(&self, endpoint: &Packed) -> &[u8] {
        self.clusters.get(endpoint.cluster as usize).map_or(&[], |c| &c.wire)
    }

    /// The octets of an endpoint's address.
    #[inline]
    pub(super) fn address<'a>(&'a self, endpoint: &Packed, v4: &'a mut [u8; 4]) -> &'a [u8] {
        match endpoint.family() {
            Family::V4 => {
                *v4 = endpoint.address.to_be_bytes();
                v4
            }
            Family::V6 => self.v6.get(endpoint.address as usize).map_or(&[], |a| a),
        }
    }

    /// The ports of an endpoint.
    #[inline]
    pub(super) fn ports(&self, endpoint: &Packed) -> &[Port] {
        self.sets.get((endpoint.set & !V6) as usize).map_or(&[], |s| &s.ports)
    }

    /// The endpoints of the host whose first endpoint is `start`.
    #[inline]
    pub(super) fn run(&self, start: usize) -> Range<usize> {
        let Some(first) = self.packed.get(start) else { return 0..0 };
        let same = |e: &&Packed| e.host == first.host && e.cluster == first.cluster;
        start..start + self.packed[start..].iter().take_while(same).count()
    }

    /// The first endpoint of the host that `at` belongs to, not before `floor`.
    pub(super) fn run_start(&self, at: usize, floor: usize) -> usize {
        let Some(here) = self.packed.get(at) else { return floor };
        let before = self.packed.get(floor..at).unwrap_or_default();
        let same = |e: &&Packed| e.host == here.host && e.cluster == here.cluster;
        at - before.iter().rev().take_while(same).count()
    }

    /// The endpoints of the `i`th cluster.
    pub(super) fn of_cluster(&self, i: usize) -> Range<usize> {
        let start = |i: usize| self.clusters.get(i).map_or(self.packed.len(), |c| c.start as usize);
        start(i)..start(i + 1)
    }

    /// The endpoints whose name's first labels are `wire` (`<host>.<cluster>`).
    #[inline]
    pub(super) fn find(&self, wire: &[u8]) -> Option<Range<usize>> {
        if self.table.is_empty() {
            let mut at = 0;
            while at < self.packed.len() {
                if self.is_at(at, wire) {
                    return Some(self.run(at));
                }
                at = self.run(at).end;
            }
            return None;
        }
        let mut slot = self.slot(wire, self.table.len());
        loop {
            let at = (*self.table.get(slot)? as usize).checked_sub(1)?;
            if self.is_at(at, wire) {
                return Some(self.run(at));
            }
            slot = if slot + 1 < self.table.len() { slot + 1 } else { 0 };
        }
    }

    /// Where the search for a name begins in a table of so many slots: the hash as a fraction of it, so that a table
    /// need not be a power of two.
    #[inline]
    pub(super) fn slot(&self, wire: &[u8], slots: usize) -> usize {
        let fraction = self.hasher.hash_one(wire) >> 32;
        ((fraction * slots as u64) >> 32) as usize
    }

    #[inline]
    fn is_at(&self, at: usize, wire: &[u8]) -> bool {
        let Some(endpoint) = self.packed.get(at) else { return false };
        let (host, cluster) = (self.host(endpoint), self.cluster(endpoint));
        wire.len() == host.len() + cluster.len() && wire.starts_with(host) && wire.ends_with(cluster)
    }
}
