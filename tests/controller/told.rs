//! What people are told: events (R77) and fields that a cluster refuses (R34).

use serde_json::json;

use crate::beds::calm;
use crate::clusterset::objects::{endpoints, export, exported, service, web};
use crate::clusterset::{PATIENCE, Place, Story, until};

pub async fn until_event(place: &Place, kind: &str, name: &str, wanted: &str) {
    until(&format!("{}: event {wanted:?} of {kind} {name}", place.id()), PATIENCE, async || {
        let events = place.events(kind, name).await;
        if events.iter().any(|event| event.contains(wanted)) { Ok(()) } else { Err(format!("{events:#?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r77_w28_events_tell_each_turn_once() {
    let calm = calm().await;
    let story = Story::new(&calm.set, "events").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&export("web")).await;
    until_event(a, "ServiceExport", "web", "Warning NoService: ").await;
    a.apply(&(web("web") + &endpoints("web", &["10.1.0.1"]))).await;
    until_event(a, "ServiceExport", "web", "Normal Exported: ").await;
    b.apply(&exported("web", &["10.2.0.1"])).await;
    b.until_export_says("web", "Ready", "True/Exported").await;
    b.patch("services", "web", json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
    for place in [a, b] {
        until_event(place, "ServiceExport", "web", "Warning SessionAffinityConflict").await;
    }
    // Who looks at metrics sees it too.
    let conflicts = ["reason=\"SessionAffinityConflict\""];
    until("the conflict is counted", PATIENCE, async || {
        let found = calm.controller.metric("namesake_controller_conflicts", &conflicts).await;
        if found >= 1.0 { Ok(()) } else { Err(format!("{found}")) }
    })
    .await;
    b.patch("services", "web", json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}})).await;
    for place in [a, b] {
        until_event(place, "ServiceExport", "web", "Normal NoConflicts: ").await;
        let events = place.events("ServiceExport", "web").await;
        let conflicts = events.iter().filter(|event| event.contains("SessionAffinityConflict")).count();
        assert_eq!(conflicts, 1, "{events:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r33_r34_a_value_that_a_cluster_refuses_is_left_out_there_alone() {
    let story = Story::new(&calm().await.set, "refused").await;
    let [a, b, c] = &story.places[..] else { panic!() };
    let spec = "trafficDistribution: PreferSameNode, ports: [{name: http, port: 80, targetPort: 8080}]";
    a.apply(&(service("web", spec) + &endpoints("web", &["10.1.0.1"]) + &export("web"))).await;
    story.until_imported([0, 1, 2], "web").await;
    story.until_addresses("web", &["10.1.0.1"]).await;
    assert_eq!(c.derived("web").await.unwrap()["spec"]["trafficDistribution"], "PreferSameNode");
    assert!(b.derived("web").await.unwrap()["spec"]["trafficDistribution"].is_null());
    for place in &story.places {
        assert_eq!(place.import("web").await.unwrap()["spec"]["trafficDistribution"], "PreferSameNode");
    }
    let message = b.message("serviceimports", "web", "Ready").await;
    assert!(message.contains("refuses trafficDistribution \"PreferSameNode\""), "{message}");
    assert_eq!(c.message("serviceimports", "web", "Ready").await, "The service can be used.");
    until_event(b, "ServiceImport", "web", "trafficDistribution").await;
    // The user changes his mind, and it is forgotten.
    a.patch("services", "web", json!({"spec": {"trafficDistribution": "PreferClose"}})).await;
    until("b takes the new value", PATIENCE, async || {
        let derived = b.derived("web").await.unwrap_or_default();
        let message = b.message("serviceimports", "web", "Ready").await;
        let taken = derived["spec"]["trafficDistribution"] == "PreferClose" && message == "The service can be used.";
        if taken { Ok(()) } else { Err(format!("{message} {}", derived["spec"])) }
    })
    .await;
}
