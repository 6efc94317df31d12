//! What is made in a member and in the hub: each object, and above all each permission, once.

use serde_json::{Value, json};

use crate::api;
use crate::model::ClusterId;
use crate::source::kube::{Inline, Secret};

/// The namespace of ours, in members and in the hub, unless another one is given.
pub const NAMESPACE: &str = "namesake";

/// The account in a member of the controller that writes there, and all that belongs to it.
pub const ACCOUNT: &str = "namesake-member";

/// How accounts in a member begin whose controllers only read there. Each hub has its own, so that one can be taken away
/// without the others.
pub const READER: &str = "namesake-reader-";

/// Annotation of a Secret in the hub: the uid of the member's namespace `kube-system`, which tells one cluster from
/// another whatever they are called.
pub const ANNOTATION_UID: &str = "namesake/cluster-uid";

/// Annotation of a Secret in the hub: `read`, where the controller may only read in the member.
pub const ANNOTATION_ACCESS: &str = "namesake/access";

/// Its value.
pub const READ: &str = "read";

/// What a controller may do in a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rights {
    /// Read what is exported, and write imports; with more, where policies need it.
    Write(Vec<Grant>),
    /// Read what is exported, for the controller of the hub with this uid.
    Read(String),
}

/// What a policy needs that is off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// `--auto-export`: ServiceExports are made and deleted.
    AutoExport,
    /// `--create-namespaces`: namespaces that are missing are made.
    CreateNamespaces,
    /// `--create-namespaces create-and-remove`: those that were made are deleted when nothing at all is in them.
    RemoveNamespaces,
    /// `--source-leases`: Leases in our own namespace.
    SourceLeases,
}

impl Rights {
    /// The name of the account, and of all that belongs to it.
    #[must_use]
    pub fn account(&self) -> String {
        match self {
            Self::Write(_) => ACCOUNT.to_owned(),
            Self::Read(hub) => format!("{READER}{}", hub.chars().take(8).collect::<String>()),
        }
    }

    /// The Secret that holds the account's token.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{}-token", self.account())
    }

    /// What the account may do in all namespaces.
    #[must_use]
    pub fn rules(&self) -> Value {
        let mut rules = read_rules();
        if let Self::Write(grants) = self {
            rules.extend(write_rules());
            rules.extend(grants.iter().flat_map(|grant| grant.rules()));
        }
        Value::Array(rules)
    }
}

impl Grant {
    fn rules(self) -> Vec<Value> {
        let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        match self {
            Self::AutoExport => vec![rule(api::GROUP, api::SERVICE_EXPORTS, &["create", "delete"])],
            Self::CreateNamespaces => vec![rule("", "namespaces", &["create"])],
            // Whether a namespace is empty only he knows who may list whatever there can be in it, Secrets too.
            Self::RemoveNamespaces => {
                vec![rule("", "namespaces", &["create", "delete"]), rule("*", "*", &["list"])]
            }
            // In a Role of their own.
            Self::SourceLeases => Vec::new(),
        }
    }
}

/// What a controller reads in every member (controller.md R97): what is exported, and where to; who the cluster says it
/// is, and what its CRDs can hold. Each verb is needed, and nothing else is asked for.
fn read_rules() -> Vec<Value> {
    let read = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    vec![
        read("", &["namespaces", "services"]),
        read(api::GROUP, &[api::SERVICE_EXPORTS, api::SERVICE_IMPORTS]),
        read(api::DISCOVERY_GROUP, &[api::ENDPOINT_SLICES]),
        read(api::ABOUT_GROUP, &["clusterproperties"]),
        json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"],
               "resourceNames": [api::SERVICE_EXPORT_CRD, api::SERVICE_IMPORT_CRD]}),
    ]
}

