//! After any sequence of changes and resyncs the index equals one built from scratch, and so does the store.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use namesake::feed::load;
use namesake::index::{Effects, Index};
use namesake::model::{Change, Import, Resource, ServiceKey, Skipped, Slice, SliceKey, Update};
use proptest::prelude::*;

use crate::support::{A, AAAA, Ask, Live, Message, SRV, TXT, Zone};
use crate::world;

/// What is there, kept in the simplest way: whole objects, and who was seen since the resync began.
#[derive(Debug, Default, Clone)]
struct Model {
    imports: BTreeMap<ServiceKey, (Import, bool)>,
    slices: BTreeMap<SliceKey, (Slice, bool)>,
    unreadable: BTreeMap<(bool, String, String), (Skipped, bool)>,
}

impl Model {
    fn apply(&mut self, update: &Update) {
        match update {
            Update::Change(Change::Import(key, import)) => {
                self.unreadable.remove(&(true, key.namespace.to_string(), key.name.to_string()));
                match import {
                    Some(import) => drop(self.imports.insert(key.clone(), (import.clone(), true))),
                    None => drop(self.imports.remove(key)),
                }
            }
            Update::Change(Change::Slice(key, slice)) => {
                self.unreadable.remove(&(false, key.namespace.to_string(), key.name.to_string()));
                match slice {
                    Some(slice) => drop(self.slices.insert(key.clone(), (slice.clone(), true))),
                    None => drop(self.slices.remove(key)),
                }
            }
            Update::Change(Change::Unreadable { resource, namespace, name, skipped }) => {
                let imports = *resource == Resource::Imports;
                let key = (imports, namespace.to_string(), name.to_string());
                self.unreadable.insert(key, (skipped.clone(), true));
                if let Some(key) = ServiceKey::new(namespace, name) {
                    let slice = SliceKey { namespace: key.namespace.clone(), name: name.clone() };
                    if imports {
                        self.imports.entry(key).and_modify(|(_, seen)| *seen = true);
                    } else {
                        self.slices.entry(slice).and_modify(|(_, seen)| *seen = true);
                    }
                }
            }
            Update::Change(Change::Forgotten { resource, namespace, name }) => {
                self.unreadable.remove(&(*resource == Resource::Imports, namespace.to_string(), name.to_string()));
            }
            Update::ResyncBegin(resource) => self.each(*resource, |seen| {
                *seen = false;
                true
            }),
            Update::ResyncEnd(resource) => self.each(*resource, |seen| std::mem::replace(seen, true)),
        }
    }

    fn each(&mut self, resource: Resource, mut keep: impl FnMut(&mut bool) -> bool) {
        match resource {
            Resource::Imports => self.imports.retain(|_, (_, seen)| keep(seen)),
            Resource::Slices => self.slices.retain(|_, (_, seen)| keep(seen)),
        }
        self.unreadable.retain(|(imports, _, _), (_, seen)| *imports != (resource == Resource::Imports) || keep(seen));
    }

    /// The objects that are there, as changes to something empty.
    fn changes(&self) -> Vec<Change> {
        let imports = self.imports.iter().map(|(key, (import, _))| Change::Import(key.clone(), Some(import.clone())));
        let slices = self.slices.iter().map(|(key, (slice, _))| Change::Slice(key.clone(), Some(slice.clone())));
        let unreadable = self.unreadable.iter().map(|((imports, namespace, name), (skipped, _))| Change::Unreadable {
            resource: if *imports { Resource::Imports } else { Resource::Slices },
            namespace: namespace.as_str().into(),
            name: name.as_str().into(),
            skipped: skipped.clone(),
        });
        imports.chain(slices).chain(unreadable).collect()
    }
}

fn keys() -> Vec<ServiceKey> {
    let of = |namespace: &str| world::SERVICES.map(|service| ServiceKey::new(namespace, service).expect("labels"));
    world::NAMESPACES.into_iter().flat_map(of).collect()
}

type Seen = (Option<Import>, Vec<(SliceKey, Slice)>);

fn view(index: &Index, key: &ServiceKey) -> Seen {
    let import = index.view(key).map(|view| {
        assert_eq!(view.key, key);
        assert_eq!(view.slices, index.slices_of(key));
        view.import.clone()
    });
    (import, index.slices_of(key).into_iter().map(|(k, s)| (k.clone(), s.clone())).collect())
}

fn unreadable(index: &Index) -> BTreeSet<String> {
    index.unreadable().map(|unreadable| format!("{unreadable:?}")).collect()
}

proptest! {
    #![proptest_config(crate::cases(600))]

    #[test]
    fn index_equals_a_rebuild_from_scratch(updates in world::updates()) {
        let (mut index, mut model) = (Index::new(), Model::default());
        for update in updates {
            let before: Vec<_> = keys().iter().map(|key| view(&index, key)).collect();
            let mut effects = Effects::default();
            let changed = index.apply(update.clone(), &mut effects);
            if matches!(update, Update::Change(_)) {
                prop_assert_eq!(changed, !effects.dirty.is_empty(), "{:?}", &update);
            }
            model.apply(&update);
            let mut rebuilt = Index::new();
            let mut ignored = Effects::default();
            for change in model.changes() {
                rebuilt.apply(Update::Change(change), &mut ignored);
            }
            for (key, before) in keys().iter().zip(before) {
                let now = view(&index, key);
                prop_assert_eq!(&now, &view(&rebuilt, key), "{} after {:?}", key, &update);
                prop_assert!(now == before || effects.dirty.contains(key), "{} changed and is not dirty", key);
            }
            let services = |index: &Index| index.services().cloned().collect::<HashSet<_>>();
            prop_assert_eq!(services(&index), services(&rebuilt));
            prop_assert_eq!(unreadable(&index), unreadable(&rebuilt), "after {:?}", &update);
            prop_assert_eq!(index.tally(), rebuilt.tally(), "after {:?}", &update);
        }
    }
}

/// What a zone says to these names, as sets.
fn says(zone: &Zone, names: &[String]) -> Vec<(u16, Vec<String>)> {
    let questions = names.iter().flat_map(|name| [A, AAAA, SRV, TXT].map(|qtype| (name, qtype)));
    let answers = questions.map(|(name, qtype)| {
        let answer = zone.send(&Ask::new(&zone.absolute(name), qtype).tcp());
        let records = [&answer.message.answers, &answer.message.additionals].map(|s| Message::set(s));
        (answer.message.rcode(), records.concat())
    });
    answers.collect()
}

proptest! {
    #![proptest_config(crate::cases(40))]

    #[test]
    fn store_equals_a_rebuild_from_scratch(
        options in world::options(),
        bursts in prop::collection::vec(world::updates(), 1..4),
    ) {
        let mut live = Live::unsynced(options.clone());
        live.resync("");
        let mut model = Model::default();
        for burst in bursts {
            burst.iter().for_each(|update| model.apply(update));
            live.feed.take(burst, live.now);
        }
        live.wait(std::time::Duration::from_secs(1));
        let rebuilt = Zone::new(load(options, model.changes()));
        let names = world::names();
        let (now, fresh) = (says(&live.zone, &names), says(&rebuilt, &names));
        for ((name, now), fresh) in names.iter().flat_map(|n| [n; 4]).zip(now).zip(fresh) {
            prop_assert_eq!(now, fresh, "{}", name);
        }
    }
}
