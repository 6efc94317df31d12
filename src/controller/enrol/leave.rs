//! `leave`: a member is taken out of the set, and everything of ours out of the member (controller.md R83).

use serde_json::Value;

use super::api::{Cluster, EnrolError};
use super::join::{cluster_property, is_read_only, registrations, uid};
use super::manifests::{self, ANNOTATION_UID, Grant, Placed, READER, Rights};
use super::{Say, sweep};
use crate::api;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Leave {
    /// The member's id, where nobody else says it.
    pub id: Option<String>,
    /// Our namespace in both clusters.
    pub namespace: String,
    /// Only what `join` did for reading is to be undone: what a controller wrote here stays.
    pub read_only: bool,
}

/// Takes `member` out of `hub`, or, without one, only what is ours out of the member.
///
/// # Errors
/// At the first step that can't be done. It may be repeated.
pub async fn leave(
    member: &Cluster,
    hub: Option<&Cluster>,
    wanted: &Leave,
    say: &mut Say<'_>,
) -> Result<(), EnrolError> {
    if let Some(hub) = hub {
        unregister(member, hub, wanted, say).await?;
    }
    // First what the hub's controller writes with: from here on nothing comes back.
    for placed in accounts(member, hub, wanted).await?.iter().rev() {
        remove(member, &placed.path, &placed.what, say).await?;
    }
    if !wanted.read_only {
        sweep::sweep(member, &wanted.namespace, say).await?;
    }
    sweep::own_namespace(member, &wanted.namespace, say).await?;
    match hub {
        Some(hub) if wanted.read_only => say(&format!("{}: is not read by {} any more", member.name, hub.name)),
        None if wanted.read_only => say(&format!("{}: no accounts for reading are left in it", member.name)),
        Some(_) => say(&format!("{}: is no member any more", member.name)),
        None => say(&format!(
            "{}: nothing of ours is left in it; while its Secret is in a hub, the hub counts it as one that can't be \
             reached: take it out there with `kubectl delete secret -n {} -l {}=<id>`",
            member.name,
            wanted.namespace,
            api::LABEL_CLUSTER
        )),
    }
    Ok(())
}

/// The accounts that are to go: that of this hub or, without a hub, all that `join` has made here.
async fn accounts(member: &Cluster, hub: Option<&Cluster>, wanted: &Leave) -> Result<Vec<Placed>, EnrolError> {
    let mut rights = Vec::new();
    match hub {
        Some(hub) if wanted.read_only => rights.push(Rights::Read(uid(hub).await?)),
        Some(_) => rights.push(Rights::Write(vec![Grant::SourceLeases])),
        None => {
            let path = format!("/api/v1/namespaces/{}/serviceaccounts", wanted.namespace);
            for account in member.list(&path, "").await? {
                let name = account["metadata"]["name"].as_str().unwrap_or_default();
                rights.extend(name.strip_prefix(READER).map(|hub| Rights::Read(hub.to_owned())));
            }
            if !wanted.read_only {
                rights.push(Rights::Write(vec![Grant::SourceLeases]));
            }
        }
    }
    Ok(rights.iter().flat_map(|rights| manifests::account(&wanted.namespace, rights)).collect())
}

/// Deletes the registration of this very cluster.
async fn unregister(member: &Cluster, hub: &Cluster, wanted: &Leave, say: &mut Say<'_>) -> Result<(), EnrolError> {
    let uid = uid(member).await?;
    let id = match &wanted.id {
        Some(id) => Some(id.clone()),
        None => cluster_property(member, api::PROPERTY_CLUSTER).await?,
    };
    let mut found = false;
    for secret in registrations(hub, &wanted.namespace).await? {
        let theirs = secret["metadata"]["annotations"][ANNOTATION_UID].as_str();
        let label = secret["metadata"]["labels"][api::LABEL_CLUSTER].as_str();
        // The uid tells who it is. A Secret that somebody else wrote has none, and is known by the id.
        let is_it = theirs.map_or(id.is_some() && label == id.as_deref(), |theirs| theirs == uid);
        if is_it && is_read_only(&secret) != wanted.read_only {
            let message = if wanted.read_only {
                "it registers this cluster for writing too; repeat the command without --read-only, and everything of ours \
                 in it goes"
            } else {
                "it registers this cluster for reading only; repeat the command with --read-only, or name the hub whose \
                 controller writes into it"
            };
            return Err(EnrolError::refused(hub, message));
        }
        if is_it {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("/api/v1/namespaces/{}/secrets/{name}", wanted.namespace);
            hub.delete(&path, &secret).await?;
            say(&format!(
                "{}: Secret {name}, which registers cluster {}: deleted",
                hub.name,
                label.unwrap_or_default()
            ));
            found = true;
        }
    }
    if !found {
        say(&format!("{}: no Secret in namespace {} registers this cluster", hub.name, wanted.namespace));
    }
    Ok(())
}

/// Deletes an object that `join` has made.
pub(super) async fn remove(cluster: &Cluster, path: &str, what: &str, say: &mut Say<'_>) -> Result<(), EnrolError> {
    let Some(object) = cluster.get(path).await? else { return Ok(()) };
    if !is_ours(&object) {
        say(&format!("{}: {what}: left as it is, it is not ours", cluster.name));
        return Ok(());
    }
    if cluster.delete(path, &object).await? {
        say(&format!("{}: {what}: deleted", cluster.name));
    }
    Ok(())
}

pub(super) fn is_ours(object: &Value) -> bool {
    object["metadata"]["labels"][api::LABEL_MANAGED_BY] == api::MANAGED_BY
}
