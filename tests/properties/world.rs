//! Small clustersets in which everything collides with everything: few names, few addresses, all states.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use namesake::answers::{EmptyHeadless, EndpointNames, EndpointPolicy, Options};
use namesake::model::{
    Change, ClusterId, Endpoint, EndpointObjects, Import, ImportKind, Label, Port, Protocol, Readiness, Resource,
    ServiceKey, SkipReason, Skipped, Slice, SliceKey, Update,
};
use proptest::prelude::*;
use proptest::sample::select;

pub const NAMESPACES: [&str; 2] = ["shop", "lab"];
pub const SERVICES: [&str; 3] = ["db", "web", "a"];
/// Hostnames that are also clusters, halves of clusters, and ports without their underscore.
pub const HOSTS: [&str; 5] = ["db-0", "a", "b", "east", "pg"];
pub const CLUSTERS: [&str; 5] = ["east", "b", "a.b", "eu.east", "tcp"];
pub const PORTS: [&str; 2] = ["pg", "http"];
const SLICES: [&str; 4] = ["s1", "s2", "s3", "s4"];

fn label(text: &str) -> Label {
    Label::new(text).expect("a label")
}

fn port() -> impl Strategy<Value = Port> {
    let name = prop_oneof![3 => select(&PORTS[..]).prop_map(Some), 1 => Just(None)];
    let protocol = select(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Sctp][..]);
    (name, protocol, 1_u16..4).prop_map(|(name, protocol, number)| Port { name: name.map(label), protocol, number })
}

fn address(v6: bool) -> impl Strategy<Value = IpAddr> {
    (1_u8..6).prop_map(move |n| {
        if v6 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 1, 0, n))
        }
    })
}

fn skipped() -> impl Strategy<Value = Box<[Skipped]>> {
    let one = select(&[SkipReason::BadAddress, SkipReason::BadPort, SkipReason::ForbiddenAddress][..]);
    prop::collection::vec(one, 0..2)
        .prop_map(|reasons| reasons.into_iter().map(|reason| Skipped { reason, what: "a test".into() }).collect())
}

pub fn import() -> impl Strategy<Value = Import> {
    let kind = select(&[ImportKind::ClusterSetIp, ImportKind::Headless, ImportKind::Headless][..]);
    let ips = prop::collection::vec(any::<bool>().prop_flat_map(address), 0..3);
    let objects = select(&[EndpointObjects::Unknown, EndpointObjects::Present, EndpointObjects::Absent][..]);
    (kind, ips, prop::collection::vec(port(), 0..3), objects, skipped()).prop_map(
        |(kind, ips, ports, objects, skipped)| {
            let ips = if kind == ImportKind::Headless { Vec::new() } else { ips };
            Import {
                kind,
                ips: ips.into(),
                ports: ports.into(),
                clusters: [].into(),
                endpoint_objects: objects,
                skipped,
            }
        },
    )
}

fn endpoint(v6: bool) -> impl Strategy<Value = Endpoint> {
    let hostname = prop_oneof![2 => select(&HOSTS[..]).prop_map(Some), 1 => Just(None)];
    let pod = prop_oneof![1 => Just(Some("pod-1")), 2 => Just(None)];
    let readiness =
        select(&[Readiness::Ready, Readiness::Ready, Readiness::ServingTerminating, Readiness::NotReady][..]);
    (address(v6), hostname, pod, readiness).prop_map(|(address, hostname, pod, readiness)| Endpoint {
        address,
        hostname: hostname.map(label),
        pod: pod.map(label),
        readiness,
    })
}

pub fn slice() -> impl Strategy<Value = Slice> {
    let cluster = prop_oneof![5 => select(&CLUSTERS[..]).prop_map(Some), 1 => Just(None)];
    let endpoints = any::<bool>().prop_flat_map(|v6| prop::collection::vec(endpoint(v6), 0..4));
    (select(&SERVICES[..]), cluster, prop::collection::vec(port(), 0..3), endpoints, skipped()).prop_map(
        |(service, cluster, ports, endpoints, skipped)| Slice {
            service: label(service),
            cluster: cluster.map(|c| ClusterId::new(c).expect("a cluster id")),
            ports: ports.into(),
            endpoints: endpoints.into_iter().collect(),
            triggered: None,
            skipped,
        },
    )
}

fn service_key() -> impl Strategy<Value = ServiceKey> {
    (select(&NAMESPACES[..]), select(&SERVICES[..])).prop_map(|(n, s)| ServiceKey::new(n, s).expect("labels"))
}

