//! From a view to a snapshot: decided when a service changes, once.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::options::{EmptyHeadless, EndpointNames, EndpointPolicy, Options};
use super::service::{ClusterPart, Endpoints, FewV4, Packed, PortSet, ServiceAnswers, V6};
use crate::index::View;
use crate::model::{ClusterId, EndpointObjects, EndpointRef, ImportKind, Port, Readiness, Slice, dashed_address};

/// What came of building.
#[derive(Debug, Default)]
pub struct Built {
    /// The snapshot; `None` where the service's name does not exist.
    pub answers: Option<ServiceAnswers>,
    /// Endpoint names that would be longer than 255 octets and are left out (`dns.md` T22).
    pub too_long: usize,
}

/// Up to this many endpoints are searched one by one; more get a table.
const LINEAR: usize = 8;

/// Builds what is served of a service.
#[must_use]
pub fn build(view: &View<'_>, options: &Options) -> Built {
    if !options.namespaces.is_empty() && !options.namespaces.iter().any(|n| n == view.key.namespace.as_str()) {
        return Built::default();
    }
    let slices: &[_] = if options.no_endpoints { &[] } else { &view.slices };
    let served = served(&slices.iter().map(|(_, slice)| *slice), options.endpoints);
    let headless = view.import.kind == ImportKind::Headless;
    let exists = if headless {
        !served.is_empty() || options.empty_headless == EmptyHeadless::Nodata
    } else {
        // `Absent` says that nobody writes slices here: their lack means nothing.
        !(options.ignore_empty_service
            && served.is_empty()
            && view.import.endpoint_objects != EndpointObjects::Absent
            && !options.no_endpoints)
    };
    if !exists {
        return Built::default();
    }
    let hosts = headless || options.endpoint_names == EndpointNames::All;
    let (endpoints, too_long) = if hosts || options.cluster_names { pack(view, &served, options) } else { (None, 0) };
    let (a, aaaa) = if headless {
        by_family(served.iter().map(|(_, e)| e.address))
    } else {
        by_family(view.import.ips.iter().copied())
    };
    let ports = if headless { Arc::default() } else { view.import.ports.clone() };
    let cluster_names = options.cluster_names;
    let listed = view.import.ips.len().min(usize::from(u8::MAX)) as u8; // the CRD allows two
    let answers = ServiceAnswers { a, aaaa, ports, endpoints, headless, hosts, cluster_names, listed };
    Built { answers: Some(answers), too_long }
}

/// The endpoints to answer with.
fn served<'a>(
    slices: &(impl Iterator<Item = &'a Slice> + Clone),
    policy: EndpointPolicy,
) -> Vec<(&'a Slice, EndpointRef<'a>)> {
    let with = |readiness| {
        let mut found = Vec::with_capacity(slices.clone().map(|slice| slice.endpoints.len()).sum());
        for slice in slices.clone() {
            found.extend(slice.endpoints.iter().filter(|e| e.readiness == readiness).map(|e| (slice, e)));
        }
        found
    };
    let ready = with(Readiness::Ready);
    if ready.is_empty() && policy == EndpointPolicy::ServingFallback {
        return with(Readiness::ServingTerminating);
    }
    ready
}

/// IPv4 and IPv6 addresses, in octets.
type ByFamily = (FewV4, Box<[[u8; 16]]>);

/// The addresses of the service name by family, each distinct one once.
fn by_family(addresses: impl ExactSizeIterator<Item = IpAddr>) -> ByFamily {
    let mut seen = HashSet::with_capacity_and_hasher(addresses.len(), RandomState::default());
    let (mut a, mut aaaa) = (FewV4::with_capacity(addresses.len()), Vec::new());
    for address in addresses.filter(|address| seen.insert(*address)) {
        match address {
            IpAddr::V4(ip) => a.push(ip.octets()),
            IpAddr::V6(ip) => aaaa.push(ip.octets()),
        }
    }
    a.shrink_to_fit();
    (a, aaaa.into_boxed_slice())
}

/// An endpoint on its way into the pack.
struct Loose<'a> {
    cluster: &'a ClusterId,
    host: Cow<'a, str>,
    address: IpAddr,
    ports: &'a Arc<[Port]>,
}

/// Sorts the endpoints that have names by cluster and host, and packs them.
fn pack<'a>(
    view: &View<'a>,
    served: &[(&'a Slice, EndpointRef<'a>)],
    options: &Options,
) -> (Option<Box<Endpoints>>, usize) {
    let room = room(view, options);
    let mut too_long = 0;
    let mut loose: Vec<Loose<'_>> = Vec::with_capacity(served.len());
    for (slice, endpoint) in served {
        let Some(cluster) = &slice.cluster else { continue };
        let host = host(endpoint, options);
        if host.len() + cluster.as_str().len() + 2 > room {
            too_long += 1;
            continue;
        }
        loose.push(Loose { cluster, host, address: endpoint.address, ports: &slice.ports });
    }
    // IPv4 before IPv6 (the order of IpAddr), equal addresses side by side.
    loose.sort_unstable_by(|a, b| {
        (a.cluster, &a.host, a.address, a.ports).cmp(&(b.cluster, &b.host, b.address, b.ports))
    });
    if loose.is_empty() {
        return (None, too_long);
    }
    let mut pack = Packer {
        packed: Vec::with_capacity(loose.len()),
        text: Vec::with_capacity(loose.iter().map(|endpoint| endpoint.host.len() + 1).sum()),
        ..Packer::default()
    };
    for endpoint in &loose {
        pack.push(endpoint);
    }
    (Some(Box::new(pack.finish())), too_long)
}

