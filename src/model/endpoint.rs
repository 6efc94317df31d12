//! Endpoints and the slices that carry them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use super::{ClusterId, Label, Port, Skipped};

/// What an endpoint's conditions mean for DNS (discovery.k8s.io/v1: an absent `ready` means ready).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// `ready` is true or absent. Also a terminating endpoint of a Service that publishes not-ready addresses.
    Ready,
    /// Not ready, but `serving` and `terminating`: used only when the option says so and nothing is ready.
    ServingTerminating,
    /// Not ready.
    NotReady,
}

/// One address of an endpoint. An endpoint with several addresses is several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address, of the slice's family.
    pub address: IpAddr,
    /// `hostname`, where it is a label that does not begin with `_` (`dns.md` E12).
    pub hostname: Option<Label>,
    /// `targetRef.name`, kept only where the `endpoint_pod_names` option needs it.
    pub pod: Option<Label>,
    /// What its conditions say.
    pub readiness: Readiness,
}

/// An [`Endpoint`] as it stands in an [`EndpointList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointRef<'a> {
    /// The address, of the slice's family.
    pub address: IpAddr,
    /// The label of its hostname.
    pub hostname: Option<&'a str>,
    /// The label of its pod.
    pub pod: Option<&'a str>,
    /// What its conditions say.
    pub readiness: Readiness,
}

/// The endpoints of a slice in their order, packed: there may be a million, and each comes with every change of its slice.
///
/// ```text
///  packed   24 octets an endpoint: address, readiness, lengths of its labels, where they begin
///  text     hostname and pod of each, in lower case, one behind the other
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EndpointList {
    packed: Box<[Packed]>,
    text: Box<str>,
}

/// What is known of an endpoint but its labels' text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed {
    address: IpAddr,
    readiness: Readiness,
    /// Octets of its hostname, none where it has none; its pod's follow.
    hostname: u8,
    pod: u8,
    /// Where its hostname begins.
    text: u32,
}

impl EndpointList {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = EndpointRef<'_>> + DoubleEndedIterator {
        self.packed.iter().map(|packed| {
            let hostname = packed.text as usize;
            let pod = hostname + usize::from(packed.hostname);
            let label = |at: usize, len: u8| match len {
                0 => None,
                len => self.text.get(at..at + usize::from(len)),
            };
            EndpointRef {
                address: packed.address,
                hostname: label(hostname, packed.hostname),
                pod: label(pod, packed.pod),
                readiness: packed.readiness,
            }
        })
    }

    /// Those that are ready, in their order.
    pub fn ready(&self) -> impl Iterator<Item = EndpointRef<'_>> {
        self.iter().filter(|endpoint| endpoint.readiness == Readiness::Ready)
    }
}

impl fmt::Debug for EndpointList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Endpoint> for EndpointList {
    fn from_iter<I: IntoIterator<Item = Endpoint>>(endpoints: I) -> Self {
        let endpoints = endpoints.into_iter();
        let (mut packed, mut text) = (Vec::with_capacity(endpoints.size_hint().0), String::new());
        for Endpoint { address, hostname, pod, readiness } in endpoints {
            let at = text.len() as u32; // a slice of 4 GiB can't be read
            let mut push = |label: Option<Label>| {
                let label = label.as_ref().map_or("", Label::as_str);
                text.push_str(label);
                label.len() as u8 // a label has at most 63 octets
            };
            let (hostname, pod) = (push(hostname), push(pod));
            packed.push(Packed { address, readiness, hostname, pod, text: at });
        }
        Self { packed: packed.into(), text: text.into() }
    }
}

/// A multi-cluster EndpointSlice, reduced to what DNS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The import it belongs to: the label `multicluster.kubernetes.io/service-name`.
    pub service: Label,
    /// The cluster its endpoints run in; `None` where the label is missing or can't be a cluster id (`dns.md` H12).
    pub cluster: Option<ClusterId>,
    /// The ports its endpoints listen on; answers share them.
    pub ports: Arc<[Port]>,
    /// Its endpoints, one per address.
    pub endpoints: EndpointList,
    /// When the change that led to this version was made, if the slice says so.
    pub triggered: Option<SystemTime>,
    /// What of it is not served, and why.
    pub skipped: Box<[Skipped]>,
}

/// Whether `address` may be a service's or an endpoint's (`dns.md` C16, H18).
///
/// Nobody's service lives at a loopback, link-local, multicast, unspecified, limited-broadcast or IPv4-mapped
/// address: whoever got one from us would talk to himself, to a neighbour, or to nobody.
#[must_use]
pub fn usable_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            !(a.is_loopback() || a.is_link_local() || a.is_multicast() || a.is_unspecified() || a.is_broadcast())
        }
        IpAddr::V6(a) => {
            !(a.is_loopback()
                || a.is_unicast_link_local()
                || a.is_multicast()
                || a.is_unspecified()
                || a.to_ipv4_mapped().is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(n: u8, hostname: &str, pod: &str, readiness: Readiness) -> Endpoint {
        Endpoint {
            address: IpAddr::from([10, 0, 0, n]),
            hostname: Label::new(hostname),
            pod: Label::new(pod),
            readiness,
        }
    }

    #[test]
    fn a_packed_list_gives_back_what_was_put_in() {
        let long = "x".repeat(63);
        let mut put = vec![
            endpoint(1, "DB-0", "", Readiness::Ready),
            endpoint(2, "", "", Readiness::NotReady),
            endpoint(3, "", "pod-3", Readiness::ServingTerminating),
            endpoint(4, &long, &long, Readiness::Ready),
        ];
        put.push(Endpoint { address: "fd00::5".parse().unwrap(), ..put[0].clone() });
        let list: EndpointList = put.iter().cloned().collect();
        assert_eq!((list.len(), list.is_empty(), list.iter().len()), (5, false, 5));
        for (got, put) in list.iter().zip(&put) {
            let label = |label: &Option<Label>| label.as_ref().map(|label| label.as_str().to_owned());
            assert_eq!((got.address, got.readiness), (put.address, put.readiness));
            assert_eq!(got.hostname.map(ToOwned::to_owned), label(&put.hostname));
            assert_eq!(got.pod.map(ToOwned::to_owned), label(&put.pod));
        }
        assert_eq!(list.iter().next().unwrap().hostname, Some("db-0"));
        assert!(EndpointList::default().is_empty() && EndpointList::default().iter().next().is_none());
    }

    #[test]
    fn lists_differ_where_an_endpoint_does() {
        let list = |hostname: &str, pod: &str, readiness| -> EndpointList {
            [endpoint(1, hostname, pod, readiness)].into_iter().collect()
        };
        let one = list("ab", "c", Readiness::Ready);
        assert_eq!(one, list("AB", "c", Readiness::Ready));
        for other in [("a", "bc", Readiness::Ready), ("ab", "", Readiness::Ready), ("ab", "c", Readiness::NotReady)] {
            assert_ne!(one, list(other.0, other.1, other.2), "{other:?}");
        }
    }

    #[test]
    fn an_endpoint_takes_24_octets() {
        assert_eq!(size_of::<Packed>(), 24);
    }
}
