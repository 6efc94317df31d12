//! Values that an API server, a network or a kubelet would make: here each comes from names, so that it is the same at
//! every reading.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::ClusterId;
use crate::reconcile::objects::{Family, Time};

/// When an object without `creationTimestamp` was made: at the end of time. It has not been applied yet, so it is
/// younger than all that have been; among such, the cluster's id decides (controller.md R15).
pub(super) const NOT_YET: Time = Time(253_402_300_799);

/// FNV-1a: the same in every version and on every machine.
pub(super) fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    // FNV's low bits are weak for short texts.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// A uid for an object that has none.
pub(super) fn uid(parts: &[&str]) -> Box<str> {
    let (a, b) = (hash(parts), hash(&[&parts.join("/"), "uid"]));
    let (a1, a2, a3) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
    let (b1, b2) = ((b >> 48) & 0x3fff | 0x8000, b & 0xffff_ffff_ffff);
    format!("{a1:08x}-{a2:04x}-4{a3:03x}-{b1:04x}-{b2:012x}").into()
}

/// Whether an object may have this name: a DNS label (RFC 1123), as Services and Namespaces have.
pub(super) fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    base: IpAddr,
    length: u8,
}

impl Range {
    /// The range of `10.96.0.0/12` and the like.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let (base, length) = text.split_once('/')?;
        let (base, length) = (base.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?);
        let most = if base.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(Self { base, length })
    }

    /// The family of its addresses.
    #[must_use]
    pub fn family(self) -> Family {
        Family::of(self.base)
    }

    /// The address for `seed` that is not `taken`: the one that the seed says, or the next free one. The first and the
    /// last of a range are nobody's, unless it has no others. `None` where all are taken.
    fn address(self, seed: u64, taken: &HashSet<IpAddr>) -> Option<IpAddr> {
        let bits = if self.base.is_ipv4() { 32 } else { 128 };
        // More than this is never needed, and keeps the arithmetic in 64 bits.
        let host_bits = u32::from(bits - self.length).min(40);
        let size = 1_u64 << host_bits;
        let (first, count) = if size > 2 { (1, size - 2) } else { (0, size) };
        (0..count).map(|i| self.nth(first + (seed % count + i) % count)).find(|address| !taken.contains(address))
    }

    fn nth(self, n: u64) -> IpAddr {
        match self.base {
            IpAddr::V4(base) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits((base.to_bits() & mask).wrapping_add(n as u32)))
            }
            IpAddr::V6(base) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits((base.to_bits() & mask).wrapping_add(u128::from(n))))
            }
        }
    }
}

/// From where the Services of a cluster get addresses: one range for each of its families, the preferred one first.
///
/// Clusters without a ServiceCIDR named `kubernetes` are dual-stack, IPv4 first, and have ranges of their own, so that
/// one sees whose an address is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranges {
    services: Vec<Range>,
    pods: Vec<Range>,
}

impl Ranges {
    /// The ranges of a cluster that says nothing about them, or these for its Services.
    pub(super) fn new(cluster: &ClusterId, services: Option<Vec<Range>>) -> Self {
        let hash = hash(&[cluster.as_str()]);
        let of = |base: IpAddr, length| Range { base, length };
        let v6 = |part: u16| IpAddr::V6(Ipv6Addr::new(0xfd00, (hash >> 16) as u16, part, 0, 0, 0, 0, 0));
        let v4 = |first: u8, from: u8, count: u64| IpAddr::V4(Ipv4Addr::new(first, from + (hash % count) as u8, 0, 0));
        let services = services.unwrap_or_else(|| vec![of(v4(10, 96, 128), 16), of(v6(1), 112)]);
        let pods = services.iter().map(|range| match range.family() {
            Family::V4 => of(v4(100, 64, 64), 16),
            Family::V6 => of(v6(2), 64),
        });
        let pods = pods.collect();
        Self { services, pods }
    }

    /// The families that a Service can have, the preferred one first.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        self.services.iter().map(|range| range.family()).collect()
    }

    /// An address for the Service `namespace/name`, the same every time as long as nobody else has it. `None` where the
    /// cluster has no such family, or none is left.
    #[must_use]
    pub fn service(&self, family: Family, namespace: &str, name: &str, taken: &HashSet<IpAddr>) -> Option<IpAddr> {
        let range = self.services.iter().find(|range| range.family() == family)?;
        range.address(hash(&["Service", namespace, name]), taken)
    }

    /// The same for a pod.
    pub(super) fn pod(&self, family: Family, namespace: &str, name: &str, taken: &HashSet<IpAddr>) -> Option<IpAddr> {
        let range = self.pods.iter().find(|range| range.family() == family)?;
        range.address(hash(&["Pod", namespace, name]), taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(range: &str, seed: u64, taken: &[&str]) -> Option<String> {
        let taken = taken.iter().map(|ip| ip.parse().unwrap()).collect();
        Range::new(range).unwrap().address(seed, &taken).map(|ip| ip.to_string())
    }

    #[test]
    fn addresses_stay_inside_of_their_range_and_are_given_once() {
        assert_eq!(address("10.96.0.0/30", 0, &[]).unwrap(), "10.96.0.1");
        assert_eq!(address("10.96.0.0/30", 1, &[]).unwrap(), "10.96.0.2");
        assert_eq!(address("10.96.0.0/30", 1, &["10.96.0.2"]).unwrap(), "10.96.0.1");
        assert_eq!(address("10.96.0.0/30", 7, &["10.96.0.1", "10.96.0.2"]), None);
        assert_eq!(address("10.96.0.7/32", 9, &[]).unwrap(), "10.96.0.7");
        assert_eq!(address("10.96.3.7/16", 255, &[]).unwrap(), "10.96.1.0");
        assert_eq!(address("fd00::/112", 0xabc, &[]).unwrap(), "fd00::abd");
        assert_eq!(address("0.0.0.0/0", 5, &[]).unwrap(), "0.0.0.6");
        assert!(address("::/0", u64::MAX, &[]).is_some());
    }

    #[test]
    fn what_is_made_up_is_the_same_everywhere() {
        assert_eq!(&*uid(&["east", "Service", "shop", "web"]), "0");
    }
}
