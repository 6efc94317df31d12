//! `namesake plan -o yaml`, and the objects that we write at all: chapter 2.15 of the contract.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;

use std::collections::BTreeMap;

use clusters::{Folder, must_be};
use namesake::controller::objects;
use namesake::preview::Clusterset;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::Time;
use namesake::reconcile::plan::Action;
use namesake::source::clusters::read as clusters_of;
use serde_json::Value;

#[test]
fn what_is_written_and_kept_in_the_folder_is_planned_no_more() {
    let folder = Folder::example();
    let all = folder.plan(&["-o", "yaml"]).ok();
    for cluster in ["berlin", "london", "paris"] {
        let yaml = folder.plan(&["-o", "yaml", "--cluster", cluster]).ok();
        assert!(all.contains(&yaml), "one cluster's part is the same in the whole");
        folder.write(&format!("{cluster}/imported.yaml"), &yaml);
    }
    assert_eq!(folder.plan(&[]).ok(), "no objects to write; no conflicts\n");
    assert_eq!(folder.plan(&["-o", "yaml"]).ok(), "");

    // From here on only what changes is named.
    folder.replace("paris/loyalty.yaml", "port: 9443", "port: 9444");
    must_be("kept.txt", &folder.plan(&[]).ok());
    must_be("kept.yaml", &folder.plan(&["-o", "yaml", "--cluster", "berlin"]).ok());
    folder.remove("london/ledger.yaml");
    must_be("withdrawn.txt", &folder.plan(&["--cluster", "berlin"]).ok());
    must_be("withdrawn.yaml", &folder.plan(&["-o", "yaml", "--cluster", "berlin"]).ok());
}

#[test]
fn yaml_is_one_applicable_object_a_document_and_its_cluster_a_comment() {
    let yaml = Folder::example().plan(&["-o", "yaml"]).ok();
    let documents: Vec<_> = yaml.split("---\n").skip(1).collect();
    assert_eq!(documents.len(), 21, "as the text counts them");
    let mut clusters = Vec::new();
    for document in documents {
        let (comment, object) = document.split_once('\n').unwrap();
        clusters.push(comment.strip_prefix("# cluster: ").expect("a comment with the cluster").to_owned());
        let object: serde_json::Value = serde_saphyr::from_str(object).unwrap();
        for field in ["apiVersion", "kind", "metadata"] {
            assert!(object.get(field).is_some(), "{field} is missing in {document}");
        }
        assert!(object.get("status").is_none(), "nobody applies a status with its object");
        assert!(object.pointer("/metadata/ownerReferences").is_none(), "nobody knows the uid yet");
        assert!(object.pointer("/spec/ips").is_none(), "nobody has given an address yet");
    }
    assert!(clusters.is_sorted(), "{clusters:?}");
}

/// The request's example, `default/sample-service`, exported in cluster-a and seen in cluster-b.
fn request(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(files);
    folder.write(
        "cluster-a/sample-service.yaml",
        "\
apiVersion: v1
kind: Service
metadata: {name: sample-service, namespace: default}
spec:
  selector: {app: sample}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: sample-service, namespace: default}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: zone-1}}
