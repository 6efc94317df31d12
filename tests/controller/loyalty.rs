//! The explainer's story (request 002): `loyalty-accrual` in two clusters, called in a third.

use serde_json::json;

use crate::beds::calm;
use crate::clusterset::Story;
use crate::clusterset::objects::{export, service, slice};

const NAME: &str = "loyalty-accrual";

fn exported(port: u16, address: &str) -> String {
    service(NAME, &format!("ports: [{{name: grpc, port: {port}, targetPort: 8443}}]"))
        + &slice(NAME, "1", "IPv4", "{name: grpc, protocol: TCP, port: 8443}", &[address])
        + &export(NAME)
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_w53_w56_r35_r40_loyalty_from_two_clusters_and_a_conflict_that_comes_and_goes() {
    let story = Story::named(&calm().await.set, "loyalty");
    for place in &story.places {
        place.create_namespace().await;
    }
    let [a, b, c] = &story.places[..] else { panic!() };
    a.apply(&exported(9443, "10.1.0.1")).await;
    story.until_imported([0, 1, 2], NAME).await;
    // The oldest is known then, whatever the clock's resolution.
    b.apply(&exported(9443, "10.2.0.1")).await;
    c.until_exporters(NAME, &["cluster-a", "cluster-b"]).await;
    story.until_addresses(NAME, &["10.1.0.1", "10.2.0.1"]).await;
    let import = c.until_ready(NAME).await;
    assert_eq!(import["metadata"]["annotations"]["multicluster.kubernetes.io/derived-service"], "derived-kcbq6mqli9");
    assert_eq!(import["spec"]["ports"], json!([{"name": "grpc", "protocol": "TCP", "port": 9443}]));
    let names: Vec<_> = c.slices(NAME).await.iter().map(|s| s["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["derived-kcbq6mqli9-cluster-a", "derived-kcbq6mqli9-cluster-b"]);
    for place in [a, b] {
        place.until_export_says(NAME, "Conflict", "False/NoConflicts").await;
        place.until_export_says(NAME, "Ready", "True/Exported").await;
    }
    // One import, however many export (R6, W5), and none is the consumer's own.
    assert_eq!(c.list("serviceimports", "").await.len(), 1);
    assert!(c.get("serviceexports", NAME).await.is_none());

    // Another port in b: both are told, the older one's stands, and b's pod leaves the port that it does not expose.
    b.patch("services", NAME, json!({"spec": {"ports": [{"name": "grpc", "port": 9444, "targetPort": 8443}]}})).await;
    for place in [a, b] {
        place.until_export_says(NAME, "Conflict", "True/PortConflict").await;
        let message = place.message("serviceexports", NAME, "Conflict").await;
        for word in ["grpc", "\"cluster-a\"", "1/2"] {
            assert!(message.contains(word), "{word}: {message}");
        }
    }
    story.until_addresses(NAME, &["10.1.0.1"]).await;
    let during = c.import(NAME).await.unwrap();
    assert_eq!(during["spec"]["ports"], import["spec"]["ports"]);
    assert_eq!(c.exporters(NAME).await, ["cluster-a", "cluster-b"]);

    // A second reason joins the first (R35).
    b.patch("services", NAME, json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
    for place in [a, b] {
        place
            .until_says(
                "serviceexports",
                NAME,
                "Conflict",
                "True/PortConflict,SessionAffinityConflict,SessionAffinityConfigConflict",
            )
            .await;
    }

    b.patch("services", NAME, json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}})).await;
    b.patch("services", NAME, json!({"spec": {"ports": [{"name": "grpc", "port": 9443, "targetPort": 8443}]}})).await;
    for place in [a, b] {
        place.until_export_says(NAME, "Conflict", "False/NoConflicts").await;
    }
    story.until_addresses(NAME, &["10.1.0.1", "10.2.0.1"]).await;
    let after = c.import(NAME).await.unwrap();
    assert_eq!(after["spec"], import["spec"], "its clients have noticed nothing");

    // The oldest leaves: the other one goes on, at the same address (R7, R18, R52).
    a.delete("serviceexports", NAME).await;
    story.until_addresses(NAME, &["10.2.0.1"]).await;
    c.until_exporters(NAME, &["cluster-b"]).await;
    assert_eq!(c.import(NAME).await.unwrap()["spec"]["ips"], import["spec"]["ips"]);
    b.delete("serviceexports", NAME).await;
    story.until_gone(NAME).await;
}
