//! Whether a delete is allowed (controller.md R82, R84), told without the code under test.

use namesake::model::{ClusterId, ServiceKey};
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Action, Change};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::set::*;

type Outcome = Result<(), TestCaseError>;

/// Whether this change may be made in this world.
pub fn may_delete(set: &Set, service: &ServiceKey, change: &Change) -> Outcome {
    let settings = Settings::default();
    let ttl = settings.unreachable.ttl;
    let members = set.sim.world.members();
    let silent = |cluster: &ClusterId| match members[cluster].reach {
        Reach::Live => None,
        Reach::Unreachable { since } | Reach::Unheard { since } => Some(set.now.since(since)),
    };
    let unheard = |cluster: &ClusterId| matches!(members[cluster].reach, Reach::Unheard { .. });
    let name = service.to_string();
    let exports = |cluster: &ClusterId| {
        let local = set.local(cluster.as_str(), &name);
        local.is_some_and(|local| {
            local.export.is_some()
                && local.service.as_ref().is_some_and(|service| service.spec.kind == ServiceType::ClusterIp)
        })
    };
    match &change.action {
        Action::DeleteSlice(_, slice, _) => {
            let slice = &set.local(change.cluster.as_str(), &name).expect("local").mirrored[slice];
            let Some(source) = slice.source() else { return Ok(()) };
            // Of a cluster that is heard, its own word counts; of a silent one, how long it has been.
            match silent(&source) {
                None => {}
                Some(silence) if silence >= ttl => {}
                Some(_) => prop_assert!(!unheard(&source), "{change:?}: {source} was not heard"),
            }
            // Never the last endpoints of a service of which an unreachable cluster is a known exporter.
            if silent(&source).is_some() && exports(&source) && slice.content.endpoints.iter().any(|e| e.ready) {
                let still = members.keys().any(|other| *other != source && (exports(other) || unheard(other)));
                let re_mirrored =
                    set.plan(&name).plan.changes.iter().any(|c| matches!(c.action, Action::ApplySlice(_)));
                prop_assert!(still || re_mirrored, "{change:?}: the last endpoints");
            }
        }
        Action::DeleteImport(..) => {
            let import = set.imported(change.cluster.as_str(), &name);
            for cluster in members.keys() {
                prop_assert!(!exports(cluster), "{change:?}: {cluster} exports it");
                if unheard(cluster) {
                    prop_assert!(silent(cluster).is_some_and(|s| s >= ttl), "{change:?}: {cluster} was not heard");
                }
            }
            // A cluster that is named and silent keeps what endpoints are left of it.
            for cluster in import.status.clusters.iter().filter(|cluster| unheard(cluster)) {
                let left = members.keys().filter(|id| silent(id).is_none()).any(|id| {
                    let slices = set.mirrored(id.as_str(), &name);
                    slices.iter().any(|(_, s)| {
                        s.source().as_ref() == Some(cluster) && s.content.endpoints.iter().any(|e| e.ready)
                    })
                });
                prop_assert!(!left, "{change:?}: endpoints of {cluster} are left");
            }
        }
        Action::DeleteService(..) => {
            // Made anew, or gone with its import, or without a family.
            let plan = set.plan(&name).plan;
            let goes_with = plan.changes.iter().any(|other| {
                other.cluster == change.cluster
                    && matches!(other.action, Action::DeleteImport(..) | Action::ApplyService(_))
            });
            let no_import = set.import(change.cluster.as_str(), &name).is_none();
            let import = set.import(change.cluster.as_str(), &name);
            let no_family = import.is_some()
                && plan
                    .changes
                    .iter()
                    .all(|c| c.cluster != change.cluster || !matches!(c.action, Action::DeleteImport(..)));
            prop_assert!(goes_with || no_import || no_family, "{change:?}");
        }
        _ => {}
    }
    Ok(())
}
