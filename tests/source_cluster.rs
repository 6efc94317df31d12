//! The list and watch against a real API server with RBAC on, as a ServiceAccount that may list and watch, no more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "support/applied.rs"]
mod applied;
#[path = "support/following.rs"]
mod following;

use std::sync::Arc;
use std::time::{Duration, Instant};

use following::Following;
use http_body_util::BodyExt;
use namesake::model::{Change, Resource};
use namesake::source::kube::{Access, Connection};
use namesake::source::{Convert, Trouble, WatchPhase};
use serde_json::{Value, json};
use testbed::{Bed, Cluster};

const ACCOUNT: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: dns, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dns}
subjects: [{kind: ServiceAccount, name: dns, namespace: shop}]
";

fn role(imports: &[&str], slices: &[&str]) -> Vec<Value> {
    vec![json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "dns"},
        "rules": [
            {"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": imports},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": slices},
        ],
    })]
}

fn import(version: &str, name: &str, ip: &str) -> Value {
    json!({
        "apiVersion": format!("multicluster.x-k8s.io/{version}"), "kind": "ServiceImport",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"type": "ClusterSetIP", "ips": [ip], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    })
}

fn slice(name: &str, service: &str, address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "shop", "name": name, "labels": {
            "multicluster.kubernetes.io/service-name": service, "multicluster.kubernetes.io/source-cluster": "east"}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}], "ports": [],
    })
}

async fn account(cluster: &Cluster) -> std::path::PathBuf {
    cluster.apply(ACCOUNT).await.unwrap();
    cluster.apply_values(role(&["list", "watch"], &["list", "watch"])).await.unwrap();
    cluster.kubeconfig_for_service_account("shop", "dns").await.unwrap()
}

