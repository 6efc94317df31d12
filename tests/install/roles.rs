//! The roles of the hub, of members and of one controller per cluster: what they allow suffices, is asked for, and
//! nothing else is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use testbed::{Audit, Bed, Cluster};

use crate::product::{Namesake, PATIENCE};
use crate::rig::{apply_hub, contexts, controller, list, namesake, text, until};
use crate::taken::granted;

/// A ClusterProperty's CRD as far as it matters, and one that says who east is.
pub const ABOUT: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterproperties.about.k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: about.k8s.io
  scope: Cluster
  names: {kind: ClusterProperty, plural: clusterproperties, singular: clusterproperty}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [value], properties: {value: {type: string, minLength: 1}}}
";

/// A service with an endpoint, exported.
pub fn exported(name: &str, spec: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{{spec}ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, protocol: TCP, port: 8080}}]
endpoints: [{{addresses: [10.1.0.5], conditions: {{ready: true}}}}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {{name: {name}, namespace: default}}
"
    )
}

/// A condition of a ServiceExport in `default`; null where there is none.
pub async fn condition(cluster: &Cluster, name: &str, kind: &str) -> Value {
    let path = format!("/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceexports/{name}");
    let export = cluster.request("GET", &path, None).await.unwrap_or_default();
    let conditions = export["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

pub async fn exported_everywhere(cluster: &Cluster, name: &str, controller: &Namesake) {
    until("the export is ready", || async {
        let ready = condition(cluster, name, "Ready").await;
        if ready["status"] == "True" { Ok(()) } else { Err(format!("{ready}\n{}", controller.process.log_tail(30))) }
    })
    .await;
}

pub async fn import_of(cluster: &Cluster, name: &str) -> Option<Value> {
    let path = format!("/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports/{name}");
    cluster.request("GET", &path, None).await.ok()
}

/// Everything that the controller does with a service: made, changed, turned headless, taken back.
pub async fn story(exporter: &Cluster, importers: &[&Cluster], controller: &Namesake) {
    exporter.apply(&exported("web", "")).await.unwrap();
    exported_everywhere(exporter, "web", controller).await;
    exporter.apply(&exported("web", "").replace("10.1.0.5", "10.1.0.6")).await.unwrap();
    exporter.kubectl(&["delete", "service", "web"]).unwrap();
    until("there is nothing to export", || async {
        if condition(exporter, "web", "Valid").await["status"] == "False" { Ok(()) } else { Err("valid".to_owned()) }
    })
    .await;
    exporter.apply(&exported("web", "clusterIP: None, ")).await.unwrap();
    for importer in importers {
        until("it is headless", || async {
            let import = import_of(importer, "web").await.unwrap_or_default();
            if import["spec"]["type"] == "Headless" { Ok(()) } else { Err(import.to_string()) }
        })
        .await;
    }
    exported_everywhere(exporter, "web", controller).await;
    exporter.kubectl(&["delete", "serviceexport", "web"]).unwrap();
    for importer in importers {
        until("the import is gone", || async {
            import_of(importer, "web").await.map_or(Ok(()), |import| Err(import.to_string()))
        })
        .await;
        let derived = "/api/v1/namespaces/default/services?labelSelector=multicluster.kubernetes.io%2Fservice-imported";
        until("the derived Service is gone", || async {
            let left = importer.request("GET", derived, None).await.unwrap();
            if list(&left["items"]).is_empty() { Ok(()) } else { Err(left.to_string()) }
        })
        .await;
    }
}

/// What a role allows, one resource with one verb each: `verb resource`, with `/status` where it is of that.
pub fn allowed(rules: &Value) -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    for rule in list(rules) {
        for resource in list(&rule["resources"]) {
            for verb in list(&rule["verbs"]) {
                allowed.insert(format!("{} {}", text(verb), text(resource)));
            }
        }
    }
    allowed
}

/// What was asked for. An apply that has made something (201) had to be allowed `create` besides.
pub fn asked(audit: &Audit) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    for e in audit.entries.iter().filter(|e| !e.resource.is_empty()) {
        let sub = if e.subresource.is_empty() { String::new() } else { format!("/{}", e.subresource) };
        asked.insert(format!("{} {}{sub}", e.verb, e.resource));
        if e.verb == "patch" && e.code == 201 {
            asked.insert(format!("create {}{sub}", e.resource));
        }
    }
    asked
}

