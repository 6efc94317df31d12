//! The CRDs of `config/crd`: made from our types, equal to upstream's in all but the descriptions, and good for a real
//! API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

use std::fs;
use std::path::Path;
use std::process::Command;

use namesake::api::{self, Schema, ServiceExport, ServiceImport, crd};
use serde_json::{Value, json};
use testbed::{Bed, mcs_crds};

const FILES: [&str; 2] = ["multicluster.x-k8s.io_serviceexports.yaml", "multicluster.x-k8s.io_serviceimports.yaml"];

fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd");
    FILES.iter().map(|file| fs::read_to_string(folder.join(file)).unwrap()).collect()
}

/// Without descriptions, which are ours; and with sets in one order.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            // A property may be called so too; that one is an object.
            let kept = fields.iter().filter(|(key, value)| !(*key == "description" && value.is_string()));
            let kept = kept.map(|(key, value)| match value {
                Value::Array(values) if key == "enum" || key == "required" => {
                    let mut values = values.clone();
                    values.sort_by_key(ToString::to_string);
                    (key.clone(), Value::Array(values))
                }
                value => (key.clone(), bare(value)),
            });
            Value::Object(kept.collect())
        }
        Value::Array(values) => values.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// Every description, with its place.
fn descriptions(value: &Value, place: &str, found: &mut Vec<(String, Option<String>)>) {
    let Value::Object(fields) = value else { return };
    if let Some(Value::Object(properties)) = fields.get("properties") {
        for (name, property) in properties {
            let place = format!("{place}.{name}");
            found.push((place.clone(), property["description"].as_str().map(str::to_owned)));
            descriptions(property, &place, found);
        }
    }
    if let Some(items) = fields.get("items") {
        descriptions(items, &format!("{place}[]"), found);
    }
}

#[test]
fn they_equal_upstreams_in_all_but_the_descriptions() {
    let upstream = mcs_crds(crd::RELEASE).unwrap();
    assert_eq!(upstream.len(), 2);
    for (ours, theirs) in crd::all().iter().zip(&upstream) {
        assert_eq!(bare(ours), bare(theirs));
        assert_ne!(ours, theirs, "upstream's descriptions are upstream's");
    }
}

#[test]
fn every_field_says_what_it_is_in_our_own_words() {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (found, crds) in [(&mut ours, crd::all().to_vec()), (&mut theirs, mcs_crds(crd::RELEASE).unwrap())] {
        for crd in crds {
            let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
            descriptions(&crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"], &name, found);
        }
    }
    assert!(ours.len() > 40, "{}", ours.len());
    for (place, description) in ours.iter().filter(|(place, _)| !place.ends_with(".metadata")) {
        let description = description.as_ref().unwrap_or_else(|| panic!("{place} has no description"));
        assert!(description.ends_with('.'), "{place}: {description}");
        assert!(!theirs.iter().any(|(_, text)| text.as_ref() == Some(description)), "{place}: {description}");
    }
}

#[test]
fn the_files_are_what_the_command_prints() {
    let out = Command::new(env!("CARGO_BIN_EXE_namesake")).args(["generate", "crds"]).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    let printed = String::from_utf8(out.stdout).unwrap();
    assert_eq!(shipped().join("---\n"), printed, "run `namesake generate crds` and put it into config/crd");
    let read: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    assert_eq!(read, crd::all());
}

#[test]
fn the_types_write_what_the_schema_has_and_read_it_again() {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let import = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}},
        "spec": {
            "type": "ClusterSetIP", "ips": ["10.0.0.1"], "ipFamilies": ["IPv4"], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}, "internalTrafficPolicy": "Cluster",
            "trafficDistribution": "PreferClose",
            "ports": [{"name": "http", "protocol": "TCP", "appProtocol": "http", "port": 80}],
        },
        "status": {"clusters": [{"cluster": "east"}], "conditions": [condition], "endpointSliceObjects": "Present"},
    });
    let export = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": "web"},
        "spec": {"exportedLabels": {"a": "b"}, "exportedAnnotations": {"c": "d"}},
        "status": {"conditions": [condition]},
    });
    let read: ServiceImport = serde_json::from_value(import.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), import);
    assert_eq!(read.spec.as_ref().unwrap().kind, api::ImportType::ClusterSetIp);
    let read: ServiceExport = serde_json::from_value(export.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), export);
    // These samples have every field that the schemas have.
    every_field(&ServiceImport::schema(), &import, "import");
    every_field(&ServiceExport::schema(), &export, "export");
    // A headless service without ports says so.
    let bare = serde_json::to_value(api::ServiceImportSpec::default()).unwrap();
    assert_eq!(bare, json!({"type": "ClusterSetIP", "ports": []}));
}

