//! The same clusters, told in another order.

use namesake::model::SliceKey;
use namesake::reconcile::observed::*;

use crate::set::*;

type Tell = Box<dyn Fn(&mut namesake::reconcile::World)>;

/// The same world, told in another order.
pub(crate) fn one_shuffled(set: &Set, seed: u64) -> Set {
    let mut other = Set::unjoined(set.settings.clone());
    let mut rng = fastrand::Rng::with_seed(seed);
    let world = &set.sim.world;
    let mut tell: Vec<Tell> = Vec::new();
    for (cluster, member) in world.members() {
        for name in member.namespaces() {
            let namespace = member.namespace(name).cloned();
            let (cluster, name) = (cluster.clone(), name.clone());
            tell.push(Box::new(move |world| drop(world.set_namespace(&cluster, &name, namespace.clone()))));
        }
        for (key, local) in member.locals() {
            let (c, k, export) = (cluster.clone(), key.clone(), local.export.clone());
            tell.push(Box::new(move |world| drop(world.set_export(&c, &k, export.clone()))));
            let (c, k, service) = (cluster.clone(), key.clone(), local.service.clone());
            tell.push(Box::new(move |world| drop(world.set_service(&c, &k, service.clone()))));
            for (name, slice) in &local.sources {
                let slice_key = SliceKey { namespace: key.namespace.clone(), name: name.clone() };
                let (c, slice) = (cluster.clone(), slice.clone());
                tell.push(Box::new(move |world| drop(world.set_slice(&c, &slice_key, Some(slice.clone())))));
            }
        }
    }
    let mut members: Vec<_> = world.members().keys().cloned().collect();
    rng.shuffle(&mut members);
    rng.shuffle(&mut tell);
    for cluster in members {
        other.sim.world.set_reach(&cluster, Reach::Live);
        other.sim.world.set_features(&cluster, world.members()[&cluster].features.clone());
    }
    for tell in tell {
        tell(&mut other.sim.world);
    }
    other
}
