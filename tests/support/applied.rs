//! What a stream of updates adds up to: a model of mark and sweep of its own, so that a source is not judged by the
//! code it feeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use namesake::model::{Change, Import, Resource, Slice, Update};
use tokio::sync::mpsc::Receiver;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The state after the updates so far.
#[derive(Debug)]
pub(crate) struct Applied {
    updates: Receiver<Update>,
    imports: BTreeMap<String, Import>,
    slices: BTreeMap<String, Slice>,
    unreadable: BTreeSet<String>,
    /// What was seen since a running resync began.
    marked: BTreeMap<bool, BTreeSet<String>>,
    /// How many resyncs of each kind began and ended.
    begun: [usize; 2],
    ended: [usize; 2],
}

#[allow(dead_code, reason = "not every test binary asks everything")]
impl Applied {
    pub(crate) fn new(updates: Receiver<Update>) -> Self {
        Self {
            updates,
            imports: BTreeMap::new(),
            slices: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            marked: BTreeMap::new(),
            begun: [0; 2],
            ended: [0; 2],
        }
    }

    /// Takes updates until `right`; after each the state is one that is served.
    pub(crate) async fn until(&mut self, right: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !right(self) {
            match tokio::time::timeout_at(end.into(), self.updates.recv()).await {
                Ok(Some(update)) => self.apply(update),
                Ok(None) => panic!("the source ended with {self:#?}"),
                Err(_) => panic!("not within {PATIENCE:?}: {self:#?}"),
            }
        }
    }

    /// Whether nothing comes for so long.
    pub(crate) async fn quiet_for(&mut self, time: Duration) -> bool {
        match tokio::time::timeout(time, self.updates.recv()).await {
            Err(_) => true,
            Ok(Some(update)) => {
                self.apply(update);
                false
            }
            Ok(None) => panic!("the source ended"),
        }
    }

    /// Takes what is there already, but for a stream without end.
    pub(crate) fn drain(&mut self) {
        for _ in 0..10_000 {
            match self.updates.try_recv() {
                Ok(update) => self.apply(update),
                Err(_) => return,
            }
        }
    }

    fn apply(&mut self, update: Update) {
        match update {
            Update::ResyncBegin(resource) => {
                self.begun[resource as usize] += 1;
                self.marked.insert(resource == Resource::Imports, BTreeSet::new());
            }
            Update::ResyncEnd(resource) => {
                self.ended[resource as usize] += 1;
                let imports = resource == Resource::Imports;
                let marked = self.marked.remove(&imports).expect("an end without a beginning");
                if imports {
                    self.imports.retain(|key, _| marked.contains(key));
                } else {
                    self.slices.retain(|key, _| marked.contains(key));
                }
            }
            Update::Change(change) => self.change(change),
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Import(key, import) => {
                let key = key.to_string();
                self.mark(true, &key);
                self.unreadable.remove(&key);
                match import {
                    Some(import) => drop(self.imports.insert(key, import)),
                    None => drop(self.imports.remove(&key)),
                }
            }
            Change::Slice(key, slice) => {
                let key = key.to_string();
                self.mark(false, &key);
                match slice {
                    Some(slice) => drop(self.slices.insert(key, slice)),
                    None => drop(self.slices.remove(&key)),
                }
            }
            Change::Unreadable { resource, namespace, name, .. } => {
                let key = format!("{namespace}/{name}");
                self.mark(resource == Resource::Imports, &key);
                self.unreadable.insert(key);
            }
            Change::Forgotten { namespace, name, .. } => drop(self.unreadable.remove(&format!("{namespace}/{name}"))),
        }
    }

    fn mark(&mut self, imports: bool, key: &str) {
        if let Some(marked) = self.marked.get_mut(&imports) {
            marked.insert(key.to_owned());
        }
    }

    pub(crate) fn synced(&self) -> bool {
        self.ended.iter().all(|n| *n > 0)
    }

    pub(crate) fn begun(&self, resource: Resource) -> usize {
        self.begun[resource as usize]
    }

    pub(crate) fn ended(&self, resource: Resource) -> usize {
        self.ended[resource as usize]
    }

    pub(crate) fn imports(&self) -> Vec<&str> {
        self.imports.keys().map(String::as_str).collect()
    }

    pub(crate) fn slices(&self) -> Vec<&str> {
        self.slices.keys().map(String::as_str).collect()
    }

    pub(crate) fn slice(&self, key: &str) -> Option<&Slice> {
        self.slices.get(key)
    }

    pub(crate) fn unreadable(&self) -> Vec<&str> {
        self.unreadable.iter().map(String::as_str).collect()
    }

    pub(crate) fn ips(&self, key: &str) -> Vec<String> {
        self.imports.get(key).map(|i| i.ips.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }

    pub(crate) fn addresses(&self, key: &str) -> Vec<String> {
        let slice = self.slices.get(key);
        slice.map(|s| s.endpoints.iter().map(|e| e.address.to_string()).collect()).unwrap_or_default()
    }
}