---
apiVersion: v1
kind: Pod
metadata: {name: sample-1, namespace: default, labels: {app: sample}}
spec: {nodeName: n1}
status: {phase: Running, podIP: 10.0.1.1, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: sample-2, namespace: default, labels: {app: sample}}
spec: {nodeName: n1}
status: {phase: Running, podIP: 10.0.1.2, conditions: [{type: Ready, status: \"True\"}]}
",
    );
    folder
}

#[test]
fn mcs_2_15_the_requests_example_comes_out_as_yaml_exactly() {
    let folder = request(&[("cluster-b/empty.yaml", "")]);
    must_be("sample-service.yaml", &folder.plan(&["-o", "yaml", "--cluster", "cluster-b"]).ok());
}

#[test]
fn mcs_2_15_the_address_that_the_cluster_gave_becomes_the_clusterset_ip() {
    // What cluster-b holds when the first plan was applied there: addresses and uids are its API server's.
    let folder = request(&[(
        "cluster-b/applied.yaml",
        "\
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: sample-service
  namespace: default
  uid: 7d2c1a90-55d4-4a7e-9a3f-0a8d4f2b6c11
  labels: {app.kubernetes.io/managed-by: namesake}
  annotations: {multicluster.kubernetes.io/derived-service: derived-6kcte729st}
spec:
  type: ClusterSetIP
  ipFamilies: [IPv4]
  ports: [{name: http, protocol: TCP, port: 80}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
---
apiVersion: v1
kind: Service
metadata:
  name: derived-6kcte729st
  namespace: default
  labels:
    app.kubernetes.io/managed-by: namesake
    multicluster.kubernetes.io/service-imported: \"true\"
    multicluster.kubernetes.io/service-name: sample-service
spec:
  type: ClusterIP
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1]
  ipFamilies: [IPv4]
  ipFamilyPolicy: PreferDualStack
  ports: [{name: http, protocol: TCP, port: 80, targetPort: 80}]
",
    )]);
    must_be("sample-service-applied.yaml", &folder.plan(&["-o", "yaml", "--cluster", "cluster-b"]).ok());
}

/// Chapter 2.15 of our contract, as it stands there.
const CONTRACT: &str = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: sample-service
  namespace: default
  labels: {app.kubernetes.io/managed-by: namesake}
  annotations: {multicluster.kubernetes.io/derived-service: derived-6kcte729st}
spec:
  type: ClusterSetIP
  ipFamilies: [IPv4]
  ips: ["10.96.0.1"]            # clusterIP that cluster-b gave to the derived Service
  ports: [{name: http, protocol: TCP, port: 80}]
  sessionAffinity: None
  internalTrafficPolicy: Cluster
status:                          # separate write
  clusters: [{cluster: cluster-a}]
  endpointSliceObjects: Present  # only when the CRD declares it
  conditions: [{type: Ready, status: "True", reason: Ready}]
---
apiVersion: v1
kind: Service
metadata:
  name: derived-6kcte729st
  namespace: default
  labels:
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/service-imported: "true"
    app.kubernetes.io/managed-by: namesake
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, name: sample-service, uid: UID, controller: true}]
spec:                            # no selector
  type: ClusterIP
  ipFamilyPolicy: PreferDualStack
  sessionAffinity: None
  internalTrafficPolicy: Cluster
  ports: [{name: http, protocol: TCP, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: derived-6kcte729st-cluster-a
  namespace: default
  labels:
    kubernetes.io/service-name: derived-6kcte729st            # not sample-service
    multicluster.kubernetes.io/service-name: sample-service
    multicluster.kubernetes.io/source-cluster: cluster-a
    endpointslice.kubernetes.io/managed-by: namesake
  ownerReferences: [{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, name: sample-service, uid: UID, controller: true}]
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]               # resolved targetPort
endpoints:
- {addresses: ["10.0.1.1"], conditions: {ready: true, serving: true, terminating: false}, zone: zone-1}
- {addresses: ["10.0.1.2"], conditions: {ready: true, serving: true, terminating: false}, zone: zone-1}
"#;

#[test]
fn mcs_2_15_the_objects_that_api_servers_get_are_the_contracts() {
    let cidr = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.1/32]}\n";
    let folder = request(&[("cluster-b/cidr.yaml", cidr)]);
    let mut set = Clusterset::new(Settings::default());
    set.tell(clusters_of(folder.path()).unwrap());
    let settled = set.settle(Time(1_700_000_000)).unwrap();
    // The last write of each object.
    let mut written: BTreeMap<String, Value> = BTreeMap::new();
    for change in settled.plans.iter().flat_map(|plan| &plan.plan.changes).filter(|c| c.cluster.as_str() == "cluster-b")
    {
        let action = with_uids(&change.action);
        for object in [objects::object(&action, "v1beta1"), objects::status(&action, "v1beta1")].into_iter().flatten() {
            let Value::Object(object) = serde_json::to_value(&object).unwrap() else { panic!("an object") };
            let kind = object["kind"].as_str().unwrap().to_owned();
            let into = written.entry(kind).or_insert_with(|| Value::Object(serde_json::Map::new()));
            for (field, value) in object {
                if field != "metadata" || into.get("metadata").is_none() {
                    into[field] = value;
                }
            }
        }
    }
    let mut written: Vec<Value> = written.into_values().collect();
    written.sort_by_key(|object| object["apiVersion"].to_string());
    // What the contract does not spell out: the message and its time, and that nobody waits for our owners.
    for object in &mut written {
        for condition in object.pointer_mut("/status/conditions").into_iter().flat_map(|c| c.as_array_mut().unwrap()) {
            for field in ["message", "lastTransitionTime", "observedGeneration"] {
                assert!(condition.as_object_mut().unwrap().remove(field).is_some(), "{field}");
            }
        }
        for owner in object.pointer_mut("/metadata/ownerReferences").into_iter().flat_map(|o| o.as_array_mut().unwrap())
        {
            assert_eq!(owner.as_object_mut().unwrap().remove("blockOwnerDeletion"), Some(Value::Bool(false)));
        }
    }
    let mut contract: Vec<Value> = serde_saphyr::from_multiple(CONTRACT).unwrap();
    contract.sort_by_key(|object| object["apiVersion"].to_string());
    assert_eq!(written, contract);
}

/// As applied: owners that the same plan has made are looked up in the API server's answers, and addresses are never asked
/// for but where a cluster's range is made up.
fn with_uids(action: &Action) -> Action {
    let mut action = action.clone();
    match &mut action {
        Action::ApplyService(object) => {
            object.owners.iter_mut().for_each(|owner| owner.uid = Some("UID".into()));
            object.spec.ips.clear();
        }
        Action::ApplySlice(object) => object.owners.iter_mut().for_each(|owner| owner.uid = Some("UID".into())),
        _ => {}
    }
    action
}
