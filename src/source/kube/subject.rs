//! What is followed: where it is found at an API server, and who hears of it.

use super::media::Encoded;
use crate::source::Trouble;

/// A kind of object at an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The versions that we read, the preferred one first.
    pub versions: &'static [&'static str],
    /// The plural, as in URLs and RBAC rules.
    pub plural: &'static str,
    /// Whether it is there at all.
    pub presence: Presence,
    /// The one namespace to look into; none is all of them.
    pub namespace: Option<String>,
    /// Labels that objects must have, as in `kubectl -l`.
    pub labels: Option<&'static str>,
    /// How many objects a page of a list has: two pages are the most that is held twice, so they must be small beside what
    /// is kept (SCL-01).
    pub page: usize,
    /// Whether it may come in Kubernetes' protobuf. Custom resources have none, so it comes in JSON all the same.
    pub protobuf: bool,
}

/// Whether an API server has a kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Since some release of Kubernetes, every one has.
    BuiltIn {
        /// What to say of one that has not.
        since: &'static str,
    },
    /// Where this CRD is installed. Where it is not, somebody has to do so.
    Crd(&'static str),
    /// Where this CRD is installed; where it is not, there are no such objects. One that was there and goes is
    /// trouble all the same.
    OptionalCrd(&'static str),
}

impl Collection {
    /// As RBAC rules and error messages of API servers write it: `<plural>.<group>`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// What is wrong where it is missing.
    pub(super) fn missing(&self) -> Trouble {
        match self.presence {
            Presence::Crd(crd) | Presence::OptionalCrd(crd) => Trouble::CrdMissing { crd },
            Presence::BuiltIn { since } => {
                let versions = self.versions.join(" or ");
                let message = format!("it does not serve {} {versions}; {since}", self.full_name());
                Trouble::Unreachable { message }
            }
        }
    }

    /// Whether it is a custom resource: it comes and goes with its CRD.
    pub(super) fn is_custom(&self) -> bool {
        !matches!(self.presence, Presence::BuiltIn { .. })
    }

    /// Whether it may be missing.
    pub(super) fn is_optional(&self) -> bool {
        matches!(self.presence, Presence::OptionalCrd(_))
    }
}

/// Somebody who follows a kind of object: turns objects into what is sent on, and hears how the watch is doing.
pub trait Subject: Send + Sync + 'static {
    /// What is sent on: changes of single objects, and the bounds of full lists.
    type Item: Send + Sync + 'static;

    /// What is followed.
    fn collection(&self) -> &Collection;

    /// What the object says, if anything.
    fn present(&self, object: &Encoded<'_>) -> Option<Self::Item>;

    /// The absence of the object whose last state is `object`.
    fn absent(&self, object: &Encoded<'_>) -> Option<Self::Item>;

    /// A full list begins.
    fn begin(&self) -> Self::Item;

    /// The full list is complete: what it did not hold is gone.
    fn end(&self) -> Self::Item;

    /// An event, a bookmark, a new watch or a complete list: as of now all is known.
    fn alive(&self);

    /// The watch is in trouble. It is tried again.
    fn down(&self, trouble: Trouble);
}
