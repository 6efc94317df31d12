//! The request's own example (controller.md 2.15), to the letter, on real clusters.

use serde_json::{Value, json};

use crate::beds::calm;
use crate::clusterset::kubelet::{self, NODE};
use crate::clusterset::objects::{export, service};
use crate::clusterset::place::text;
use crate::clusterset::{Place, Story};

/// Without what every API server fills in its own way.
fn stripped(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        metadata.remove(field);
    }
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let condition = condition.as_object_mut().unwrap();
        assert!(condition.remove("lastTransitionTime").is_some_and(|time| text(&time).ends_with('Z')));
    }
    if let Some(endpoints) = object.get_mut("endpoints").and_then(Value::as_array_mut) {
        endpoints.sort_by_key(|endpoint| endpoint["addresses"].to_string());
    }
    object
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[track_caller]
fn must_be(is: &Value, shall: &Value) {
    let (is, shall) = (format!("{is:#}"), format!("{shall:#}"));
    let differs = is.lines().zip(shall.lines()).find(|(a, b)| a != b);
    assert!(is == shall, "it is\n{is}\nand shall be\n{shall}\nfirst here: {differs:?}");
}

async fn export_the_example(a: &Place) {
    let spec = "selector: {app: sample}, ports: [{name: http, port: 80, targetPort: 8080}]";
    a.apply(&service("sample-service", spec)).await;
    for (name, address) in [("sample-0", "10.0.1.1"), ("sample-1", "10.0.1.2")] {
        kubelet::pod(a, name, &json!({"app": "sample"}), address).await;
    }
    a.apply(&export("sample-service")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_2_15_the_requests_example_comes_out_to_the_letter() {
    let story = Story::named(&calm().await.set, "default");
    let (a, b) = (story.at(0), story.at(1));
    export_the_example(a).await;
    story.until_imported([0, 1, 2], "sample-service").await;
    story.until_addresses("sample-service", &["10.0.1.1", "10.0.1.2"]).await;
    a.until_export_says("sample-service", "Ready", "True/Exported").await;

    let import = b.import("sample-service").await.unwrap();
    let service = b.get("services", "derived-6kcte729st").await.unwrap();
    let ip = text(&service["spec"]["clusterIP"]).to_owned();
    let owner = format!(
        "[{{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, name: sample-service, uid: {}, \
         controller: true, blockOwnerDeletion: false}}]",
        text(&import["metadata"]["uid"])
    );
    let generation = &import["metadata"]["generation"];
    must_be(
        &stripped(import.clone()),
        &yaml(&format!(
            "
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: sample-service
  namespace: default
  labels: {{app.kubernetes.io/managed-by: namesake}}
  annotations: {{multicluster.kubernetes.io/derived-service: derived-6kcte729st}}
spec:
  type: ClusterSetIP
  ipFamilies: [IPv4]
  ips: [\"{ip}\"]
  ports: [{{name: http, protocol: TCP, port: 80}}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
status:
  clusters: [{{cluster: cluster-a}}]
  endpointSliceObjects: Present
  conditions:
  - {{type: Ready, status: \"True\", reason: Ready, message: The service can be used., observedGeneration: {generation}}}
"
        )),
    );
    // What the API server adds of itself: clusterIP and clusterIPs, ipFamilies, targetPort.
    must_be(
        &stripped(service),
        &yaml(&format!(
            "
apiVersion: v1
kind: Service
metadata:
  name: derived-6kcte729st
  namespace: default
  labels:
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/service-imported: \"true\"
    app.kubernetes.io/managed-by: namesake
  ownerReferences: {owner}
spec:
  type: ClusterIP
  ipFamilyPolicy: PreferDualStack
  sessionAffinity: None
  internalTrafficPolicy: Cluster
  ports: [{{name: http, protocol: TCP, port: 80, targetPort: 80}}]
  clusterIP: \"{ip}\"
  clusterIPs: [\"{ip}\"]
  ipFamilies: [IPv4]
status: {{loadBalancer: {{}}}}
"
        )),
    );
    assert_eq!(b.slices("sample-service").await.len(), 1);
    let slice = b.get("endpointslices", "derived-6kcte729st-cluster-a").await.unwrap();
    let endpoint = |ip| {
        let conditions = "conditions: {ready: true, serving: true, terminating: false}";
        format!("{{addresses: [\"{ip}\"], {conditions}, zone: {}}}", NODE.1)
    };
    must_be(
        &stripped(slice),
        &yaml(&format!(
            "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: derived-6kcte729st-cluster-a
  namespace: default
  labels:
    kubernetes.io/service-name: derived-6kcte729st
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/source-cluster: cluster-a
    endpointslice.kubernetes.io/managed-by: namesake
  ownerReferences: {owner}
addressType: IPv4
ports: [{{name: http, protocol: TCP, port: 8080}}]
endpoints: [{}, {}]
",
            endpoint("10.0.1.1"),
            endpoint("10.0.1.2")
        )),
    );

    // In the exporter's own cluster it is imported too (R3, D20), and there pods keep their node.
    let own = a.slices("sample-service").await;
    assert_eq!(own.len(), 1, "{own:#?}");
    assert!(own[0]["endpoints"].as_array().unwrap().iter().all(|e| e["nodeName"] == NODE.0), "{own:#?}");

    let export = a.get("serviceexports", "sample-service").await.unwrap();
    must_be(
        &stripped(export)["status"],
        &yaml(
            "
conditions:
- {type: Valid, status: \"True\", reason: Valid, message: The ServiceExport and its Service are exportable., observedGeneration: 1}
- {type: Ready, status: \"True\", reason: Exported, message: The service has been exported to 3 clusters., observedGeneration: 1}
- {type: Conflict, status: \"False\", reason: NoConflicts, message: All exporting clusters agree., observedGeneration: 1}
",
        ),
    );

    a.delete("serviceexports", "sample-service").await;
    story.until_gone("sample-service").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_2_15_r10_external_db_is_refused_and_nothing_is_made() {
    let story = Story::named(&calm().await.set, "default");
    let a = story.at(0);
    a.apply(&(service("external-db", "type: ExternalName, externalName: db.example.com") + &export("external-db")))
        .await;
    // At first it may be that its Service is not seen yet.
    a.until_export_says("external-db", "Valid", "False/InvalidServiceType").await;
    let object = a.get("serviceexports", "external-db").await.unwrap();
    must_be(
        &stripped(object)["status"],
        &yaml(
            "
conditions:
- type: Valid
  status: \"False\"
  reason: InvalidServiceType
  message: 'ExternalName services cannot be exported: Service default/external-db in cluster \"cluster-a\" is one.'
  observedGeneration: 1
- type: Ready
  status: \"False\"
  reason: Pending
  message: Not exported until the condition Valid is True.
  observedGeneration: 1
",
        ),
    );
    for place in &story.places {
        assert_eq!(place.parts("external-db").await, (false, false, 0), "{}", place.id());
        assert!(place.get("services", "derived-f4aid9aolq").await.is_none());
    }
    a.delete("serviceexports", "external-db").await;
}
