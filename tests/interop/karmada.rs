//! Karmada. Users write the ServiceImport, without an address, and Karmada propagates it to the importing members, with a
//! Service `derived-<name>` that has one (karmada-io/karmada, `pkg/controllers/mcs/service_import_controller.go`,
//! `deriveServiceFromServiceImport`; its documentation has clients use that Service) and the exporters' slices as
//! `imported-<cluster>-<slice>`, which carry the derived Service's label and none of the clusterset
//! (`endpointslice_controller.go`, `collectEndpointSliceFromWork`; `pkg/util/names`, `GenerateEndpointSliceName`).
//! MultiClusterService, Karmada's own kind, puts slices of other clusters behind the user's own Service
//! (`pkg/controllers/multiclusterservice/endpointslice_dispatch_controller.go`, `ensureEndpointSliceWork`).

use crate::clusterset::objects::{endpoints, export, web};
use crate::rig::Stage;

const DERIVED: &str = "
apiVersion: v1
kind: Service
metadata: {name: derived-serve, labels: {karmada.io/managed: 'true'}}
spec:
  type: ClusterIP
  ports: [{port: 80, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  name: imported-east-serve-k2v6d
  labels:
    kubernetes.io/service-name: derived-serve
    work.karmada.io/name: serve-k2v6d-5f6d9b8c7
    work.karmada.io/namespace: karmada-es-east
    karmada.io/managed: 'true'
ports: [{name: '', port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.0.5], conditions: {ready: true, serving: true, terminating: false}}]
";

/// The import as Karmada's documentation has it, and with an address as a user may add it.
fn import(ips: &str) -> String {
    format!(
        "
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {{name: serve, labels: {{karmada.io/managed: 'true'}}}}
spec:
  type: ClusterSetIP
  {ips}
  ports: [{{port: 80, protocol: TCP}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c1_c6_karmada_imports_have_no_address_until_somebody_gives_them_one_and_are_left_alone() {
    let stage = Stage::new("karmada").await;
    stage.write(DERIVED).await;
    stage.write(&import("")).await;
    // Nothing says which Service the import's address is of: the name exists, and has none.
    stage.services("serve", &[]).await;
    stage.answers("serve", "A", &[]).await;
    let why = stage.explained("serve").await;
    assert!(why.contains("it has no address in spec.ips yet"), "{why}");
    stage.left_alone("serve").await;

    // With the cluster IP of `derived-serve` in `spec.ips` it is as any other, also for CoreDNS.
    let ip = stage.cluster_ip("derived-serve").await;
    stage.write(&import(&format!("ips: ['{ip}']"))).await;
    stage.answers("serve", "A", &[&ip]).await;
    stage.services("serve", &["80 serve"]).await;
    stage.answers("10-1-0-5.east.serve", "A", &["NXDOMAIN"]).await;
    stage.left_alone("serve").await;
    stage.answers("serve", "A", &[&ip]).await;
}

/// A MultiClusterService is exported by us too: what Karmada brought here from another cluster is not this cluster's own.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r61_endpoints_that_karmada_dispatched_are_not_exported_a_second_time() {
    let stage = Stage::new("karmada-mcs").await;
    let dispatched = "
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  name: east-web-x5v8r
  labels:
    kubernetes.io/service-name: web
    endpointslice.kubernetes.io/managed-by: endpointslice-dispatch-controller.karmada.io
    karmada.io/managed: 'true'
  annotations: {endpointslice.karmada.io/provision-cluster: east}
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.0.66], conditions: {ready: true, serving: true, terminating: false}}]
";
    stage.write(&(web("web") + &endpoints("web", &["10.2.0.1"]) + dispatched)).await;
    stage.write(&export("web")).await;
    stage.east().until_ready("web").await;
    stage.story.until_addresses("web", &["10.2.0.1"]).await;
}
