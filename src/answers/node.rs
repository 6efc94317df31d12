//! The names below a service: `dns.md` 1.14.
//!
//! | labels left of the service | name |
//! |---|---|
//! | none | the service |
//! | 1 | `_tcp`, `<cluster>`: nothing of their own, but names below (empty non-terminals) |
//! | 2 | `_port._tcp`, `<host>.<cluster>`, or a cluster id of two labels |
//! | 3 | `<host>.<cluster of two labels>` |
//!
//! With the option `cluster_names`, `<cluster>` has addresses, and `_port._tcp` exists below it too.

use std::ops::Range;

use super::lookup::Scope;
use super::name::QueryName;
use super::service::{Endpoints, PortFilter, ServiceAnswers};
use crate::model::{Port, Protocol};

/// A name that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node<'q> {
    /// The service's own.
    Service,
    /// A name without records that has names below it.
    Empty,
    /// `_port._protocol`, of the service or of a cluster.
    Port(PortFilter<'q>, Scope),
    /// An endpoint's: the endpoints that share it.
    Host(Range<usize>),
    /// A cluster's, with the option `cluster_names`.
    Cluster(Range<usize>),
}

impl ServiceAnswers {
    /// The name of the first `left` labels of `name` below this service, if it exists.
    #[inline]
    pub(super) fn node<'q>(&self, name: &QueryName<'q>, left: usize) -> Option<Node<'q>> {
        if left == 0 {
            return Some(Node::Service);
        }
        if left > 4 {
            return None;
        }
        if name.label(0).first() == Some(&b'_') {
            return self.underscored(name, left);
        }
        let endpoints = self.endpoints.as_deref()?;
        if self.hosts
            && left >= 2
            && let Some(run) = endpoints.find(name.range(0, left))
        {
            return Some(Node::Host(run));
        }
        self.cluster_node(endpoints, name.range(0, left), left)
    }

    /// `<cluster>`, or the right label of one with two.
    fn cluster_node<'q>(&self, endpoints: &Endpoints, wire: &[u8], left: usize) -> Option<Node<'q>> {
        let mut below = false;
        for (i, cluster) in endpoints.clusters.iter().enumerate() {
            if *cluster.wire == *wire {
                let node = if self.cluster_names { Node::Cluster(endpoints.of_cluster(i)) } else { Node::Empty };
                return Some(node);
            }
            below |= left == 1 && right_label(&cluster.wire) == Some(wire);
        }
        below.then_some(Node::Empty)
    }

    /// `_protocol`, or `_port._protocol`; both, with `cluster_names`, also in front of a cluster.
    fn underscored<'q>(&self, name: &QueryName<'q>, left: usize) -> Option<Node<'q>> {
        let both = left >= 2 && name.label(1).first() == Some(&b'_');
        let own = if both { 2 } else { 1 };
        let scope = if left == own {
            Scope::All
        } else {
            // Without endpoint names the targets would not resolve.
            let endpoints = self.endpoints.as_deref().filter(|_| self.cluster_names && self.hosts)?;
            let wire = name.range(own, left);
            let i = endpoints.clusters.iter().position(|c| *c.wire == *wire)?;
            Scope::Part(endpoints.of_cluster(i))
        };
        let protocol = protocol(name.label(own - 1))?;
        if both {
            let filter = PortFilter::Named(name.label(0).get(1..)?, protocol);
            return self.any_port(&scope, |p| filter.takes(p)).then_some(Node::Port(filter, scope));
        }
        self.any_port(&scope, |p| p.name.is_some() && p.protocol == protocol).then_some(Node::Empty)
    }

    fn any_port(&self, scope: &Scope, wanted: impl Fn(&Port) -> bool) -> bool {
        let endpoints = self.endpoints.as_deref();
        match scope {
            Scope::All if !self.headless => self.ports.iter().any(wanted),
            Scope::All => endpoints.is_some_and(|e| e.sets.iter().flat_map(|s| s.ports.iter()).any(wanted)),
            Scope::Part(part) => endpoints.is_some_and(|e| {
                let packed = e.packed.get(part.clone()).unwrap_or_default();
                packed.iter().flat_map(|p| e.ports(p)).any(wanted)
            }),
        }
    }
}

/// `_tcp`, `_udp`, `_sctp`, in lower case.
fn protocol(label: &[u8]) -> Option<Protocol> {
    [Protocol::Tcp, Protocol::Udp, Protocol::Sctp].into_iter().find(|p| p.label().as_bytes() == label)
}

/// The second of two labels on the wire.
fn right_label(wire: &[u8]) -> Option<&[u8]> {
    let first = usize::from(*wire.first()?) + 1;
    wire.get(first..).filter(|rest| !rest.is_empty())
}