fn every_field(schema: &Value, sample: &Value, place: &str) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            assert!(!sample[name].is_null(), "{place}.{name} is not in the sample");
            every_field(property, &sample[name], &format!("{place}.{name}"));
        }
    } else if schema["items"].is_object() {
        every_field(&schema["items"], &sample[0], &format!("{place}[0]"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_takes_them_and_validates_by_them() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("one").await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd");
    cluster.kubectl(&["apply", "--server-side", "-k", folder.to_str().unwrap()]).unwrap();
    for name in [api::SERVICE_EXPORT_CRD, api::SERVICE_IMPORT_CRD] {
        cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=20s", "crd", name]).unwrap();
        // What a server finds wrong with a schema it accepts it says here.
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let crd = cluster.request("GET", &path, None).await.unwrap();
        let conditions = crd["status"]["conditions"].as_array().unwrap();
        assert!(!conditions.iter().any(|c| c["type"] == "NonStructuralSchema"), "{conditions:?}");
        assert_eq!(crd::compare(&crd), crd::Installed::Same);
    }
    cluster.wait_for_crds(&shipped().join("---\n")).await.unwrap();

    for version in api::VERSIONS {
        let object = |name: &str, spec: Value| {
            json!({
                "apiVersion": format!("multicluster.x-k8s.io/{version}"), "kind": "ServiceImport",
                "metadata": {"name": format!("{name}-{version}"), "namespace": "default"}, "spec": spec,
            })
        };
        let good = json!({"type": "Headless", "ports": [], "ipFamilies": ["IPv4"]});
        cluster.apply_values(vec![object("good", good)]).await.unwrap();
        for (wrong, spec) in [
            ("spec.type", json!({"type": "None", "ports": []})),
            ("spec.ports", json!({"type": "Headless"})),
            ("spec.ports[0].port", json!({"type": "Headless", "ports": [{"name": "http"}]})),
            ("spec.ips", json!({"type": "ClusterSetIP", "ports": [], "ips": ["a", "b", "c"]})),
        ] {
            let refused = cluster.apply_values(vec![object("wrong", spec)]).await.unwrap_err().to_string();
            assert!(refused.contains(wrong), "{wrong}: {refused}");
        }
    }

    // Short names, columns and the status of its own.
    let table = cluster.kubectl(&["get", "svcim"]).unwrap();
    assert!(
        table.contains("NAME") && table.contains("TYPE") && table.contains("IP") && table.contains("AGE"),
        "{table}"
    );
    assert!(table.contains("Headless"), "{table}");
    cluster.kubectl(&["get", "svcex"]).unwrap();
    let status = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "good-v1beta1", "namespace": "default"},
        "status": {"clusters": [{"cluster": "east"}], "endpointSliceObjects": "Present"},
    });
    cluster.apply_values(vec![status]).await.unwrap();
    let path = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports/good-v1beta1";
    let read: ServiceImport = serde_json::from_value(cluster.request("GET", path, None).await.unwrap()).unwrap();
    assert_eq!(read.status.unwrap().endpoint_slice_objects, Some(api::EndpointSliceObjects::Present));
}
