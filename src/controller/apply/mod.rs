//! Plans → writes to one member: in order, each only if the object is still the one that it is meant for.
//!
//! ```text
//!  Job (one service, one member) ─► outbox: when ─► attempt: request by request ─► Done
//!                                      ▲                                             │
//!                                      └── gate of the service, pause of the member ◄┘
//! ```
//!
//! Each member has an outbox of its own, so what is slow, refused or lost there delays nobody else (R95). Nothing is
//! read in order to write: what is there is known from the watches, and answers are told like what a watch says.

mod attempt;
mod emptiness;
mod events;
mod gates;
mod outbox;
mod place;
mod replace;
mod request;
mod trouble;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{Label, ServiceKey};
use crate::reconcile::objects::{Condition, Time};
use crate::reconcile::observed::Refusable;
use crate::reconcile::plan::{Action, Change, Event};
use crate::source::member::Observed;

pub(super) use attempt::Applier;
pub(super) use outbox::Outbox;
pub(super) use trouble::Trouble;

/// What a job is about: jobs of one target never run side by side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    /// A service.
    Service(ServiceKey),
    /// A namespace that we made.
    Namespace(Label),
}

impl Target {
    /// The namespace that it is in.
    pub(super) fn namespace(&self) -> &Label {
        match self {
            Self::Service(key) => &key.namespace,
            Self::Namespace(name) => name,
        }
    }
}

/// What is to be written to one member for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// For whom.
    pub(super) target: Target,
    /// The writes, in their order.
    pub(super) changes: Vec<Change>,
    /// What people are told once they are done, with the uid of the object that each is about, where it is known.
    pub(super) events: Vec<(Event, Option<Box<str>>)>,
}

impl Job {
    /// Whether it writes statuses and nothing else.
    fn is_status(&self) -> bool {
        let status =
            |change: &Change| matches!(change.action, Action::ApplyExportStatus(..) | Action::ApplyImportStatus(..));
        self.changes.iter().all(status)
    }

    /// The same for two jobs that write the same, whatever versions they found. Statuses alone are apart: they follow
    /// every other write, and would hide that it is the same again and again.
    fn fingerprint(&self) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        for change in &self.changes {
            let mut action = change.action.clone();
            match &mut action {
                Action::ApplyImport(object) => object.existing = None,
                Action::ApplyService(object) => object.existing = None,
                Action::ApplySlice(object) => object.existing = None,
                Action::DeleteNamespace(_, id)
                | Action::DeleteExport(_, id)
                | Action::DeleteImport(_, id)
                | Action::DeleteService(_, id)
                | Action::DeleteSlice(_, _, id) => *id = Default::default(),
                Action::ApplyImportStatus(_, status) => timeless(&mut status.conditions),
                Action::ApplyExportStatus(_, conditions) => timeless(conditions),
                Action::CreateNamespace(_) | Action::CreateExport(_) => {}
            }
            format!("{action:?}").hash(&mut hasher);
        }
        Fingerprint { status: self.is_status(), hash: hasher.finish() }
    }
}

/// What a job writes, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fingerprint {
    /// Whether it is statuses and nothing else.
    status: bool,
    hash: u64,
}

/// Conditions without what is another one with every write.
fn timeless(conditions: &mut [Condition]) {
    for condition in conditions {
        (condition.generation, condition.since) = (0, Time(0));
    }
}

/// Whether it makes an object that must not be there yet.
fn is_new(action: &Action) -> bool {
    match action {
        Action::ApplyImport(object) => object.existing.is_none(),
        Action::ApplyService(object) => object.existing.is_none(),
        Action::ApplySlice(object) => object.existing.is_none(),
        _ => false,
    }
}

/// What came of a job.
#[derive(Debug)]
pub(super) struct Done {
    /// For whom.
    pub(super) target: Target,
    /// Objects as they are after the writes, or their absence, each with its version.
    pub(super) seen: Vec<(Observed, u64)>,
    /// What went wrong. What was to follow was not tried.
    pub(super) trouble: Option<Trouble>,
    /// Whether anything was written.
    pub(super) wrote: bool,
}

/// A field that an API server refused, with its value.
pub(super) type RefusedField = (Refusable, Box<str>);

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Service(key) => write!(f, "{key}"),
            Self::Namespace(name) => write!(f, "namespace {name}"),
        }
    }
}