pub async fn rules(cluster: &Cluster, path: &str) -> Value {
    cluster.request("GET", &format!("/apis/rbac.authorization.k8s.io/v1/{path}"), None).await.unwrap()["rules"].clone()
}

/// A hub that is a member too, and another member.
pub struct Set {
    pub bed: Bed,
    pub east: Cluster,
    pub west: Cluster,
    pub kubeconfig: PathBuf,
}

impl Set {
    pub async fn new() -> Self {
        let bed = Bed::new().unwrap();
        let clusters = bed.clusters(["east", "west"]).await.unwrap();
        let kubeconfig = contexts(&bed, &clusters);
        let [east, west] = <[Cluster; 2]>::try_from(clusters).ok().unwrap();
        Self { bed, east, west, kubeconfig }
    }

    pub async fn joined(folder: &str) -> Self {
        let set = Self::new().await;
        apply_hub(&set.east, folder);
        namesake(&set.kubeconfig, &["join", "east", "--hub", "east", "--id", "east"]).await;
        set
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_the_roles_of_hub_and_members_are_exactly_what_is_asked_for() {
    let set = Set::joined("controller").await;
    let Set { bed, east, west, kubeconfig } = &set;
    west.apply(ABOUT).await.unwrap();
    namesake(kubeconfig, &["join", "west", "--hub", "east", "--id", "west"]).await;
    for (cluster, account) in [(east, "namesake-controller"), (east, "namesake-member"), (west, "namesake-member")] {
        granted(cluster, account).await;
    }
    let before = [east.audit().unwrap(), west.audit().unwrap()];

    let running = controller(bed, east, "controller", &[]).await;
    running.wait_ready().await;
    story(east, &[east, west], &running).await;
    // What is missing when a CRD is, is asked for too.
    west.kubectl(&["delete", "crd", "serviceexports.multicluster.x-k8s.io"]).unwrap();
    running.wait_for("/ready?verbose", |_, body| body.contains("serviceexports.multicluster.x-k8s.io")).await;
    // And at the end it gives the lease back.
    running.process.signal("TERM").unwrap();
    assert!(running.process.wait_exit(PATIENCE).await.unwrap().success());

    let members = rules(west, "clusterroles/namesake-member").await;
    let mut all = BTreeSet::new();
    for (cluster, before) in [east, west].into_iter().zip(&before) {
        let audit = cluster.audit().unwrap().since(before).service_account("namesake", "namesake-member");
        let denied: Vec<_> = audit.entries.iter().filter(|e| e.code == 403).collect();
        assert!(denied.is_empty(), "{denied:?}");
        all.extend(asked(&audit));
    }
    assert_eq!(all, allowed(&members), "in a member: left asked, right allowed");

    let hub = rules(east, "namespaces/namesake/roles/namesake-controller").await;
    let audit = east.audit().unwrap().since(&before[0]).service_account("namesake", "namesake-controller");
    assert_eq!(asked(&audit), allowed(&hub), "in the hub: left asked, right allowed");
    let elsewhere: Vec<_> =
        audit.entries.iter().filter(|e| e.code == 403 || !matches!(&*e.namespace, "" | "namesake")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// What accounts have asked for in a cluster since then, and that nothing was refused to them.
pub fn asked_by(cluster: &Cluster, before: &Audit, account: &str) -> BTreeSet<String> {
    let audit = cluster.audit().unwrap().since(before).service_account("namesake", account);
    let denied: Vec<_> = audit.entries.iter().filter(|e| e.code == 403).collect();
    assert!(denied.is_empty(), "{denied:?}");
    asked(&audit)
}

/// The account by which the controller of another cluster reads in ours.
async fn reader_of(there: &Cluster) -> String {
    let uid = there.request("GET", "/api/v1/namespaces/kube-system", None).await.unwrap();
    format!("namesake-reader-{}", &text(&uid["metadata"]["uid"])[..8])
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_one_controller_per_cluster_writes_at_home_and_only_reads_the_others() {
    let set = Set::new().await;
    let Set { bed, east, west, kubeconfig } = &set;
    let pairs = [(east, west), (west, east)];
    // As the kustomization says.
    for (here, there) in pairs {
        here.apply(ABOUT).await.unwrap();
        let (name, other) = (here.name(), there.name());
        apply_hub(here, "controller-per-cluster");
        let id = format!("--from-literal=id={name}");
        here.kubectl(&["create", "configmap", "-n", "namesake", "namesake-cluster", &id]).unwrap();
        namesake(kubeconfig, &["join", name, "--hub", name, "--id", name]).await;
        namesake(kubeconfig, &["join", other, "--hub", name, "--id", other, "--read-only"]).await;
    }
    for (here, there) in pairs {
        granted(here, "namesake-member").await;
        granted(here, &reader_of(there).await).await;
    }
    let before = [east.audit().unwrap(), west.audit().unwrap()];
    let controllers = [
        controller(bed, east, "controller-per-cluster", &[]).await,
        controller(bed, west, "controller-per-cluster", &[]).await,
    ];
    for controller in &controllers {
        controller.wait_ready().await;
    }
    story(east, &[east, west], &controllers[0]).await;
    for controller in &controllers {
        controller.wait_for("/ready?verbose", |code, body| code == 200 && !body.contains("[!]")).await;
    }
    for ((here, there), before) in pairs.into_iter().zip(&before) {
        let reader = reader_of(there).await;
        let allowed = allowed(&rules(here, &format!("clusterroles/{reader}")).await);
        assert_eq!(asked_by(here, before, &reader), allowed, "{}: left asked, right allowed", here.name());
        assert!(allowed.iter().all(|may| matches!(&may[..4], "list" | "watc" | "get ")), "{allowed:?}");
        assert!(!asked_by(here, before, "namesake-member").is_empty());
    }
}

/// What policies need is granted by name: that suffices, too.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_what_is_granted_for_policies_is_what_they_ask_for() {
    let set = Set::new().await;
    let Set { bed, east, west, kubeconfig } = &set;
    apply_hub(east, "controller");
    for name in ["east", "west"] {
        let mut join = vec!["join", name, "--hub", "east", "--id", name];
        for grant in ["auto-export", "remove-namespaces", "source-leases"] {
            join.extend(["--grant", grant]);
        }
        namesake(kubeconfig, &join).await;
    }
    granted(east, "namesake-member").await;
    granted(west, "namesake-member").await;
    let before = [east.audit().unwrap(), west.audit().unwrap()];
    let policies = ["--auto-export=export=yes", "--create-namespaces=create-and-remove", "--source-leases"];
    let running = controller(bed, east, "controller", &policies).await;
    running.wait_ready().await;

    let objects = exported("web", "")
        .replace("default", "shop")
        .replace("name: web, namespace", "name: web, labels: {export: 'yes'}, namespace");
    let (objects, _) = objects.rsplit_once("---").unwrap();
    east.kubectl(&["create", "namespace", "shop"]).unwrap();
    east.apply(objects).await.unwrap();
    let import = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceimports/web";
    until("west imports it into a namespace made for that", || async {
        west.request("GET", import, None)
            .await
            .map(|_| ())
            .map_err(|error| format!("{error}\n{}", running.process.log_tail(20)))
    })
    .await;
    east.kubectl(&["label", "service", "-n", "shop", "web", "export-"]).unwrap();
    until("the namespace goes with it", || async {
        let namespace = west.request("GET", "/api/v1/namespaces/shop", None).await;
        namespace.map_or(Ok(()), |it| Err(format!("{it}\n{}", running.process.log_tail(20))))
    })
    .await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/namesake/leases/namesake-source-west";
    until("east knows that west is heard", || async {
        east.request("GET", leases, None).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    // West is looked at before it leaves: `leave` takes the account's rights away while the controller may still be about to
    // remove a Lease there, which is then refused as it should be.
    let in_west = asked_by(west, &before[1], "namesake-member");
    namesake(kubeconfig, &["leave", "west", "--hub", "east"]).await;
    until("east does not ask for west any more", || async {
        east.request("GET", leases, None).await.map_or(Ok(()), |lease| Err(lease.to_string()))
    })
    .await;

    let mut wanted = allowed(&rules(east, "namespaces/namesake/roles/namesake-member").await);
    for what in ["namespaces", "serviceexports", "leases"] {
        wanted.extend(["create", "delete"].map(|verb| format!("{verb} {what}")));
    }
    // That something is deleted can be seen before the request that did it is over.
    until("all of it is in the audit logs", || async {
        let all = &asked_by(east, &before[0], "namesake-member") | &in_west;
        if wanted.is_subset(&all) { Ok(()) } else { Err(format!("{wanted:?} {all:?}")) }
    })
    .await;
}