fn many(count: usize, ip: &str) -> Vec<Value> {
    (0..count).map(|i| import("v1beta1", &format!("s{i:04}"), ip)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l7_l17_a_crd_installed_upgraded_deleted_and_installed_again() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("one").await.unwrap();
    let kubeconfig = account(&cluster).await;
    let mut following = Following::with(&kubeconfig, 50).await;

    // A 403 comes for a missing CRD too; discovery tells that it is the CRD.
    following.until_trouble(Resource::Imports, "crd_missing").await;
    following.until(|a| a.ended(Resource::Slices) == 1).await;

    // WCH-07: picked up, in the one version that old clusters have.
    cluster.install_crds("v0.4.1").await.unwrap();
    cluster
        .apply_values(vec![import("v1alpha1", "web", "10.1.0.1"), slice("web-east", "web", "10.0.0.1")])
        .await
        .unwrap();
    following.until(|a| a.synced() && a.imports() == ["shop/web"] && a.slices() == ["shop/web-east"]).await;
    following.until_live().await;

    // The CRD is changed under the watch.
    cluster.install_crds("v0.5.2").await.unwrap();
    cluster.apply_values(vec![import("v1beta1", "db", "10.1.0.2")]).await.unwrap();
    following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;

    // One import goes because somebody deletes it.
    let since = Instant::now();
    cluster.kubectl(&["delete", "serviceimport", "-n", "shop", "db"]).unwrap();
    following.until(|a| a.imports() == ["shop/web"]).await;
    println!("a delete, with kubectl, is in after {:?}", since.elapsed());

    // All go because the CRD does: none may go.
    cluster.apply_values(many(600, "10.1.0.3")).await.unwrap();
    following.until(|a| a.imports().len() == 601).await;
    cluster.uninstall_crds("v0.5.2").await.unwrap();
    let trouble = following.until_trouble(Resource::Imports, "crd_missing").await;
    assert_eq!(trouble, Trouble::CrdMissing { crd: "serviceimports.multicluster.x-k8s.io" });
    following.pass(Duration::from_secs(1)).await;
    assert_eq!(following.applied.imports().len(), 601);
    assert!(matches!(following.phase(Resource::Imports), WatchPhase::Down(_)));
    assert_eq!(following.phase(Resource::Slices), WatchPhase::Live);

    // Back, with one of them.
    cluster.install_crds("v0.5.2").await.unwrap();
    cluster.apply_values(vec![import("v1beta1", "web", "10.1.0.9")]).await.unwrap();
    following.until(|a| a.imports() == ["shop/web"] && a.ips("shop/web") == ["10.1.0.9"]).await;
    following.until_live().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l8_l9_l10_l11_permissions_outages_and_old_versions() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("one").await.unwrap();
    let kubeconfig = account(&cluster).await;
    cluster.install_crds("v0.5.2").await.unwrap();
    cluster.apply_values(role(&["list"], &["list", "watch"])).await.unwrap();
    cluster.apply_values(many(1201, "10.1.0.3")).await.unwrap();
    cluster.apply_values(vec![slice("web-east", "web", "10.0.0.1")]).await.unwrap();

    // The watch alone is refused: the list is complete, and yet nothing is live.
    let mut following = Following::with(&kubeconfig, 50).await;
    following.until(|a| a.synced() && a.imports().len() == 1201).await;
    match following.until_trouble(Resource::Imports, "forbidden").await {
        Trouble::Forbidden { verb, resource, message } => {
            assert_eq!((verb, resource.as_str()), ("watch", "serviceimports.multicluster.x-k8s.io"));
            assert!(message.contains("system:serviceaccount:shop:dns"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    cluster.apply_values(role(&["list", "watch"], &["list", "watch"])).await.unwrap();
    following.until_live().await;

    // L9, L10: the API server dies, and things change before we see it again.
    cluster.kill_api().unwrap();
    following.until_trouble(Resource::Imports, "unreachable").await;
    following.until_trouble(Resource::Slices, "unreachable").await;
    assert_eq!(following.applied.imports().len(), 1201);
    cluster.start_api().await.unwrap();
    let back = Instant::now();
    following.until_live().await;
    println!("live again {:?} after the API server was ready", back.elapsed());
    cluster.apply_values(vec![slice("web-east", "web", "10.0.0.2")]).await.unwrap();
    following.until(|a| a.addresses("shop/web-east") == ["10.0.0.2"]).await;

    following.cancel.cancel();
    following.task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l10_l11_wch_01_what_went_while_we_were_cut_off_is_gone_after_a_410() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("one").await.unwrap();
    let proxy = cluster.proxy().unwrap();
    let kubeconfig = account(&cluster).await;
    let kubeconfig = proxy.kubeconfig_through(&kubeconfig).unwrap();
    cluster.install_crds("v0.5.2").await.unwrap();
    cluster.apply_values(many(20, "10.1.0.3")).await.unwrap();
    cluster.apply_values(vec![slice("a", "web", "10.0.0.1"), slice("b", "web", "10.0.0.2")]).await.unwrap();
    let mut following = Following::with(&kubeconfig, 50).await;
    following.until(|a| a.synced() && a.imports().len() == 20 && a.slices().len() == 2).await;
    following.until_live().await;

    proxy.cut();
    following.until_trouble(Resource::Imports, "unreachable").await;
    cluster.kubectl(&["delete", "serviceimport", "-n", "shop", "s0001"]).unwrap();
    cluster.kubectl(&["delete", "endpointslice", "-n", "shop", "b"]).unwrap();
    cluster.apply_values(vec![slice("a", "web", "10.0.0.9")]).await.unwrap();
    // The API server forgets everything between.
    cluster.kill_api().unwrap();
    cluster.compact().await.unwrap();
    cluster.start_api().await.unwrap();
    assert_eq!((following.applied.imports().len(), following.applied.slices().len()), (20, 2));
    proxy.heal();
    let back = Instant::now();
    following.until(|a| a.imports().len() == 19 && a.slices() == ["shop/a"]).await;
    following.until_live().await;
    println!("right again {:?} after the way was open", back.elapsed());
    assert_eq!(following.applied.addresses("shop/a"), ["10.0.0.9"]);
    // A real API server says 410 as an event in a watch that began well. One more list each is what it led to.
    let lists = following
        .heard
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, _, code, verb)| (&**code, &**verb) == ("200", "list"))
        .count();
    assert_eq!(lists, 4, "two lists at the start, and one each for the 410");
}

/// What a real API server writes in protobuf is what it writes in JSON.
#[tokio::test(flavor = "multi_thread")]
async fn slices_in_protobuf_say_what_they_say_in_json() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("one").await.unwrap();
    let kubeconfig = account(&cluster).await;
    let of = |name: &str, rest: Value| {
        let mut object = slice(name, "web", "10.0.0.1");
        for (field, value) in rest.as_object().unwrap() {
            object[field] = value.clone();
        }
        object
    };
    let mut triggered = of("triggered", json!({"endpoints": null}));
    triggered["metadata"]["annotations"] =
        json!({"endpoints.kubernetes.io/last-change-trigger-time": "2026-11-30T12:00:00.123456Z", "other": "x"});
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c"},
                       {"name": "", "port": 65535, "protocol": "SCTP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    let endpoints = json!([
        {"addresses": ["10.0.0.1"], "hostname": "db-0", "nodeName": "n", "zone": "z", "hints": {"forZones": [{"name": "z"}]},
         "conditions": {"ready": true, "serving": true, "terminating": false}},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": false}, "targetRef": {"kind": "Pod", "name": "db-1-x"}},
        {"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}},
        {"addresses": ["10.0.0.4"]}]);
    let all = [
        of("plain", json!({"ports": ports})),
        of("rich", json!({"endpoints": endpoints, "ports": ports})),
        of("v6", json!({"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::5"]}]})),
        of("fqdn", json!({"addressType": "FQDN", "endpoints": [{"addresses": ["db.example.org"]}]})),
        of(
            "many",
            json!({"endpoints": (0..1000).map(|n| json!({"addresses": [format!("10.1.{}.{}", n / 250, n % 250)],
                          "hostname": format!("pod-{n}")})).collect::<Vec<_>>()}),
        ),
        triggered,
    ];
    let count = all.len();
    cluster.apply_values(all.to_vec()).await.unwrap();
    // It writes protobuf for those who ask as the product does (source_scripted: a server without it gets the same).
    let access = Access::Kubeconfig { file: kubeconfig.clone(), context: None };
    let client = Connection::new(access, Arc::new(())).await.unwrap().client().await;
    let request = http::Request::get("/apis/discovery.k8s.io/v1/endpointslices")
        .header("accept", "application/vnd.kubernetes.protobuf, application/json;q=0.9");
    let request = request.body(kube::client::Body::empty()).unwrap();
    let sent = client.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(sent.starts_with(b"k8s\0"), "{}", String::from_utf8_lossy(&sent));

    let mut following = Following::with(&kubeconfig, 50).await;
    following.until(|a| a.ended(Resource::Slices) == 1).await;
    assert_eq!(following.applied.slices().len(), count);
    same(&cluster, &following, count);

    // The same through the watch.
    cluster
        .kubectl(&[
            "label",
            "endpointslice",
            "-n",
            "shop",
            "--all",
            "--overwrite",
            "multicluster.kubernetes.io/source-cluster=west",
        ])
        .unwrap();
    let west = |a: &applied::Applied| {
        a.slices().iter().all(|key| a.slice(key).unwrap().cluster.as_ref().is_some_and(|id| id.as_str() == "west"))
    };
    following.until(west).await;
    same(&cluster, &following, count);
}

/// What is known of each slice is what its JSON says.
fn same(cluster: &Cluster, following: &Following, count: usize) {
    let text = cluster.kubectl(&["get", "endpointslice", "-n", "shop", "-o", "json"]).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), count);
    for item in items {
        let Some(Change::Slice(key, Some(slice))) = Convert::default().slice(&item.to_string()) else {
            panic!("{item}")
        };
        assert_eq!(following.applied.slice(&key.to_string()), Some(&slice), "{item}");
    }
}
