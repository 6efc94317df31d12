//! What is to be written: changes in their order, each with its reason, and what people are told.

use std::fmt;

use super::conflicts::Conflict;
use super::objects::{Condition, Identity, ImportSpec, ImportStatus, Map, Owner, ServiceSpec, SliceContent, Time};
use crate::model::{ClusterId, Label, ServiceKey};

/// The plan of one service, or of one namespace.
///
/// Changes of one cluster are applied in their order, those of different clusters independently: a cluster that fails
/// holds up nobody else. Where one fails, what follows it in that cluster waits for the next plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is to be written.
    pub changes: Vec<Change>,
    /// What is to be told, each for a change of state that `changes` also holds: applied once, never again.
    pub events: Vec<Event>,
    /// When to plan again although nothing was observed: a time-out or the end of draining.
    pub again: Option<Time>,
}

impl Plan {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// One write to one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub cluster: ClusterId,
    /// What.
    pub action: Action,
    /// Why, for a person: `exported in east`, `ports differ`.
    pub reason: Box<str>,
}

/// A write.
///
/// `Apply…` is a server-side apply with our field manager and force. `existing` is the object it is meant for: with
/// it the object must still be that one (its uid), without it there must be none (what turned up meanwhile may not be
/// ours). Where the answer still differs from what was applied, another manager has added what an
/// apply can't take away, and the object has to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make a namespace with our managed-by label (R4).
    CreateNamespace(Label),
    /// Delete a namespace that we made, if nothing of others is in it (R4).
    DeleteNamespace(Label, Identity),
    /// Make a ServiceExport with our managed-by label for a Service that a label exports.
    CreateExport(ServiceKey),
    /// Delete a ServiceExport that we made.
    DeleteExport(ServiceKey, Identity),
    /// Write a ServiceImport's metadata and spec.
    ApplyImport(ImportObject),
    /// Write a derived Service.
    ApplyService(ServiceObject),
    /// Write a mirrored slice.
    ApplySlice(SliceObject),
    /// Write a ServiceImport's status.
    ApplyImportStatus(ServiceKey, ImportStatus),
    /// Write our conditions of a ServiceExport. Conditions of ours that are not among them are removed, others' stay.
    ApplyExportStatus(ServiceKey, Vec<Condition>),
    /// Delete a ServiceImport, if it is still this version of it.
    DeleteImport(ServiceKey, Identity),
    /// Delete a derived Service (namespace and its own name), if it is still this version of it.
    DeleteService(ServiceKey, Identity),
    /// Delete a mirrored slice (namespace and its own name), if it is still this version of it.
    DeleteSlice(ServiceKey, Box<str>, Identity),
}

/// A ServiceImport as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportObject {
    /// Namespace and name.
    pub key: ServiceKey,
    /// Uid and version of the one that is there.
    pub existing: Option<Identity>,
    /// Labels: ours and the exported ones.
    pub labels: Map,
    /// Annotations: ours and the exported ones.
    pub annotations: Map,
    /// The spec.
    pub spec: ImportSpec,
}

/// A derived Service as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceObject {
    /// The import that it belongs to.
    pub key: ServiceKey,
    /// Its own name.
    pub name: Label,
    /// Uid and version of the one that is there.
    pub existing: Option<Identity>,
    /// Labels.
    pub labels: Map,
    /// Annotations.
    pub annotations: Map,
    /// Its owner: the import.
    pub owners: Vec<Owner>,
    /// The spec.
    pub spec: ServiceSpec,
}

/// A mirrored EndpointSlice as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceObject {
    /// The import that it belongs to.
    pub key: ServiceKey,
    /// Its own name.
    pub name: Box<str>,
    /// Uid and version of the one that is there.
    pub existing: Option<Identity>,
    /// Labels.
    pub labels: Map,
    /// Annotations.
    pub annotations: Map,
    /// Its owners.
    pub owners: Vec<Owner>,
    /// Ports and endpoints.
    pub content: SliceContent,
}

/// A Kubernetes Event to record on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// In which cluster.
    pub cluster: ClusterId,
    /// On which object.
    pub subject: Subject,
    /// Whether its type is `Warning` instead of `Normal`.
    pub warning: bool,
    /// `reason`, one word in CamelCase.
    pub reason: Box<str>,
    /// `message`
    pub message: Box<str>,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The ServiceExport of this key.
    Export(ServiceKey),
    /// The ServiceImport of this key.
    Import(ServiceKey),
}

/// The plan of one service, and what was found about it: for `plan`, `status` and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlan {
    /// The service.
    pub key: ServiceKey,
    /// What is to be written.
    pub plan: Plan,
    /// The valid exporters, in precedence order.
    pub exporters: Vec<ClusterId>,
    /// What they disagree about, in the order of the API's reasons.
    pub conflicts: Vec<Conflict>,
    /// What each member does with it.
    pub importers: Vec<(ClusterId, Importing)>,
}

/// What one member does with a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Importing {
    /// It has all it should have.
    Done,
    /// Something is still to be written, or an address to be given.
    Pending,
    /// It does not import: no such namespace.
    NamespaceMissing,
    /// It does not import: the namespace is being deleted.
    NamespaceTerminating,
    /// It does not import: the operator's rules, or the namespace's annotation.
    Denied,
    /// It can't be reached, or was never heard.
    Unreachable,
    /// It has none of the families of the service.
    FamilyNotSupported,
    /// An object that is not ours has the name: which, in words.
    Foreign(Box<str>),
    /// Writing keeps failing.
    Failed(Box<str>),
}

impl fmt::Display for Importing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "imported",
            Self::Pending => "being written",
            Self::NamespaceMissing => "namespace missing",
            Self::NamespaceTerminating => "namespace terminating",
            Self::Denied => "not allowed",
            Self::Unreachable => "unreachable",
            Self::FamilyNotSupported => "IP family not supported",
            Self::Foreign(what) | Self::Failed(what) => what,
        })
    }
}
