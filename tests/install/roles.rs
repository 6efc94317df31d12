//! The roles of the hub, of members and of one controller per cluster: what they allow suffices, is asked for, and
//! nothing else is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use testbed::{Audit, Bed, Cluster};

use crate::product::{Namesake, PATIENCE};
use crate::rig::{apply_hub, contexts, controller, list, namesake, text, until};

/// A ClusterProperty's CRD as far as it matters, and one that says who east is.
const ABOUT: &str = "
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
fn exported(name: &str, spec: &str) -> String {
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
async fn condition(cluster: &Cluster, name: &str, kind: &str) -> Value {
    let path = format!("/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceexports/{name}");
    let export = cluster.request("GET", &path, None).await.unwrap_or_default();
    let conditions = export["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

async fn exported_everywhere(cluster: &Cluster, name: &str, controller: &Namesake) {
    until("the export is ready", || async {
        let ready = condition(cluster, name, "Ready").await;
        if ready["status"] == "True" { Ok(()) } else { Err(format!("{ready}\n{}", controller.process.log_tail(30))) }
    })
    .await;
}

async fn import_of(cluster: &Cluster, name: &str) -> Option<Value> {
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
fn allowed(rules: &Value) -> BTreeSet<String> {
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
fn asked(audit: &Audit) -> BTreeSet<String> {
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

async fn rules(cluster: &Cluster, path: &str) -> Value {
    cluster.request("GET", &format!("/apis/rbac.authorization.k8s.io/v1/{path}"), None).await.unwrap()["rules"].clone()
}

/// A hub that is a member too, and another member.
struct Set {
    bed: Bed,
    east: Cluster,
    west: Cluster,
    kubeconfig: PathBuf,
}

impl Set {
    async fn new() -> Self {
        let bed = Bed::new().unwrap();
        let clusters = bed.clusters(["east", "west"]).await.unwrap();
        let kubeconfig = contexts(&bed, &clusters);
        let [east, west] = <[Cluster; 2]>::try_from(clusters).ok().unwrap();
        Self { bed, east, west, kubeconfig }
    }

    async fn joined(folder: &str) -> Self {
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

/// One verb is taken away at a time, while everything else stays: it is missed, named, and taken up again.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_each_verb_in_a_member_that_is_taken_away_is_missed_named_and_taken_up_again() {
    let set = Set::joined("controller").await;
    let Set { bed, east, .. } = &set;
    east.apply(ABOUT).await.unwrap();
    let path = "clusterroles/namesake-member";
    let whole = rules(east, path).await;
    let verbs = single(&whole);
    assert_eq!(verbs.len(), allowed(&whole).len());
    let mut running = controller(bed, east, "controller", &["--no-lease"]).await;
    running.wait_ready().await;
    for left_out in 0..verbs.len() {
        let rule = &verbs[left_out];
        let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
        let what = format!("{verb} {resource}");
        println!("{what}");
        let name = format!("web-{left_out}");
        // What is to be changed or deleted must be there.
        if verb == "delete" {
            east.apply(&exported(&name, "")).await.unwrap();
            exported_everywhere(east, &name, &running).await;
        }
        let mut rest = verbs.clone();
        rest.remove(left_out);
        allow(east, path, Value::Array(rest)).await;
        forbidden(east, "namesake-member", rule).await;

        if verb == "list" || verb == "watch" || resource == "customresourcedefinitions" {
            // A watch that runs is not ended by the API server for that; a new one is refused.
            drop(running);
            running = controller(bed, east, "controller", &["--no-lease"]).await;
        } else if verb == "delete" {
            east.kubectl(&["delete", "serviceexport", &name]).unwrap();
        } else {
            east.apply(&exported(&name, "")).await.unwrap();
        }
        match (verb, resource) {
            // What is no member's object is named in the log, and what somebody else may mend the next moment: the garbage
            // collector deletes too.
            (_, "clusterproperties") => {
                let line = format!("not allowed to {verb} {resource}");
                running.process.wait_for_line(&line, PATIENCE).await.unwrap();
            }
            (_, "customresourcedefinitions") | ("delete", _) => {
                let line = format!("cannot {verb} resource \\\"{resource}\\\"");
                running.process.wait_for_line(&line, PATIENCE).await.unwrap();
            }
            ("list" | "watch", _) => {
                let line = format!("not allowed to {verb} {resource}");
                running.wait_for("/ready?verbose", |_, body| body.contains(&line)).await;
            }
            // Nothing hangs on Events.
            (_, "events") => {
                exported_everywhere(east, &name, &running).await;
                running.wait_for("/metrics", |_, body| body.contains("code=\"403\"")).await;
            }
            _ => {
                let line = format!("cannot {verb} resource \"{resource}\"");
                running.wait_for("/ready?verbose", |_, body| body.contains(&line)).await;
            }
        }

        allow(east, path, whole.clone()).await;
        running.wait_for("/ready?verbose", |code, body| code == 200 && !body.contains("[!]")).await;
        if verb == "delete" {
            until("it is deleted after all", || async {
                import_of(east, &name).await.map_or(Ok(()), |import| Err(import.to_string()))
            })
            .await;
        } else if east.kubectl(&["get", "serviceexport", &name]).is_ok() {
            exported_everywhere(east, &name, &running).await;
        }
    }
}

/// A rule for each verb of each resource.
fn single(rules: &Value) -> Vec<Value> {
    let mut single = Vec::new();
    for rule in list(rules) {
        for resource in list(&rule["resources"]) {
            for verb in list(&rule["verbs"]) {
                let mut one = rule.clone();
                one["resources"] = Value::Array(vec![resource.clone()]);
                one["verbs"] = Value::Array(vec![verb.clone()]);
                single.push(one);
            }
        }
    }
    single
}

async fn allow(cluster: &Cluster, path: &str, rules: Value) {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
    let mut role = cluster.request("GET", &path, None).await.unwrap();
    role["rules"] = rules;
    cluster.request("PUT", &path, Some(&role)).await.unwrap();
}

/// Until the authorizer knows: it learns of it by a watch.
async fn forbidden(cluster: &Cluster, account: &str, rule: &Value) {
    let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
    let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": format!("system:serviceaccount:namesake:{account}"), "resourceAttributes": {
            "verb": verb, "group": rule["apiGroups"][0], "resource": resource, "subresource": sub,
            "namespace": "namesake", "name": rule["resourceNames"][0].as_str().unwrap_or_default(),
        }},
    });
    until("it is forbidden", || async {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = cluster.request("POST", path, Some(&review)).await.unwrap();
        if answer["status"]["allowed"] == false { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_each_verb_in_the_hub_that_is_taken_away_is_missed_named_and_taken_up_again() {
    let set = Set::joined("controller").await;
    let Set { bed, east, .. } = &set;
    let path = "namespaces/namesake/roles/namesake-controller";
    let lease = "/apis/coordination.k8s.io/v1/namespaces/namesake/leases/namesake-controller";
    let whole = rules(east, path).await;
    let verbs = single(&whole);
    assert_eq!(verbs.len(), 5, "{verbs:?}");
    for left_out in 0..verbs.len() {
        let rule = &verbs[left_out];
        let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
        // Only where there is none is a lease created, and only where there is one is it updated.
        if verb == "create" {
            let _ = east.request("DELETE", lease, None).await;
        }
        let mut rest = verbs.clone();
        rest.remove(left_out);
        allow(east, path, Value::Array(rest)).await;
        forbidden(east, "namesake-controller", rule).await;
        let running = controller(bed, east, "controller", &["--lease-duration=3s"]).await;
        let named = if resource == "secrets" {
            format!("not allowed to {verb} {resource}")
        } else {
            format!("cannot {verb} resource \"{resource}\"")
        };
        running.wait_for("/ready?verbose", |_, body| body.contains(&named)).await;
        allow(east, path, whole.clone()).await;
        running
            .wait_for("/ready?verbose", |code, body| {
                code == 200 && body.contains("lease: ours") && !body.contains("[!]")
            })
            .await;
    }
}

/// What accounts have asked for in a cluster since then, and that nothing was refused to them.
fn asked_by(cluster: &Cluster, before: &Audit, account: &str) -> BTreeSet<String> {
    let audit = cluster.audit().unwrap().since(before).service_account("namesake", account);
    let denied: Vec<_> = audit.entries.iter().filter(|e| e.code == 403).collect();
    assert!(denied.is_empty(), "{denied:?}");
    asked(&audit)
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
        let said = controller.get("/ready?verbose").await.1;
        assert!(!said.contains("[!]"), "{said}");
    }
    for ((here, there), before) in pairs.into_iter().zip(&before) {
        let uid = there.request("GET", "/api/v1/namespaces/kube-system", None).await.unwrap();
        let reader = format!("namesake-reader-{}", &text(&uid["metadata"]["uid"])[..8]);
        let allowed = allowed(&rules(here, &format!("clusterroles/{reader}")).await);
        assert_eq!(asked_by(here, before, &reader), allowed, "{}: left asked, right allowed", here.name());
        assert!(allowed.iter().all(|may| matches!(&may[..4], "list" | "watc" | "get ")), "{allowed:?}");
        assert!(!asked_by(here, before, "namesake-member").is_empty());
    }
}
