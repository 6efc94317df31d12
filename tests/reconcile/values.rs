//! Short words for the values that tests are made of.

use std::net::IpAddr;

use namesake::model::{ClusterId, Label, Protocol, ServiceKey};
use namesake::reconcile::objects::*;
use namesake::reconcile::plan::{Action, Change};

pub fn id(cluster: &str) -> ClusterId {
    ClusterId::new(cluster).expect("a cluster id")
}

/// `namespace/name`
pub fn key(text: &str) -> ServiceKey {
    let (namespace, name) = text.split_once('/').expect("namespace/name");
    ServiceKey::new(namespace, name).expect("a key")
}

pub fn label(text: &str) -> Label {
    Label::new(text).expect("a label")
}

pub fn map<const N: usize>(pairs: [(&str, &str); N]) -> Map {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// `http 80`, `http 80/UDP`, `80` (without a name): a port of a Service.
pub fn port(text: &str) -> ServicePort {
    let (name, rest) = text.rsplit_once(' ').unwrap_or(("", text));
    let (number, protocol) = rest.split_once('/').unwrap_or((rest, "TCP"));
    ServicePort {
        name: name.into(),
        protocol: Protocol::new(Some(protocol)).expect("a protocol"),
        port: number.parse().expect("a number"),
        app_protocol: None,
        target: None,
    }
}

pub fn ports<const N: usize>(texts: [&str; N]) -> Vec<ServicePort> {
    texts.into_iter().map(port).collect()
}

/// The same, of a slice.
pub fn slice_port(text: &str) -> SlicePort {
    let ServicePort { name, protocol, port, app_protocol, .. } = port(text);
    SlicePort { name, protocol, port, app_protocol }
}

pub fn describe(list: &[ServicePort]) -> Vec<String> {
    list.iter().map(|p| format!("{} {}/{:?}", p.name, p.port, p.protocol)).collect()
}

pub fn describe_slice(list: &[SlicePort]) -> Vec<String> {
    list.iter().map(|p| format!("{} {}/{:?}", p.name, p.port, p.protocol)).collect()
}

/// A ClusterIP Service as an API server returns it.
pub fn cluster_ip<const N: usize>(list: [&str; N]) -> ServiceSpec {
    ServiceSpec {
        ips: vec![ip("10.0.0.1")],
        families: vec![Family::V4],
        ports: ports(list),
        traffic: Traffic {
            session_affinity: Some("None".into()),
            internal_policy: Some("Cluster".into()),
            ..Traffic::default()
        },
        selector: map([("app", "it")]),
        ..ServiceSpec::default()
    }
}

/// A headless one.
pub fn headless<const N: usize>(list: [&str; N]) -> ServiceSpec {
    ServiceSpec { headless: true, ips: Vec::new(), ..cluster_ip(list) }
}

/// A ready endpoint.
pub fn endpoint(address: &str) -> Endpoint {
    Endpoint {
        addresses: vec![ip(address)],
        ready: true,
        serving: true,
        terminating: false,
        hostname: None,
        zone: None,
        node: None,
        pod: None,
        hint_zones: Vec::new(),
    }
}

pub fn endpoints<const N: usize>(addresses: [&str; N]) -> Vec<Endpoint> {
    addresses.into_iter().map(endpoint).collect()
}

/// What an action does to which kind of object, for short assertions.
pub fn verb(change: &Change) -> &'static str {
    match &change.action {
        Action::CreateNamespace(_) => "create namespace",
        Action::DeleteNamespace(..) => "delete namespace",
        Action::CreateExport(_) => "create export",
        Action::DeleteExport(..) => "delete export",
        Action::ApplyImport(_) => "apply import",
        Action::ApplyService(_) => "apply service",
        Action::ApplySlice(_) => "apply slice",
        Action::ApplyImportStatus(..) => "import status",
        Action::ApplyExportStatus(..) => "export status",
        Action::DeleteImport(..) => "delete import",
        Action::DeleteService(..) => "delete service",
        Action::DeleteSlice(..) => "delete slice",
    }
}

/// `cluster verb`, in order.
pub fn verbs(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{} {}", change.cluster, verb(change))).collect()
}
