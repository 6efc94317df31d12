//! What is watched: paths, selectors, and whether the API server has it.

use std::time::Duration;

use serde::Deserialize;

use super::server::{Failure, Server};
use crate::api;
use crate::model::Resource;
use crate::source::Trouble;

/// How long a small request may take.
const SMALL: Duration = Duration::from_secs(5);

/// How many objects a page of a list has: a page is the most that is held twice, so it must stay small beside what is
/// kept (SCL-01). A slice has a hundred endpoints, and is as long as forty imports.
const fn page(resource: Resource) -> usize {
    match resource {
        Resource::Imports => 500,
        Resource::Slices => 100,
    }
}

/// Where a resource is found: its collection's path, with the version that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    path: String,
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
    /// Looks for `resource`. Discovery is open to every authenticated user, so it can tell a CRD that is missing from
    /// a permission that is: asking for the objects themselves gives 403 in both cases.
    pub(super) async fn find(server: &Server, resource: Resource) -> Found {
        match resource {
            Resource::Slices => Found::At(Self {
                path: format!("/apis/{}/v1/{}", api::DISCOVERY_GROUP, api::ENDPOINT_SLICES),
                // A label that must exist, whatever its value.
                selector: format!("&labelSelector={}", escaped(api::LABEL_SERVICE_NAME)),
                page: page(resource),
                creatable: true,
            }),
            Resource::Imports => Self::find_imports(server).await,
        }
    }

    async fn find_imports(server: &Server) -> Found {
        for version in api::VERSIONS {
            let group = format!("/apis/{}/{version}", api::GROUP);
            let text = match server.get("get", &group, SMALL).await {
                Ok(text) => text,
                Err(Failure::NotFound) => continue,
                Err(failure) => return Found::Unknown(failure),
            };
            let Ok(list) = serde_json::from_str::<ResourceList>(&text) else {
                return Found::Unknown(Failure::Unreachable(format!("{group} answers with something else than JSON")));
            };
            let mut resources = list.resources.into_iter().flatten();
            // The group can be there with ServiceExports alone.
            if let Some(found) = resources.find(|r| r.name.as_deref() == Some(api::SERVICE_IMPORTS)) {
                return Found::At(Self {
                    path: format!("{group}/{}", api::SERVICE_IMPORTS),
                    selector: String::new(),
                    page: page(Resource::Imports),
                    creatable: found.verbs.into_iter().flatten().any(|verb| verb == "create"),
                });
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

/// The CRD or built-in resource of which we say that it is missing.
pub(super) fn missing(resource: Resource) -> Trouble {
    match resource {
        Resource::Imports => Trouble::CrdMissing { crd: api::SERVICE_IMPORT_CRD },
        Resource::Slices => Trouble::Unreachable {
            message: "it does not serve EndpointSlices of discovery.k8s.io/v1; Kubernetes 1.21 is the oldest that does"
                .to_owned(),
        },
    }
}

/// A resource as RBAC rules and error messages of the API server write it.
pub(super) fn full_name(resource: Resource) -> String {
    match resource {
        Resource::Imports => format!("{}.{}", api::SERVICE_IMPORTS, api::GROUP),
        Resource::Slices => format!("{}.{}", api::ENDPOINT_SLICES, api::DISCOVERY_GROUP),
    }
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
