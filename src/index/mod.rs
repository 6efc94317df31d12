//! Joins imports and slices: one view per service, and which services a change made dirty.
//!
//! Pure: no clock, no I/O. After any sequence of updates the index equals one that is built from scratch from the
//! objects that are there (a property test holds it to that).

mod shared;
mod tally;

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use shared::Shared;
pub use tally::Tally;

use crate::model::{Change, ClusterId, Import, Port, Resource, ServiceKey, Skipped, Slice, SliceKey, Update};

/// A service as it is known now.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// Which service.
    pub key: &'a ServiceKey,
    /// Its import.
    pub import: &'a Import,
    /// The slices that name it, in the order of their keys.
    pub slices: Vec<(&'a SliceKey, &'a Slice)>,
}

/// What an update led to; collected over a burst of updates.
#[derive(Debug, Default)]
pub struct Effects {
    /// The services whose view may have changed.
    pub dirty: HashSet<ServiceKey>,
    /// What is newly skipped, with the object it stands in: `ServiceImport shop/web`.
    pub skipped: Vec<(String, Skipped)>,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    /// The generation of the resync (of its kind) that saw it last.
    seen: u32,
}

/// Imports, slices, and who belongs to whom.
#[derive(Debug, Default)]
pub struct Index {
    imports: HashMap<ServiceKey, Entry<Import>>,
    slices: HashMap<SliceKey, Entry<Slice>>,
    members: HashMap<ServiceKey, BTreeSet<Box<str>>>,
    unreadable: HashMap<(Resource, Box<str>, Box<str>), Entry<Skipped>>,
    generation: [u32; Resource::ALL.len()],
    ports: Shared<Port>,
    clusters: Shared<ClusterId>,
    tally: Tally,
}

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one update in; what it led to is added to `effects`. Says whether an object is another than before.
    pub fn apply(&mut self, update: Update, effects: &mut Effects) -> bool {
        match update {
            Update::Change(Change::Import(key, import)) => self.set_import(key, import, effects),
            Update::Change(Change::Slice(key, slice)) => self.set_slice(key, slice, effects),
            Update::Change(Change::Unreadable { resource, namespace, name, skipped }) => {
                self.set_unreadable(resource, &namespace, &name, skipped, effects);
                false
            }
            Update::Change(Change::Forgotten { resource, namespace, name }) => {
                self.readable(resource, &namespace, &name);
                false
            }
            Update::ResyncBegin(resource) => {
                let generation = &mut self.generation[resource as usize];
                *generation = generation.wrapping_add(1);
                false
            }
            Update::ResyncEnd(resource) => {
                self.sweep(resource, effects);
                false
            }
        }
    }

    /// The view of a service, if there is an import of it.
    #[must_use]
    pub fn view(&self, key: &ServiceKey) -> Option<View<'_>> {
        let (key, entry) = self.imports.get_key_value(key)?;
        Some(View { key, import: &entry.value, slices: self.slices_of(key) })
    }

    /// The slices that name `key`, whether or not there is an import of it.
    #[must_use]
    pub fn slices_of(&self, key: &ServiceKey) -> Vec<(&SliceKey, &Slice)> {
        let Some(names) = self.members.get(key) else { return Vec::new() };
        let found = names.iter().filter_map(|name| {
            let (key, entry) =
                self.slices.get_key_value(&SliceKey { namespace: key.namespace.clone(), name: name.clone() })?;
            Some((key, &entry.value))
        });
        found.collect()
    }

    /// The services that have an import, in no order.
    pub fn services(&self) -> impl Iterator<Item = &ServiceKey> {
        self.imports.keys()
    }

    /// Counts for metrics, kept up to date as changes come.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Objects that can't be served as a whole: kind, namespace, name, and why.
    pub fn unreadable(&self) -> impl Iterator<Item = (Resource, &str, &str, &Skipped)> {
        self.unreadable.iter().map(|((resource, namespace, name), e)| (*resource, &**namespace, &**name, &e.value))
    }

    fn seen(&self, resource: Resource) -> u32 {
        self.generation[resource as usize]
    }

    fn set_import(&mut self, key: ServiceKey, import: Option<Import>, effects: &mut Effects) -> bool {
        self.readable(Resource::Imports, key.namespace.as_str(), key.name.as_str());
        let seen = self.seen(Resource::Imports);
        let old = match import {
            None => match self.imports.remove(&key) {
                None => return false,
                Some(old) => Some(old.value),
            },
            Some(mut import) => {
                self.ports.share(&mut import.ports);
                self.clusters.share(&mut import.clusters);
                let known = self.imports.get(&key).map(|e| &*e.value.skipped);
                announce(effects, || format!("ServiceImport {key}"), known, &import.skipped);
                self.tally.import(&import, true);
                match replace(&mut self.imports, &key, import, seen) {
                    Replaced::Same(same) => {
                        self.tally.import(&same, false);
                        return false;
                    }
                    Replaced::New(old) => old,
                }
            }
        };
        if let Some(old) = old {
            self.tally.import(&old, false);
        }
        effects.dirty.insert(key);
        true
    }

    fn set_slice(&mut self, key: SliceKey, slice: Option<Slice>, effects: &mut Effects) -> bool {
        self.readable(Resource::Slices, key.namespace.as_str(), &key.name);
        let seen = self.seen(Resource::Slices);
        let mut touched = Vec::new();
        let old = match slice {
            None => match self.slices.remove(&key) {
                None => return false,
                Some(old) => Some(old.value),
            },
            Some(mut slice) => {
                self.ports.share(&mut slice.ports);
                let known = self.slices.get(&key).map(|e| &*e.value.skipped);
                announce(effects, || format!("EndpointSlice {key}"), known, &slice.skipped);
                let service = ServiceKey { namespace: key.namespace.clone(), name: slice.service.clone() };
                self.tally.slice(&slice, true);
                match replace(&mut self.slices, &key, slice, seen) {
                    Replaced::Same(same) => {
                        self.tally.slice(&same, false);
                        return false;
                    }
                    Replaced::New(old) => {
                        self.members.entry(service.clone()).or_default().insert(key.name.clone());
                        touched.push(service);
                        old
                    }
                }
            }
        };
        if let Some(old) = old {
            self.tally.slice(&old, false);
            let service = ServiceKey { namespace: key.namespace, name: old.service };
            if !touched.contains(&service) {
                if let Some(names) = self.members.get_mut(&service) {
                    names.remove(&key.name);
                    if names.is_empty() {
                        self.members.remove(&service);
                    }
                }
                touched.push(service);
            }
        }
        effects.dirty.extend(touched);
        true
    }

    /// Keeps what was known of the object, as seen by a running resync.
    fn set_unreadable(
        &mut self,
        resource: Resource,
        namespace: &str,
        name: &str,
        skipped: Skipped,
        effects: &mut Effects,
    ) {
        let seen = self.seen(resource);
        if let Some(key) = ServiceKey::new(namespace, name)
            && resource == Resource::Imports
            && let Some(entry) = self.imports.get_mut(&key)
        {
            entry.seen = seen;
        }
        if resource == Resource::Slices
            && let Some(namespace) = crate::model::Label::new(namespace)
            && let Some(entry) = self.slices.get_mut(&SliceKey { namespace, name: name.into() })
        {
            entry.seen = seen;
        }
        let object = || format!("{} {namespace}/{name}", kind(resource));
        match self.unreadable.entry((resource, namespace.into(), name.into())) {
            Slot::Occupied(mut slot) => {
                if slot.get().value != skipped {
                    effects.skipped.push((object(), skipped.clone()));
                    self.tally.skipped(None, &slot.get().value, false);
                    self.tally.skipped(None, &skipped, true);
                }
                slot.insert(Entry { value: skipped, seen });
            }
            Slot::Vacant(slot) => {
                effects.skipped.push((object(), skipped.clone()));
                self.tally.skipped(None, &skipped, true);
                slot.insert(Entry { value: skipped, seen });
            }
        }
    }

    /// The object can be read (again), or is gone.
    fn readable(&mut self, resource: Resource, namespace: &str, name: &str) {
        if self.unreadable.is_empty() {
            return; // the usual case: no key is built to find nothing
        }
        if let Some(entry) = self.unreadable.remove(&(resource, namespace.into(), name.into())) {
            self.tally.skipped(None, &entry.value, false);
        }
    }

    /// Removes what the resync that ends now did not see.
    fn sweep(&mut self, resource: Resource, effects: &mut Effects) {
        let seen = self.seen(resource);
        match resource {
            Resource::Imports => {
                for key in unseen(&self.imports, seen) {
                    self.set_import(key, None, effects);
                }
            }
            Resource::Slices => {
                for key in unseen(&self.slices, seen) {
                    self.set_slice(key, None, effects);
                }
            }
        }
        let tally = &mut self.tally;
        self.unreadable.retain(|(of, _, _), entry| {
            let stays = *of != resource || entry.seen == seen;
            if !stays {
                tally.skipped(None, &entry.value, false);
            }
            stays
        });
    }
}

