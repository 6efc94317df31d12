//! What is not ours is never touched (R8, R12, R76, R94).

use std::time::Duration;

use serde_json::{Value, json};

use crate::beds::calm;
use crate::clusterset::objects::{export, exported};
use crate::clusterset::place::condition;
use crate::clusterset::running::stays;
use crate::clusterset::{PATIENCE, Story, until};

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_a_foreign_import_stays_as_it_is_and_the_export_says_so() {
    let story = Story::new(&calm().await.set, "foreign").await;
    let [a, b, c] = &story.places[..] else { panic!() };
    let spec = json!({"type": "ClusterSetIP", "ips": ["192.0.2.9"], "ports": [{"port": 1}]});
    let theirs = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
                        "metadata": {"name": "web", "labels": {"app.kubernetes.io/managed-by": "somebody"}}, "spec": spec});
    b.apply_values(vec![theirs.clone()]).await;
    let before = b.import("web").await.unwrap();
    a.apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 2], "web").await;
    c.until_addresses("web", &["10.1.0.1"]).await;
    a.until_export_says("web", "Ready", "False/Failed").await;
    let message = a.message("serviceexports", "web", "Ready").await;
    assert!(message.contains("cluster-b: ServiceImport web exists and is not managed by namesake"), "{message}");
    assert_eq!(version(&b.import("web").await.unwrap()), version(&before));
    assert!(b.derived("web").await.is_none() && b.slices("web").await.is_empty());

    // They take it away, and the service is imported.
    b.delete("serviceimports", "web").await;
    b.until_ready("web").await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    a.until_export_says("web", "Ready", "True/Exported").await;

    // Somebody takes our import over: from then on it is theirs, also when the last export goes (R94).
    b.patch("serviceimports", "web", json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}}))
        .await;
    a.until_export_says("web", "Ready", "False/Failed").await;
    a.delete("serviceexports", "web").await;
    c.until_gone("web").await;
    stays("their import is there", Duration::from_secs(2), async || {
        b.import("web").await.map(drop).ok_or_else(|| "it is gone".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_foreign_objects_of_our_names_are_left_alone() {
    let story = Story::new(&calm().await.set, "taken").await;
    let [a, b, c] = &story.places[..] else { panic!() };
    let derived = b.derived_name("web");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": derived},
                         "spec": {"ports": [{"port": 1}]}});
    // Somebody else's mirrored slices, of the same service and of a name that we would take.
    let labels = json!({"multicluster.kubernetes.io/service-name": "web",
                        "multicluster.kubernetes.io/source-cluster": "cluster-a",
                        "endpointslice.kubernetes.io/managed-by": "somebody"});
    let slice = |name: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
               "metadata": {"name": name, "labels": labels}, "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": []})
    };
    b.apply_values(vec![service, slice("theirs")]).await;
    c.apply_values(vec![slice(&format!("{derived}-cluster-a"))]).await;
    let service_before = b.derived("web").await.unwrap();
    let slices_before = (b.slices("web").await, c.slices("web").await);

    a.apply(&exported("web", &["10.1.0.1"])).await;
    a.until_ready("web").await;
    b.until_says("serviceimports", "web", "Ready", "False/Pending").await;
    let told = format!("Service {derived} exists and is not managed by namesake: rename or delete it.");
    until("who looks at the import is told why", PATIENCE, async || {
        let message = b.message("serviceimports", "web", "Ready").await;
        if message == told { Ok(()) } else { Err(message) }
    })
    .await;
    // In c another name is found for the slice.
    c.until_ready("web").await;
    c.until_addresses("web", &["10.1.0.1", "192.0.2.1"]).await;
    a.delete("serviceexports", "web").await;
    until("ours are gone", PATIENCE, async || {
        let left = (b.import("web").await, c.import("web").await, a.parts("web").await, c.slices("web").await.len());
        if left == (None, None, (false, false, 0), 1) { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    assert_eq!(version(&b.derived("web").await.unwrap()), version(&service_before));
    assert_eq!((b.slices("web").await, c.slices("web").await), slices_before);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r12_what_is_imported_is_not_exported_again() {
    let story = Story::new(&calm().await.set, "loop").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    let derived = b.derived_name("web");
    b.apply(&export(&derived)).await;
    b.until_export_says(&derived, "Valid", "False/ImportedService").await;
    for place in &story.places {
        assert!(place.import(&derived).await.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r76_conditions_of_others_stay() {
    let story = Story::new(&calm().await.set, "conditions").await;
    let a = story.at(0);
    let acme = json!({"type": "acme.example.com/Audited", "status": "True", "reason": "Seen", "message": "",
                      "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let theirs = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
                        "metadata": {"name": "web"}, "status": {"conditions": [acme]}});
    a.apply_values(vec![theirs]).await;
    a.until_export_says("web", "Valid", "False/NoService").await;
    a.apply(&exported("web", &["10.1.0.1"]).replace(&export("web"), "")).await;
    a.until_export_says("web", "Ready", "True/Exported").await;
    let export = a.get("serviceexports", "web").await.unwrap();
    assert_eq!(condition(&export, "acme.example.com/Audited"), Some(&acme), "{export}");
    assert_eq!(export["status"]["conditions"].as_array().unwrap().len(), 4);
}
