//! Finding the answer: zone, name, type, in the order of RFC 1034 §4.3.2.

use std::ops::Range;
use std::sync::Arc;

use super::edns::Ede;
use super::name::QueryName;
use super::node::Node;
use super::rrtype;
use super::service::{Family, PortFilter, ServiceAnswers};
use super::store::Store;
use super::zone::Zone;

/// Which endpoints of a service an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them; of a ClusterSetIP import, its addresses.
    All,
    /// These: those of one host, or of one cluster.
    Part(Range<usize>),
}

/// The records of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Data<'a> {
    /// The zone's SOA.
    Soa,
    /// The zone's NS, with its addresses as glue.
    Ns,
    /// The addresses of `ns.dns.<zone>`.
    NsAddresses(Family),
    /// The TXT of `dns-version.<zone>`.
    Version,
    /// The HINFO that answers ANY (RFC 8482 §4.2).
    Hinfo,
    /// Addresses of a service, an endpoint or a cluster.
    Addresses {
        /// Whose.
        service: &'a ServiceAnswers,
        /// Which.
        scope: Scope,
        /// Of which family.
        family: Family,
    },
    /// SRV records of a service, an endpoint or a cluster.
    Srv {
        /// Whose.
        service: &'a ServiceAnswers,
        /// Which.
        scope: Scope,
        /// For which ports.
        filter: PortFilter<'a>,
        /// The service's full name on the wire, in lower case: the end of the question's.
        target: &'a [u8],
        /// The weight of each record.
        weight: u16,
    },
}

/// What the answer is.
#[derive(Debug, Clone)]
pub enum Verdict<'a> {
    /// The name is in none of our zones.
    Refused,
    /// The name is in a zone whose data is not there (yet).
    ServFail(u8, Ede),
    /// The name does not exist.
    NxDomain(&'a Zone),
    /// The name exists, but not with this type.
    NoData(&'a Zone),
    /// The records.
    Data(&'a Zone, Data<'a>),
}

/// Looks a name and type up and hands the verdict to `then`. The class is IN and the type an ordinary one.
#[inline]
pub fn lookup<R>(store: &Store, name: &QueryName<'_>, qtype: u16, then: impl FnOnce(&Verdict<'_>) -> R) -> R {
    let mut held = None;
    then(&verdict(store, name, qtype, &mut held))
}

/// The verdict, and in `held` the snapshot that it borrows from.
#[inline]
fn verdict<'a>(
    store: &'a Store,
    name: &QueryName<'a>,
    qtype: u16,
    held: &'a mut Option<Arc<ServiceAnswers>>,
) -> Verdict<'a> {
    let Some((zone, front)) = store.zone_of(name) else { return Verdict::Refused };
    if front < 3
        && let Some(verdict) = own_name(store, zone, name, front, qtype)
    {
        return verdict;
    }
    // From here on the answer depends on what was delivered: nothing is said before it is complete.
    if let Some(ede) = store.state().withheld() {
        return Verdict::ServFail(zone.index, ede);
    }
    // Counted from the zone: `svc`, the namespace, the service, and what is left of it.
    if name.label(front - 1) != b"svc" {
        return Verdict::NxDomain(zone);
    }
    if front == 2 {
        let exists = store.has_namespace(name.range(0, 1));
        return if exists { Verdict::NoData(zone) } else { Verdict::NxDomain(zone) };
    }
    let left = front - 3;
    let Some(service) = store.service(name.range(left, left + 2)) else { return Verdict::NxDomain(zone) };
    let service: &Arc<_> = held.get_or_insert(service);
    if left == 0
        && let Some(family) = family(qtype)
    {
        // What is asked most: there is nothing more to find.
        let data = Data::Addresses { service, scope: Scope::All, family };
        return if service.address_count(family) == 0 { Verdict::NoData(zone) } else { Verdict::Data(zone, data) };
    }
    match service.node(name, left) {
        None => Verdict::NxDomain(zone),
        Some(node) => records(zone, service, node, name.from(left), qtype),
    }
}

/// What the zone says of itself, whatever was delivered: `front` labels in front of it, fewer than three.
#[inline(never)] // asked seldom: kept out of the way of the rest
fn own_name<'a>(store: &Store, zone: &'a Zone, name: &QueryName<'a>, front: usize, qtype: u16) -> Option<Verdict<'a>> {
    match (front, name.label(0)) {
        (0, _) => Some(apex(zone, qtype)),
        // Empty non-terminals: nothing of any type, ANY included (`dns.md` O7).
        (1, b"svc" | b"dns") => Some(Verdict::NoData(zone)),
        (1, b"dns-version") => Some(single(zone, qtype, rrtype::TXT, Data::Version)),
        (2, b"ns") if name.label(1) == b"dns" => Some(nameserver(store, zone, qtype)),
        _ => None,
    }
}