/// Octets left for `<host>.<cluster>` with their length octets, in the longest zone.
fn room(view: &View<'_>, options: &Options) -> usize {
    let zone = options.zones.iter().map(|z| z.trim_end_matches('.').len() + 2).max().unwrap_or(1);
    // one length octet more for each label, and `svc` with its own
    255usize.saturating_sub(zone + view.key.name.as_str().len() + view.key.namespace.as_str().len() + 2 + 4)
}

/// The label an endpoint is known by (`dns.md` 1.6).
fn host<'a>(endpoint: &EndpointRef<'a>, options: &Options) -> Cow<'a, str> {
    let pod = endpoint.pod.filter(|_| options.endpoint_pod_names);
    match endpoint.hostname.or(pod) {
        Some(label) => label.into(),
        None => dashed_address(endpoint.address).into(),
    }
}

#[derive(Default)]
struct Packer<'a> {
    packed: Vec<Packed>,
    v6: Vec<[u8; 16]>,
    text: Vec<u8>,
    clusters: Vec<ClusterPart>,
    sets: Vec<PortSet>,
    set_of: BTreeMap<&'a [Port], u32>,
    last_set: Option<(&'a Arc<[Port]>, u32)>,
    last: Option<(&'a ClusterId, &'a str)>,
    runs: usize,
}

impl<'a> Packer<'a> {
    fn push(&mut self, endpoint: &'a Loose<'a>) {
        let new_cluster = self.last.is_none_or(|(cluster, _)| cluster != endpoint.cluster);
        if new_cluster {
            let wire = endpoint.cluster.labels().flat_map(wire_label).collect();
            self.clusters.push(ClusterPart { wire, start: self.packed.len() as u32 });
        }
        let same_host = !new_cluster && self.last.is_some_and(|(_, host)| host == endpoint.host);
        let host = match self.packed.last() {
            Some(last) if same_host => last.host,
            _ => {
                self.runs += 1;
                let at = self.text.len() as u32;
                self.text.push(endpoint.host.len() as u8);
                self.text.extend_from_slice(endpoint.host.as_bytes());
                at
            }
        };
        let (address, family) = match endpoint.address {
            IpAddr::V4(ip) => (u32::from(ip), 0),
            IpAddr::V6(ip) => {
                self.v6.push(ip.octets());
                (self.v6.len() as u32 - 1, V6)
            }
        };
        let next = self.sets.len() as u32;
        let set = match self.last_set {
            // Those of a slice have one list of ports, and nearly always come one after the other.
            Some((ports, set)) if Arc::ptr_eq(ports, endpoint.ports) => set,
            _ => *self.set_of.entry(&**endpoint.ports).or_insert(next),
        };
        self.last_set = Some((endpoint.ports, set));
        if set == next {
            self.sets.push(PortSet { ports: endpoint.ports.clone(), endpoints: 0 });
        }
        self.sets[set as usize].endpoints += 1;
        self.packed.push(Packed { host, address, cluster: self.clusters.len() as u32 - 1, set: set | family });
        self.last = Some((endpoint.cluster, &endpoint.host));
    }

    fn finish(self) -> Endpoints {
        let mut endpoints = Endpoints {
            packed: self.packed.into_boxed_slice(),
            v6: self.v6.into_boxed_slice(),
            text: self.text.into_boxed_slice(),
            clusters: self.clusters.into_boxed_slice(),
            sets: self.sets.into_boxed_slice(),
            table: Box::default(),
            hasher: RandomState::default(),
        };
        if endpoints.packed.len() > LINEAR {
            endpoints.table = table(&endpoints, self.runs);
        }
        endpoints
    }
}

/// The open-addressing table over hosts: a slot holds the place of the host's first endpoint plus one; 0 is free.
/// At most three quarters are taken, so a search for what is not there ends soon.
fn table(endpoints: &Endpoints, runs: usize) -> Box<[u32]> {
    let mut table = vec![0u32; runs * 4 / 3 + 1].into_boxed_slice();
    let (mut at, mut name) = (0, Vec::with_capacity(128));
    while let Some(first) = endpoints.packed.get(at) {
        name.clear();
        name.extend_from_slice(endpoints.host(first));
        name.extend_from_slice(endpoints.cluster(first));
        let mut slot = endpoints.slot(&name, table.len());
        while table[slot] != 0 {
            slot = (slot + 1) % table.len();
        }
        table[slot] = at as u32 + 1;
        at = endpoints.run(at).end;
    }
    table
}

/// A label with its length octet. Labels of the model are 1 to 63 bytes.
fn wire_label(label: &str) -> impl Iterator<Item = u8> {
    std::iter::once(label.len() as u8).chain(label.bytes())
}
