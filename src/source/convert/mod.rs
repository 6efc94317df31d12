//! Kubernetes objects → [`model`](crate::model) values, with everything that DNS does not need dropped on decode.
//!
//! Kubernetes' types stop here. The structs that are decoded ([`object`]) hold only the fields that are read, allow
//! null and absence everywhere, and take numbers wider than they may be: so a foolish value costs its own line and
//! never the object, and an object that does not decode at all never hides another ([`Change::Unreadable`]).

mod endpoints;
mod import;
pub mod member;
mod object;
mod ports;
mod protobuf;
mod slice;
mod time;

use bytes::Bytes;
use prost::Message;
use serde::Deserialize;

use crate::model::{Change, Label, Resource, ServiceKey, SkipReason, Skipped, SliceKey};
use object::{Anonymous, Named};

/// How objects are converted: the few choices that decide what is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Convert {
    /// Whether the pod's name is kept of endpoints that have no hostname (the `endpoint_pod_names` option).
    pub pod_names: bool,
    /// The namespaces whose objects are taken; empty means all (`dns.md` N8).
    pub namespaces: Vec<String>,
}

impl Convert {
    /// What a ServiceImport in JSON says; `None` where its namespace is not taken.
    #[must_use]
    pub fn import(&self, json: &str) -> Option<Change> {
        self.object(Resource::Imports, from_json(json), |object: object::ServiceImport, key| {
            Ok(Change::Import(key.service(Resource::Imports)?, Some(import::convert(object))))
        })
    }

    /// What an EndpointSlice in JSON says; `None` where its namespace is not taken.
    ///
    /// A slice without the label `multicluster.kubernetes.io/service-name` is absent: it belongs to no import. One
    /// whose label can't be a DNS label is unreadable, so that a slip of the pen leaves served what was served.
    #[must_use]
    pub fn slice(&self, json: &str) -> Option<Change> {
        self.read_slice(from_json(json))
    }

    /// What an EndpointSlice in Kubernetes' protobuf says, without its envelope: as [`Convert::slice`].
    #[must_use]
    pub fn slice_in_protobuf(&self, octets: &Bytes) -> Option<Change> {
        match protobuf::EndpointSlice::decode(octets.clone()) {
            Ok(message) => self.read_slice(Ok(message.object())),
            Err(error) => {
                let what = format!("does not decode: {error}");
                self.read_slice(Err(Undecoded { key: Key::of_protobuf(octets), what }))
            }
        }
    }

    fn read_slice(&self, object: Result<object::EndpointSlice<'_>, Undecoded>) -> Option<Change> {
        self.object(Resource::Slices, object, |object, key| {
            Ok(Change::Slice(key.slice()?, slice::convert(object, self.pod_names)?))
        })
    }

    /// What an object of `resource` in JSON says: [`Convert::import`] or [`Convert::slice`].
    #[must_use]
    pub fn present(&self, resource: Resource, json: &str) -> Option<Change> {
        match resource {
            Resource::Imports => self.import(json),
            Resource::Slices => self.slice(json),
        }
    }

    /// The absence of the object of `resource` whose last state is `json`; `None` where its namespace is not taken.
    #[must_use]
    pub fn absent(&self, resource: Resource, json: &str) -> Option<Change> {
        self.gone(resource, Key::of(json))
    }

    /// The absence of the EndpointSlice whose last state in Kubernetes' protobuf is `octets`: as [`Convert::absent`].
    #[must_use]
    pub fn absent_in_protobuf(&self, octets: &Bytes) -> Option<Change> {
        self.gone(Resource::Slices, Key::of_protobuf(octets))
    }

    fn gone(&self, resource: Resource, key: Key) -> Option<Change> {
        if !self.takes(&key.namespace) {
            return None;
        }
        let absent = match resource {
            Resource::Imports => key.service(resource).map(|key| Change::Import(key, None)),
            Resource::Slices => key.slice().map(|key| Change::Slice(key, None)),
        };
        Some(absent.unwrap_or_else(|_| Change::Forgotten {
            resource,
            namespace: key.namespace.into(),
            name: key.name.into(),
        }))
    }

