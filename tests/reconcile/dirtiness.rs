//! What the world says is dirty is all that has to be planned again: a plan that comes out otherwise after a change is
//! of a service that was named. Whoever plans only those misses nothing.

use std::collections::BTreeSet;

use namesake::model::ServiceKey;
use namesake::reconcile::world::Dirty;
use namesake::reconcile::{World, plan_service};
use proptest::prelude::*;

use crate::generate::{Edit, edit_with_outages, small, start};
use crate::properties::config;
use crate::set::*;

/// Tells `world` everything that `now` holds, and what it does not hold any more, as watches would.
fn tell(world: &mut World, now: &World) -> Vec<Dirty> {
    let mut dirty = Vec::new();
    for (cluster, member) in now.members() {
        dirty.push(world.set_reach(cluster, member.reach));
        dirty.push(world.set_features(cluster, member.features.clone()));
        dirty.push(world.set_leaving(cluster, member.leaving));
        let before = world.members()[cluster].clone();
        let namespaces: BTreeSet<_> = before.namespaces().chain(member.namespaces()).collect();
        for name in namespaces {
            dirty.push(world.set_namespace(cluster, name, member.namespace(name).cloned()));
        }
        let keys: BTreeSet<_> = before.locals().chain(member.locals()).map(|(key, _)| key).collect();
        for key in keys {
            let local = member.local(key);
            dirty.push(world.set_service(cluster, key, local.and_then(|local| local.service.clone())));
            dirty.push(world.set_export(cluster, key, local.and_then(|local| local.export.clone())));
            dirty.push(world.set_import(cluster, key, local.and_then(|local| local.import.clone())));
        }
        let slices: BTreeSet<_> = before.slice_keys().chain(member.slice_keys()).collect();
        for key in slices {
            let mut found = member.locals().filter(|(at, _)| at.namespace == key.namespace);
            let slice = found.find_map(|(_, local)| local.sources.get(&key.name).or(local.mirrored.get(&key.name)));
            dirty.push(world.set_slice(cluster, key, slice.cloned()));
        }
    }
    dirty
}

/// What a plan comes to, without the versions of what it writes over.
fn comes_to(world: &World, set: &Set, key: &ServiceKey) -> Vec<String> {
    let plan = plan_service(world, key, &set.settings, set.now);
    let changes =
        plan.plan.changes.iter().map(|change| format!("{} {} {}", change.cluster, verb(change), change.reason));
    let importers = plan.importers.iter().map(|(cluster, importing)| format!("{cluster}: {importing}"));
    changes.chain(importers).chain([format!("{:?} {:?}", plan.exporters, plan.plan.again)]).collect()
}

/// Tells the differences between two worlds, and looks for plans that they change without naming them.
fn missed(before: &World, set: &Set) -> Vec<String> {
    let now = &set.sim.world;
    let mut told = before.clone();
    let mut named = BTreeSet::new();
    for dirty in tell(&mut told, now) {
        match dirty {
            Dirty::Nothing => {}
            Dirty::Services(keys) => named.extend(keys),
            Dirty::Namespace(name) => named.extend(before.keys_in(&name).chain(now.keys_in(&name))),
            Dirty::All => named.extend(before.keys().chain(now.keys())),
        }
    }
    let keys: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let differs = |key: &&ServiceKey| comes_to(before, set, key) != comes_to(&told, set, key);
    let of_now = |key: &&ServiceKey| comes_to(now, set, key) != comes_to(&told, set, key);
    let missed = keys.iter().filter(differs).filter(|key| !named.contains(*key)).map(|key| format!("not named: {key}"));
    let wrong = keys.iter().filter(of_now).map(|key| format!("told otherwise than it is: {key}"));
    missed.chain(wrong).collect()
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn mcs_r19_what_a_change_does_not_name_it_does_not_concern(list in prop::collection::vec(edit_with_outages(), 1..25)) {
        let mut set = start(small());
        for edit in &list {
            let before = set.sim.world.clone();
            set.edit(edit);
            if !matches!(edit, Edit::Wait { .. }) {
                prop_assert_eq!(missed(&before, &set), Vec::<String>::new(), "{:?}", edit);
            }
            let before = set.sim.world.clone();
            set.run();
            prop_assert_eq!(missed(&before, &set), Vec::<String>::new(), "what was written after {:?}", edit);
        }
    }
}
