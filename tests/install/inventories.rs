//! The components for inventories: each brings its argument and the role that it needs.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::Bed;

use crate::product::root;
use crate::rig::{apply_hub, controller, kustomized, list, object, text, until, yaml};
use crate::taken::granted;

const NAMES: [&str; 4] = ["cluster-api", "cluster-profile", "istio", "sveltos"];

/// The CRD of ClusterProfile as far as it matters.
const PROFILES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles, singular: clusterprofile}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// An overlay of a base with all components, as the README shows one.
fn overlay(base: &str) -> (TempDir, PathBuf) {
    // Kustomize takes only relative paths; the overlay goes where it can reach the base.
    let beside = root().join("target");
    // Not there where cargo builds elsewhere.
    std::fs::create_dir_all(&beside).unwrap();
    let folder = tempfile::Builder::new().tempdir_in(beside).unwrap();
    let to = |what: &str| format!("../../deploy/kustomize/{what}");
    let components: Vec<_> = NAMES.iter().map(|name| to(&format!("controller/inventories/{name}"))).collect();
    let kustomization = json!({"resources": [to(base)], "components": components});
    std::fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn each_inventory_is_a_component() {
    let mut names: Vec<_> = std::fs::read_dir(root().join("deploy/kustomize/controller/inventories"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, NAMES);
    for base in ["controller", "controller-per-cluster"] {
        let (_folder, path) = overlay(base);
        let objects = yaml(&kustomized(&path));
        let args = object(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        for inventory in ["labelled", "cluster-api", "cluster-profile", "istio:istio-system", "sveltos"] {
            assert!(list(&args).contains(&json!(format!("--inventory={inventory}"))), "{inventory} {args}");
        }
        for name in &names {
            let role = format!("namesake-controller-{name}");
            let is = |object: &&Value, kind: &str| {
                object["metadata"]["name"] == *role && text(&object["kind"]).ends_with(kind)
            };
            let rules = &objects.iter().find(|object| is(object, "Role")).unwrap()["rules"];
            assert!(list(rules).iter().all(|rule| rule["verbs"] == json!(["list", "watch"])), "{rules}");
            let binding = objects.iter().find(|object| is(object, "Binding")).unwrap();
            assert_eq!(binding["roleRef"]["name"], *role);
            let account = json!([{"kind": "ServiceAccount", "name": "namesake-controller", "namespace": "namesake"}]);
            assert_eq!(binding["subjects"], account);
        }
    }
}

/// With them, every inventory is read, and nothing is refused.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_the_roles_of_the_components_suffice() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    hub.kubectl(&["create", "namespace", "istio-system"]).unwrap();
    hub.apply(PROFILES).await.unwrap();
    until("the CRD is served", || async {
        let path = "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles";
        hub.request("GET", path, None).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    let (_folder, path) = overlay("controller");
    let folder = path.to_str().unwrap();
    apply_hub(&hub, folder);
    granted(&hub, "namesake-controller").await;
    let before = hub.audit().unwrap();
    let running = controller(&bed, &hub, folder, &[]).await;
    running.wait_ready().await;
    running
        .wait_for("/ready?verbose", |_, said| {
            let registries: Vec<_> = said.lines().filter(|line| line.contains("registry")).collect();
            registries.len() >= 6 && registries.iter().all(|line| line.starts_with("[+]"))
        })
        .await;
    let audit = hub.audit().unwrap().since(&before).service_account("namesake", "namesake-controller");
    let denied: Vec<_> = audit.entries.iter().filter(|e| e.code == 403).collect();
    assert!(denied.is_empty(), "{denied:?}");
}
