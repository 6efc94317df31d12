//! The observed clusters, filed by service: a change touches one entry, and planning a service reads that service's
//! entries alone.
//!
//! Whoever watches the clusters tells the [`World`] each change, and gets back which services have to be planned
//! again. Nothing is interpreted on the way in but to which service an object belongs.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

pub use super::dirty::Dirty;
pub use super::member::{Kind, Member};
use super::naming;
use super::objects::Time;
use super::observed::{Export, Failure, Features, Import, Local, Namespace, Reach, Refusable, Service};
use super::settings::LabelRule;
use crate::api;
use crate::model::{ClusterId, Label, ServiceKey, SliceKey};

/// All members and what they hold.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub(super) members: BTreeMap<ClusterId, Member>,
    /// Services that a plan may have to write something for, with the number of objects that say so.
    relevant: BTreeMap<Label, BTreeMap<Label, usize>>,
    /// Of those, by the name of their derived Service.
    pub(super) by_derived: HashMap<ServiceKey, ServiceKey>,
    members_listed: bool,
    unlisted_since: Time,
    auto_export: Option<LabelRule>,
}

impl World {
    /// No members yet. `auto_export` as in the settings: Services that it fits count as exported.
    #[must_use]
    pub fn new(auto_export: Option<LabelRule>) -> Self {
        Self { auto_export, ..Self::default() }
    }

    /// The members.
    #[must_use]
    pub fn members(&self) -> &BTreeMap<ClusterId, Member> {
        &self.members
    }

    /// Whether the list of members is complete. Before, a cluster that is not among them may still turn up: nothing is
    /// taken for having left.
    #[must_use]
    pub fn members_listed(&self) -> bool {
        self.members_listed
    }

    /// Every service that somebody exports or that something of ours is left of.
    pub fn keys(&self) -> impl Iterator<Item = ServiceKey> {
        self.relevant.iter().flat_map(|(namespace, names)| {
            names.keys().map(|name| ServiceKey { namespace: namespace.clone(), name: name.clone() })
        })
    }

    /// Those of one namespace.
    pub fn keys_in(&self, namespace: &Label) -> impl Iterator<Item = ServiceKey> {
        let names = self.relevant.get_key_value(namespace);
        names.into_iter().flat_map(|(namespace, names)| {
            names.keys().map(|name| ServiceKey { namespace: namespace.clone(), name: name.clone() })
        })
    }

    /// The list of members is complete (or not, after it had to be read anew).
    pub fn set_members_listed(&mut self, listed: bool) -> Dirty {
        let changed = self.members_listed != listed;
        self.members_listed = listed;
        if changed { Dirty::All } else { Dirty::Nothing }
    }

    /// Since when the list of members has not been complete.
    pub fn set_unlisted_since(&mut self, since: Time) {
        self.unlisted_since = since;
    }

    /// Since when that has been so.
    #[must_use]
    pub fn unlisted_since(&self) -> Time {
        self.unlisted_since
    }

    /// How far a member is known, as a source too. A new id is a new member.
    pub fn set_reach(&mut self, cluster: &ClusterId, reach: Reach) -> Dirty {
        match self.members.get_mut(cluster) {
            Some(member) if member.reach == reach => Dirty::Nothing,
            Some(member) => {
                (member.reach, member.sources) = (reach, reach);
                Dirty::All
            }
            None => {
                self.members.insert(cluster.clone(), Member::new(reach));
                Dirty::All
            }
        }
    }

    /// How far what a member exports is known, where that differs from the rest.
    pub fn set_sources(&mut self, cluster: &ClusterId, sources: Reach) -> Dirty {
        match self.members.get_mut(cluster) {
            Some(member) if member.sources != sources => {
                member.sources = sources;
                Dirty::All
            }
            _ => Dirty::Nothing,
        }
    }

    /// What a member's API server can do.
    pub fn set_features(&mut self, cluster: &ClusterId, features: Features) -> Dirty {
        match self.members.get_mut(cluster) {
            Some(member) if member.features != features => {
                member.features = features;
                Dirty::All
            }
            _ => Dirty::Nothing,
        }
    }

    /// A member is being taken out of the set, or not any more.
    pub fn set_leaving(&mut self, cluster: &ClusterId, leaving: bool) -> Dirty {
        match self.members.get_mut(cluster) {
            Some(member) if member.leaving != leaving => {
                member.leaving = leaving;
                Dirty::All
            }
            _ => Dirty::Nothing,
        }
    }

