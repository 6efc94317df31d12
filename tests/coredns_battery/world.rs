//! What the objects are, read from what the API server returned, with nothing of the product's own code: the facts by
//! which a difference is judged, and a plain tree of the names that ought to exist (`dns.md` 1.14).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use namesake::answers::{EndpointNames, Options};
use serde_json::Value;

/// The zone both servers have.
pub const ZONE: &str = "clusterset.local";

/// Namespace and name.
pub type Key = (String, String);

#[derive(Debug)]
pub struct Import {
    pub headless: bool,
    pub ips: Vec<String>,
    pub ports: Vec<Port>,
}

#[derive(Debug, Clone)]
pub struct Port {
    /// In lower case; empty where it has none.
    pub name: String,
    /// As written, in lower case; empty where there is none.
    pub protocol: String,
}

#[derive(Debug)]
pub struct Slice {
    /// In lower case; empty where the label is missing or empty.
    pub cluster: String,
    pub fqdn: bool,
    pub ports: Vec<Port>,
    pub endpoints: Vec<Endpoint>,
}

#[derive(Debug)]
pub struct Endpoint {
    pub address: String,
    pub hostname: Option<String>,
    pub pod: Option<String>,
    pub ready: bool,
}

/// What a name is, where it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Infrastructure,
    Service,
    Port,
    Host,
    /// Nothing but names below it.
    Empty,
}

/// Where a name stands. Labels are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Outside,
    Apex,
    /// `svc`, `pod`, `dns`, `ns.dns`, `dns-version`
    Infrastructure(String),
    Namespace(String),
    /// At or below a service's name: the labels left of it.
    Service(Key, Vec<String>),
    /// `<ip>.<namespace>.pod`, `<namespace>.pod`
    Pod(Vec<String>),
    Other,
}

pub struct World {
    pub namespaces: BTreeSet<String>,
    pub imports: BTreeMap<Key, Import>,
    pub slices: BTreeMap<Key, Vec<Slice>>,
    /// Every name that ought to exist, without the zone.
    pub nodes: BTreeMap<String, Kind>,
}

