//! Whether a namespace that we made holds anything of anybody: only an empty one is deleted (R4).

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Trouble;
use crate::source::kube::Connection;

/// How long a look may take: something may have been put in meanwhile.
const LONGEST: Duration = Duration::from_secs(10);

/// What every namespace has by itself, by resource and name; an empty name stands for all.
const BY_ITSELF: [(&str, &str); 4] =
    [("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"), ("events", ""), ("leases", "")];

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

/// Looks at every kind of object that the API server has.
///
/// # Errors
/// Where something is in the namespace, or where that can't be known: then it stays.
pub(super) async fn check(connection: &Connection, namespace: &str) -> Result<(), Trouble> {
    let begin = Instant::now();
    let groups: Groups = get(connection, "/apis", namespace).await?;
    let roots = groups.groups.into_iter().map(|group| format!("/apis/{}", group.preferred_version.group_version));
    for root in std::iter::once("/api/v1".to_owned()).chain(roots) {
        let resources: Resources = get(connection, &root, namespace).await?;
        for resource in resources.resources {
            let lists = resource.verbs.iter().any(|verb| verb == "list");
            if !resource.namespaced || !lists || resource.name.contains('/') {
                continue;
            }
            let path = format!("{root}/namespaces/{namespace}/{}?limit=3", resource.name);
            let list: List = get(connection, &path, namespace).await?;
            let by_itself = |name: &str| {
                BY_ITSELF.iter().any(|(kind, of)| *kind == resource.name && (of.is_empty() || *of == name))
            };
            if let Some(item) = list.items.iter().find(|item| !by_itself(&item.metadata.name)) {
                return Err(Trouble::Kept(format!(
                    "namespace {namespace} was made for imports and is not needed any more, but {} {} is in it: it stays",
                    resource.name, item.metadata.name
                )));
            }
        }
    }
    if begin.elapsed() > LONGEST {
        let seconds = begin.elapsed().as_secs();
        return Err(unknown(namespace, &format!("looking took {seconds} s, and what was seen first may be old")));
    }
    Ok(())
}

fn unknown(namespace: &str, why: &str) -> Trouble {
    Trouble::Kept(format!(
        "namespace {namespace} was made for imports and is not needed any more, but whether it is empty can't be known \
         ({why}); grant list on all namespaced resources, or delete it yourself"
    ))
}

async fn get<T: for<'a> Deserialize<'a>>(connection: &Connection, path: &str, namespace: &str) -> Result<T, Trouble> {
    match connection.get(path).await {
        Ok(text) => serde_json::from_str(&text).map_err(|error| unknown(namespace, &format!("{path}: {error}"))),
        Err(failure) => Err(unknown(namespace, &format!("{path}: {failure}"))),
    }
}
