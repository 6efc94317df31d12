//! Two exporters that agree, or don't: the older one's word stands, and both are told.

use serde_json::{Value, json};

use crate::clusterset::place::text;
use crate::stage::{Stage, as_it_is, headless};

pub async fn c15_conflicting_exported_labels_and_annotations_are_the_oldests(stage: &Stage) {
    let exported = |number: &str| {
        json!({"exportedLabels": {format!("dummy-label{number}"): "true"},
               "exportedAnnotations": {format!("dummy-annotation{number}"): "true"}})
    };
    stage.two_with(as_it_is, exported(""), as_it_is, exported("2")).await;
    stage.until_both_say("Conflict", "True").await;
    stage
        .until_each("the oldest's stand", |import| {
            let (labels, annotations) = (&import["metadata"]["labels"], &import["metadata"]["annotations"]);
            let has = labels["dummy-label"] == "true" && annotations["dummy-annotation"] == "true";
            has && labels["dummy-label2"].is_null() && annotations["dummy-annotation2"].is_null()
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

pub async fn c22_union_of_ports_and_a_conflict_since_they_differ(stage: &Stage) {
    stage
        .two(as_it_is, |service| {
            service["spec"]["ports"] = json!([{"name": "tcp", "port": 42, "protocol": "TCP"},
                                          {"name": "stcp", "port": 142, "protocol": "SCTP"}]);
        })
        .await;
    stage.until_each("it has all ports", |import| ports(import) == ["stcp SCTP 142", "tcp TCP 42", "udp UDP 42"]).await;
    stage.until_both_say("Conflict", "True").await;
}

pub async fn c23_conflicting_ports_are_the_oldests(stage: &Stage) {
    let tcp_43 = json!([{"name": "tcp", "port": 43, "protocol": "TCP"}]);
    stage.two(as_it_is, |service| service["spec"]["ports"] = tcp_43).await;
    stage.until_both_say("Conflict", "True").await;
    stage.until_each("the oldest's ports stand", |import| ports(import) == ["tcp TCP 42", "udp UDP 42"]).await;
}

pub async fn c27_conflict_of_types_is_the_oldests(stage: &Stage) {
    stage.two(as_it_is, headless).await;
    stage.until_both_say("Conflict", "True").await;
    stage.until_each("the oldest's type stands", |import| import["spec"]["type"] == "ClusterSetIP").await;
}
