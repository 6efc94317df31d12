//! The fields that we write, in the order in which people write them, so that the YAML reads well.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use crate::reconcile::objects::Map;

/// An object as it is sent or printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Object<'a> {
    /// A Namespace.
    Namespace(Document<'a, Nothing>),
    /// A ServiceExport, with or without status.
    Export(Document<'a, Status<'a>>),
    /// A ServiceImport, its spec or its status.
    Import(Document<'a, Import<'a>>),
    /// A derived Service.
    Service(Document<'a, Service<'a>>),
    /// A mirrored EndpointSlice.
    Slice(Document<'a, EndpointSlice<'a>>),
}

/// What every object has, and what its kind adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'a, Body> {
    pub(super) api_version: String,
    pub(super) kind: &'static str,
    pub(super) metadata: Metadata<'a>,
    #[serde(flatten)]
    pub(super) body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: Map,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: Map,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) owner_references: Vec<OwnerReference<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    pub(super) api_version: String,
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) controller: bool,
    pub(super) block_owner_deletion: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nothing {}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Import<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spec: Option<ImportSpec<'a>>,
    #[serde(flatten)]
    pub(super) status: Status<'a>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportSpec<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ip_families: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) ips: &'a [IpAddr],
    pub(super) ports: Vec<Port<'a>>,
    #[serde(flatten)]
    pub(super) traffic: Traffic<'a>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Traffic<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_affinity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_affinity_config: Option<AffinityConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) internal_traffic_policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traffic_distribution: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AffinityConfig {
    #[serde(rename = "clientIP")]
    pub(super) client_ip: ClientIp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientIp {
    pub(super) timeout_seconds: i32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Port<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) name: &'a str,
    pub(super) protocol: &'static str,
    pub(super) port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) app_protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_port: Option<TargetPort<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TargetPort<'a> {
    Number(u16),
    Name(&'a str),
}

/// The one part of a status that we write; empty where the object carries none.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Status<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<StatusBody<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clusters: Option<Vec<ClusterStatus<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoint_slice_objects: Option<&'static str>,
    pub(super) conditions: Vec<Condition<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterStatus<'a> {
    pub(super) cluster: &'a str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) status: &'static str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) observed_generation: i64,
    pub(super) last_transition_time: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Service<'a> {
    pub(super) spec: ServiceSpec<'a>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    #[serde(rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    pub(super) cluster_ip: Option<String>,
    #[serde(rename = "clusterIPs", skip_serializing_if = "<[_]>::is_empty")]
    pub(super) cluster_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ip_families: Vec<&'static str>,
    pub(super) ip_family_policy: &'static str,
    #[serde(flatten)]
    pub(super) traffic: Traffic<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) selector: &'a Map,
    pub(super) ports: Vec<Port<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) publish_not_ready_addresses: bool,
}

/// The part of an EndpointSlice below its metadata.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSlice<'a> {
    pub(super) address_type: &'static str,
    pub(super) ports: Vec<Port<'a>>,
    pub(super) endpoints: Vec<Endpoint<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint<'a> {
    pub(super) addresses: &'a [IpAddr],
    pub(super) conditions: Conditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hostname: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_ref: Option<TargetRef<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hints: Option<Hints<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conditions {
    pub(super) ready: bool,
    pub(super) serving: bool,
    pub(super) terminating: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetRef<'a> {
    pub(super) kind: &'static str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) uid: &'a str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints<'a> {
    pub(super) for_zones: Vec<ForZone<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForZone<'a> {
    pub(super) name: &'a str,
}
