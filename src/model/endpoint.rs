//! Endpoints and the slices that carry them.

use std::net::IpAddr;
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

/// A multi-cluster EndpointSlice, reduced to what DNS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The import it belongs to: the label `multicluster.kubernetes.io/service-name`.
    pub service: Label,
    /// The cluster its endpoints run in; `None` where the label is missing or can't be a cluster id (`dns.md` H12).
    pub cluster: Option<ClusterId>,
    /// The ports its endpoints listen on.
    pub ports: Box<[Port]>,
    /// Its endpoints, one per address.
    pub endpoints: Box<[Endpoint]>,
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
