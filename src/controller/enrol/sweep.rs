//! Everything of ours in a cluster, found by its labels and deleted; nothing else is touched.

use serde_json::{Value, json};

use super::Say;
use super::api::{Cluster, EnrolError};
use super::leave::is_ours;
use crate::api;

/// How often it is looked again: what was written in the last moment before the account went is found then.
const ROUNDS: usize = 5;

/// A kind of object that we write.
struct Kind {
    /// The collection over all namespaces, in front of `namespaces/<namespace>/`.
    root: String,
    plural: &'static str,
    /// How ours are told from others'.
    label: &'static str,
    /// What they are called.
    words: &'static str,
}

fn kinds() -> Vec<Kind> {
    let mcs = |version: &str, plural, words| Kind {
        root: format!("/apis/{}/{version}", api::GROUP),
        plural,
        label: api::LABEL_MANAGED_BY,
        words,
    };
    let mut kinds = Vec::new();
    // One version finds all there are; which one is served depends on the CRDs.
    for version in api::VERSIONS {
        kinds.push(mcs(version, api::SERVICE_IMPORTS, "ServiceImports"));
    }
    kinds.push(Kind {
        root: "/api/v1".to_owned(),
        plural: "services",
        label: api::LABEL_MANAGED_BY,
        words: "derived Services",
    });
    kinds.push(Kind {
        root: format!("/apis/{}/v1", api::DISCOVERY_GROUP),
        plural: api::ENDPOINT_SLICES,
        label: api::LABEL_SLICE_MANAGED_BY,
        words: "EndpointSlices",
    });
    for version in api::VERSIONS {
        kinds.push(mcs(version, api::SERVICE_EXPORTS, "ServiceExports that we made"));
    }
    kinds
}

/// Deletes all of ours, until nothing is found any more.
pub(super) async fn sweep(member: &Cluster, namespace: &str, say: &mut Say<'_>) -> Result<(), EnrolError> {
    for round in 0.. {
        let mut left = 0;
        for kind in kinds() {
            let mut deleted = 0;
            for object in ours(member, &kind).await? {
                left += 1;
                deleted += usize::from(delete(member, &kind, &object).await?);
            }
            if deleted > 0 {
                say(&format!("{}: {deleted} {}: deleted", member.name, kind.words));
            }
        }
        if left == 0 {
            break;
        }
        if round == ROUNDS {
            let message = "what is ours comes back: another controller of ours writes here still; stop it, or take this \
                           cluster out of its configuration, and repeat the command";
            return Err(EnrolError::refused(member, message));
        }
    }
    conditions(member, say).await?;
    let leases = leases(namespace);
    for lease in member.list(&leases, "").await?.iter().filter(|lease| is_ours(lease)) {
        let name = lease["metadata"]["name"].as_str().unwrap_or_default();
        member.delete(&format!("{leases}/{name}"), lease).await?;
    }
    Ok(())
}

fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

async fn ours(member: &Cluster, kind: &Kind) -> Result<Vec<Value>, EnrolError> {
    let selector = format!("&labelSelector={}%3D{}", kind.label.replace('/', "%2F"), api::MANAGED_BY);
    let found = member.list(&format!("{}/{}", kind.root, kind.plural), &selector).await?;
    // What is being deleted already needs no more; a foreign finalizer may hold it for long.
    let goes = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    // A Service of ours in the namespace of ours, such as that of the DNS half, is no derived one.
    let derived = |object: &Value| object["metadata"]["labels"][api::LABEL_SERVICE_IMPORTED] == "true";
    let keep = |object: &Value| !goes(object) && (kind.plural != "services" || derived(object));
    Ok(found.into_iter().filter(keep).collect())
}

/// Whether it was deleted; one that was changed meanwhile is looked at again in the next round.
async fn delete(member: &Cluster, kind: &Kind, object: &Value) -> Result<bool, EnrolError> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let path = format!("{}/namespaces/{}/{}/{}", kind.root, text("namespace"), kind.plural, text("name"));
    match member.delete(&path, object).await {
        Err(error) if error.code() == Some(409) => Ok(false),
        other => other,
    }
}

/// Our conditions on users' ServiceExports: an empty apply in the controller's name takes them away, and leaves what
/// others have said.
async fn conditions(member: &Cluster, say: &mut Say<'_>) -> Result<(), EnrolError> {
    let mut cleared = 0;
    for version in api::VERSIONS {
        let root = format!("/apis/{}/{version}", api::GROUP);
        for export in member.list(&format!("{root}/{}", api::SERVICE_EXPORTS), "").await? {
            let fields = export["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let ours = |f: &Value| {
                f["manager"] == api::MANAGED_BY && f["subresource"] == "status" && f["operation"] == "Apply"
            };
            if !fields.iter().any(ours) {
                continue;
            }
            let text = |field: &str| export["metadata"][field].as_str().unwrap_or_default();
            let path =
                format!("{root}/namespaces/{}/{}/{}/status", text("namespace"), api::SERVICE_EXPORTS, text("name"));
            let nothing = json!({
                "apiVersion": format!("{}/{version}", api::GROUP), "kind": "ServiceExport",
                "metadata": {"name": text("name"), "namespace": text("namespace")},
            });
            match member.apply_as(api::MANAGED_BY, &path, &nothing).await {
                Ok(_) => cleared += 1,
                Err(error) if error.code() == Some(404) => {}
                Err(error) => return Err(error),
            }
        }
    }
    if cleared > 0 {
        say(&format!(
            "{}: conditions of {cleared} ServiceExports: cleared; the exports themselves are yours",
            member.name
        ));
    }
    Ok(())
}

/// Our namespace, where nobody else lives in it.
pub(super) async fn own_namespace(member: &Cluster, namespace: &str, say: &mut Say<'_>) -> Result<(), EnrolError> {
    let path = format!("/api/v1/namespaces/{namespace}");
    let Some(object) = member.get(&path).await? else { return Ok(()) };
    if !is_ours(&object) || object["metadata"]["deletionTimestamp"].is_string() {
        return Ok(());
    }
    let mut others = Vec::new();
    for (root, plural) in [
        ("/api/v1", "pods"),
        ("/api/v1", "services"),
        ("/api/v1", "secrets"),
        ("/api/v1", "configmaps"),
        ("/api/v1", "serviceaccounts"),
        ("/api/v1", "persistentvolumeclaims"),
        ("/apis/apps/v1", "deployments"),
        ("/apis/apps/v1", "daemonsets"),
        ("/apis/apps/v1", "statefulsets"),
        ("/apis/coordination.k8s.io/v1", "leases"),
    ] {
        let found = member.list(&format!("{root}/namespaces/{namespace}/{plural}"), "").await?;
        // Every namespace has these two by itself.
        let own = |object: &&Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            !matches!((plural, name), ("configmaps", "kube-root-ca.crt") | ("serviceaccounts", "default"))
        };
        let count = found.iter().filter(own).count();
        if count > 0 {
            others.push(format!("{count} {plural}"));
        }
    }
    if others.is_empty() {
        // Its version changes with its content's; whose it is does not.
        match member.delete(&path, &object).await {
            Ok(_) => say(&format!("{}: Namespace {namespace}: deleted", member.name)),
            Err(error) if error.code() == Some(409) => {
                say(&format!("{}: Namespace {namespace}: left, it was changed meanwhile", member.name));
            }
            Err(error) => return Err(error),
        }
    } else {
        say(&format!("{}: Namespace {namespace}: left, there is more in it: {}", member.name, others.join(", ")));
    }
    Ok(())
}
