//! The parts of ServiceImport and EndpointSlice that are read.
//!
//! Every field may be absent or null, whatever the schema says: not every object comes from an API server that has
//! checked it. Lists go through [`Many`], which takes null for empty, as a slice's `ports` is written by many.
//!
//! Slices are most of what is read, and change most: their texts are borrowed from the JSON, and of their labels and
//! annotations only those that are read are looked at.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

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
pub(super) struct EndpointSlice<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) metadata: SliceMeta<'a>,
    #[serde(borrow)]
    pub(super) address_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) endpoints: Many<Endpoint<'a>>,
    pub(super) ports: Many<Port>,
}

impl Named for EndpointSlice<'_> {
    fn take_names(&mut self) -> (Option<String>, Option<String>) {
        (self.metadata.namespace.take(), self.metadata.name.take())
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SliceMeta<'a> {
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) labels: SliceLabels<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) annotations: SliceAnnotations<'a>,
}

/// Those of `api` that DNS reads.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SliceLabels<'a> {
    #[serde(borrow, rename = "multicluster.kubernetes.io/service-name")]
    pub(super) service_name: Option<Text<'a>>,
    #[serde(borrow, rename = "multicluster.kubernetes.io/source-cluster")]
    pub(super) source_cluster: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SliceAnnotations<'a> {
    #[serde(borrow, rename = "endpoints.kubernetes.io/last-change-trigger-time")]
    pub(super) trigger_time: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoint<'a> {
    #[serde(borrow)]
    pub(super) addresses: Option<Addresses<'a>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) conditions: Conditions,
    #[serde(borrow)]
    pub(super) hostname: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) target_ref: Option<TargetRef<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Conditions {
    pub(super) ready: Option<bool>,
    pub(super) serving: Option<bool>,
    pub(super) terminating: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TargetRef<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
}

/// A string, borrowed where the JSON has it without escapes, and from protobuf.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// The addresses of an endpoint: nearly always one, for which no list is made.
#[derive(Debug)]
pub(super) struct Addresses<'a> {
    pub(super) first: Option<Text<'a>>,
    pub(super) more: Vec<Option<Text<'a>>>,
}

impl<'a> Addresses<'a> {
    /// Those that are not null, each with its place.
    pub(super) fn entries(self) -> impl Iterator<Item = (usize, Text<'a>)> {
        let all = std::iter::once(self.first).chain(self.more).enumerate();
        all.filter_map(|(i, text)| text.map(|text| (i, text)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Addresses<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(AddressesVisitor)
    }
}

struct AddressesVisitor;

impl<'de> Visitor<'de> for AddressesVisitor {
    type Value = Addresses<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut from: S) -> Result<Addresses<'de>, S::Error> {
        let first = from.next_element::<Option<Text<'de>>>()?.flatten();
        let mut more = Vec::new();
        while let Some(text) = from.next_element()? {
            more.push(text);
        }
        Ok(Addresses { first, more })
    }
}

/// Null as the default value.
pub(super) fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