    /// A member is out of the set: nothing more is known of it, and nothing is written to it.
    pub fn remove_member(&mut self, cluster: &ClusterId) -> Dirty {
        let Some(member) = self.members.remove(cluster) else { return Dirty::Nothing };
        // Its services stay relevant where others hold something of them; those that are relevant through it alone
        // are planned once more by nobody, since there is nowhere left to write to.
        for (key, local) in &member.services {
            let weight = self.weight(local);
            self.weigh(key, weight, 0);
            if let Some(parent) = local.service.as_ref().and_then(|service| parent(key, service)) {
                self.weigh(&parent, 1, 0);
            }
        }
        Dirty::All
    }

    /// A namespace, or its absence.
    pub fn set_namespace(&mut self, cluster: &ClusterId, name: &Label, namespace: Option<Namespace>) -> Dirty {
        let Some(member) = self.members.get_mut(cluster) else { return Dirty::Nothing };
        if namespace.is_some() {
            member.see(Kind::Namespaces, name, name.as_str());
        }
        let same = match (member.namespaces.get(name), &namespace) {
            (Some(a), Some(b)) => a.meta.same(&b.meta) && a.terminating == b.terminating,
            (a, b) => a.is_none() && b.is_none(),
        };
        match namespace {
            Some(namespace) => member.namespaces.insert(name.clone(), namespace),
            None => member.namespaces.remove(name),
        };
        if same { Dirty::Nothing } else { Dirty::Namespace(name.clone()) }
    }

    /// A ServiceExport, or its absence.
    pub fn set_export(&mut self, cluster: &ClusterId, key: &ServiceKey, export: Option<Export>) -> Dirty {
        self.change(cluster, key, Kind::Exports, export.is_some(), |local| {
            let same = match (&local.export, &export) {
                (Some(a), Some(b)) => a.same(b),
                (a, b) => a.is_none() && b.is_none(),
            };
            local.export = export;
            same
        })
    }

    /// A Service, or its absence: a user's, or a derived one.
    pub fn set_service(&mut self, cluster: &ClusterId, key: &ServiceKey, service: Option<Service>) -> Dirty {
        let parent_of = |world: &Self| {
            let service = world.members.get(cluster)?.services.get(key)?.service.as_ref()?;
            parent(key, service)
        };
        let before = parent_of(self);
        let mut same = true;
        let own = self.change(cluster, key, Kind::Services, service.is_some(), |local| {
            same = match (&local.service, &service) {
                (Some(a), Some(b)) => a.meta.same(&b.meta) && a.spec == b.spec,
                (a, b) => a.is_none() && b.is_none(),
            };
            local.service = service;
            same
        });
        let after = parent_of(self);
        for (parent, before, after) in [(&before, 1, 0), (&after, 0, 1)] {
            if let Some(parent) = parent {
                self.weigh(parent, before, after);
            }
        }
        let derived_of = self.by_derived.get(key).cloned();
        match own {
            own if same => own,
            Dirty::Services(mut keys) => {
                keys.extend(derived_of);
                Dirty::Services(keys)
            }
            own => derived_of.or(after).or(before).map_or(own, |key| Dirty::Services(vec![key])),
        }
    }

    /// A ServiceImport, or its absence.
    pub fn set_import(&mut self, cluster: &ClusterId, key: &ServiceKey, import: Option<Import>) -> Dirty {
        self.change(cluster, key, Kind::Imports, import.is_some(), |local| {
            let same = match (&local.import, &import) {
                (Some(a), Some(b)) => a.meta.same(&b.meta) && a.spec == b.spec && a.status == b.status,
                (a, b) => a.is_none() && b.is_none(),
            };
            if import.is_none() {
                // What its derived Service must go without is asked for anew with the next one.
                local.refused.clear();
            }
            local.import = import;
            same
        })
    }

    /// The last attempt to write for `key` in `cluster` failed, or not any more.
    pub fn set_failure(&mut self, cluster: &ClusterId, key: &ServiceKey, failure: Option<Failure>) -> Dirty {
        if !self.members.contains_key(cluster) {
            return Dirty::Nothing;
        }
        self.change(cluster, key, Kind::Services, false, |local| {
            let same = local.failure == failure;
            local.failure = failure;
            same
        })
    }

    /// The API server of `cluster` refused `value` in a field of the derived Service of `key`.
    pub fn set_refused(&mut self, cluster: &ClusterId, key: &ServiceKey, field: Refusable, value: &str) -> Dirty {
        self.change(cluster, key, Kind::Services, false, |local| {
            local.refused.insert(field, value.into()).is_some_and(|before| *before == *value)
        })
    }

