//! What is watched: paths, selectors, and whether the API server has it.

use std::time::Duration;

use serde::Deserialize;

use super::server::{Failure, Server};
use super::subject::Collection;

/// How long a small request may take.
const SMALL: Duration = Duration::from_secs(5);

/// Where a resource is found: its collection's path, with the version that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    path: String,
    /// What comes behind in a query.
    selector: String,
    /// How many objects a page has.
    page: usize,
    /// Whether objects can be made. An API server takes `create` from the verbs of a CRD that is being deleted.
    creatable: bool,
}

/// What discovery says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// It is served.
    At(Target),
    /// The API server answered, and does not have it.
    Missing,
    /// Nobody knows: a server that is down or just starting says nothing about what it has (WCH-06).
    Unknown(Failure),
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Option<Vec<ApiResource>>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: Option<String>,
    verbs: Option<Vec<String>>,
}

impl Target {
    /// Looks for a collection. Discovery is open to every authenticated user, so it can tell a CRD that is missing from
    /// a permission that is: asking for the objects themselves gives 403 in both cases.
    pub(super) async fn find(server: &Server, collection: &Collection) -> Found {
        let root = |version: &str| match collection.group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let at = |version: &str, creatable| {
            let namespace = collection.namespace.as_deref().map(|n| format!("namespaces/{}/", escaped(n)));
            let labels = collection.labels.map(|labels| format!("&labelSelector={}", escaped(labels)));
            Found::At(Self {
                path: format!("{}/{}{}", root(version), namespace.unwrap_or_default(), collection.plural),
                selector: labels.unwrap_or_default(),
                page: collection.page,
                creatable,
            })
        };
        if !collection.is_custom() {
            // It is there in every cluster that we can work with, so there is nothing to ask.
            return collection.versions.first().map_or(Found::Missing, |version| at(version, true));
        }
        for version in collection.versions {
            let group = root(version);
            let text = match server.get("get", &group, SMALL).await {
                Ok(text) => text,
                Err(Failure::NotFound) => continue,
                Err(failure) => return Found::Unknown(failure),
            };
            let Ok(list) = serde_json::from_str::<ResourceList>(&text) else {
                return Found::Unknown(Failure::Unreachable(format!("{group} answers with something else than JSON")));
            };
            let mut resources = list.resources.into_iter().flatten();
            // The group can be there with other CRDs alone.
            if let Some(found) = resources.find(|r| r.name.as_deref() == Some(collection.plural)) {
                return at(version, found.verbs.into_iter().flatten().any(|verb| verb == "create"));
            }
        }
        Found::Missing
    }

    pub(super) fn creatable(&self) -> bool {
        self.creatable
    }

    /// Whether objects are found at the same place.
    pub(super) fn same_place(&self, other: &Self) -> bool {
        self.path == other.path
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A page of the list; the whole list in one where it is not to be in pages.
    pub(super) fn list_uri(&self, paged: bool, next: &str) -> String {
        let limit = if paged { format!("limit={}", self.page) } else { "limit=0".to_owned() };
        let next = if next.is_empty() { String::new() } else { format!("&continue={}", escaped(next)) };
        format!("{}?{limit}{}{next}", self.path, self.selector)
    }

    /// The watch from a version on.
    pub(super) fn watch_uri(&self, version: &str, seconds: u64) -> String {
        format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}{}",
            self.path,
            escaped(version),
            self.selector
        )
    }
}

/// `text` as part of a query (RFC 3986 §2.1). Page tokens and versions are opaque, so anything may be in them.
fn escaped(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(escaped("a+b/c=d&e~f-1._"), "a%2Bb%2Fc%3Dd%26e~f-1._");
        assert_eq!(escaped("ü"), "%C3%BC");
    }

    #[test]
    fn uris_carry_the_selector() {
        let target =
            Target { path: "/p".to_owned(), selector: "&labelSelector=x".to_owned(), page: 500, creatable: true };
        assert_eq!(target.list_uri(true, ""), "/p?limit=500&labelSelector=x");
        assert_eq!(target.list_uri(true, "a=="), "/p?limit=500&labelSelector=x&continue=a%3D%3D");
        assert!(target.watch_uri("7", 50).ends_with("&timeoutSeconds=50&resourceVersion=7&labelSelector=x"));
    }
}
