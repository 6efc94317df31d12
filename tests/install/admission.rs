//! R98: the policies hold the member's account to what is ours, and hold nobody else.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::{Bed, Cluster};

use crate::rig::{apply_hub, ask, contexts, controller, namesake, read, until};
use crate::roles::story;

/// A member with the policies, in force; the token of our account.
async fn member(bed: &Bed) -> (Cluster, String) {
    let clusters = bed.clusters(["east"]).await.unwrap();
    let kubeconfig = contexts(bed, &clusters);
    namesake(&kubeconfig, &["join", "east", "--hub", "east", "--id", "east"]).await;
    let cluster = clusters.into_iter().next().unwrap();
    let token = cluster.service_account_token("namesake", "namesake-member", Duration::from_secs(3600)).await.unwrap();
    cluster.apply(&read("deploy/admission/member-writes.yaml")).await.unwrap();
    in_force(&cluster, &token).await;
    (cluster, token)
}

/// Waits until the API server applies all three policies: it learns of them by watches.
pub async fn in_force(cluster: &Cluster, token: &str) {
    for (path, object) in [
        ("/api/v1/namespaces/default/services", service("derived-a", &[])),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice("derived-a-east", &[])),
        ("/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports", import("a", &[])),
    ] {
        let path = format!("{path}?dryRun=All");
        until("the policies are in force", || async {
            match ask(cluster, token, "POST", &path, Some(&object)).await {
                Err(said) if said.contains("carries the label") => Ok(()),
                other => Err(format!("{path}: {other:?}")),
            }
        })
        .await;
    }
}

const OURS: (&str, &str) = ("app.kubernetes.io/managed-by", "namesake");
const OURS_SLICE: (&str, &str) = ("endpointslice.kubernetes.io/managed-by", "namesake");

fn metadata(name: &str, labels: &[(&str, &str)]) -> Value {
    let labels: serde_json::Map<_, _> = labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({"name": name, "labels": labels})
}

fn service(name: &str, labels: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, labels), "spec": {"ports": [{"port": 80}]}})
}

fn slice(name: &str, labels: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata(name, labels),
           "addressType": "IPv4", "ports": [], "endpoints": []})
}

fn import(name: &str, labels: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": metadata(name, labels),
           "spec": {"type": "ClusterSetIP", "ports": []}})
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    *object.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    object
}

#[tokio::test]
async fn mcs_r98_our_account_writes_what_is_ours_and_nothing_else() {
    let bed = Bed::new().unwrap();
    let (cluster, token) = member(&bed).await;
    let services = |namespace: &str| format!("/api/v1/namespaces/{namespace}/services");
    let (here, slices, imports) = (
        services("default"),
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        "/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports",
    );
    let apply = |path: &str, object: Value| {
        let path = format!("{path}/{}?fieldManager=namesake&force=true", object["metadata"]["name"].as_str().unwrap());
        let (cluster, token) = (&cluster, &token);
        async move { ask(cluster, token, "PATCH", &path, Some(&object)).await }
    };
    let delete = |path: &str, name: &str| {
        let path = format!("{path}/{name}");
        let (cluster, token) = (&cluster, &token);
        async move { ask(cluster, token, "DELETE", &path, None).await }
    };

    // The user's own: nothing can be done to it, whatever it is called.
    for theirs in [service("web", &[]), service("derived-web", &[("mine", "1")])] {
        cluster.request("POST", &here, Some(&theirs)).await.expect("users are not affected");
    }
    cluster.request("POST", slices, Some(&slice("web-1", &[]))).await.unwrap();
    cluster.request("POST", imports, Some(&import("theirs", &[]))).await.unwrap();
    let label = [OURS];
    let refused = [
        (apply(&here, service("web", &label)).await, "named derived-<hash> and no others"),
        (apply(&here, service("derived-web", &label)).await, "this Service is not Namesake's"),
        (apply(&here, service("new", &label)).await, "named derived-<hash> and no others"),
        (apply(&here, service("derived-web-2", &label)).await, "named derived-<hash> and no others"),
        (apply(&here, service("derived-new", &[])).await, "carries the label"),
        (apply(&services("kube-system"), service("derived-new", &label)).await, "the cluster's own namespaces"),
        (delete(&here, "web").await, "named derived-<hash> and no others"),
        (delete(&here, "derived-web").await, "this Service is not Namesake's"),
        (apply(slices, slice("web-1", &[OURS_SLICE])).await, "named derived-<hash>-<cluster> and no others"),
        (apply(slices, slice("derived-a-east", &[])).await, "carries the label"),
        (
            apply(slices, slice("derived-a-east", &[OURS_SLICE, ("kubernetes.io/service-name", "web")])).await,
            "belongs to a derived Service",
        ),
        (delete(slices, "web-1").await, "named derived-<hash>-<cluster> and no others"),
        (apply(imports, import("theirs", &label)).await, "this ServiceImport is not Namesake's"),
        (apply(imports, import("new", &[])).await, "carries the label"),
        (delete(imports, "theirs").await, "this ServiceImport is not Namesake's"),
    ];
    for (answer, why) in refused {
        let said = answer.expect_err(why);
        assert!(said.contains("ValidatingAdmissionPolicy 'namesake-member-") && said.contains(why), "{why}: {said}");
    }
    let spec = |field: &str, value: Value| {
        let mut object = service("derived-new", &label);
        object["spec"][field] = value;
        object
    };
    for (object, why) in [
        (spec("externalIPs", json!(["192.0.2.1"])), "its cluster IP alone"),
        (spec("type", json!("LoadBalancer")), "its cluster IP alone"),
        (spec("selector", json!({"app": "web"})), "selects no pods"),
    ] {
        let said = apply(&here, object).await.expect_err(why);
        assert!(said.contains(why), "{why}: {said}");
    }

    // What the controller writes passes: made, changed, headless, deleted.
    let headless = spec("clusterIP", json!("None"));
    for object in [service("derived-6kcte729st", &label), headless] {
        apply(&here, object.clone()).await.unwrap();
        apply(&here, with(object.clone(), "/spec/ports/0/port", json!(81))).await.unwrap();
        delete(&here, object["metadata"]["name"].as_str().unwrap()).await.unwrap();
    }
    let ours = slice("derived-6kcte729st-east", &[OURS_SLICE, ("kubernetes.io/service-name", "derived-6kcte729st")]);
    apply(slices, ours.clone()).await.unwrap();
    delete(slices, "derived-6kcte729st-east").await.unwrap();
    apply(imports, import("web", &label)).await.unwrap();
    delete(imports, "web").await.unwrap();

    // What is ours can't be turned into something that is not, nor be written over by mistake.
    apply(&here, service("derived-6kcte729st", &label)).await.unwrap();
    let said = apply(&here, service("derived-6kcte729st", &[])).await.unwrap_err();
    assert!(said.contains("carries the label"), "{said}");
}

/// The controller does all it does under the policies, and is refused nothing.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r98_the_controller_does_its_work_under_the_policies() {
    let bed = Bed::new().unwrap();
    let (cluster, _) = member(&bed).await;
    apply_hub(&cluster, "controller");
    let before = cluster.audit().unwrap();
    let running = controller(&bed, &cluster, "controller", &[]).await;
    running.wait_ready().await;
    story(&cluster, &[&cluster], &running).await;
    let audit = cluster.audit().unwrap().since(&before).service_account("namesake", "namesake-member");
    let refused: Vec<_> = audit.entries.iter().filter(|e| matches!(e.code, 400 | 403 | 422)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(audit.writes().resource("services").count() >= 4, "made, deleted, made anew, deleted");
}
