//! Two exporters that agree, or don't: the older one's word stands, and both are told.

use serde_json::{Value, json};

use crate::clusterset::place::text;
use crate::spec::{Spec, as_it_is};

/// Labels: ServiceImport, ExportedLabels, Optional.
#[tokio::test(flavor = "multi_thread")]
async fn c15_conflicting_exported_labels_and_annotations() {
    let exported = |value: &str| json!({"exportedLabels": {"dummy": value}, "exportedAnnotations": {"dummy": value}});
    let spec = Spec::two_with(as_it_is, exported("first"), as_it_is, exported("second")).await;
    spec.until_both_say("Conflict", "True").await;
    spec.until_each("the oldest's stand", |import| {
        ["labels", "annotations"].iter().all(|map| import["metadata"][map]["dummy"] == "first")
    })
    .await;
}

/// `name protocol port` of an import's ports, sorted.
fn ports(import: &Value) -> Vec<String> {
    let ports = import["spec"]["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<_> =
        ports.map(|port| format!("{} {} {}", text(&port["name"]), text(&port["protocol"]), port["port"])).collect();
    ports.sort();
    ports
}

/// Labels: ServiceImport, Required.
#[tokio::test(flavor = "multi_thread")]
async fn c22_the_union_of_ports_and_a_conflict_since_they_differ() {
    let spec = Spec::two(as_it_is, |service| {
        service["spec"]["ports"] = json!([{"name": "tcp", "port": 42, "protocol": "TCP"},
                                          {"name": "stcp", "port": 142, "protocol": "SCTP"}]);
    })
    .await;
    spec.until_each("it has all ports", |import| ports(import) == ["stcp SCTP 142", "tcp TCP 42", "udp UDP 42"]).await;
    spec.until_both_say("Conflict", "True").await;
}

/// Labels: ServiceImport, Required.
#[tokio::test(flavor = "multi_thread")]
async fn c23_conflicting_ports_are_the_oldests() {
    let tcp = |port: u16| {
        move |service: &mut Value| service["spec"]["ports"] = json!([{"name": "tcp", "port": port, "protocol": "TCP"}])
    };
    let spec = Spec::two(tcp(42), tcp(43)).await;
    spec.until_both_say("Conflict", "True").await;
    spec.until_each("the oldest's port stands", |import| ports(import) == ["tcp TCP 42"]).await;
}

/// Labels: ServiceImport, Required.
#[tokio::test(flavor = "multi_thread")]
async fn c27_a_conflict_of_types_is_the_oldests() {
    let spec = Spec::two(as_it_is, |service| {
        service["spec"] = json!({"clusterIP": "None", "selector": {"app": "hello"},
                                 "ipFamilyPolicy": "PreferDualStack", "ports": service["spec"]["ports"]});
    })
    .await;
    spec.until_both_say("Conflict", "True").await;
    spec.until_each("the oldest's type stands", |import| import["spec"]["type"] == "ClusterSetIP").await;
}
