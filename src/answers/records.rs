//! The same answers as plain records: for what the fast path leaves, for `explain`, and as its check.
//!
//! Nothing here is fast; everything is meant to be read. Where the two disagree, a test fails.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::lookup::{Data, Scope};
use super::service::{Family, Packed, PortFilter, ServiceAnswers};
use super::store::Store;
use super::zone::Zone;

/// A record of class IN.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The owner's name on the wire.
    pub owner: Vec<u8>,
    /// In seconds.
    pub ttl: u32,
    /// Type and data.
    pub rdata: Rdata,
}

/// The types that the zone holds. Names are on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Rdata {
    /// A or AAAA
    Address(IpAddr),
    /// SRV (RFC 2782); the priority is 0.
    Srv {
        /// The weight.
        weight: u16,
        /// The port.
        port: u16,
        /// The target.
        target: Vec<u8>,
    },
    /// NS
    Ns(Vec<u8>),
    /// SOA with the zone's fixed refresh 7200, retry 1800 and expire 86400.
    Soa {
        /// The primary server: `ns.dns.<zone>`.
        mname: Vec<u8>,
        /// The mailbox: `hostmaster.<zone>`.
        rname: Vec<u8>,
        /// The serial.
        serial: u32,
        /// The negative TTL (RFC 2308 §4).
        minimum: u32,
    },
    /// TXT, one string.
    Txt(String),
    /// HINFO `"RFC8482" ""` (RFC 8482 §4.2)
    Hinfo,
}

/// The sections of an answer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Records {
    /// Answer.
    pub answers: Vec<Record>,
    /// Additional, without OPT. Records of one RRset stand side by side.
    pub additional: Vec<Record>,
}

/// The records of `data`, asked for at `question` (on the wire, as it was asked), in a random order.
#[must_use]
pub fn records(store: &Store, zone: &Zone, question: &[u8], data: &Data<'_>, rng: &mut fastrand::Rng) -> Records {
    let options = store.options();
    let at_question = |ttl, rdata| Record { owner: question.to_vec(), ttl, rdata };
    let nameserver = |family: Option<Family>, owner: &[u8]| {
        let wanted = options.nameserver.iter().filter(|ip| family.is_none_or(|f| super::lookup::family_of(ip) == f));
        let mut addresses: Vec<_> = wanted.copied().collect();
        addresses.sort(); // IPv4 first, so that an RRset stands together
        let record = |ip| Record { owner: owner.to_vec(), ttl: options.ttl, rdata: Rdata::Address(ip) };
        addresses.into_iter().map(record).collect::<Vec<_>>()
    };
    let mut found = Records::default();
    match data {
        Data::Soa => found.answers.push(Record { ttl: options.ttl.min(300), ..soa(store, question) }),
        Data::Ns => {
            let target = below(&["ns", "dns"], zone_as_asked(zone, question));
            found.additional = nameserver(None, &target);
            found.answers.push(at_question(options.ttl, Rdata::Ns(target)));
        }
        Data::NsAddresses(family) => found.answers = nameserver(Some(*family), question),
        Data::Version => found.answers.push(at_question(28800, Rdata::Txt(options.dns_version.clone()))),
        Data::Hinfo => found.answers.push(at_question(options.ttl, Rdata::Hinfo)),
        Data::Addresses { service, scope, family } => {
            let addresses = addresses(service, scope, *family);
            found.answers = addresses.into_iter().map(|ip| at_question(options.ttl, Rdata::Address(ip))).collect();
            rng.shuffle(&mut found.answers);
            if let Some(most) = options.max_endpoints.filter(|_| service.headless && *scope == Scope::All) {
                found.answers.truncate(most);
            }
        }
        Data::Srv { service, scope, filter, target, weight } => {
            let mut targets = targets(service, scope, filter, target);
            rng.shuffle(&mut targets);
            if service.headless || *scope != Scope::All {
                targets.truncate(options.max_endpoints.unwrap_or(usize::MAX));
            }
            for Target { name, ports, addresses } in targets {
                let srv = |port| at_question(options.ttl, Rdata::Srv { weight: *weight, port, target: name.clone() });
                found.answers.extend(ports.into_iter().map(srv));
                let glue = |ip| Record { owner: name.clone(), ttl: options.ttl, rdata: Rdata::Address(ip) };
                found.additional.extend(addresses.into_iter().map(glue));
            }
        }
    }
    found
}

