//! What sources say: single changes, and the bounds of full replacements.

use super::{Import, ServiceKey, Skipped, Slice, SliceKey};

/// The two kinds of object that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// ServiceImports.
    Imports,
    /// Multi-cluster EndpointSlices.
    Slices,
}

impl Resource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Imports, Self::Slices];

    /// The plural, as in RBAC rules: also the value of the metrics' label `resource`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Imports => "serviceimports",
            Self::Slices => "endpointslices",
        }
    }
}

/// One object as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An import, or its absence.
    Import(ServiceKey, Option<Import>),
    /// A slice, or its absence. A slice that lost its service-name label is absent.
    Slice(SliceKey, Option<Slice>),
    /// An object that can't be served as a whole: it does not decode, or its name can't be a label. What was known
    /// of it before stays, also through a resync.
    Unreadable {
        /// Its kind.
        resource: Resource,
        /// Its namespace, as written.
        namespace: Box<str>,
        /// Its name, as written.
        name: Box<str>,
        /// Why.
        skipped: Skipped,
    },
    /// An object that could never be served, since its name can't be a label, is gone.
    Forgotten {
        /// Its kind.
        resource: Resource,
        /// Its namespace, as written.
        namespace: Box<str>,
        /// Its name, as written.
        name: Box<str>,
    },
}

impl Change {
    /// The kind of object it is about.
    #[must_use]
    pub fn resource(&self) -> Resource {
        match self {
            Self::Import(..) => Resource::Imports,
            Self::Slice(..) => Resource::Slices,
            Self::Unreadable { resource, .. } | Self::Forgotten { resource, .. } => *resource,
        }
    }
}

/// What a source sends, in order.
///
/// A full replacement is not one message: objects are taken as they come between `ResyncBegin` and `ResyncEnd`, and
/// at the end those of that kind that were not seen since the beginning are gone (mark and sweep). So nothing
/// flickers and nothing is held twice. A second `ResyncBegin` starts over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// One object changed, or is part of a running resync.
    Change(Change),
    /// A full list of this kind begins.
    ResyncBegin(Resource),
    /// The full list is complete.
    ResyncEnd(Resource),
}
