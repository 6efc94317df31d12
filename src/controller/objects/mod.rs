//! Plans → Kubernetes objects: the only place where what we write gets its form (controller.md 2.15).
//!
//! Pure, and in the order in which people write the fields. The same objects go to API servers, to `plan -o yaml`, and in
//! the sandbox to the DNS half. A status is a subresource: it is an object of its own here, and applied by itself.

mod form;

use std::net::IpAddr;

use k8s_openapi::jiff::Timestamp;

use crate::api;
use crate::model::{ImportKind, Label, Protocol, ServiceKey};
use crate::reconcile::objects::{
    Condition, Endpoint, ImportSpec, ImportStatus, Map, Owner, OwnerKind, ServicePort, ServiceSpec, ServiceType,
    SliceContent, TargetPort, Time, Traffic,
};
use crate::reconcile::plan::Action;
pub use form::Object;
use form::{Document, Metadata};

/// The object that `action` applies, without status; `None` where it writes a status or deletes.
///
/// `version` is that cluster's version of the Multi-Cluster Services API, one of [`api::VERSIONS`]. Owners whose uid is
/// not known are left out: an API server refuses them.
#[must_use]
pub fn object<'a>(action: &'a Action, version: &str) -> Option<Object<'a>> {
    Some(match action {
        Action::CreateNamespace(name) => namespace(name),
        Action::CreateExport(key) => export(key, version),
        Action::ApplyImport(it) => import(&it.key, &it.labels, &it.annotations, &it.spec, version),
        Action::ApplyService(it) => {
            let place = Place { namespace: &it.key.namespace, name: it.name.as_str() };
            service(place, &it.labels, &it.annotations, &it.owners, &it.spec, version)
        }
        Action::ApplySlice(it) => {
            let place = Place { namespace: &it.key.namespace, name: &it.name };
            slice(place, &it.labels, &it.annotations, &it.owners, &it.content, version)
        }
        Action::ApplyImportStatus(..)
        | Action::ApplyExportStatus(..)
        | Action::DeleteNamespace(..)
        | Action::DeleteExport(..)
        | Action::DeleteImport(..)
        | Action::DeleteService(..)
        | Action::DeleteSlice(..) => return None,
    })
}

/// The object that `action` applies to the subresource `status`; `None` where it writes none.
#[must_use]
pub fn status<'a>(action: &'a Action, version: &str) -> Option<Object<'a>> {
    match action {
        Action::ApplyImportStatus(key, status) => Some(import_status(key, status, version)),
        Action::ApplyExportStatus(key, conditions) => Some(export_status(key, conditions, version)),
        _ => None,
    }
}

/// Where an object stands.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its namespace.
    pub namespace: &'a Label,
    /// Its own name.
    pub name: &'a str,
}

/// A Namespace that we make (R4).
#[must_use]
pub fn namespace(name: &Label) -> Object<'_> {
    let metadata = Metadata { namespace: None, ..metadata(None, name.as_str(), managed(), Map::new()) };
    Object::Namespace(document("v1", "Namespace", metadata, form::Nothing {}))
}

/// A ServiceExport that we make for a Service that a label exports.
#[must_use]
pub fn export<'a>(key: &'a ServiceKey, version: &str) -> Object<'a> {
    let metadata = metadata(Some(&key.namespace), key.name.as_str(), managed(), Map::new());
    Object::Export(document(&group(version), "ServiceExport", metadata, form::Status::default()))
}

/// A ServiceImport without status.
#[must_use]
pub fn import<'a>(
    key: &'a ServiceKey,
    labels: &Map,
    annotations: &Map,
    spec: &'a ImportSpec,
    version: &str,
) -> Object<'a> {
    let metadata = metadata(Some(&key.namespace), key.name.as_str(), labels.clone(), annotations.clone());
    let spec = form::ImportSpec {
        kind: match spec.kind {
            ImportKind::ClusterSetIp => api::TYPE_CLUSTERSET_IP,
            ImportKind::Headless => api::TYPE_HEADLESS,
        },
        ip_families: spec.families.iter().map(|family| family.as_str()).collect(),
        ips: &spec.ips,
        ports: spec.ports.iter().map(port).collect(),
        traffic: traffic(&spec.traffic),
    };
    let body = form::Import { spec: Some(spec), status: form::Status::default() };
    Object::Import(document(&group(version), "ServiceImport", metadata, body))
}