/// The SOA of a negative answer (RFC 2308 §3), owned by the zone as `question` spells it.
#[must_use]
pub fn negative_soa(store: &Store, zone: &Zone, question: &[u8]) -> Record {
    soa(store, zone_as_asked(zone, question))
}

/// The zone's name as the end of `question` spells it: the zone's own names follow the case they are asked in.
fn zone_as_asked<'q>(zone: &Zone, question: &'q [u8]) -> &'q [u8] {
    question.get(question.len().saturating_sub(zone.wire().len())..).unwrap_or_default()
}

fn soa(store: &Store, zone: &[u8]) -> Record {
    let rdata = Rdata::Soa {
        mname: below(&["ns", "dns"], zone),
        rname: below(&["hostmaster"], zone),
        serial: store.serial().get(),
        minimum: store.options().negttl,
    };
    Record { owner: zone.to_vec(), ttl: store.options().negttl, rdata }
}

/// A name of the zone's own.
fn below(labels: &[&str], zone: &[u8]) -> Vec<u8> {
    let own = labels.iter().flat_map(|l| std::iter::once(l.len() as u8).chain(l.bytes()));
    own.chain(zone.iter().copied()).collect()
}

fn addresses(service: &ServiceAnswers, scope: &Scope, family: Family) -> Vec<IpAddr> {
    if *scope == Scope::All {
        return match family {
            Family::V4 => service.a.iter().map(|octets| IpAddr::from(*octets)).collect(),
            Family::V6 => service.aaaa.iter().map(|octets| IpAddr::from(*octets)).collect(),
        };
    }
    let Some((endpoints, part)) = service.part(scope) else { return Vec::new() };
    let members = endpoints.packed.get(part).unwrap_or_default();
    let mut seen = HashSet::new();
    let all = members.iter().filter(|e| e.family() == family).filter_map(|e| endpoint_address(endpoints, e));
    all.filter(|ip| seen.insert(*ip)).collect()
}

fn endpoint_address(endpoints: &super::service::Endpoints, endpoint: &Packed) -> Option<IpAddr> {
    let mut v4 = [0; 4];
    address(endpoints.address(endpoint, &mut v4))
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(|o| Ipv4Addr::from(o).into()),
        _ => <[u8; 16]>::try_from(octets).ok().map(|o| Ipv6Addr::from(o).into()),
    }
}

/// What SRV records point to.
struct Target {
    name: Vec<u8>,
    ports: Vec<u16>,
    addresses: Vec<IpAddr>,
}

fn targets(service: &ServiceAnswers, scope: &Scope, filter: &PortFilter<'_>, target: &[u8]) -> Vec<Target> {
    let distinct = |numbers: &mut Vec<u16>, port: &crate::model::Port| {
        if filter.takes(port) && !numbers.contains(&port.number) {
            numbers.push(port.number);
        }
    };
    if *scope == Scope::All && !service.headless {
        let mut ports = Vec::new();
        service.ports.iter().for_each(|port| distinct(&mut ports, port));
        let both = [Family::V4, Family::V6].map(|family| addresses(service, scope, family));
        return vec![Target { name: target.to_vec(), ports, addresses: both.concat() }];
    }
    let Some((endpoints, part)) = service.part(scope) else { return Vec::new() };
    let mut targets: Vec<Target> = Vec::new();
    for endpoint in endpoints.packed.get(part).unwrap_or_default() {
        let name = [endpoints.host(endpoint), endpoints.cluster(endpoint), target].concat();
        if targets.last().is_none_or(|last| last.name != name) {
            targets.push(Target { name, ports: Vec::new(), addresses: Vec::new() });
        }
        let Some(last) = targets.last_mut() else { continue };
        endpoints.ports(endpoint).iter().for_each(|port| distinct(&mut last.ports, port));
        if let Some(ip) = endpoint_address(endpoints, endpoint).filter(|ip| !last.addresses.contains(ip)) {
            last.addresses.push(ip);
        }
    }
    targets.retain(|target| !target.ports.is_empty());
    targets
}