    /// Whether objects of `namespace` are taken.
    #[must_use]
    pub fn takes(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|n| n.eq_ignore_ascii_case(namespace))
    }

    fn object<T: Named>(
        &self,
        resource: Resource,
        object: Result<T, Undecoded>,
        convert: impl FnOnce(T, &Key) -> Result<Change, Skipped>,
    ) -> Option<Change> {
        let (key, change) = match object {
            Ok(mut object) => {
                let key = Key::new(&mut object);
                if !self.takes(&key.namespace) {
                    return None;
                }
                let change = convert(object, &key);
                (key, change)
            }
            Err(Undecoded { key, what }) => {
                if !self.takes(&key.namespace) {
                    return None;
                }
                let what = format!("{what}; until it is mended its last readable state is served");
                (key, Err(skip(SkipReason::Unreadable, what)))
            }
        };
        Some(change.unwrap_or_else(|skipped| Change::Unreadable {
            resource,
            namespace: key.namespace.into(),
            name: key.name.into(),
            skipped,
        }))
    }
}

/// An object that does not decode: which it is, as far as it says, and why not.
struct Undecoded {
    key: Key,
    what: String,
}

fn from_json<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Undecoded> {
    serde_json::from_str(json).map_err(|error| Undecoded { key: Key::of(json), what: undecodable(json, &error) })
}

/// Namespace and name of an object, as written.
struct Key {
    namespace: String,
    name: String,
}

impl Key {
    /// An object without a namespace is in `default`, as for kubectl: only files have such.
    fn new(object: &mut impl Named) -> Self {
        let (namespace, name) = object.take_names();
        let namespace = namespace.filter(|n| !n.is_empty()).unwrap_or_else(|| "default".to_owned());
        Self { namespace, name: name.unwrap_or_default() }
    }

    /// The key of an object of which nothing but its metadata need decode.
    fn of(json: &str) -> Self {
        Self::new(&mut serde_json::from_str::<Anonymous>(json).unwrap_or_default())
    }

    /// The same of a slice in protobuf. Metadata come first, so what breaks off behind them still says who it is.
    fn of_protobuf(octets: &Bytes) -> Self {
        let mut names = protobuf::Names::default();
        let _ = names.merge(octets.clone());
        Self::new(&mut names)
    }

    fn service(&self, resource: Resource) -> Result<ServiceKey, Skipped> {
        ServiceKey::new(&self.namespace, &self.name).ok_or_else(|| self.bad(resource))
    }

    fn slice(&self) -> Result<SliceKey, Skipped> {
        match Label::new(&self.namespace) {
            Some(namespace) if !self.name.is_empty() => Ok(SliceKey { namespace, name: self.name.as_str().into() }),
            _ => Err(self.bad(Resource::Slices)),
        }
    }

    fn bad(&self, resource: Resource) -> Skipped {
        let rule = match resource {
            Resource::Imports => "namespace and name must be DNS labels: 1 to 63 letters, digits and dashes",
            Resource::Slices => "the namespace must be a DNS label: 1 to 63 letters, digits and dashes",
        };
        let what = format!("metadata: {} in namespace {}: {rule}", quoted(&self.name), quoted(&self.namespace));
        skip(SkipReason::BadName, what)
    }
}

/// What does not decode, and where: a line and column mean nothing to somebody who sees the object as YAML, so the
/// text before the place is shown instead.
fn undecodable(json: &str, error: &serde_json::Error) -> String {
    const SHOWN: usize = 40;
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let before: Vec<char> = match json.lines().nth(error.line().saturating_sub(1)) {
        Some(line) => line.get(..error.column()).unwrap_or(line).chars().rev().take(SHOWN).collect(),
        None => Vec::new(),
    };
    let before: String = before.into_iter().rev().collect();
    format!("does not decode: {text}, behind {before:?}")
}

/// `text` in quotes, escaped and bounded: what others write into objects also lands in our logs.
fn quoted(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((at, _)) => format!("{:?}…", text.get(..at).unwrap_or_default()),
    }
}

/// A skipped part: `where: what is wrong`.
fn skip(reason: SkipReason, what: String) -> Skipped {
    Skipped { reason, what: what.into() }
}