/// The kind that people know a resource by.
fn kind(resource: Resource) -> &'static str {
    match resource {
        Resource::Imports => "ServiceImport",
        Resource::Slices => "EndpointSlice",
    }
}

fn unseen<K: Clone, T>(map: &HashMap<K, Entry<T>>, seen: u32) -> Vec<K> {
    map.iter().filter(|(_, entry)| entry.seen != seen).map(|(key, _)| key.clone()).collect()
}

enum Replaced<T> {
    /// Nothing changed; the value that was to be put.
    Same(T),
    /// The value is new; the one before it, if any.
    New(Option<T>),
}

fn replace<K: Clone + Eq + Hash, T: PartialEq>(
    map: &mut HashMap<K, Entry<T>>,
    key: &K,
    value: T,
    seen: u32,
) -> Replaced<T> {
    match map.get_mut(key) {
        Some(entry) if entry.value == value => {
            entry.seen = seen;
            Replaced::Same(value)
        }
        Some(entry) => {
            entry.seen = seen;
            Replaced::New(Some(std::mem::replace(&mut entry.value, value)))
        }
        None => {
            map.insert(key.clone(), Entry { value, seen });
            Replaced::New(None)
        }
    }
}

/// How many lines are logged of one object: whoever writes it could otherwise fill the log, and a person reads the
/// first few. `explain` and the metrics have all.
const ANNOUNCED: usize = 10;

/// Tells what `new` skips that `known` did not.
fn announce(effects: &mut Effects, object: impl Fn() -> String, known: Option<&[Skipped]>, new: &[Skipped]) {
    if new.is_empty() {
        return; // the usual case
    }
    let known: HashSet<&Skipped> = known.into_iter().flatten().collect();
    let mut fresh = new.iter().filter(|skipped| !known.contains(skipped));
    for skipped in fresh.by_ref().take(ANNOUNCED) {
        effects.skipped.push((object(), skipped.clone()));
    }
    if let Some(Skipped { reason, .. }) = fresh.next() {
        let what = format!("and {} more parts of it are left out; `namesake explain` shows them", fresh.count() + 1);
        effects.skipped.push((object(), Skipped { reason: *reason, what: what.into() }));
    }
}