impl World {
    pub fn new(namespaces: &[Value], imports: &[Value], slices: &[Value], options: &Options) -> Self {
        let mut world = Self {
            namespaces: namespaces.iter().map(|o| text(&o["metadata"]["name"])).collect(),
            imports: imports.iter().map(|o| (key(o, text(&o["metadata"]["name"])), import(&o["spec"]))).collect(),
            slices: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        for object in slices {
            // In its own case: a name in capitals is no Service's.
            let service = object["metadata"]["labels"]["multicluster.kubernetes.io/service-name"].as_str();
            let service = service.unwrap_or_default().to_owned();
            world.slices.entry(key(object, service)).or_default().push(slice(object));
        }
        world.grow(options);
        world
    }

    pub fn slices(&self, key: &Key) -> &[Slice] {
        self.slices.get(key).map_or(&[], Vec::as_slice)
    }

    /// Where the name of these labels stands, and what is there.
    pub fn place(&self, labels: &[Vec<u8>]) -> (Place, Option<Kind>) {
        let labels: Vec<_> = labels.iter().map(|l| label_text(l)).collect();
        let zone: Vec<_> = ZONE.split('.').collect();
        let Some(front) = labels.len().checked_sub(zone.len()).filter(|front| labels[*front..] == zone[..]) else {
            return (Place::Outside, None);
        };
        let node = self.nodes.get(&labels[..front].join(".")).copied();
        let place = match &labels[..front] {
            [] => Place::Apex,
            [one] if ["svc", "pod", "dns", "dns-version"].contains(&one.as_str()) => Place::Infrastructure(one.clone()),
            [ns, dns] if ns == "ns" && dns == "dns" => Place::Infrastructure("ns.dns".to_owned()),
            [namespace, svc] if svc == "svc" => Place::Namespace(namespace.clone()),
            [left @ .., name, namespace, svc] if svc == "svc" => {
                Place::Service((namespace.clone(), name.clone()), left.to_vec())
            }
            [rest @ .., pod] if pod == "pod" => Place::Pod(rest.to_vec()),
            _ => Place::Other,
        };
        (place, node)
    }

    /// The addresses at a name, from the Take columns.
    pub fn addresses(&self, place: &Place, node: Option<Kind>, options: &Options) -> BTreeSet<String> {
        let Place::Service(key, left) = place else { return BTreeSet::new() };
        let Some(import) = self.imports.get(key) else { return BTreeSet::new() };
        let endpoints = self.slices(key).iter().flat_map(|s| s.served().map(move |e| (s, e)));
        match node {
            Some(Kind::Service) if !import.headless => import.ips.iter().cloned().collect(),
            Some(Kind::Service) => endpoints.map(|(_, e)| e.address.clone()).collect(),
            Some(Kind::Host) => {
                let name = left.join(".");
                let named = endpoints.filter(|(s, e)| format!("{}.{}", e.label(options), s.cluster) == name);
                named.map(|(_, e)| e.address.clone()).collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// The tree, from the Take columns.
    fn grow(&mut self, options: &Options) {
        let mut nodes = BTreeMap::new();
        for name in ["", "dns-version", "ns.dns"] {
            nodes.insert(name.to_owned(), Kind::Infrastructure);
        }
        for (key, import) in &self.imports {
            let served = options.namespaces.is_empty() || options.namespaces.contains(&key.0);
            if served && !key.1.contains('.') {
                let (name, slices) = (format!("{}.{}.svc", key.1, key.0), self.slices(key));
                nodes.extend(import.nodes(slices, options).into_iter().map(|(left, kind)| (left + &name, kind)));
            }
        }
        let empty: BTreeSet<_> =
            nodes.keys().flat_map(|name| name.match_indices('.').map(|(i, _)| name[i + 1..].to_owned())).collect();
        for name in empty.into_iter().chain(["svc".to_owned()]) {
            nodes.entry(name).or_insert(Kind::Empty);
        }
        self.nodes = nodes;
    }
}

impl Import {
    /// The names of this import, each as what stands in front of the service's.
    fn nodes(&self, slices: &[Slice], options: &Options) -> Vec<(String, Kind)> {
        let mut nodes = Vec::new();
        let live = slices.iter().filter(|s| s.served().count() > 0);
        let exists = if self.headless { live.count() > 0 } else { !options.ignore_empty_service || live.count() > 0 };
        if !exists {
            return nodes;
        }
        nodes.push((String::new(), Kind::Service));
        let mut ports = if self.headless { Vec::new() } else { self.ports.iter().collect() };
        let hosts = self.headless || options.endpoint_names == EndpointNames::All;
        for slice in slices.iter().filter(|s| hosts && !s.cluster.is_empty()) {
            for endpoint in slice.served() {
                let host = endpoint.label(options);
                nodes.push((format!("{host}.{}.", slice.cluster), Kind::Host));
                if self.headless {
                    ports.extend(&slice.ports);
                }
            }
        }
        for port in ports.iter().filter(|p| !p.name.is_empty()) {
            let protocol = if port.protocol.is_empty() { "tcp" } else { &port.protocol };
            nodes.push((format!("_{}._{protocol}.", port.name), Kind::Port));
        }
        nodes
    }
}

impl Endpoint {
    /// The label it goes by (`dns.md` 1.6, Take).
    pub fn label(&self, options: &Options) -> String {
        let label = self.coredns_label(options);
        if label.starts_with('-') { format!("0{label}") } else { label }
    }

    /// The label it goes by in CoreDNS.
    pub fn coredns_label(&self, options: &Options) -> String {
        match (&self.hostname, &self.pod) {
            (Some(hostname), _) => hostname.clone(),
            (None, Some(pod)) if options.endpoint_pod_names => pod.clone(),
            _ => {
                let dashed = self.address.replace(['.', ':'], "-");
                if dashed.ends_with('-') { dashed + "0" } else { dashed }
            }
        }
    }
}

impl Slice {
    /// What CoreDNS answers with.
    pub fn ready(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter(|e| e.ready)
    }

    /// What we answer with.
    pub fn served(&self) -> impl Iterator<Item = &Endpoint> {
        self.ready().filter(|e| !self.fqdn && !is_forbidden(&e.address))
    }
}

/// A label in lower case; octets that are not graphic ASCII, and dots, are escaped so that they equal no real one.
pub fn label_text(label: &[u8]) -> String {
    let octet = |b: &u8| {
        if b.is_ascii_graphic() && !b".\\".contains(b) {
            char::from(b.to_ascii_lowercase()).to_string()
        } else {
            format!("\\{b:03}")
        }
    };
    label.iter().map(octet).collect()
}

/// Whether a text in `spec.ips` is an address at all.
pub fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Whether nobody may have this address (`dns.md` C16, H18).
pub fn is_forbidden(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok_and(|ip| match ip {
        IpAddr::V4(ip) => {
            let nobody = ip.is_unspecified() || ip.is_broadcast();
            nobody || ip.is_loopback() || ip.is_link_local() || ip.is_multicast()
        }
        IpAddr::V6(ip) => {
            let nobody = ip.is_unspecified() || ip.to_ipv4_mapped().is_some();
            nobody || ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast()
        }
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_lowercase()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn key(object: &Value, name: String) -> Key {
    (text(&object["metadata"]["namespace"]), name)
}

fn ports(value: &Value) -> Vec<Port> {
    list(value).iter().map(|p| Port { name: text(&p["name"]), protocol: text(&p["protocol"]) }).collect()
}

fn import(spec: &Value) -> Import {
    Import {
        headless: spec["type"] == "Headless",
        ips: list(&spec["ips"]).iter().map(text).collect(),
        ports: ports(&spec["ports"]),
    }
}

fn slice(object: &Value) -> Slice {
    let endpoints = list(&object["endpoints"]).iter().flat_map(|endpoint| {
        let ready = endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        let name = |value: &Value| value.as_str().map(str::to_ascii_lowercase);
        let (hostname, pod) = (name(&endpoint["hostname"]), name(&endpoint["targetRef"]["name"]));
        list(&endpoint["addresses"]).iter().map(move |address| Endpoint {
            address: text(address),
            hostname: hostname.clone(),
            pod: pod.clone(),
            ready,
        })
    });
    Slice {
        cluster: text(&object["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"]),
        fqdn: object["addressType"] == "FQDN",
        ports: ports(&object["ports"]),
        endpoints: endpoints.collect(),
    }
}
