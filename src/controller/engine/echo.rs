//! What we wrote and the watch has not shown yet: until it has, what it says of the object is old. And the other way
//! round: what the watch has shown while a job was under way, against which the answers of that job may be old.

use std::collections::{HashMap, HashSet};

use crate::model::{Label, SliceKey};
use crate::reconcile::world::Kind;
use crate::source::member::Observed;

/// Versions that the watch of one member still has to reach. Versions of one resource can be compared as numbers
/// (Kubernetes 1.35, KEP-5504; so it has always been with etcd).
#[derive(Debug, Default)]
pub(super) struct Echoes {
    written: HashMap<(Kind, SliceKey), u64>,
    /// What the watch has shown since jobs have been under way.
    shown: HashMap<(Kind, SliceKey), u64>,
    /// Kinds that were listed anew meanwhile: what is absent from a list has no version to compare.
    relisted: HashSet<Kind>,
}

impl Echoes {
    /// `object` was written (or deleted) at `version`. Whether that is news: the watch may have shown it already, or what
    /// came after it.
    pub(super) fn wrote(&mut self, object: &Observed, version: u64) -> bool {
        let key = (object.kind(), key(object));
        if self.relisted.contains(&key.0) || self.shown.get(&key).is_some_and(|shown| *shown >= version) {
            return false;
        }
        let newest = self.written.entry(key).or_default();
        *newest = version.max(*newest);
        true
    }

    /// The watch has shown `object` at `version` while a job is under way.
    pub(super) fn shown(&mut self, object: &Observed, version: u64) {
        let newest = self.shown.entry((object.kind(), key(object))).or_default();
        *newest = version.max(*newest);
    }

    /// No job is under way any more.
    pub(super) fn rest(&mut self) {
        self.shown.clear();
        self.relisted.clear();
    }

    /// Whether what the watch says at `version` is older than what we know. From then on nothing is awaited, if not.
    pub(super) fn is_old(&mut self, object: &Observed, version: u64) -> bool {
        if self.written.is_empty() || version == 0 {
            return false;
        }
        let key = (object.kind(), key(object));
        match self.written.get(&key) {
            Some(written) if version < *written => true,
            Some(_) => {
                self.written.remove(&key);
                false
            }
            None => false,
        }
    }

    /// A full list is complete: it is newer than what was awaited before, or the watch soon is. What jobs under way have
    /// seen may be older than it; if it is not, the watch will show it too.
    pub(super) fn listed(&mut self, kind: Kind, under_way: bool) {
        self.written.retain(|(of, _), _| *of != kind);
        if under_way {
            self.relisted.insert(kind);
        }
    }
}

/// The name of an object, as lists are kept.
pub(super) fn key(object: &Observed) -> SliceKey {
    let of = |namespace: &Label, name: &Label| SliceKey { namespace: namespace.clone(), name: name.as_str().into() };
    match object {
        Observed::Namespace(name, _) => of(name, name),
        Observed::Export(key, _) | Observed::Service(key, _) | Observed::Import(key, _) => {
            of(&key.namespace, &key.name)
        }
        Observed::Slice(key, _) => key.clone(),
    }
}

/// The version of an object; 0 of an absent one.
pub(super) fn version(object: &Observed) -> u64 {
    let id = match object {
        Observed::Namespace(_, it) => it.as_ref().map(|it| &it.meta.id),
        Observed::Export(_, it) => it.as_ref().map(|it| &it.meta.id),
        Observed::Service(_, it) => it.as_ref().map(|it| &it.meta.id),
        Observed::Import(_, it) => it.as_ref().map(|it| &it.meta.id),
        Observed::Slice(_, it) => it.as_ref().map(|it| &it.meta.id),
    };
    id.and_then(|id| id.resource_version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceKey;

    #[test]
    fn what_is_older_than_our_write_is_passed_over_and_what_is_newer_ends_that() {
        let Some(web) = ServiceKey::new("shop", "web") else { return };
        let (web, mut echoes) = (Observed::Import(web, None), Echoes::default());
        assert!(!echoes.is_old(&web, 5), "nothing was written");
        assert!(echoes.wrote(&web, 7) && echoes.wrote(&web, 6));
        assert!(echoes.is_old(&web, 5) && echoes.is_old(&web, 6));
        assert!(!echoes.is_old(&web, 7), "our own write");
        assert!(!echoes.is_old(&web, 5), "nothing is awaited any more");
        echoes.wrote(&web, 9);
        echoes.listed(Kind::Services, true);
        assert!(echoes.is_old(&web, 8));
        echoes.listed(Kind::Imports, false);
        assert!(!echoes.is_old(&web, 8));
    }

    #[test]
    fn answers_older_than_what_the_watch_has_shown_are_no_news() {
        let Some(web) = ServiceKey::new("shop", "web") else { return };
        let (web, mut echoes) = (Observed::Import(web, None), Echoes::default());
        // Written at 10, deleted by somebody at 12, and the watch says so before the job has ended.
        echoes.shown(&web, 12);
        assert!(!echoes.wrote(&web, 10) && !echoes.is_old(&web, 12));
        assert!(echoes.wrote(&web, 13), "made again after that");
        echoes.rest();
        assert!(echoes.wrote(&web, 14));
        echoes.listed(Kind::Imports, true);
        assert!(!echoes.wrote(&web, 15), "a list may have lacked it because it is gone");
        echoes.rest();
        assert!(echoes.wrote(&web, 16));
    }
}