/// A ServiceImport's status.
#[must_use]
pub fn import_status<'a>(key: &'a ServiceKey, status: &'a ImportStatus, version: &str) -> Object<'a> {
    let metadata = metadata(Some(&key.namespace), key.name.as_str(), Map::new(), Map::new());
    let clusters = status.clusters.iter().map(|cluster| form::ClusterStatus { cluster: cluster.as_str() });
    let status = form::StatusBody {
        clusters: Some(clusters.collect()),
        endpoint_slice_objects: status.slices_present.then_some("Present"),
        conditions: status.conditions.iter().map(condition).collect(),
    };
    let body = form::Import { spec: None, status: form::Status { status: Some(status) } };
    Object::Import(document(&group(version), "ServiceImport", metadata, body))
}

/// Our conditions of a ServiceExport.
#[must_use]
pub fn export_status<'a>(key: &'a ServiceKey, conditions: &'a [Condition], version: &str) -> Object<'a> {
    let metadata = metadata(Some(&key.namespace), key.name.as_str(), Map::new(), Map::new());
    let conditions = conditions.iter().map(condition).collect();
    let status = form::StatusBody { clusters: None, endpoint_slice_objects: None, conditions };
    Object::Export(document(&group(version), "ServiceExport", metadata, form::Status { status: Some(status) }))
}

/// A derived Service.
#[must_use]
pub fn service<'a>(
    place: Place<'a>,
    labels: &Map,
    annotations: &Map,
    owners: &'a [Owner],
    spec: &'a ServiceSpec,
    version: &str,
) -> Object<'a> {
    let mut metadata = metadata(Some(place.namespace), place.name, labels.clone(), annotations.clone());
    metadata.owner_references = self::owners(owners, version);
    let spec = form::ServiceSpec {
        kind: match &spec.kind {
            ServiceType::ClusterIp => "ClusterIP",
            ServiceType::NodePort => "NodePort",
            ServiceType::LoadBalancer => "LoadBalancer",
            ServiceType::ExternalName => "ExternalName",
            ServiceType::Other(other) => other,
        },
        cluster_ip: if spec.headless { Some("None".to_owned()) } else { spec.ips.first().map(IpAddr::to_string) },
        cluster_ips: if spec.headless { &[] } else { &spec.ips },
        ip_families: spec.families.iter().map(|family| family.as_str()).collect(),
        ip_family_policy: if spec.dual_stack { "PreferDualStack" } else { "SingleStack" },
        traffic: traffic(&spec.traffic),
        selector: &spec.selector,
        ports: spec.ports.iter().map(port).collect(),
        publish_not_ready_addresses: spec.publish_not_ready,
    };
    Object::Service(document("v1", "Service", metadata, form::Service { spec }))
}

/// A mirrored EndpointSlice.
#[must_use]
pub fn slice<'a>(
    place: Place<'a>,
    labels: &Map,
    annotations: &Map,
    owners: &'a [Owner],
    content: &'a SliceContent,
    version: &str,
) -> Object<'a> {
    let mut metadata = metadata(Some(place.namespace), place.name, labels.clone(), annotations.clone());
    metadata.owner_references = self::owners(owners, version);
    let ports = content.ports.iter().map(|port| form::Port {
        name: &port.name,
        protocol: protocol(port.protocol),
        port: port.port,
        app_protocol: port.app_protocol.as_deref(),
        target_port: None,
    });
    let body = form::EndpointSlice {
        address_type: content.family.as_str(),
        ports: ports.collect(),
        endpoints: content.endpoints.iter().map(|it| endpoint(it, place.namespace)).collect(),
    };
    let api_version = format!("{}/v1", api::DISCOVERY_GROUP);
    Object::Slice(document(&api_version, "EndpointSlice", metadata, body))
}