fn slice_key() -> impl Strategy<Value = SliceKey> {
    (select(&NAMESPACES[..]), select(&SLICES[..])).prop_map(|(n, s)| SliceKey { namespace: label(n), name: s.into() })
}

fn unreadable() -> impl Strategy<Value = Change> {
    let object = prop_oneof![
        service_key().prop_map(|k| (Resource::Imports, k.namespace.to_string(), k.name.to_string())),
        slice_key().prop_map(|k| (Resource::Slices, k.namespace.to_string(), k.name.to_string())),
    ];
    (object, select(&["once", "twice"][..])).prop_map(|((resource, namespace, name), what)| Change::Unreadable {
        resource,
        namespace: namespace.into(),
        name: name.into(),
        skipped: Skipped { reason: SkipReason::Unreadable, what: what.into() },
    })
}

/// Objects that go without ever having had a key.
fn forgotten() -> impl Strategy<Value = Change> {
    unreadable().prop_map(|change| match change {
        Change::Unreadable { resource, namespace, name, .. } => Change::Forgotten { resource, namespace, name },
        other => other,
    })
}

/// Objects that are there.
pub fn present() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => (service_key(), import()).prop_map(|(key, import)| Change::Import(key, Some(import))),
        3 => (slice_key(), slice()).prop_map(|(key, slice)| Change::Slice(key, Some(slice))),
    ]
}

/// Objects that come, change, go, or can't be read.
pub fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => present(),
        1 => service_key().prop_map(|key| Change::Import(key, None)),
        1 => slice_key().prop_map(|key| Change::Slice(key, None)),
        1 => unreadable(),
        1 => forgotten(),
    ]
}

/// Changes, and resyncs that begin, start over, overlap and end.
pub fn updates() -> impl Strategy<Value = Vec<Update>> {
    let resource = || select(&Resource::ALL[..]);
    let update = prop_oneof![
        8 => change().prop_map(Update::Change),
        1 => resource().prop_map(Update::ResyncBegin),
        1 => resource().prop_map(Update::ResyncEnd),
    ];
    prop::collection::vec(update, 0..40)
}

/// A whole clusterset.
pub fn world() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(present(), 0..16)
}

/// Every combination of the options that decide which names exist.
pub fn options() -> impl Strategy<Value = Options> {
    (any::<[bool; 7]>()).prop_map(|[names, all, pods, nodata, ignore, fallback, none]| Options {
        cluster_names: names,
        endpoint_names: if all { EndpointNames::All } else { EndpointNames::Headless },
        endpoint_pod_names: pods,
        empty_headless: if nodata { EmptyHeadless::Nodata } else { EmptyHeadless::Nxdomain },
        ignore_empty_service: ignore,
        endpoints: if fallback { EndpointPolicy::ServingFallback } else { EndpointPolicy::Ready },
        no_endpoints: none && ignore && nodata,
        ..Options::default()
    })
}

/// Names that may exist in such a clusterset, and near misses.
pub fn names() -> Vec<String> {
    let mut names: Vec<_> = ["", "dns", "ns.dns", "dns-version", "svc", "pod", "x", "x.svc"].map(str::to_owned).into();
    let left = left_of_a_service();
    for namespace in NAMESPACES {
        names.push(format!("{namespace}.svc"));
        for service in SERVICES {
            let service = format!("{service}.{namespace}.svc");
            names.extend(left.iter().map(|left| format!("{left}.{service}")));
            names.push(service);
        }
    }
    names
}

/// What may stand left of `<service>.<namespace>.svc`.
fn left_of_a_service() -> Vec<String> {
    let mut left = Vec::new();
    let protocols = ["_tcp", "_udp", "_sctp"];
    left.extend(protocols.map(str::to_owned));
    left.extend(protocols.iter().flat_map(|p| PORTS.map(|port| format!("_{port}.{p}"))));
    for cluster in CLUSTERS {
        left.push(cluster.to_owned());
        left.extend(HOSTS.map(|host| format!("{host}.{cluster}")));
        left.extend(["10-1-0-1", "fd00--1", "pod-1", "x"].map(|host| format!("{host}.{cluster}")));
        left.extend([format!("_pg._tcp.{cluster}"), format!("_tcp.{cluster}"), format!("x.db-0.{cluster}")]);
    }
    left.extend(["x", "db-0", "_pg", "pg._tcp", "_pg.tcp", "_._tcp", "x._tcp", "x._pg._tcp"].map(str::to_owned));
    left
}
