//! Cilium Cluster Mesh with its MCS-API support. In cilium/cilium, `pkg/clustermesh/mcsapi`: the import and its statuses
//! are of `serviceimport_controller.go` (`Reconcile`: its labels and annotations are the export's exported ones, there is
//! no mark of a manager), the derived Service of `service_controller.go` (our name for it, the mesh's annotation), the
//! slices of the cluster's own export of `endpointslice_mirror_controller.go` (`updateDerivedEndpointSlice`). The slices
//! of other clusters, for headless services only unless an annotation asks, are of `pkg/clustermesh/endpointslicesync`
//! (`clusterSvcToSvc` in `service_informer.go`: the derived Service's labels and the source cluster).

use serde_json::json;

use crate::clusterset::objects::{endpoints, export, web};
use crate::rig::Stage;

/// The import; `more` is `ips` or nothing.
fn import(name: &str, kind: &str, derived: &str, more: &str) -> String {
    format!(
        "
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: {name}
  labels: {{team: shop}}
  annotations:
    multicluster.kubernetes.io/derived-service: {derived}
    clustermesh.cilium.io/supported-ip-families: IPv4,IPv6
spec:
  type: {kind}
  ipFamilies: [IPv4, IPv6]
  {more}
  ports: [{{name: http, port: 80, protocol: TCP}}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
"
    )
}

fn derived_service(name: &str, derived: &str, cluster_ip: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata:
  name: {derived}
  labels: {{team: shop, multicluster.kubernetes.io/service-name: {name}}}
  annotations: {{service.cilium.io/global: 'true', clustermesh.cilium.io/supported-ip-families: 'IPv4,IPv6'}}
spec:
  type: ClusterIP
  {cluster_ip}
  ipFamilyPolicy: PreferDualStack
  ports: [{{name: http, port: 80, protocol: TCP}}]
"
    )
}

/// A slice of the derived Service: who manages it, of which cluster, more labels, and its endpoints.
fn slice(service: [&str; 3], part: &str, manager: &str, cluster: &str, more: &str, endpoints: &str) -> String {
    let [name, derived, family] = service;
    format!(
        "
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: {family}
metadata:
  name: {derived}-{part}
  labels:
    team: shop
    endpointslice.kubernetes.io/managed-by: {manager}
    kubernetes.io/service-name: {derived}
    multicluster.kubernetes.io/service-name: {name}
    multicluster.kubernetes.io/source-cluster: {cluster}
    {more}
ports: [{{name: http, port: 8080, protocol: TCP}}]
endpoints: [{endpoints}]
"
    )
}

const LOCAL: &str = "endpointslice-local-mcsapi-controller.cilium.io";
const MESH: &str = "endpointslice-mesh-controller.cilium.io";

