//! Headless services, both families, and many pods.

use serde_json::{Value, json};

use crate::beds::calm;
use crate::clusterset::kubelet::run_pods;
use crate::clusterset::objects::{export, service, slice, web};
use crate::clusterset::place::text;
use crate::clusterset::{ACCOUNT, PATIENCE, Place, Story, until};
use crate::told::until_event;

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r51_r56_r63_r67_w20_a_headless_stateful_set_keeps_its_hostnames() {
    let story = Story::new(&calm().await.set, "headless").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&service("db", "clusterIP: None, selector: {app: db}, ports: [{name: pg, port: 5432}]")).await;
    let template =
        json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "pg", "image": "pg"}]}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
                     "spec": {"serviceName": "db", "replicas": 2, "podManagementPolicy": "Parallel",
                              "selector": {"matchLabels": {"app": "db"}}, "template": template}});
    a.apply_values(vec![set]).await;
    let addresses = run_pods(a, "app=db", 2).await;
    a.apply(&export("db")).await;
    let import = b.until_ready("db").await;
    assert_eq!(import["spec"]["type"], "Headless");
    assert!(import["spec"].get("ips").is_none_or(|ips| ips == &json!([])), "{import}");
    assert_eq!(import["spec"]["ipFamilies"], json!(["IPv4"]));
    story.until_addresses("db", &addresses.iter().map(String::as_str).collect::<Vec<_>>()).await;

    let slices = b.slices("db").await;
    assert_eq!(slices.len(), 1, "{slices:#?}");
    let mut hosts: Vec<_> = slices[0]["endpoints"].as_array().unwrap().iter().map(|e| text(&e["hostname"])).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["db-0", "db-1"]);
    assert_eq!(slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    let remote = slices[0]["endpoints"].as_array().unwrap();
    assert!(remote.iter().all(|e| e["nodeName"].is_null() && e["targetRef"].is_null()), "{slices:#?}");
    let own = a.slices("db").await;
    assert!(own[0]["endpoints"].as_array().unwrap().iter().all(|e| text(&e["targetRef"]["name"]).starts_with("db-")));
    let derived = b.derived("db").await.unwrap();
    assert_eq!(derived["spec"]["clusterIP"], "None");
    // Where the cluster has both families, the derived Service keeps to the service's.
    let both = story.at(2).derived("db").await.unwrap();
    assert_eq!(both["spec"]["ipFamilies"], json!(["IPv4"]), "{both}");
}