/// What a controller writes besides: imports, derived Services, slices, statuses, and Events for people. An apply that
/// makes an object needs `create` and `patch`, and `get` is how it knows that there is none of somebody else's.
fn write_rules() -> Vec<Value> {
    let write = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["get", "create", "patch", "delete"]});
    let status = |plural: &str| format!("{plural}/status");
    vec![
        write(api::GROUP, api::SERVICE_IMPORTS),
        write("", "services"),
        write(api::DISCOVERY_GROUP, api::ENDPOINT_SLICES),
        json!({"apiGroups": [api::GROUP], "verbs": ["patch"],
               "resources": [status(api::SERVICE_EXPORTS), status(api::SERVICE_IMPORTS)]}),
        json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}),
    ]
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

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn reference(kind: &str, account: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account})
}

fn subjects(account: &str, namespace: &str) -> Value {
    json!([{"kind": "ServiceAccount", "name": account, "namespace": namespace}])
}

/// The account in a member and its permissions, in the order in which they are to be made.
#[must_use]
pub fn account(namespace: &str, rights: &Rights) -> Vec<Placed> {
    let account = rights.account();
    let mut all = vec![
        placed(
            &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            // No pod runs as this account: only the hub has its token.
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
                   "metadata": {"name": account, "namespace": namespace}}),
        ),
        placed(
            &format!("/apis/{RBAC}/clusterroles"),
            json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": account},
                   "rules": rights.rules()}),
        ),
        placed(
            &format!("/apis/{RBAC}/clusterrolebindings"),
            json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": account},
                   "roleRef": reference("ClusterRole", &account), "subjects": subjects(&account, namespace)}),
        ),
    ];
    if matches!(rights, Rights::Write(grants) if grants.contains(&Grant::SourceLeases)) {
        all.extend(source_leases(namespace));
    }
    all.push(placed(
        &format!("/api/v1/namespaces/{namespace}/secrets"),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
               "metadata": {"name": rights.token(), "namespace": namespace,
                            "annotations": {"kubernetes.io/service-account.name": account}}}),
    ));
    all
}

/// What the account may do in our own namespace of the member, where that is granted: Leases, by which people and the DNS
/// half there see that a cluster is cut off although the hub is dead (R84).
#[must_use]
pub fn source_leases(namespace: &str) -> Vec<Placed> {
    let root = format!("/apis/{RBAC}/namespaces/{namespace}");
    let here = json!({"name": ACCOUNT, "namespace": namespace});
    let rules = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                        "verbs": ["list", "create", "patch", "delete"]}]);
    vec![
        placed(&format!("{root}/roles"), json!({"apiVersion": RBAC, "kind": "Role", "metadata": here, "rules": rules})),
        placed(
            &format!("{root}/rolebindings"),
            json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": here,
                   "roleRef": reference("Role", ACCOUNT), "subjects": subjects(ACCOUNT, namespace)}),
        ),
    ]
}

/// The Secret that registers a member in the hub.
#[must_use]
pub fn registration(namespace: &str, id: &ClusterId, uid: &str, rights: &Rights, access: &Inline) -> Placed {
    let data = k8s_openapi::ByteString(kubeconfig(id, &rights.account(), access).into_bytes());
    let mut annotations = json!({ANNOTATION_UID: uid});
    if matches!(rights, Rights::Read(_)) {
        annotations[ANNOTATION_ACCESS] = json!(READ);
    }
    placed(
        &format!("/api/v1/namespaces/{namespace}/secrets"),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
               "metadata": {"name": registration_name(id), "namespace": namespace,
                            "labels": {api::LABEL_CLUSTER: id.as_str()},
                            "annotations": annotations},
               "data": {"kubeconfig": data}}),
    )
}

/// The name of that Secret.
#[must_use]
pub fn registration_name(id: &ClusterId) -> String {
    format!("cluster-{id}")
}

/// A kubeconfig of one context that is called after the cluster.
fn kubeconfig(id: &ClusterId, account: &str, access: &Inline) -> String {
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
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": account}}],
    });
    // JSON is YAML, and needs no other writer.
    format!("{config:#}\n")
}
