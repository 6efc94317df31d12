//! Objects of member clusters in JSON → [`reconcile`](crate::reconcile)'s types: for the watches of live members and
//! for folders alike.
//!
//! As for DNS, a foolish value costs its own line ([`Read::skipped`]) and never the object, and what does not decode at
//! all is an error of that object alone. What no plan reads is dropped here: annotations of users' objects, labels that
//! kube-controller-manager copies into slices, managed fields of what is not ours.

mod import;
mod meta;
mod object;
mod service;
mod slice;

use serde::de::DeserializeOwned;

use super::{Key, Named, quoted, skip, undecodable};
use crate::model::{ClusterId, Label, ServiceKey, SkipReason, Skipped, SliceKey};
use crate::reconcile::observed::{Export, Import, Namespace, Service, Slice};
use crate::reconcile::world::Kind;
use crate::reconcile::{Dirty, World};

/// One object of a member as it is now, or its absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// A Namespace.
    Namespace(Label, Option<Namespace>),
    /// A ServiceExport.
    Export(ServiceKey, Option<Export>),
    /// A Service.
    Service(ServiceKey, Option<Service>),
    /// A ServiceImport.
    Import(ServiceKey, Option<Import>),
    /// An EndpointSlice. One of type FQDN counts as absent.
    Slice(SliceKey, Option<Slice>),
}

impl Observed {
    /// Tells it to `world`, and says whom that concerns.
    pub fn tell(self, world: &mut World, cluster: &ClusterId) -> Dirty {
        match self {
            Self::Namespace(name, namespace) => world.set_namespace(cluster, &name, namespace),
            Self::Export(key, export) => world.set_export(cluster, &key, export),
            Self::Service(key, service) => world.set_service(cluster, &key, service),
            Self::Import(key, import) => world.set_import(cluster, &key, import),
            Self::Slice(key, slice) => world.set_slice(cluster, &key, slice),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Namespace(..) => Kind::Namespaces,
            Self::Export(..) => Kind::Exports,
            Self::Service(..) => Kind::Services,
            Self::Import(..) => Kind::Imports,
            Self::Slice(..) => Kind::Slices,
        }
    }

    /// The absence of the same object.
    #[must_use]
    pub fn absent(&self) -> Self {
        match self {
            Self::Namespace(name, _) => Self::Namespace(name.clone(), None),
            Self::Export(key, _) => Self::Export(key.clone(), None),
            Self::Service(key, _) => Self::Service(key.clone(), None),
            Self::Import(key, _) => Self::Import(key.clone(), None),
            Self::Slice(key, _) => Self::Slice(key.clone(), None),
        }
    }
}

/// An object, and what of it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The object.
    pub object: Observed,
    /// What is left out, and why.
    pub skipped: Vec<Skipped>,
}

/// What an object of `kind` in JSON says.
///
/// # Errors
/// Where it does not decode, or its name can't be one.
pub fn observed(kind: Kind, json: &str) -> Result<Read, Skipped> {
    let mut skipped = Vec::new();
    let object = match kind {
        Kind::Namespaces => {
            let (key, object) = decode::<object::Namespace>(json)?;
            Observed::Namespace(key.label()?, Some(meta::namespace(object)))
        }
        Kind::Exports => {
            let (key, object) = decode::<object::ServiceExport>(json)?;
            Observed::Export(key.service_of(kind)?, Some(meta::export(object)))
        }
        Kind::Services => {
            let (key, object) = decode::<object::Service>(json)?;
            Observed::Service(key.service_of(kind)?, Some(service::convert(object, &mut skipped)))
        }
        Kind::Imports => {
            let (key, object) = decode::<object::ServiceImport>(json)?;
            Observed::Import(key.service_of(kind)?, Some(import::convert(object, &mut skipped)))
        }
        Kind::Slices => {
            let (key, object) = decode::<object::EndpointSlice>(json)?;
            let key = key.slice_of()?;
            let slice = slice::convert(object, key.namespace.as_str(), &mut skipped);
            Observed::Slice(key, slice)
        }
    };
    Ok(Read { object, skipped })
}

/// The absence of the object of `kind` whose last state is `json`; `None` where its name could never have been known.
#[must_use]
pub fn absent(kind: Kind, json: &str) -> Option<Observed> {
    let key = Key::of(json);
    Some(match kind {
        Kind::Namespaces => Observed::Namespace(key.label().ok()?, None),
        Kind::Exports => Observed::Export(key.service_of(kind).ok()?, None),
        Kind::Services => Observed::Service(key.service_of(kind).ok()?, None),
        Kind::Imports => Observed::Import(key.service_of(kind).ok()?, None),
        Kind::Slices => Observed::Slice(key.slice_of().ok()?, None),
    })
}

/// The name of one object of a kind.
#[must_use]
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Namespaces => "Namespace",
        Kind::Exports => "ServiceExport",
        Kind::Services => "Service",
        Kind::Imports => "ServiceImport",
        Kind::Slices => "EndpointSlice",
    }
}

fn decode<T: DeserializeOwned + Named>(json: &str) -> Result<(Key, T), Skipped> {
    match serde_json::from_str::<T>(json) {
        Ok(mut object) => Ok((Key::new(&mut object), object)),
        Err(error) => Err(skip(SkipReason::Unreadable, undecodable(json, &error))),
    }
}

impl Key {
    fn label(&self) -> Result<Label, Skipped> {
        Label::new(&self.name).ok_or_else(|| {
            let name = quoted(&self.name);
            let rule = "the name of a Namespace must be a DNS label: 1 to 63 letters, digits and dashes";
            skip(SkipReason::BadName, format!("metadata: {name}: {rule}"))
        })
    }

    fn service_of(&self, kind: Kind) -> Result<ServiceKey, Skipped> {
        ServiceKey::new(&self.namespace, &self.name).ok_or_else(|| {
            let (name, namespace, kind) = (quoted(&self.name), quoted(&self.namespace), kind_name(kind));
            let rule = "must be DNS labels: 1 to 63 letters, digits and dashes";
            let what = format!("metadata: {name} in namespace {namespace}: namespace and name of a {kind} {rule}");
            skip(SkipReason::BadName, what)
        })
    }

    fn slice_of(&self) -> Result<SliceKey, Skipped> {
        self.slice()
    }
}
