//! The parts of a member's objects that plans read. As in [`object`](super::super::object), everything may be absent or
//! null.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::object::{ClusterStatus, Conditions, Many, Named, or_default};

/// A map of strings, with nulls for what is empty.
pub(super) type Strings = Option<BTreeMap<Box<str>, Option<Box<str>>>>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    namespace: Option<String>,
    name: Option<String>,
    pub(super) uid: Option<Box<str>>,
    pub(super) resource_version: Option<Box<str>>,
    pub(super) generation: Option<i64>,
    pub(super) creation_timestamp: Option<String>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) labels: Strings,
    pub(super) annotations: Strings,
    pub(super) owner_references: Many<OwnerReference>,
    pub(super) managed_fields: Many<ManagedFields>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnerReference {
    pub(super) kind: Option<String>,
    pub(super) api_version: Option<String>,
    pub(super) name: Option<Box<str>>,
    pub(super) uid: Option<Box<str>>,
}

/// What one manager owns. `fieldsV1` is long, so it stays text until somebody asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManagedFields {
    pub(super) manager: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) subresource: Option<String>,
    pub(super) fields_v1: Option<Box<RawValue>>,
}

/// An object of which metadata, a spec and a status are read.
#[derive(Debug, Deserialize)]
pub(super) struct Object<Spec: Default, Status: Default> {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metadata: Meta,
    #[serde(default = "Spec::default", deserialize_with = "or_default", bound = "Spec: Deserialize<'de> + Default")]
    pub(super) spec: Spec,
    #[serde(
        default = "Status::default",
        deserialize_with = "or_default",
        bound = "Status: Deserialize<'de> + Default"
    )]
    pub(super) status: Status,
}

impl<Spec: Default, Status: Default> Named for Object<Spec, Status> {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

/// What is not read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Unread {}

pub(super) type Namespace = Object<Unread, NamespaceStatus>;
pub(super) type ServiceExport = Object<ExportSpec, ExportStatus>;
pub(super) type Service = Object<ServiceSpec, Unread>;
pub(super) type ServiceImport = Object<ImportSpec, ImportStatus>;

#[derive(Debug, Default, Deserialize)]
pub(super) struct NamespaceStatus {
    pub(super) phase: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportSpec {
    pub(super) exported_labels: Strings,
    pub(super) exported_annotations: Strings,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ExportStatus {
    pub(super) conditions: Many<Condition>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: Option<Box<str>>,
    pub(super) status: Option<String>,
    pub(super) reason: Option<Box<str>>,
    pub(super) message: Option<Box<str>>,
    pub(super) observed_generation: Option<i64>,
    pub(super) last_transition_time: Option<String>,
}

/// What Services and ServiceImports share.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Traffic {
    pub(super) session_affinity: Option<Box<str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) session_affinity_config: AffinityConfig,
    pub(super) internal_traffic_policy: Option<Box<str>>,
    pub(super) traffic_distribution: Option<Box<str>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AffinityConfig {
    #[serde(rename = "clientIP", default, deserialize_with = "or_default")]
    pub(super) client_ip: ClientIp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientIp {
    pub(super) timeout_seconds: Option<i32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceSpec {
    #[serde(rename = "type")]
    pub(super) kind: Option<Box<str>>,
    #[serde(rename = "clusterIP")]
    pub(super) cluster_ip: Option<String>,
    #[serde(rename = "clusterIPs")]
    pub(super) cluster_ips: Many<String>,
    pub(super) ip_families: Many<String>,
    pub(super) ip_family_policy: Option<String>,
    pub(super) ports: Many<Port>,
    pub(super) selector: Strings,
    pub(super) publish_not_ready_addresses: Option<bool>,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportSpec {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) ips: Many<String>,
    pub(super) ip_families: Many<String>,
    pub(super) ports: Many<Port>,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportStatus {
    pub(super) clusters: Many<ClusterStatus>,
    pub(super) endpoint_slice_objects: Option<String>,
    pub(super) conditions: Many<Condition>,
}

/// A port of a Service, an import or a slice; wider than a port may be, so that a wrong number costs that port alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Port {
    pub(super) name: Option<Box<str>>,
    pub(super) protocol: Option<String>,
    pub(super) port: Option<i64>,
    pub(super) app_protocol: Option<Box<str>>,
    pub(super) target_port: Option<TargetPort>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum TargetPort {
    Number(i64),
    Name(Box<str>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointSlice {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metadata: Meta,
    pub(super) address_type: Option<String>,
    pub(super) ports: Many<Port>,
    pub(super) endpoints: Many<Endpoint>,
}

impl Named for EndpointSlice {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoint {
    pub(super) addresses: Many<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) conditions: Conditions,
    pub(super) hostname: Option<Box<str>>,
    pub(super) zone: Option<Box<str>>,
    pub(super) node_name: Option<Box<str>>,
    pub(super) target_ref: Option<TargetRef>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) hints: Hints,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hints {
    pub(super) for_zones: Many<ForZone>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ForZone {
    pub(super) name: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TargetRef {
    pub(super) kind: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<Box<str>>,
    pub(super) uid: Option<Box<str>>,
}