fn families(import: &Value) -> Vec<&str> {
    import["spec"]["ipFamilies"].as_array().into_iter().flatten().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r47_r48_r49_r50_r62_both_families_as_far_as_each_cluster_has_them() {
    let story = Story::new(&calm().await.set, "families").await;
    let [a, _, c] = &story.places[..] else { panic!() };
    let port = "{name: http, protocol: TCP, port: 8080}";
    let ports = "ports: [{name: http, port: 80, targetPort: 8080}]";
    let slices = slice("web", "v4", "IPv4", port, &["10.3.0.1"]) + &slice("web", "v6", "IPv6", port, &["fd00:3::1"]);
    c.apply(
        &(service("web", &format!("ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4], {ports}"))
            + &slices
            + &export("web")),
    )
    .await;
    c.until_addresses("web", &["10.3.0.1", "fd00:3::1"]).await;
    let import = c.until_ready("web").await;
    assert_eq!(families(&import), ["IPv6", "IPv4"]);
    let ips: Vec<_> = import["spec"]["ips"].as_array().unwrap().iter().map(|ip| text(ip).contains(':')).collect();
    assert_eq!(ips, [true, false], "an address for each, in the same order: {import}");
    assert_eq!(c.slices("web").await.len(), 2);
    // A cluster of one family has its part of it.
    let import = a.until_ready("web").await;
    assert_eq!(families(&import), ["IPv4"]);
    assert_eq!(import["spec"]["ips"].as_array().unwrap().len(), 1);
    a.until_addresses("web", &["10.3.0.1"]).await;

    // IPv6 alone is nothing for them, and they say so (W44).
    let alone = format!("ipFamilyPolicy: SingleStack, ipFamilies: [IPv6], {ports}");
    c.apply(&(service("six", &alone) + &slice("six", "v6", "IPv6", port, &["fd00:3::6"]) + &export("six"))).await;
    c.until_ready("six").await;
    a.until_says("serviceimports", "six", "Ready", "False/IPFamilyNotSupported").await;
    assert!(a.derived("six").await.is_none() && a.slices("six").await.is_empty());
    c.until_export_says("six", "Ready", "True/Exported").await;
    let message = c.message("serviceexports", "six", "Ready").await;
    assert!(message.contains("Not usable for want of its IP families: cluster-a, cluster-b."), "{message}");
}

/// The writes of the controller in a place since `earlier`, in short.
fn writes(place: &Place, earlier: &testbed::Audit) -> Vec<String> {
    let audit = place.cluster.audit().unwrap().since(earlier).service_account(ACCOUNT.0, ACCOUNT.1).writes();
    let here = audit.only(|entry| entry.namespace == place.namespace);
    here.entries.iter().map(|e| format!("{} {} {} {}", e.verb, e.resource, e.name, e.subresource)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r62_w4_w25_250_pods_in_slices_of_100_and_one_change_is_one_write_an_importer() {
    let story = Story::new(&calm().await.set, "many").await;
    let [a, b, c] = &story.places[..] else { panic!() };
    let addresses: Vec<_> = (0..250).map(|i| format!("10.1.{}.{}", i / 200, i % 200 + 1)).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let port = "{name: http, protocol: TCP, port: 8080}";
    let parts = addresses.chunks(100).enumerate();
    let slices: String = parts.map(|(i, part)| slice("web", &i.to_string(), "IPv4", port, part)).collect();
    a.apply(&(web("web") + &slices + &export("web"))).await;
    story.until_addresses("web", &addresses).await;
    a.until_export_says("web", "Ready", "True/Exported").await;
    // An export may say so before the imports do, and its event is written after that.
    story.until_imported([0, 1, 2], "web").await;
    until_event(a, "ServiceExport", "web", "Normal Exported: ").await;
    let sizes = async |place: &Place| -> Vec<(String, usize)> {
        let slices = place.slices("web").await;
        slices
            .iter()
            .map(|s| (text(&s["metadata"]["name"]).to_owned(), s["endpoints"].as_array().unwrap().len()))
            .collect()
    };
    let found = sizes(b).await;
    let mut counts: Vec<_> = found.iter().map(|(_, count)| *count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [50, 100, 100], "{found:?}");
    assert!(found.iter().any(|(name, _)| *name == format!("{}-cluster-a", b.derived_name("web"))), "{found:?}");

    // One pod goes.
    let before: Vec<_> = story.places.iter().map(|place| place.cluster.audit().unwrap()).collect();
    let left: Vec<_> = addresses.iter().filter(|a| **a != "10.1.0.150").copied().collect();
    a.apply(&slice("web", "1", "IPv4", port, &left[100..199])).await;
    story.until_addresses("web", &left).await;
    // What else it might write would be written by now: its next change is.
    c.create_namespace().await;
    let changed = ["10.1.0.150"];
    a.apply(&slice("web", "1", "IPv4", port, &[&left[100..199], &changed].concat())).await;
    story.until_addresses("web", &addresses).await;
    for (place, before) in story.places.iter().zip(&before) {
        until(&format!("{}: the log shows two writes", place.id()), PATIENCE, async || {
            let writes = writes(place, before);
            let slices = writes.iter().filter(|w| w.starts_with("patch endpointslices")).count();
            if writes.len() == 2 && slices == 2 { Ok(()) } else { Err(format!("{writes:?}")) }
        })
        .await;
    }
    assert_eq!(sizes(b).await, found, "each endpoint stays where it was");
}
