//! What `leave` takes away, what it leaves alone, and CRDs that `join` finds there.

use serde_json::{Value, json};
use testbed::{Bed, Cluster};

use crate::rig::{contexts, must, namesake};

const OURS: &str = "
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop, labels: {app.kubernetes.io/managed-by: namesake}}
spec: {type: ClusterSetIP, ports: []}
---
apiVersion: v1
kind: Service
metadata:
  name: derived-a
  namespace: shop
  labels: {app.kubernetes.io/managed-by: namesake, multicluster.kubernetes.io/service-imported: 'true'}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: derived-a-west, namespace: shop, labels: {endpointslice.kubernetes.io/managed-by: namesake}}
addressType: IPv4
ports: []
endpoints: []
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: auto, namespace: shop, labels: {app.kubernetes.io/managed-by: namesake}}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: east, namespace: namesake, labels: {app.kubernetes.io/managed-by: namesake}}
";

const OTHERS: &str = "
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: theirs, namespace: shop, labels: {app.kubernetes.io/managed-by: somebody}}
spec: {type: ClusterSetIP, ports: []}
---
apiVersion: v1
kind: Service
metadata: {name: derived-b, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: namesake-dns, namespace: namesake, labels: {app.kubernetes.io/managed-by: namesake}}
spec: {ports: [{port: 53}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: mine, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: []
endpoints: []
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: shop}
";

async fn names(cluster: &Cluster, path: &str) -> Vec<String> {
    let list = cluster.request("GET", path, None).await.unwrap();
    let mut names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|o| o["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// A condition of a ServiceExport by a field manager.
async fn condition(cluster: &Cluster, manager: &str, kind: &str) {
    let status = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": "shop"},
        "status": {"conditions": [{"type": kind, "status": "True", "reason": "Ok", "message": "",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let path = format!(
        "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/web/status?fieldManager={manager}&force=true"
    );
    let client = cluster.admin();
    let request = http::Request::patch(path)
        .header("content-type", "application/apply-patch+yaml")
        .body(serde_json::to_vec(&status).unwrap())
        .unwrap();
    client.request_text(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r83_everything_of_ours_goes_and_nothing_else() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub"]).await.unwrap();
    let hub = &clusters[0];
    let kubeconfig = contexts(&bed, &clusters);
    // A cluster may be hub and member at once.
    must(&kubeconfig, &["join", "hub", "--hub", "hub", "--id", "east"]).await;
    hub.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await.unwrap();
    hub.apply(OURS).await.unwrap();
    hub.apply(OTHERS).await.unwrap();
    condition(hub, "namesake", "Valid").await;
    condition(hub, "somebody", "Theirs").await;

    let out = must(&kubeconfig, &["leave", "hub", "--hub", "hub"]).await;
    for line in [
        "hub: Secret cluster-east, which registers cluster east: deleted",
        "hub: 1 ServiceImports: deleted",
        "hub: 1 derived Services: deleted",
        "hub: 1 EndpointSlices: deleted",
        "hub: 1 ServiceExports that we made: deleted",
        "hub: conditions of 1 ServiceExports: cleared; the exports themselves are yours",
        "hub: Namespace namesake: left, there is more in it: 1 services",
    ] {
        assert!(out.lines().any(|said| said == line), "{line}\n{out}");
    }
    let mcs = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop";
    assert_eq!(names(hub, &format!("{mcs}/serviceimports")).await, ["theirs"]);
    assert_eq!(names(hub, "/api/v1/namespaces/shop/services").await, ["derived-b"]);
    let slices = names(hub, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices").await;
    assert!(slices.contains(&"mine".to_owned()) && !slices.contains(&"derived-a-west".to_owned()), "{slices:?}");
    assert_eq!(names(hub, &format!("{mcs}/serviceexports")).await, ["web"]);
    assert!(names(hub, "/apis/coordination.k8s.io/v1/namespaces/namesake/leases").await.is_empty());
    assert_eq!(names(hub, "/api/v1/namespaces/namesake/services").await, ["namesake-dns"]);
    let export = hub.request("GET", &format!("{mcs}/serviceexports/web"), None).await.unwrap();
    let kinds: Vec<_> = export["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
    assert_eq!(kinds, ["Theirs"]);

    // A role of the same name that is not ours is left.
    hub.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: namesake-member}, rules: []}",
    )
    .await
    .unwrap();
    let out = must(&kubeconfig, &["leave", "hub", "--member-only"]).await;
    assert!(out.contains("hub: ClusterRole namesake-member: left as it is, it is not ours"), "{out}");
}

/// The labels of the installed CRD of imports, and whether it has the newest field.
async fn installed(cluster: &Cluster) -> (Value, bool) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serviceimports.multicluster.x-k8s.io";
    let crd = cluster.request("GET", path, None).await.unwrap();
    let newest = crd.to_string().contains("endpointSliceObjects");
    (crd["metadata"]["labels"]["multicluster.x-k8s.io/release-version"].clone(), newest)
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_are_installed_where_absent_or_older_and_never_taken_back() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub"]).await.unwrap();
    let hub = &clusters[0];
    let kubeconfig = contexts(&bed, &clusters);
    let join = ["join", "hub", "--hub", "hub", "--id", "east"];

    for version in ["v0.4.1", "v0.5.0"] {
        hub.install_crds(version).await.unwrap();
        let out = must(&kubeconfig, &join).await;
        let said = format!(
            "hub: CRD serviceimports.multicluster.x-k8s.io: brought from {version}, schema revision 0 to v0.5.2"
        );
        assert!(out.contains(&said), "{out}");
        assert_eq!(installed(hub).await, (json!("v0.5.2"), true));
    }
    // Of before there were labels.
    hub.install_crds("v0.5.0").await.unwrap();
    hub.kubectl(&["label", "crd", "--all", "multicluster.x-k8s.io/release-version-"]).unwrap();
    let out = must(&kubeconfig, &join).await;
    assert!(out.contains("brought from no release label to v0.5.2"), "{out}");
    assert_eq!(installed(hub).await, (json!("v0.5.2"), true));
    let out = must(&kubeconfig, &join).await;
    assert!(out.contains("CRD serviceimports.multicluster.x-k8s.io: unchanged"), "{out}");

    hub.kubectl(&["label", "crd", "--overwrite", "--all", "multicluster.x-k8s.io/release-version=v0.6.0"]).unwrap();
    let out = must(&kubeconfig, &join).await;
    assert!(out.contains("left as it is, it is newer (v0.6.0, schema revision 0)"), "{out}");
    assert_eq!(installed(hub).await.0, json!("v0.6.0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r91_join_takes_the_id_of_the_property_and_refuses_another() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub"]).await.unwrap();
    let kubeconfig = contexts(&bed, &clusters);
    crate::rig::install_about(&clusters[0]).await;
    clusters[0].apply(&crate::rig::property("cluster.clusterset.k8s.io", "east")).await.unwrap();
    let ran = namesake(&kubeconfig, &["join", "hub", "--hub", "hub", "--id", "west"]).await;
    assert!(!ran.ok && ran.out.is_empty() && ran.err.contains("it is registered as west"), "{ran:?}");
    let out = must(&kubeconfig, &["join", "hub", "--hub", "hub"]).await;
    assert!(out.starts_with("hub: joins as cluster east\n"), "{out}");

    // The address at which the hub reaches it is taken as it is given.
    let out = must(&kubeconfig, &["join", "hub", "--hub", "hub", "--server", "https://east.example:6443"]).await;
    assert!(out.contains("hub: Secret cluster-east: changed"), "{out}");
    let secret =
        clusters[0].kubectl(&["get", "secret", "-n", "namesake", "cluster-east", "-o", "jsonpath={.data.kubeconfig}"]);
    let text: k8s_openapi::ByteString = serde_json::from_value(json!(secret.unwrap())).unwrap();
    assert!(String::from_utf8(text.0).unwrap().contains("\"server\": \"https://east.example:6443\""));
    let ran = namesake(&kubeconfig, &["join", "nowhere", "--hub", "hub", "--id", "a"]).await;
    assert!(!ran.ok && ran.err.contains("has no context \"nowhere\""), "{ran:?}");
    let ran = namesake(&kubeconfig, &["leave", "hub"]).await;
    assert!(!ran.ok && ran.err.contains("--hub"), "{ran:?}");
}
