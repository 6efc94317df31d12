//! What the DNS half would see in one cluster: its ServiceImports and multi-cluster EndpointSlices, in the form in which
//! its API server would send them.

use crate::api;
use crate::controller::objects::{self, Place};
use crate::model::{Change, ClusterId, ServiceKey, SliceKey};
use crate::reconcile::World;
use crate::reconcile::observed::{Import, Slice};
use crate::source::Convert;
use crate::source::clusters::Clusters;
use crate::source::member::Observed;

/// The objects of `cluster`: ours, and those of others that its folder holds.
#[must_use]
pub fn view(world: &World, told: &Clusters, cluster: &ClusterId, convert: &Convert) -> Vec<Change> {
    let mut changes = Vec::new();
    let Some(member) = world.members().get(cluster) else { return changes };
    for key in world.keys() {
        let Some(local) = member.local(&key) else { continue };
        changes.extend(local.import.iter().filter_map(|it| import(&key, it, convert)));
        let slices = local.mirrored.iter().map(|(name, slice)| {
            let key = SliceKey { namespace: key.namespace.clone(), name: name.clone() };
            self::slice(&key, slice, convert)
        });
        changes.extend(slices.flatten());
    }
    let told = told.0.get(cluster).into_iter().flat_map(|cluster| cluster.objects.values());
    changes.extend(told.filter_map(|object| match object {
        Observed::Import(key, Some(it)) if !it.meta.is_ours() && !knows(world, key) => import(key, it, convert),
        Observed::Slice(key, Some(it)) if !it.is_ours() && it.meta.labels.contains_key(api::LABEL_SERVICE_NAME) => {
            slice(key, it, convert)
        }
        _ => None,
    }));
    changes
}

fn knows(world: &World, key: &ServiceKey) -> bool {
    world.keys_in(&key.namespace).any(|known| known == *key)
}

fn import(key: &ServiceKey, import: &Import, convert: &Convert) -> Option<Change> {
    let Import { meta, spec, status } = import;
    let object = objects::whole_import(key, &meta.labels, &meta.annotations, spec, status, api::VERSIONS[0]);
    convert.import(&serde_json::to_string(&object).ok()?)
}

fn slice(key: &SliceKey, slice: &Slice, convert: &Convert) -> Option<Change> {
    let place = Place { namespace: &key.namespace, name: &key.name };
    let Slice { meta, content } = slice;
    let object = objects::slice(place, &meta.labels, &meta.annotations, &meta.owners, content, api::VERSIONS[0]);
    convert.slice(&serde_json::to_string(&object).ok()?)
}
