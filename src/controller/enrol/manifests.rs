//! What is made in a member and in the hub: each object, and above all each permission, once.

use serde_json::{Value, json};

use crate::api;
use crate::model::ClusterId;
use crate::source::kube::{Inline, Secret};

/// The namespace of ours, in members and in the hub, unless another one is given.
pub const NAMESPACE: &str = "namesake";

/// The account of the hub's controller in a member, and all that belongs to it.
pub const ACCOUNT: &str = "namesake-member";

/// The Secret in a member that holds the account's token.
pub const TOKEN: &str = "namesake-member-token";

/// Annotation of a Secret in the hub: the uid of the member's namespace `kube-system`, which tells one cluster from
/// another whatever they are called.
pub const ANNOTATION_UID: &str = "namesake/cluster-uid";

/// What the controller may do in a member (controller.md R97). Each verb is needed, and nothing else is asked for.
#[must_use]
pub fn rules() -> Value {
    let read = json!(["get", "list", "watch"]);
    json!([
        // What is exported, and where to.
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": read},
        {"apiGroups": [api::GROUP], "resources": [api::SERVICE_EXPORTS], "verbs": read},
        {"apiGroups": [api::GROUP], "resources": [format!("{}/status", api::SERVICE_EXPORTS)], "verbs": ["patch"]},
        // What is written: imports, derived Services, slices. An apply that makes an object needs `create` and `patch`.
        {"apiGroups": [api::GROUP], "resources": [api::SERVICE_IMPORTS],
         "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        {"apiGroups": [api::GROUP], "resources": [format!("{}/status", api::SERVICE_IMPORTS)], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["services"],
         "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        {"apiGroups": [api::DISCOVERY_GROUP], "resources": [api::ENDPOINT_SLICES],
         "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        // Who the cluster says it is, and what its CRDs can hold.
        {"apiGroups": [api::ABOUT_GROUP], "resources": ["clusterproperties"], "verbs": read},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"],
         "resourceNames": [api::SERVICE_EXPORT_CRD, api::SERVICE_IMPORT_CRD]},
        // What people are told.
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ])
}

/// What it may do in our own namespace of the member: leases, by which the DNS half there sees that a cluster is cut
/// off although the hub is dead (R84).
#[must_use]
pub fn lease_rules() -> Value {
    json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}])
}

/// An object, and the path it is found at.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Its kind and name, for people.
    pub what: String,
    /// Where it is.
    pub path: String,
    /// What it is.
    pub object: Value,
}

fn placed(collection: &str, mut object: Value) -> Placed {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let kind = object["kind"].as_str().unwrap_or_default();
    let what = format!("{kind} {name}");
    object["metadata"]["labels"][api::LABEL_MANAGED_BY] = json!(api::MANAGED_BY);
    Placed { what, path: format!("{collection}/{name}"), object }
}

/// Our namespace.
#[must_use]
pub fn namespace(name: &str) -> Placed {
    placed("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

/// The account in a member and its permissions, in the order in which they are to be made.
#[must_use]
pub fn account(namespace: &str) -> Vec<Placed> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let version = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]);
    let reference = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ACCOUNT});
    let here = json!({"name": ACCOUNT, "namespace": namespace});
    vec![
        placed(
            &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            // No pod runs as this account: only the hub has its token.
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here, "automountServiceAccountToken": false}),
        ),
        placed(
            &format!("{rbac}/clusterroles"),
            json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": rules()}),
        ),
        placed(
            &format!("{rbac}/clusterrolebindings"),
            json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
                   "roleRef": reference("ClusterRole"), "subjects": subjects}),
        ),
        placed(
            &format!("{rbac}/namespaces/{namespace}/roles"),
            json!({"apiVersion": version, "kind": "Role", "metadata": here, "rules": lease_rules()}),
        ),
        placed(
            &format!("{rbac}/namespaces/{namespace}/rolebindings"),
            json!({"apiVersion": version, "kind": "RoleBinding", "metadata": here,
                   "roleRef": reference("Role"), "subjects": subjects}),
        ),
        placed(
            &format!("/api/v1/namespaces/{namespace}/secrets"),
            json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                   "metadata": {"name": TOKEN, "namespace": namespace,
                                "annotations": {"kubernetes.io/service-account.name": ACCOUNT}}}),
        ),
    ]
}

/// The Secret that registers a member in the hub.
#[must_use]
pub fn registration(namespace: &str, id: &ClusterId, uid: &str, kubeconfig: &str) -> Placed {
    let data = k8s_openapi::ByteString(kubeconfig.as_bytes().to_vec());
    placed(
        &format!("/api/v1/namespaces/{namespace}/secrets"),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
               "metadata": {"name": registration_name(id), "namespace": namespace,
                            "labels": {api::LABEL_CLUSTER: id.as_str()},
                            "annotations": {ANNOTATION_UID: uid}},
               "data": {"kubeconfig": data}}),
    )
}

/// The name of that Secret.
#[must_use]
pub fn registration_name(id: &ClusterId) -> String {
    format!("cluster-{id}")
}

/// A kubeconfig of one context that is called after the cluster.
#[must_use]
pub fn kubeconfig(id: &ClusterId, access: &Inline) -> String {
    let mut cluster = json!({"server": access.server});
    if let Some(ca) = &access.ca {
        cluster["certificate-authority-data"] = json!(ca);
    }
    if let Some(name) = &access.server_name {
        cluster["tls-server-name"] = json!(name);
    }
    let name = id.as_str();
    let token = access.token.as_ref().map(Secret::reveal);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": ACCOUNT}}],
    });
    // JSON is YAML, and needs no other writer.
    format!("{config:#}\n")
}
