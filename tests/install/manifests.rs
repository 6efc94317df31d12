//! The manifests, and what real API servers make of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::Bed;

use crate::product::{PATIENCE, root};
use crate::rig::{kustomized, list, object, read, text, yaml};

fn hub() -> Vec<Value> {
    yaml(&kustomized(&root().join("deploy/kustomize/controller")))
}

/// `kubectl delete -k` of a hub must not take everybody's exports along.
#[test]
fn no_crd_is_among_the_objects_of_the_hub() {
    for folder in ["controller", "controller-per-cluster"] {
        let objects = yaml(&kustomized(&root().join("deploy/kustomize").join(folder)));
        assert!(objects.iter().all(|object| object["kind"] != "CustomResourceDefinition"), "{folder}");
    }
}

#[test]
fn the_objects_of_the_hub_fit_each_other() {
    let objects = hub();
    let deployment = object(&objects, "Deployment");
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    for selector in [
        &deployment["spec"]["selector"]["matchLabels"],
        &object(&objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
        &template["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
            ["labelSelector"]["matchLabels"],
    ] {
        let selector = selector.as_object().unwrap();
        assert!(!selector.is_empty() && selector.iter().all(|(key, value)| &labels[key] == value), "{selector:?}");
        assert_eq!(selector["app.kubernetes.io/component"], "controller", "the DNS half's pods are others");
    }
    let binding = object(&objects, "RoleBinding");
    assert_eq!(binding["roleRef"]["name"], object(&objects, "Role")["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], object(&objects, "ServiceAccount")["metadata"]["name"]);
    assert_eq!(template["spec"]["serviceAccountName"], binding["subjects"][0]["name"]);
    let container = &template["spec"]["containers"][0];
    let port = &container["ports"][0];
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], port["name"], "{probe}");
    }
    let scraped = text(&template["metadata"]["annotations"]["prometheus.io/port"]);
    assert_eq!(port["containerPort"].as_u64(), scraped.parse().ok());
    // The roles of the DNS half and of the controller are each their own; their namespace is one.
    assert_eq!(read("deploy/kustomize/dns/namespace.yaml"), read("deploy/kustomize/controller/namespace.yaml"));
}

#[test]
fn sec_03_the_role_of_the_hub_is_exactly_the_calls_that_are_made() {
    let objects = hub();
    assert!(objects.iter().all(|object| object["kind"] != "ClusterRole"), "nothing outside its namespace");
    let expected = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
    ]);
    assert_eq!(object(&objects, "Role")["rules"], expected, "roles.rs has the proof that these are needed and suffice");
}

#[test]
fn one_controller_per_cluster_is_told_which_by_a_config_map() {
    let objects = yaml(&kustomized(&root().join("deploy/kustomize/controller-per-cluster")));
    let env = object(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let of = json!({"configMapKeyRef": {"name": "namesake-cluster", "key": "id"}});
    assert_eq!(env, json!([{"name": "NAMESAKE_CONTROLLER_WRITE_ONLY_TO", "valueFrom": of}]));
    let usage = read("deploy/kustomize/controller-per-cluster/kustomization.yaml");
    assert!(usage.contains("create configmap namesake-cluster --from-literal=id="), "{usage}");
}

/// Pod Security admission enforces "restricted" in our namespace: the pods come into being.
#[tokio::test]
async fn a_real_api_server_takes_the_manifests_and_admits_the_controllers_pods_as_restricted() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("c1").await.unwrap();
    for folder in ["controller", "controller-per-cluster"] {
        let path = root().join("deploy/kustomize").join(folder);
        cluster.kubectl(&["apply", "-k", path.to_str().unwrap()]).unwrap();
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let pods = cluster.request("GET", "/api/v1/namespaces/namesake/pods", None).await.unwrap();
        let pods = list(&pods["items"]);
        let mounted = |pod: &Value| list(&pod["spec"]["volumes"]).iter().any(|volume| !volume["projected"].is_null());
        if pods.len() >= 2 && pods.iter().all(mounted) {
            break;
        }
        let events = cluster.kubectl(&["get", "events", "-n", "namesake"]).unwrap();
        assert!(Instant::now() < deadline, "no pods\n{events}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
