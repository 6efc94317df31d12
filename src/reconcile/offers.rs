//! What exporting clusters offer to the importing ones: their endpoints and the labels of their slices. It depends on no
//! importing cluster, so it is made once a plan.

use super::merge::Merged;
use super::metadata::slice_labels;
use super::objects::{Family, Map, SlicePort};
use super::observed::Local;
use super::packing::Groups;
use super::settings::Settings;
use super::world::World;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// What one exporting cluster offers.
pub(super) struct Offer<'a> {
    /// The cluster.
    pub cluster: &'a ClusterId,
    /// The labels of its mirrored slices.
    pub labels: Map,
    /// Its endpoints, of each family of the service.
    families: Vec<(Family, Groups<'a>)>,
}

impl<'a> Offer<'a> {
    /// Its endpoints of one family.
    pub(super) fn groups(&self, family: Family) -> Option<&Groups<'a>> {
        self.families.iter().find(|(own, _)| *own == family).map(|(_, groups)| groups)
    }
}

/// What the exporters of a service offer.
pub(super) fn offers<'a>(
    world: &'a World,
    key: &ServiceKey,
    derived: &Label,
    merged: &'a Merged,
    settings: &Settings,
) -> Vec<Offer<'a>> {
    let offer = |cluster: &'a ClusterId| {
        let exported = world.members().get(cluster).and_then(|member| member.local(key));
        let groups = |family| exported.map(|local| groups(merged, local, family, settings)).unwrap_or_default();
        let families = merged.families.iter().map(|family| (*family, groups(*family))).collect();
        Offer { cluster, labels: slice_labels(key, derived, cluster, merged.kind, settings), families }
    };
    merged.clusters.iter().map(offer).collect()
}

/// The endpoints of one exporting cluster and family, by their mirrored ports.
fn groups<'a>(merged: &Merged, exported: &'a Local, family: Family, settings: &Settings) -> Groups<'a> {
    let mut groups = Groups::default();
    let ports: &[_] = exported.service.as_ref().map(|service| &service.spec.ports[..]).unwrap_or_default();
    for slice in exported.sources.values().filter(|slice| slice.content.family == family) {
        let mirrored = merged.ports.of_slice(ports, &slice.content.ports, settings.rename_ports);
        if !mirrored.is_empty() || may_be_portless(merged, &slice.content.ports) {
            groups.add(mirrored, &slice.content.endpoints);
        }
    }
    groups.sort();
    groups
}

/// Whether a slice without any port makes sense: of a headless service whose source slice has none (R44). Where the
/// source has ports and none of them is the union's, there is nothing to reach (R40).
fn may_be_portless(merged: &Merged, source: &[SlicePort]) -> bool {
    merged.kind == ImportKind::Headless && source.is_empty()
}
