//! The parts of ServiceImport and EndpointSlice that are read.
//!
//! Every field may be absent or null, whatever the schema says: not every object comes from an API server that has
//! checked it. Lists go through [`Many`], which takes null for empty, as a slice's `ports` is written by many.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::api;

/// A list that may be null.
pub(super) type Many<T> = Option<Vec<Option<T>>>;

/// The entries of a list that may be null and hold nulls, each with its place in it.
pub(super) fn entries<T>(many: Many<T>) -> impl Iterator<Item = (usize, T)> {
    many.into_iter().flatten().enumerate().filter_map(|(i, entry)| entry.map(|entry| (i, entry)))
}

/// Objects that say who they are.
pub(super) trait Named {
    /// Namespace and name, as written.
    fn take_names(&mut self) -> (Option<String>, Option<String>);
}

/// Any object, of which nothing but its names is read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Anonymous {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Meta,
}

#[derive(Debug, Default, Deserialize)]
struct Meta {
    namespace: Option<String>,
    name: Option<String>,
}

impl Named for Anonymous {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ServiceImport {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Meta,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) spec: ImportSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) status: ImportStatus,
}

impl Named for ServiceImport {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ImportSpec {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) ips: Many<String>,
    pub(super) ports: Many<Port>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportStatus {
    pub(super) clusters: Many<ClusterStatus>,
    pub(super) endpoint_slice_objects: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClusterStatus {
    pub(super) cluster: Option<String>,
}

/// A port of either kind of object; wider than a port may be, so that a wrong number costs that port alone.
#[derive(Debug, Deserialize)]
pub(super) struct Port {
    pub(super) name: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) port: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointSlice {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metadata: SliceMeta,
    pub(super) address_type: Option<String>,
    pub(super) endpoints: Many<Endpoint>,
    pub(super) ports: Many<Port>,
}

impl Named for EndpointSlice {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SliceMeta {
    namespace: Option<String>,
    name: Option<String>,
    labels: Option<BTreeMap<String, Option<String>>>,
    annotations: Option<BTreeMap<String, Option<String>>>,
}

impl SliceMeta {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key)?.as_deref()
    }

    pub(super) fn trigger_time(&self) -> Option<&str> {
        self.annotations.as_ref()?.get(api::ANNOTATION_TRIGGER_TIME)?.as_deref()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoint {
    pub(super) addresses: Many<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) conditions: Conditions,
    pub(super) hostname: Option<String>,
    pub(super) target_ref: Option<TargetRef>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Conditions {
    pub(super) ready: Option<bool>,
    pub(super) serving: Option<bool>,
    pub(super) terminating: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TargetRef {
    pub(super) name: Option<String>,
}

/// Null as the default value.
pub(super) fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
