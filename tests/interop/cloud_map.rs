//! The AWS Cloud Map MCS controller. In aws/aws-cloud-map-mcs-controller-for-k8s, `pkg/controllers/multicluster/utils.go`:
//! an import with an annotation of its own that names a derived Service for each exporting cluster
//! (`CreateServiceImportStruct`, `CreateDerivedServiceAnnotation`), those Services (`CreateDerivedServiceStruct`,
//! `DerivedName`) and their slices (`CreateEndpointSliceStruct`, `CreateEndpointForSlice`). `spec.ips` are the cluster IPs
//! of all derived Services, one a cluster, and for a headless service the word `None` as often
//! (`GetClusterIpsFromServices`). On ServiceExports it puts a finalizer.

use serde_json::json;

use crate::clusterset::objects::{endpoints, web};
use crate::clusterset::{PATIENCE, until};
use crate::rig::Stage;

/// The derived Service of a cluster and its slice. The names are what the controller's hash of namespace, name and cluster
/// makes; what they are does not matter to us.
fn derived(name: &str, cluster: &str, hash: &str, spec: &str, endpoints: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Service
metadata:
  name: imported-{hash}
  labels: {{multicluster.kubernetes.io/service-name: {name}, multicluster.kubernetes.io/source-cluster: {cluster}}}
spec:
  type: ClusterIP
  {spec}
  ports: [{{name: http, port: 80, targetPort: 8080, protocol: TCP}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  name: imported-{hash}-7xk4p
  labels:
    kubernetes.io/service-name: imported-{hash}
    multicluster.kubernetes.io/service-name: {name}
    multicluster.kubernetes.io/source-cluster: {cluster}
    endpointslice.kubernetes.io/managed-by: aws-cloud-map-mcs-controller-for-k8s
ports: [{{name: http, port: 8080, protocol: TCP}}]
endpoints: [{endpoints}]
"
    )
}

fn endpoint(hash: &str, address: &str, more: &str) -> String {
    let target = format!("targetRef: {{kind: Service, name: imported-{hash}}}");
    format!("{{addresses: [{address}], conditions: {{ready: true}}, nodeName: ip-10-0-0-1, {target}{more}}}")
}

fn import(name: &str, kind: &str, ips: &[&str], clusters: &[(&str, &str)]) -> String {
    let services: Vec<_> = clusters
        .iter()
        .map(|(cluster, hash)| json!({"cluster": cluster, "derived-service": format!("imported-{hash}")}))
        .collect();
    json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
           "metadata": {"name": name, "annotations": {"multicluster.k8s.aws/derived-service": json!(services).to_string()}},
           "spec": {"type": kind, "ips": ips, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}})
    .to_string()
}

const TWO: &[(&str, &str)] = &[("east", "dl1k1qs3hg"), ("south", "k5a2m0p9tq")];

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c5_e5_cloud_map_imports_are_answered_with_an_address_a_cluster_and_left_alone() {
    let stage = Stage::new("cloud-map").await;
    for ((cluster, hash), address) in TWO.iter().zip(["10.1.0.5", "10.3.0.5"]) {
        stage.write(&derived("web", cluster, hash, "", &endpoint(hash, address, ""))).await;
    }
    let mut ips = Vec::new();
    for (_, hash) in TWO {
        ips.push(stage.cluster_ip(&format!("imported-{hash}")).await);
    }
    ips.sort();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    stage.write(&import("web", "ClusterSetIP", &ips, TWO)).await;

    let answered = async || {
        stage.answers("web", "A", &ips).await;
        stage.services("_http._tcp.web", &["80 web"]).await;
        stage.answers("10-1-0-5.east.web", "A", &["NXDOMAIN"]).await;
        stage.answers("east.web", "A", &["NXDOMAIN"]).await;
    };
    answered().await;
    stage.left_alone("web").await;
    answered().await;

    // A third exporting cluster does not fit: the API allows two addresses. It is the API server that refuses.
    let ips = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    let third: serde_json::Value = serde_json::from_str(&import("web", "ClusterSetIP", &ips, TWO)).unwrap();
    let path = format!("{}/web", stage.west().path("serviceimports"));
    let patch = json!({"spec": {"ips": third["spec"]["ips"]}});
    let refused = stage.west().send("PATCH", &path, Some(&patch)).await.unwrap_err();
    assert_eq!(refused.0, 422, "{}", refused.1);
    answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c14_h1_e1_e2_cloud_map_headless_imports_are_answered_and_left_alone() {
    let stage = Stage::new("cloud-map-headless").await;
    let hosts = [("east", "dl1k1qs3hg", "10.1.0.5"), ("south", "k5a2m0p9tq", "10.3.0.5")];
    for (cluster, hash, address) in hosts {
        let with_host = endpoint(hash, address, ", hostname: db-0");
        stage.write(&derived("db", cluster, hash, "clusterIP: None", &with_host)).await;
    }
    // It takes the cluster IPs of its derived Services, whatever they are.
    stage.write(&import("db", "Headless", &["None", "None"], TWO)).await;

    let answered = async || {
        stage.answers("db", "A", &["10.1.0.5", "10.3.0.5"]).await;
        stage.answers("db", "CNAME", &[]).await;
        stage.answers("db-0.east.db", "A", &["10.1.0.5"]).await;
        stage.answers("db-0.south.db", "A", &["10.3.0.5"]).await;
        stage.services("_http._tcp.db", &["8080 db-0.east.db", "8080 db-0.south.db"]).await;
    };
    answered().await;
    stage.left_alone("db").await;
    answered().await;
}

/// A ServiceExport that the other controller holds by a finalizer is exported by us as well, keeps the finalizer, and is
/// taken back when it is deleted, though the object stays until the other one lets it go.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r7_r81_an_export_that_cloud_map_holds_is_taken_back_all_the_same() {
    const FINALIZER: &str = "multicluster.k8s.aws/service-export-finalizer";
    let stage = Stage::new("cloud-map-export").await;
    let held = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
                      "metadata": {"name": "web", "finalizers": [FINALIZER]}});
    stage.write(&(web("web") + &endpoints("web", &["10.2.0.1"]))).await;
    stage.write(&held.to_string()).await;
    stage.west().until_export_says("web", "Ready", "True/Exported").await;
    stage.story.until_addresses("web", &["10.2.0.1"]).await;

    stage.west().delete("serviceexports", "web").await;
    stage.story.until_gone("web").await;
    let export = stage.west().get("serviceexports", "web").await.unwrap();
    assert_eq!(export["metadata"]["finalizers"], json!([FINALIZER]), "{export}");
    stage.west().patch("serviceexports", "web", json!({"metadata": {"finalizers": null}})).await;
    until("the other one has let it go", PATIENCE, async || {
        stage.west().get("serviceexports", "web").await.map_or(Ok(()), |export| Err(export.to_string()))
    })
    .await;
}
