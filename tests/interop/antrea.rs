//! Antrea Multi-cluster. A leader's ResourceImport becomes, in each member, the ServiceImport and a Service
//! `antrea-mc-<name>` (`getMCServiceImport`, `getMCService`, `handleResImpUpdateForService` in antrea-io/antrea,
//! `multicluster/controllers/multicluster/member/resourceimport_controller.go`; the annotation in `…/common`), and
//! Endpoints of the same name (`handleResImpUpdateForEndpoints`): the cluster IPs of the exporting clusters' Services.
//! kube-controller-manager mirrors those into EndpointSlices, which therefore say nothing of the clusterset.

use crate::clusterset::{PATIENCE, until};
use crate::rig::Stage;

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata:
  name: antrea-mc-web
  annotations: {multicluster.antrea.io/imported-service: 'true'}
spec:
  type: ClusterIP
  ports: [{name: http, port: 80, protocol: TCP}]
---
apiVersion: v1
kind: Endpoints
metadata:
  name: antrea-mc-web
  annotations: {multicluster.antrea.io/imported-service: 'true'}
subsets:
- addresses: [{ip: 10.201.3.4}, {ip: 10.202.3.4}]
  ports: [{name: http, port: 80, protocol: TCP}]
";

/// The import in the version that Antrea writes; its only address is the cluster IP of the Service above.
fn import(ip: &str) -> String {
    format!(
        "
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {{name: web}}
spec:
  type: ClusterSetIP
  ips: ['{ip}']
  ports: [{{name: http, port: 80, protocol: TCP}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c1_e5_antrea_imports_are_answered_and_left_alone() {
    let stage = Stage::new("antrea").await;
    stage.write(SERVICE).await;
    let ip = stage.cluster_ip("antrea-mc-web").await;
    stage.write(&import(&ip)).await;
    until("kube-controller-manager has mirrored the Endpoints", PATIENCE, async || {
        let slices = stage.west().list("endpointslices", "kubernetes.io/service-name=antrea-mc-web").await;
        let ready = slices.iter().any(|slice| slice["endpoints"].as_array().is_some_and(|all| all.len() == 2));
        if ready { Ok(()) } else { Err(format!("{slices:?}")) }
    })
    .await;

    let answered = async || {
        stage.answers("web", "A", &[&ip]).await;
        stage.answers("web", "AAAA", &[]).await;
        stage.services("_http._tcp.web", &["80 web"]).await;
        // A ClusterSetIP service has no names of hosts, and their Service none in this zone.
        stage.answers("10-201-3-4.east.web", "A", &["NXDOMAIN"]).await;
        stage.answers("antrea-mc-web", "A", &["NXDOMAIN"]).await;
    };
    answered().await;
    stage.left_alone("web").await;
    answered().await;
}