/// What `ns.dns.<zone>` says.
fn nameserver<'a>(store: &Store, zone: &'a Zone, qtype: u16) -> Verdict<'a> {
    let addresses = &store.options().nameserver;
    match family(qtype) {
        Some(family) if addresses.iter().any(|ip| family_of(ip) == family) => {
            Verdict::Data(zone, Data::NsAddresses(family))
        }
        None if qtype == rrtype::ANY && !addresses.is_empty() => Verdict::Data(zone, Data::Hinfo),
        _ => Verdict::NoData(zone),
    }
}

/// The records of a type at a name that exists.
fn records<'a>(
    zone: &'a Zone,
    service: &'a ServiceAnswers,
    node: Node<'a>,
    target: &'a [u8],
    qtype: u16,
) -> Verdict<'a> {
    // Of a name that holds nothing (yet) ANY says so, like any other type; it is no lie there (RFC 8482 §4.2).
    if qtype == rrtype::ANY {
        let held = [rrtype::A, rrtype::AAAA, rrtype::SRV];
        let held = held.into_iter().filter_map(|held| node.clone().data(service, target, held)).any(|d| !d.is_empty());
        return if held { Verdict::Data(zone, Data::Hinfo) } else { Verdict::NoData(zone) };
    }
    match node.data(service, target, qtype) {
        Some(data) if !data.is_empty() => Verdict::Data(zone, data),
        _ => Verdict::NoData(zone),
    }
}

impl<'a> Node<'a> {
    /// The records of a type at this name, if it can have any of that type.
    #[inline]
    fn data(self, service: &'a ServiceAnswers, target: &'a [u8], qtype: u16) -> Option<Data<'a>> {
        let addresses = |scope| Some(Data::Addresses { service, scope, family: family(qtype)? });
        let srv = |scope, filter| {
            let weight = service.srv_weight(&scope, &filter)?;
            Some(Data::Srv { service, scope, filter, target, weight })
        };
        match (self, qtype) {
            (Node::Service, rrtype::SRV) => srv(Scope::All, PortFilter::Any),
            (Node::Port(filter, scope), rrtype::SRV) => srv(scope, filter),
            (Node::Host(run), rrtype::SRV) => srv(Scope::Part(run), PortFilter::Any),
            (Node::Service, _) => addresses(Scope::All),
            (Node::Host(run) | Node::Cluster(run), _) => addresses(Scope::Part(run)),
            (Node::Port(..) | Node::Empty, _) => None,
        }
    }
}

impl Data<'_> {
    /// Whether there is no record of this kind.
    #[inline]
    fn is_empty(&self) -> bool {
        match self {
            Data::Addresses { service, scope: Scope::All, family } => service.address_count(*family) == 0,
            Data::Addresses { service, scope: Scope::Part(part), family } => {
                let endpoints = service.endpoints.as_deref();
                !endpoints
                    .and_then(|e| e.packed.get(part.clone()))
                    .is_some_and(|p| p.iter().any(|e| e.family() == *family))
            }
            Data::Srv { .. } | Data::Soa | Data::Ns | Data::NsAddresses(_) | Data::Version | Data::Hinfo => false,
        }
    }
}

fn apex(zone: &Zone, qtype: u16) -> Verdict<'_> {
    match qtype {
        rrtype::SOA => Verdict::Data(zone, Data::Soa),
        rrtype::NS => Verdict::Data(zone, Data::Ns),
        rrtype::ANY => Verdict::Data(zone, Data::Hinfo),
        _ => Verdict::NoData(zone),
    }
}

/// A name with one type.
fn single<'a>(zone: &'a Zone, qtype: u16, has: u16, data: Data<'a>) -> Verdict<'a> {
    if qtype == has {
        Verdict::Data(zone, data)
    } else if qtype == rrtype::ANY {
        Verdict::Data(zone, Data::Hinfo)
    } else {
        Verdict::NoData(zone)
    }
}

#[inline]
fn family(qtype: u16) -> Option<Family> {
    match qtype {
        rrtype::A => Some(Family::V4),
        rrtype::AAAA => Some(Family::V6),
        _ => None,
    }
}

pub(super) fn family_of(address: &std::net::IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}
