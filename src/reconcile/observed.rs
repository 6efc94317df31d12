//! What a cluster holds, as far as it concerns exports: the objects as they are, nothing interpreted.

use std::collections::BTreeMap;

use super::objects::{Condition, Family, ImportSpec, ImportStatus, Map, Meta, ServiceSpec, SliceContent, Time};
use crate::api;
use crate::model::ClusterId;

/// How far a member's objects are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Its lists have not all been completed since this process (or its membership) began: what it exports is unknown.
    Unheard {
        /// Since when it has been waited for.
        since: Time,
    },
    /// Everything is listed and watched.
    Live,
    /// Everything was listed, but the watches are broken: what is filed is its last known state.
    Unreachable {
        /// Since when.
        since: Time,
    },
}

/// What a member's API server can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    /// Whether its ServiceImport CRD declares `status.endpointSliceObjects` (mcs-api v0.5.1). Sent elsewhere, a
    /// server-side apply fails.
    pub endpoint_slice_objects: bool,
    /// The families it can give a Service, the first one first: those that a dry-run create of a `PreferDualStack`
    /// Service comes back with. `None` where that is not known: then a derived Service is made, and shows it.
    pub families: Option<Vec<Family>>,
}

/// A namespace of a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Uid and version.
    pub meta: Meta,
    /// `status.phase: Terminating`, or a deletion time stamp: nothing can be written into it.
    pub terminating: bool,
}

/// A ServiceExport.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Export {
    /// Uid, version, generation and labels.
    pub meta: Meta,
    /// `metadata.creationTimestamp`: its precedence (R14).
    pub created: Time,
    /// It has a deletion time stamp: it counts as gone.
    pub deleting: bool,
    /// `spec.exportedLabels`
    pub labels: Map,
    /// `spec.exportedAnnotations`
    pub annotations: Map,
    /// `status.conditions`, of all types.
    pub conditions: Vec<Condition>,
}

/// A Service: a user's or a derived one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// Uid, version, labels; owners and owned keys matter for derived ones alone.
    pub meta: Meta,
    /// Its spec.
    pub spec: ServiceSpec,
}

/// A ServiceImport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Uid, version, generation, labels and annotations.
    pub meta: Meta,
    /// Its spec.
    pub spec: ImportSpec,
    /// Its status.
    pub status: ImportStatus,
}

/// An EndpointSlice of type IPv4 or IPv6: a source, ours, or another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Uid, version, labels and annotations.
    pub meta: Meta,
    /// What it carries.
    pub content: SliceContent,
}

impl Meta {
    /// Whether our managed-by label is on it (R8, R94).
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.labels.get(api::LABEL_MANAGED_BY).is_some_and(|by| **by == *api::MANAGED_BY)
    }

    /// The same of what nobody but us makes (imports, derived Services): also where somebody took the label off, as
    /// long as our field manager stands in it. That is drift, and is put right (R57); who wants to have such an object
    /// for himself gives the label another value. Nothing is deleted without the label (R94).
    #[must_use]
    pub fn is_made_by_us(&self) -> bool {
        self.is_ours() || self.lost(api::LABEL_MANAGED_BY)
    }

    /// Whether a label is gone from what we wrote.
    fn lost(&self, label: &str) -> bool {
        let wrote = !self.owned_labels.is_empty() || !self.owned_annotations.is_empty();
        wrote && !self.labels.contains_key(label)
    }
}

impl Slice {
    /// Whether it is one of ours: its managed-by value says so (R61, R94), or, where somebody took that off, our field
    /// manager.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let by = self.meta.labels.get(api::LABEL_SLICE_MANAGED_BY);
        by.is_some_and(|by| **by == *api::MANAGED_BY) || self.meta.lost(api::LABEL_SLICE_MANAGED_BY)
    }

    /// The cluster that its endpoints run in, of a mirrored slice.
    #[must_use]
    pub fn source(&self) -> Option<ClusterId> {
        self.source_label().and_then(ClusterId::new)
    }

    /// The same as it is written.
    pub(super) fn source_label(&self) -> Option<&str> {
        self.meta.labels.get(api::LABEL_SOURCE_CLUSTER).map(|id| &**id)
    }

    /// Since when it is being drained.
    #[must_use]
    pub fn draining_since(&self) -> Option<Time> {
        self.meta.annotations.get(api::ANNOTATION_DRAINING_SINCE).and_then(|at| at.parse().ok()).map(Time)
    }
}

/// What applying a plan for one service met in one cluster, told back so that conditions can say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Since when it has been failing.
    pub since: Time,
    /// The API server's words, or the client's.
    pub message: Box<str>,
}

/// A field of a derived Service that an API server may refuse; then it is left out there (R34, R52).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusable {
    /// `trafficDistribution`
    TrafficDistribution,
    /// `internalTrafficPolicy`
    InternalTrafficPolicy,
    /// `sessionAffinity` and its config
    SessionAffinity,
    /// `clusterIPs`, asked for after somebody deleted the derived Service: they are taken by now.
    ClusterIps,
}

/// Everything that one cluster holds under one namespaced name.
#[derive(Debug, Clone, Default)]
pub struct Local {
    /// The ServiceExport.
    pub export: Option<Export>,
    /// The Service of this name.
    pub service: Option<Service>,
    /// The ServiceImport of this name, ours or not.
    pub import: Option<Import>,
    /// Slices of that Service, by name: what would be mirrored.
    pub sources: BTreeMap<Box<str>, Slice>,
    /// Our slices of that import, by name.
    pub mirrored: BTreeMap<Box<str>, Slice>,
    /// The last write for this service in this cluster failed.
    pub failure: Option<Failure>,
    /// What this API server refused, with the refused value as text. Another value is tried again.
    pub refused: BTreeMap<Refusable, Box<str>>,
}
