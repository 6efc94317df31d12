//! EndpointSlice in Kubernetes' protobuf: the messages of `generated.proto` in `k8s.io/api/discovery/v1`,
//! `k8s.io/api/core/v1` and `k8s.io/apimachinery/pkg/apis/meta/v1`, with the fields that are read. Others are stepped
//! over.
//!
//! Texts stay where they came in ([`Bytes`] are shared, not copied). What they mean is said once, by the JSON's
//! [`object`](super::object): these messages are only taken apart into the same parts.

use bytes::Bytes;
use prost::Message;

use super::object::{self, Addresses, Conditions, Named, SliceAnnotations, SliceLabels, SliceMeta, TargetRef, Text};
use crate::api;

#[derive(Clone, PartialEq, Message)]
pub(super) struct EndpointSlice {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, repeated, tag = "2")]
    endpoints: Vec<Endpoint>,
    #[prost(message, repeated, tag = "3")]
    ports: Vec<EndpointPort>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    address_type: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(bytes = "bytes", optional, tag = "1")]
    name: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    namespace: Option<Bytes>,
    #[prost(message, repeated, tag = "11")]
    labels: Vec<Entry>,
    #[prost(message, repeated, tag = "12")]
    annotations: Vec<Entry>,
}

/// Of a `map<string, string>`.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Endpoint {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    addresses: Vec<Bytes>,
    #[prost(message, optional, tag = "2")]
    conditions: Option<EndpointConditions>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    hostname: Option<Bytes>,
    #[prost(message, optional, tag = "4")]
    target_ref: Option<ObjectReference>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct EndpointConditions {
    #[prost(bool, optional, tag = "1")]
    ready: Option<bool>,
    #[prost(bool, optional, tag = "2")]
    serving: Option<bool>,
    #[prost(bool, optional, tag = "3")]
    terminating: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectReference {
    #[prost(bytes = "bytes", optional, tag = "3")]
    name: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct EndpointPort {
    #[prost(bytes = "bytes", optional, tag = "1")]
    name: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    protocol: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    port: Option<i32>,
}

/// Any object, of which nothing but its names is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Names {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

impl Named for Names {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        let metadata = self.metadata.take().unwrap_or_default();
        (metadata.namespace.as_ref().map(owned), metadata.name.as_ref().map(owned))
    }
}

impl EndpointSlice {
    /// Its parts, as the JSON has them.
    pub(super) fn object(&self) -> object::EndpointSlice<'_> {
        object::EndpointSlice {
            metadata: self.metadata.as_ref().map(ObjectMeta::object).unwrap_or_default(),
            address_type: self.address_type.as_ref().map(text),
            endpoints: Some(self.endpoints.iter().map(|endpoint| Some(endpoint.object())).collect()),
            ports: Some(self.ports.iter().map(|port| Some(port.object())).collect()),
        }
    }
}

impl ObjectMeta {
    fn object(&self) -> SliceMeta<'_> {
        SliceMeta {
            namespace: self.namespace.as_ref().map(owned),
            name: self.name.as_ref().map(owned),
            labels: SliceLabels {
                service_name: value(&self.labels, api::LABEL_SERVICE_NAME),
                source_cluster: value(&self.labels, api::LABEL_SOURCE_CLUSTER),
            },
            annotations: SliceAnnotations { trigger_time: value(&self.annotations, api::ANNOTATION_TRIGGER_TIME) },
        }
    }
}

impl Endpoint {
    fn object(&self) -> object::Endpoint<'_> {
        let mut addresses = self.addresses.iter().map(|address| Some(text(address)));
        object::Endpoint {
            addresses: Some(Addresses { first: addresses.next().flatten(), more: addresses.collect() }),
            conditions: self.conditions.map(EndpointConditions::object).unwrap_or_default(),
            hostname: self.hostname.as_ref().map(text),
            target_ref: self.target_ref.as_ref().map(|target| TargetRef { name: target.name.as_ref().map(text) }),
        }
    }
}

impl EndpointConditions {
    fn object(self) -> Conditions {
        Conditions { ready: self.ready, serving: self.serving, terminating: self.terminating }
    }
}

impl EndpointPort {
    fn object(&self) -> object::Port {
        object::Port {
            name: self.name.as_ref().map(owned),
            protocol: self.protocol.as_ref().map(owned),
            port: self.port.map(i64::from),
        }
    }
}

/// The last entry of a key counts.
fn value<'a>(entries: &'a [Entry], key: &str) -> Option<Text<'a>> {
    entries.iter().rfind(|entry| entry.key == key).map(|entry| text(&entry.value))
}

/// Text is UTF-8 in protobuf. Where it is not, it is what an API server would have written into JSON.
fn text(octets: &Bytes) -> Text<'_> {
    Text(String::from_utf8_lossy(octets))
}

fn owned(octets: &Bytes) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
