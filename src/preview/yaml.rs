//! Plans → YAML for GitOps: one applicable object a document, each with its cluster in a comment.

use std::net::IpAddr;

use crate::api;
use crate::controller::objects;
use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::ServicePlan;
use crate::reconcile::objects::{Owner, OwnerKind};
use crate::reconcile::plan::{Action, Change};
use crate::reconcile::world::Kind;
use crate::source::clusters::{Cluster, Clusters, ObjectId, is_made_up};

/// Why there is no YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} in {cluster} can't be written as YAML: {why}; please report this")]
pub struct YamlError {
    object: String,
    cluster: ClusterId,
    why: String,
}

/// What `plans` write, cluster by cluster; with `only`, to that cluster alone. No status, which nobody can apply with the
/// object. What is to be deleted stands at the end of its cluster as comments.
///
/// # Errors
/// Where an object can't be written as YAML, which is a fault of ours.
pub fn documents(plans: &[ServicePlan], told: &Clusters, only: Option<&ClusterId>) -> Result<String, YamlError> {
    let mut changes: Vec<&Change> = plans.iter().flat_map(|plan| &plan.plan.changes).collect();
    changes.retain(|change| only.is_none_or(|only| *only == change.cluster));
    // Stable: the order of the plans stays within a cluster.
    changes.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    let mut out = String::new();
    for of_cluster in changes.chunk_by(|a, b| a.cluster == b.cluster) {
        for change in of_cluster {
            let cluster = &change.cluster;
            let action = without_made_up(&change.action, cluster, told.0.get(cluster));
            let Some(object) = objects::object(&action, api::VERSIONS[0]) else { continue };
            let yaml = serde_saphyr::to_string(&object).map_err(|error| YamlError {
                object: name(&change.action),
                cluster: cluster.clone(),
                why: error.to_string(),
            })?;
            out.push_str(&format!("---\n# cluster: {cluster}\n{}\n", yaml.trim_end()));
        }
        for change in of_cluster {
            if let Some(command) = deletion(&change.action) {
                let cluster = &change.cluster;
                out.push_str(&format!("# cluster: {cluster}: kubectl delete {command}  # {}\n", change.reason));
            }
        }
    }
    Ok(out)
}

/// What was made up for a folder means nothing to an API server: uids of owners, and addresses.
fn without_made_up(action: &Action, cluster: &ClusterId, told: Option<&Cluster>) -> Action {
    let mut action = action.clone();
    let made_up = |ip: &IpAddr| told.is_some_and(|told| told.made_up.contains(ip));
    match &mut action {
        Action::ApplyImport(object) if object.spec.ips.iter().any(made_up) => object.spec.ips.clear(),
        Action::ApplyService(object) => forget(&mut object.owners, &object.key, cluster),
        Action::ApplySlice(object) => forget(&mut object.owners, &object.key, cluster),
        _ => {}
    }
    action
}

fn forget(owners: &mut Vec<Owner>, key: &ServiceKey, cluster: &ClusterId) {
    owners.retain(|owner| {
        let kind = match owner.kind {
            OwnerKind::Import => Kind::Imports,
            OwnerKind::Service => Kind::Services,
        };
        let id = ObjectId { kind, namespace: key.namespace.as_str().into(), name: owner.name.clone() };
        owner.uid.as_ref().is_some_and(|uid| !is_made_up(uid, cluster, &id))
    });
}

fn name(action: &Action) -> String {
    match action {
        Action::ApplyImport(object) => format!("ServiceImport {}", object.key),
        Action::ApplyService(object) => format!("Service {}/{}", object.key.namespace, object.name),
        Action::ApplySlice(object) => format!("EndpointSlice {}/{}", object.key.namespace, object.name),
        _ => "an object".to_owned(),
    }
}

fn deletion(action: &Action) -> Option<String> {
    Some(match action {
        Action::DeleteNamespace(name, _) => format!("namespace {name}"),
        Action::DeleteExport(key, _) => format!("serviceexport -n {} {}", key.namespace, key.name),
        Action::DeleteImport(key, _) => format!("serviceimport -n {} {}", key.namespace, key.name),
        Action::DeleteService(key, _) => format!("service -n {} {}", key.namespace, key.name),
        Action::DeleteSlice(key, name, _) => format!("endpointslice -n {} {name}", key.namespace),
        _ => return None,
    })
}