    /// A full list of one kind begins: what is told until [`Self::end_list`] is marked as seen.
    pub fn begin_list(&mut self, cluster: &ClusterId, kind: Kind) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.lists.insert(kind, HashSet::default());
        }
    }

    /// An object is there, but can't be read: a running list is not to take it for gone.
    pub fn keep(&mut self, cluster: &ClusterId, kind: Kind, key: &SliceKey) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.see(kind, &key.namespace, &key.name);
        }
    }

    /// A full list is complete: what it did not hold is gone.
    pub fn end_list(&mut self, cluster: &ClusterId, kind: Kind) -> Vec<Dirty> {
        let Some(member) = self.members.get_mut(cluster) else { return Vec::new() };
        let Some(seen) = member.lists.remove(&kind) else { return Vec::new() };
        let unseen: Vec<_> = member.held(kind).filter(|key| !seen.contains(key)).collect();
        let mut dirty = Vec::new();
        for key in unseen {
            let service = ServiceKey::new(key.namespace.as_str(), &key.name);
            dirty.push(match (kind, service) {
                (Kind::Slices, _) => self.set_slice(cluster, &key, None),
                (Kind::Namespaces, _) => self.set_namespace(cluster, &key.namespace, None),
                (Kind::Exports, Some(service)) => self.set_export(cluster, &service, None),
                (Kind::Services, Some(service)) => self.set_service(cluster, &service, None),
                (Kind::Imports, Some(service)) => self.set_import(cluster, &service, None),
                (_, None) => Dirty::Nothing,
            });
        }
        dirty.retain(|dirty| *dirty != Dirty::Nothing);
        dirty
    }

    /// Changes one entry and says whom that concerns. `change` returns whether nothing of interest changed.
    pub(super) fn change(
        &mut self,
        cluster: &ClusterId,
        key: &ServiceKey,
        kind: Kind,
        seen: bool,
        change: impl FnOnce(&mut Local) -> bool,
    ) -> Dirty {
        let auto_export = self.auto_export.clone();
        let Some(member) = self.members.get_mut(cluster) else { return Dirty::Nothing };
        if seen {
            member.see(kind, &key.namespace, key.name.as_str());
        }
        let local = member.services.entry(key.clone()).or_default();
        let before = weight(local, auto_export.as_ref());
        let same = change(local);
        let after = weight(local, auto_export.as_ref());
        if local.is_empty() {
            member.services.remove(key);
        }
        let relevant = self.is_relevant(key);
        self.weigh(key, before, after);
        if same || !(relevant || after > 0) { Dirty::Nothing } else { Dirty::Services(vec![key.clone()]) }
    }

    fn is_relevant(&self, key: &ServiceKey) -> bool {
        self.relevant.get(&key.namespace).is_some_and(|names| names.contains_key(&key.name))
    }

    fn weight(&self, local: &Local) -> usize {
        weight(local, self.auto_export.as_ref())
    }

    /// Counts the objects that make `key` relevant.
    pub(super) fn weigh(&mut self, key: &ServiceKey, before: usize, after: usize) {
        if before == after {
            return;
        }
        let names = self.relevant.entry(key.namespace.clone()).or_default();
        let count = names.entry(key.name.clone()).or_default();
        let was = *count;
        *count = count.saturating_sub(before) + after;
        match (was, *count) {
            (_, 0) => {
                names.remove(&key.name);
                if names.is_empty() {
                    self.relevant.remove(&key.namespace);
                }
                self.by_derived.remove(&naming::derived_key(key));
            }
            (0, _) => {
                let derived = naming::derived_key(key);
                self.by_derived.insert(derived.clone(), key.clone());
                self.file_better(&derived);
            }
            _ => {}
        }
    }
}

/// How many objects of one member say that a service concerns us.
fn weight(local: &Local, auto_export: Option<&LabelRule>) -> usize {
    let exported =
        local.service.as_ref().zip(auto_export).is_some_and(|(service, rule)| rule.fits(&service.meta.labels));
    usize::from(local.export.is_some())
        + usize::from(exported)
        + usize::from(local.import.as_ref().is_some_and(|import| import.meta.is_ours()))
        + local.mirrored.len()
}

/// The service that a derived Service of ours belongs to.
fn parent(key: &ServiceKey, service: &Service) -> Option<ServiceKey> {
    let name = service.meta.labels.get(api::LABEL_SERVICE_NAME).filter(|_| service.meta.is_ours())?;
    let parent = ServiceKey { namespace: key.namespace.clone(), name: Label::new(name)? };
    (naming::derived(&parent) == key.name).then_some(parent)
}
