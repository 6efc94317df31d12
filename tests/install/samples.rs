//! The samples are taken by real API servers, whose CRDs come from their projects' Go modules.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testbed::{Bed, Cluster};

use crate::product::root;
use crate::rig::{kustomized, object, read, until, yaml};

/// A folder of a Go module.
fn module(module: &str, folder: &str) -> PathBuf {
    let out = Command::new("go").args(["mod", "download", "-json", module]).current_dir("/").output().unwrap();
    assert!(out.status.success(), "{module}: {}", String::from_utf8_lossy(&out.stdout));
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    PathBuf::from(said["Dir"].as_str().unwrap()).join(folder)
}

async fn install(cluster: &Cluster, file: PathBuf) {
    let crd = std::fs::read_to_string(file).unwrap();
    cluster.apply(&crd).await.unwrap();
    cluster.wait_for_crds(&crd).await.unwrap();
}

#[tokio::test]
async fn mcs_d26_the_httproute_is_one_and_names_an_import_by_the_services_own_name() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("c1").await.unwrap();
    let crds = module("sigs.k8s.io/gateway-api@v1.4.0", "config/crd/standard");
    install(&cluster, crds.join("gateway.networking.k8s.io_httproutes.yaml")).await;
    cluster.kubectl(&["create", "namespace", "shop"]).unwrap();
    let file = root().join("deploy/samples/httproute.yaml");
    cluster.kubectl(&["apply", "--validate=strict", "-f", file.to_str().unwrap()]).unwrap();
    let route = &yaml(&read("deploy/samples/httproute.yaml"))[0];
    let backend = &route["spec"]["rules"][0]["backendRefs"][0];
    assert_eq!((&backend["group"], &backend["kind"]), (&"multicluster.x-k8s.io".into(), &"ServiceImport".into()));
    assert_eq!(backend["name"], route["metadata"]["name"]);
    assert_eq!(backend["namespace"], Value::Null, "in its own namespace");
}

#[tokio::test]
async fn mcs_w48_whoever_may_view_a_namespace_sees_its_imports_and_nobody_else_writes_them() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("c1").await.unwrap();
    cluster.install_crds("v0.5.2").await.unwrap();
    let file = root().join("deploy/samples/rbac-people.yaml");
    cluster.kubectl(&["apply", "-f", file.to_str().unwrap()]).unwrap();
    for (user, role) in [("vera", "view"), ("edda", "edit")] {
        let name = format!("--user={user}");
        cluster.kubectl(&["create", "rolebinding", user, &format!("--clusterrole={role}"), &name]).unwrap();
    }
    let may = |user: &str, verb: &str, resource: &str| {
        let resource = format!("{resource}.multicluster.x-k8s.io");
        cluster.kubectl(&["auth", "can-i", verb, &resource, &format!("--as={user}"), "-n", "default"]).is_ok()
    };
    until("the roles are aggregated", || async {
        let ready = may("edda", "create", "serviceexports") && may("vera", "list", "serviceimports");
        ready.then_some(()).ok_or_else(|| "not yet".to_owned())
    })
    .await;
    for user in ["vera", "edda"] {
        for (verb, resource, wanted) in [
            ("list", "serviceimports", true),
            ("watch", "serviceexports", true),
            ("create", "serviceexports", user == "edda"),
            ("create", "serviceimports", false),
            ("delete", "serviceimports", false),
        ] {
            assert_eq!(may(user, verb, resource), wanted, "{user} {verb} {resource}");
        }
    }
}

#[tokio::test]
async fn mcs_w47_the_monitors_are_ones_and_select_what_we_write() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("c1").await.unwrap();
    let crds = module("github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd");
    for kind in ["servicemonitors", "podmonitors"] {
        install(&cluster, crds.join(format!("monitoring.coreos.com_{kind}.yaml"))).await;
    }
    for namespace in ["shop", "namesake"] {
        cluster.kubectl(&["create", "namespace", namespace]).unwrap();
    }
    let file = root().join("deploy/samples/servicemonitor.yaml");
    cluster.kubectl(&["apply", "--validate=strict", "-f", file.to_str().unwrap()]).unwrap();
    let monitors = yaml(&read("deploy/samples/servicemonitor.yaml"));
    // The labels of a derived Service, which tests/reconcile compares with what is written.
    let labels = monitors[0]["spec"]["selector"]["matchLabels"].as_object().unwrap();
    let keys: Vec<_> = labels.keys().map(String::as_str).collect();
    assert_eq!(keys, [namesake::api::LABEL_SERVICE_IMPORTED, namesake::api::LABEL_SERVICE_NAME]);
    // The labels and the port of the controller's pods.
    let deployment = object(&yaml(&kustomized(&root().join("deploy/kustomize/controller"))), "Deployment");
    let template = &deployment["spec"]["template"];
    let selected = monitors[1]["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(selected.iter().all(|(key, value)| &template["metadata"]["labels"][key] == value), "{selected:?}");
    let port = &template["spec"]["containers"][0]["ports"][0]["name"];
    assert_eq!(&monitors[1]["spec"]["podMetricsEndpoints"][0]["port"], port);
}