fn status(clusters: &[&str], slices: &str) -> serde_json::Value {
    let clusters: Vec<_> = clusters.iter().map(|cluster| json!({"cluster": cluster})).collect();
    json!({"clusters": clusters, "endpointSliceObjects": slices,
           "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "ServiceImport is ready",
                           "lastTransitionTime": "2026-11-01T00:00:00Z"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c4_e5_v1_cilium_imports_are_answered_and_left_alone() {
    let stage = Stage::new("cilium").await;
    let derived = stage.west().derived_name("web");
    // Before there is a derived Service, the import has no address.
    stage.write(&import("web", "ClusterSetIP", &derived, "")).await;
    stage.answers("web", "A", &[]).await;

    stage.write(&derived_service("web", &derived, "")).await;
    let service = stage.west().get("services", &derived).await.unwrap();
    let ips: Vec<&str> =
        service["spec"]["clusterIPs"].as_array().unwrap().iter().map(|ip| ip.as_str().unwrap()).collect();
    let [four, six] = ips[..] else { panic!("{ips:?}") };
    stage.write(&import("web", "ClusterSetIP", &derived, &format!("ips: ['{four}', '{six}']"))).await;
    stage.write_status("serviceimports", "web", status(&["east", "west"], "Absent")).await;
    // This cluster exports as well: of a ClusterSetIP service only its own endpoints are in slices.
    let local = "service.cilium.io/local-endpointslice: web-x7k2p";
    let pod = "{addresses: [10.2.0.1], hostname: web-0, conditions: {ready: true, serving: true, terminating: false}}";
    stage.write(&slice(["web", &derived, "IPv4"], "x7k2p", LOCAL, "west", local, pod)).await;

    let answered = async || {
        stage.answers("web", "A", &[four]).await;
        stage.answers("web", "AAAA", &[six]).await;
        stage.services("web", &["80 web"]).await;
        stage.services("_http._tcp.web", &["80 web"]).await;
        stage.answers("web-0.west.web", "A", &["NXDOMAIN"]).await;
    };
    answered().await;
    // The derived Service has the name that ours would have.
    stage.left_alone("web").await;
    answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_h1_e1_e2_v13_cilium_headless_imports_are_answered_and_left_alone() {
    let stage = Stage::new("cilium-headless").await;
    let derived = stage.west().derived_name("db");
    stage.write(&derived_service("db", &derived, "clusterIP: None")).await;
    stage.write(&import("db", "Headless", &derived, "")).await;
    stage.write_status("serviceimports", "db", status(&["east", "west"], "Present")).await;
    let local = "service.cilium.io/local-endpointslice: db-4jx9c";
    let headless = "service.kubernetes.io/headless: ''";
    let host = |name: &str, address: &str, ready: bool| {
        format!(
            "{{addresses: ['{address}'], hostname: {name}, conditions: {{ready: {ready}, serving: {ready}, terminating: false}}}}"
        )
    };
    let own = host("db-0", "10.2.0.7", true) + ", " + &host("db-1", "10.2.0.8", false);
    stage.write(&slice(["db", &derived, "IPv4"], "4jx9c", LOCAL, "west", local, &own)).await;
    // The mesh's slices are called after a Service `<derived>-<cluster>` that exists in no API server.
    let theirs = host("db-0", "10.1.0.7", true) + ", {addresses: [10.1.0.9], conditions: {ready: true}}";
    stage.write(&slice(["db", &derived, "IPv4"], "east-s5d8w", MESH, "east", headless, &theirs)).await;
    let six = host("db-0", "fd00:1::7", true);
    stage.write(&slice(["db", &derived, "IPv6"], "east-m2b6t", MESH, "east", headless, &six)).await;

    let answered = async || {
        stage.answers("db", "A", &["10.1.0.7", "10.1.0.9", "10.2.0.7"]).await;
        stage.answers("db", "AAAA", &["fd00:1::7"]).await;
        stage.answers("db-0.west.db", "A", &["10.2.0.7"]).await;
        stage.answers("db-0.east.db", "A", &["10.1.0.7"]).await;
        stage.answers("db-0.east.db", "AAAA", &["fd00:1::7"]).await;
        stage.answers("10-1-0-9.east.db", "A", &["10.1.0.9"]).await;
        stage.answers("db-1.west.db", "A", &["NXDOMAIN"]).await;
        stage.services("_http._tcp.db", &["8080 10-1-0-9.east.db", "8080 db-0.east.db", "8080 db-0.west.db"]).await;
    };
    answered().await;
    stage.left_alone("db").await;
    answered().await;
}

/// Cilium's global services (`service.cilium.io/global`, not of the Multi-Cluster Services API) put other clusters'
/// endpoints behind the user's own Service, if an annotation asks for slices. Such a Service can be exported by us: what is
/// not this cluster's own is not exported with it.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r61_endpoints_of_a_cilium_global_service_are_not_exported_a_second_time() {
    let stage = Stage::new("cilium-global").await;
    let mesh = slice(["web", "web", "IPv4"], "east-q9z4h", MESH, "east", "", "{addresses: [10.1.0.66]}");
    // On the user's Service there is no label of the Multi-Cluster Services API but that of the source.
    let mesh = mesh.replace("    multicluster.kubernetes.io/service-name: web\n", "");
    assert!(!mesh.contains("multicluster.kubernetes.io/service-name"));
    stage.write(&(web("web") + &endpoints("web", &["10.2.0.1"]) + &mesh)).await;
    stage.write(&export("web")).await;
    stage.east().until_ready("web").await;
    stage.story.until_addresses("web", &["10.2.0.1"]).await;
}
