//! A Service that is missing, comes, and becomes another (R10, R11, R20, R52, R80).

use serde_json::{Value, json};

use crate::beds::calm;
use crate::clusterset::objects::{endpoints, export, exported, service, web};
use crate::clusterset::{PATIENCE, Story, until};

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r11_r20_r80_w7_a_service_comes_late_and_is_retyped_and_back() {
    let story = Story::new(&calm().await.set, "retype").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    let until_type = async |wanted: &str| {
        until(&format!("the import is {wanted}"), PATIENCE, async || {
            let import = b.until_ready("web").await;
            if import["spec"]["type"] == wanted { Ok(import) } else { Err(import["spec"].to_string()) }
        })
        .await
    };
    a.apply(&export("web")).await;
    a.until_export_says("web", "Valid", "False/NoService").await;
    a.until_export_says("web", "Ready", "False/Pending").await;
    a.until_export_says("web", "Conflict", "none").await;
    let message = a.message("serviceexports", "web", "Valid").await;
    assert_eq!(message, format!("Service {}/web does not exist in cluster \"cluster-a\".", a.namespace));
    assert_eq!(b.parts("web").await, (false, false, 0));

    a.apply(&(web("web") + &endpoints("web", &["10.1.0.1"]))).await;
    let import = until_type("ClusterSetIP").await;
    assert_eq!(import["spec"]["ips"].as_array().unwrap().len(), 1);
    a.until_export_says("web", "Valid", "True/Valid").await;
    a.until_export_says("web", "Conflict", "False/NoConflicts").await;
    story.until_addresses("web", &["10.1.0.1"]).await;
    let uid = import["metadata"]["uid"].clone();

    // A Service's address can't be taken away: its user deletes it and makes a headless one.
    a.delete("services", "web").await;
    a.apply(&service("web", "clusterIP: None, ports: [{name: http, port: 80, targetPort: 8080}]")).await;
    let import = until_type("Headless").await;
    assert!(import["spec"].get("ips").is_none_or(|ips| ips == &json!([])), "{import}");
    until("the derived Service is headless", PATIENCE, async || {
        let derived = b.derived("web").await.unwrap_or_default();
        if derived["spec"]["clusterIP"] == "None" { Ok(()) } else { Err(derived["spec"].to_string()) }
    })
    .await;
    story.until_addresses("web", &["10.1.0.1"]).await;
    until("its slices are headless", PATIENCE, async || {
        let slices = b.slices("web").await;
        let headless = |slice: &Value| slice["metadata"]["labels"]["service.kubernetes.io/headless"] == "";
        if slices.iter().all(headless) { Ok(()) } else { Err(format!("{slices:#?}")) }
    })
    .await;

    // From headless to ExternalName by a change of the same object.
    let external = json!({"type": "ExternalName", "externalName": "web.example.com", "clusterIP": null,
                          "clusterIPs": null, "ipFamilies": null, "ipFamilyPolicy": null,
                          "internalTrafficPolicy": null});
    a.patch("services", "web", json!({"spec": external})).await;
    a.until_export_says("web", "Valid", "False/InvalidServiceType").await;
    a.until_export_says("web", "Conflict", "none").await;
    story.until_gone("web").await;

    a.patch("services", "web", json!({"spec": {"type": "ClusterIP", "externalName": null}})).await;
    let import = until_type("ClusterSetIP").await;
    assert_ne!(import["metadata"]["uid"], uid);
    story.until_addresses("web", &["10.1.0.1"]).await;

    a.delete("services", "web").await;
    a.until_export_says("web", "Valid", "False/NoService").await;
    story.until_gone("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r52_r57_what_people_do_to_derived_objects_is_undone_and_the_address_stays() {
    let story = Story::new(&calm().await.set, "drift").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    let import = b.until_ready("web").await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    let restored = async |what: &str, is: &dyn Fn(&Value) -> bool| {
        until(what, PATIENCE, async || {
            let derived = b.derived("web").await.unwrap_or_default();
            if is(&derived) { Ok(()) } else { Err(derived.to_string()) }
        })
        .await;
    };
    let same_ip = |derived: &Value| derived["spec"]["clusterIPs"] == import["spec"]["ips"];

    // The derived Service is deleted: it comes back with the same address.
    let derived = b.derived_name("web");
    let uid = b.derived("web").await.unwrap()["metadata"]["uid"].clone();
    b.delete("services", &derived).await;
    restored("it is back", &|derived| derived["metadata"]["uid"] != uid && same_ip(derived)).await;
    // The slice is deleted or changed, the import loses its ports, the Service gets a selector.
    let slice = format!("{derived}-cluster-a");
    b.delete("endpointslices", &slice).await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    b.patch("endpointslices", &slice, json!({"endpoints": [{"addresses": ["192.0.2.1"]}]})).await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    b.patch("services", &derived, json!({"spec": {"selector": {"app": "evil"}}})).await;
    restored("its selector is gone", &|derived| derived["spec"]["selector"].is_null() && same_ip(derived)).await;
    b.patch("serviceimports", "web", json!({"spec": {"ports": [{"port": 1, "name": "evil", "protocol": "TCP"}]}}))
        .await;
    until("the import is as it was", PATIENCE, async || {
        let now = b.import("web").await.unwrap_or_default();
        if now["spec"] == import["spec"] { Ok(()) } else { Err(now["spec"].to_string()) }
    })
    .await;
    // The import is deleted by hand: all of it is back, at the same address as far as it is free.
    b.delete("serviceimports", "web").await;
    until("a new import", PATIENCE, async || {
        let now = b.until_ready("web").await;
        if now["metadata"]["uid"] != import["metadata"]["uid"] { Ok(()) } else { Err("the old one".into()) }
    })
    .await;
    b.until_addresses("web", &["10.1.0.1"]).await;
}
