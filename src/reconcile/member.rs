//! One member cluster: its objects by name, and which of them a running list has seen.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use super::objects::Meta;
use super::observed::{Export, Features, Local, Namespace, Reach, Service};
use crate::model::{Label, ServiceKey, SliceKey};

/// The kinds of object that are observed in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Namespaces.
    Namespaces,
    /// ServiceExports.
    Exports,
    /// Services.
    Services,
    /// ServiceImports.
    Imports,
    /// EndpointSlices.
    Slices,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 5] = [Self::Namespaces, Self::Exports, Self::Services, Self::Imports, Self::Slices];
}

/// A member cluster.
#[derive(Debug, Clone)]
pub struct Member {
    /// How far its objects are known, all of them: whether it can be written to.
    pub reach: Reach,
    /// How far what it exports is known: namespaces, exports, Services and slices. Trouble with its ServiceImports makes it
    /// no worse a source of endpoints.
    pub sources: Reach,
    /// It is being taken out of the set: it exports nothing and imports nothing, and what is ours in it goes (R83).
    pub leaving: bool,
    /// What its API server can do.
    pub features: Features,
    pub(super) namespaces: BTreeMap<Label, Namespace>,
    pub(super) services: HashMap<ServiceKey, Local>,
    pub(super) slices: HashMap<SliceKey, Home>,
    /// What has been seen since the beginning of a full list.
    pub(super) lists: HashMap<Kind, HashSet<SliceKey>>,
}

impl Member {
    pub(super) fn new(reach: Reach) -> Self {
        Self {
            reach,
            sources: reach,
            leaving: false,
            features: Features::default(),
            namespaces: BTreeMap::new(),
            services: HashMap::default(),
            slices: HashMap::default(),
            lists: HashMap::default(),
        }
    }

    /// What it holds under `key`.
    #[must_use]
    pub fn local(&self, key: &ServiceKey) -> Option<&Local> {
        self.services.get(key)
    }

    /// Everything that it holds, by name, in no order.
    pub fn locals(&self) -> impl Iterator<Item = (&ServiceKey, &Local)> {
        self.services.iter()
    }

    /// Every slice that it holds, whosever it is.
    pub fn slice_keys(&self) -> impl Iterator<Item = &SliceKey> {
        self.slices.keys()
    }

    /// The derived Service of `key`, ours or not.
    #[must_use]
    pub fn derived(&self, derived_key: &ServiceKey) -> Option<&Service> {
        self.services.get(derived_key).and_then(|local| local.service.as_ref())
    }

    /// Its namespace of that name.
    #[must_use]
    pub fn namespace(&self, name: &Label) -> Option<&Namespace> {
        self.namespaces.get(name)
    }

    /// Its namespaces' names.
    pub fn namespaces(&self) -> impl Iterator<Item = &Label> {
        self.namespaces.keys()
    }

    /// Whether anything that is observed is in a namespace.
    #[must_use]
    pub fn holds_any(&self, namespace: &Label) -> bool {
        self.services.keys().any(|key| key.namespace == *namespace)
            || self.slices.keys().any(|key| key.namespace == *namespace)
    }

    /// Whether a slice of that name is there, whosever it is.
    #[must_use]
    pub fn has_slice(&self, key: &SliceKey) -> bool {
        self.slices.contains_key(key)
    }

    /// Whether everything that it may export was listed at least once.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        !matches!(self.sources, Reach::Unheard { .. })
    }

    /// Whether everything was listed at least once, also what is ours in it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self.reach, Reach::Unheard { .. })
    }
}

/// Where a slice is filed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Home {
    /// Among the sources of a Service.
    Source(ServiceKey),
    /// Among the mirrored slices of an import.
    Mirrored(ServiceKey),
    /// Nowhere: it is no concern of ours, but its name is taken.
    Nowhere,
}

impl Member {
    /// Marks an object as seen by a running list.
    pub(super) fn see(&mut self, kind: Kind, namespace: &Label, name: &str) {
        if let Some(seen) = self.lists.get_mut(&kind) {
            seen.insert(SliceKey { namespace: namespace.clone(), name: name.into() });
        }
    }

    /// What is filed of one kind.
    pub(super) fn held(&self, kind: Kind) -> Box<dyn Iterator<Item = SliceKey> + '_> {
        let of = |key: &ServiceKey| SliceKey { namespace: key.namespace.clone(), name: key.name.as_str().into() };
        match kind {
            Kind::Namespaces => Box::new(
                self.namespaces.keys().map(|name| SliceKey { namespace: name.clone(), name: name.as_str().into() }),
            ),
            Kind::Slices => Box::new(self.slices.keys().cloned()),
            Kind::Exports => {
                Box::new(self.services.iter().filter(|(_, l)| l.export.is_some()).map(move |(key, _)| of(key)))
            }
            Kind::Services => {
                Box::new(self.services.iter().filter(|(_, l)| l.service.is_some()).map(move |(key, _)| of(key)))
            }
            Kind::Imports => {
                Box::new(self.services.iter().filter(|(_, l)| l.import.is_some()).map(move |(key, _)| of(key)))
            }
        }
    }
}

impl Meta {
    /// Whether they say the same; their versions do not matter.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.id.uid == other.id.uid
            && self.generation == other.generation
            && self.labels == other.labels
            && self.annotations == other.annotations
            && self.owned_labels == other.owned_labels
            && self.owned_annotations == other.owned_annotations
            && self.owners == other.owners
    }
}

impl Export {
    pub(super) fn same(&self, other: &Self) -> bool {
        self.meta.same(&other.meta)
            && self.created == other.created
            && self.deleting == other.deleting
            && self.labels == other.labels
            && self.annotations == other.annotations
            && self.conditions == other.conditions
    }
}

impl Local {
    pub(super) fn is_empty(&self) -> bool {
        self.export.is_none()
            && self.service.is_none()
            && self.import.is_none()
            && self.sources.is_empty()
            && self.mirrored.is_empty()
            && self.failure.is_none()
            && self.refused.is_empty()
    }
}
