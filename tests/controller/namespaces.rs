//! Namespaces that are missing, being deleted, deleted and made again (R4, R5).

use std::time::Duration;

use serde_json::json;

use crate::beds::calm;
use crate::clusterset::objects::exported;
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, PATIENCE, Place, Story, until};

/// A namespace that can't be deleted before [`release`].
async fn hold(place: &Place) {
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
                      "metadata": {"name": "held", "finalizers": ["test.example.com/held"]}});
    place.apply_values(vec![held]).await;
}

async fn release(place: &Place) {
    place.patch("configmaps", "held", json!({"metadata": {"finalizers": null}})).await;
}

async fn until_namespace(place: &Place, what: &str, phase: Option<&str>) {
    until(what, PATIENCE, async || {
        let found = place.send("GET", &format!("/api/v1/namespaces/{}", place.namespace), None).await.ok();
        let is = found.as_ref().and_then(|namespace| namespace["status"]["phase"].as_str());
        if is == phase { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r4_w30_a_missing_namespace_is_told_and_harms_nobody_and_imports_when_it_appears() {
    let story = Story::without_namespace(&calm().await.set, "missing");
    let [a, b, c] = &story.places[..] else { panic!() };
    for place in [a, b] {
        place.create_namespace().await;
    }
    a.apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1], "web").await;
    a.until_export_says("web", "Ready", "True/Exported").await;
    let told = "The service has been exported to 2 clusters. Not imported where the namespace is missing: cluster-c.";
    until("the exporter is told what is missing", PATIENCE, async || {
        let message = a.message("serviceexports", "web", "Ready").await;
        if message == told { Ok(()) } else { Err(message) }
    })
    .await;
    assert_eq!(c.parts("web").await, (false, false, 0));
    until_namespace(c, "nobody makes the namespace", None).await;
    c.create_namespace().await;
    c.until_ready("web").await;
    c.until_addresses("web", &["10.1.0.1"]).await;
    until("the exporter is told", PATIENCE, async || {
        let message = a.message("serviceexports", "web", "Ready").await;
        if message == "The service has been exported to 3 clusters." { Ok(()) } else { Err(message) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r5_a_terminating_namespace_is_left_alone_and_nothing_is_tried_hot() {
    let story = Story::new(&calm().await.set, "ending").await;
    let [a, _, c] = &story.places[..] else { panic!() };
    hold(c).await;
    a.apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1, 2], "web").await;
    c.delete_namespace().await;
    until_namespace(c, "the namespace is being deleted", Some("Terminating")).await;
    // Its objects are taken away by Kubernetes; ours would be made again if they could be.
    c.until_gone("web").await;
    until("the exporter is told", PATIENCE, async || {
        let message = a.message("serviceexports", "web", "Ready").await;
        let told = "Not imported where the namespace is being deleted: cluster-c.";
        if message.contains(told) { Ok(()) } else { Err(message) }
    })
    .await;
    let tried = || {
        let audit = c.cluster.audit().unwrap().service_account(ACCOUNT.0, ACCOUNT.1).writes();
        audit.only(|entry| entry.namespace == c.namespace && entry.code == 403).entries
    };
    let before = tried().len();
    // Changes in the exporter give reasons to write.
    for address in ["10.1.0.2", "10.1.0.3", "10.1.0.4"] {
        a.apply(&exported("web", &[address])).await;
        story.at(1).until_addresses("web", &[address]).await;
    }
    stays("nothing is tried", Duration::from_secs(3), async || {
        let tried = tried();
        if tried.len() <= before.max(4) { Ok(()) } else { Err(format!("{tried:#?}")) }
    })
    .await;
    // The namespace's end and its new beginning.
    release(c).await;
    until_namespace(c, "the namespace is gone", None).await;
    c.create_namespace().await;
    c.until_ready("web").await;
    c.until_addresses("web", &["10.1.0.4"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r4_r7_a_namespace_is_deleted_and_made_again_in_the_importer_and_in_the_exporter() {
    let story = Story::new(&calm().await.set, "again").await;
    let [a, b, c] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1, 2], "web").await;
    let there = b.import("web").await.unwrap();

    c.delete_namespace().await;
    until_namespace(c, "nothing of ours holds it up", None).await;
    c.create_namespace().await;
    c.until_ready("web").await;
    c.until_addresses("web", &["10.1.0.1"]).await;
    assert_eq!(b.import("web").await.unwrap()["metadata"]["uid"], there["metadata"]["uid"], "b has noticed nothing");

    a.delete_namespace().await;
    until_namespace(a, "nothing of ours holds it up", None).await;
    story.until_gone("web").await;
    a.create_namespace().await;
    a.apply(&exported("web", &["10.1.0.7"])).await;
    story.until_imported([0, 1, 2], "web").await;
    story.until_addresses("web", &["10.1.0.7"]).await;
}