fn document<'a, Body>(api_version: &str, kind: &'static str, metadata: Metadata<'a>, body: Body) -> Document<'a, Body> {
    Document { api_version: api_version.to_owned(), kind, metadata, body }
}

fn metadata<'a>(namespace: Option<&'a Label>, name: &'a str, labels: Map, annotations: Map) -> Metadata<'a> {
    Metadata { name, namespace: namespace.map(Label::as_str), labels, annotations, owner_references: Vec::new() }
}

fn managed() -> Map {
    Map::from([(api::LABEL_MANAGED_BY.into(), api::MANAGED_BY.into())])
}

fn group(version: &str) -> String {
    format!("{}/{version}", api::GROUP)
}

/// An object has one controller at most: of several owners, the first. Nothing waits for ours to be gone
/// (`blockOwnerDeletion`), so no right on finalizers is needed (R69).
fn owners<'a>(owners: &'a [Owner], version: &str) -> Vec<form::OwnerReference<'a>> {
    let known = owners.iter().filter_map(|owner| Some((owner, owner.uid.as_deref()?)));
    let reference = |(i, (owner, uid)): (usize, (&'a Owner, &'a str))| {
        let (api_version, kind) = match owner.kind {
            OwnerKind::Import => (group(version), "ServiceImport"),
            OwnerKind::Service => ("v1".to_owned(), "Service"),
        };
        let (name, controller) = (&*owner.name, i == 0);
        form::OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion: false }
    };
    known.enumerate().map(reference).collect()
}

fn traffic(from: &Traffic) -> form::Traffic<'_> {
    form::Traffic {
        session_affinity: from.session_affinity.as_deref(),
        session_affinity_config: from
            .session_timeout
            .map(|timeout_seconds| form::AffinityConfig { client_ip: form::ClientIp { timeout_seconds } }),
        internal_traffic_policy: from.internal_policy.as_deref(),
        traffic_distribution: from.distribution.as_deref(),
    }
}

fn port(from: &ServicePort) -> form::Port<'_> {
    form::Port {
        name: &from.name,
        protocol: protocol(from.protocol),
        port: from.port,
        app_protocol: from.app_protocol.as_deref(),
        target_port: from.target.as_ref().map(|target| match target {
            TargetPort::Number(number) => form::TargetPort::Number(*number),
            TargetPort::Name(name) => form::TargetPort::Name(name),
        }),
    }
}

/// Kubernetes' spelling of a protocol. Always written out: it is part of the key of server-side apply's lists.
#[must_use]
pub fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

fn endpoint<'a>(from: &'a Endpoint, namespace: &'a Label) -> form::Endpoint<'a> {
    let zones = from.hint_zones.iter().map(|name| form::ForZone { name }).collect::<Vec<_>>();
    form::Endpoint {
        addresses: &from.addresses,
        conditions: form::Conditions { ready: from.ready, serving: from.serving, terminating: from.terminating },
        hostname: from.hostname.as_deref(),
        node_name: from.node.as_deref(),
        zone: from.zone.as_deref(),
        target_ref: from.pod.as_ref().map(|pod| form::TargetRef {
            kind: "Pod",
            namespace: namespace.as_str(),
            name: &pod.name,
            uid: &pod.uid,
        }),
        hints: (!zones.is_empty()).then_some(form::Hints { for_zones: zones }),
    }
}

fn condition(from: &Condition) -> form::Condition<'_> {
    form::Condition {
        kind: &from.kind,
        status: from.status.as_str(),
        reason: &from.reason,
        message: &from.message,
        observed_generation: from.generation,
        last_transition_time: time(from.since),
    }
}

/// RFC 3339, as the API writes times.
fn time(time: Time) -> String {
    Timestamp::from_second(time.0).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
