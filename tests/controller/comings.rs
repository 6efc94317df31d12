//! Members and exporters that come and go.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testbed::Cluster;

use crate::beds::{rough, rough_three};
use crate::clusterset::objects::exported;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, Folder, PATIENCE, Place, Story, until};

/// A client's view: from the first to the last exporter, the import is the same, has its address, and endpoints.
async fn uninterrupted(place: &Place, over: &AtomicBool) -> usize {
    let first = place.until_ready("web").await;
    until("there are endpoints", PATIENCE, async || {
        if place.addresses("web").await.is_empty() { Err("none".to_owned()) } else { Ok(()) }
    })
    .await;
    let mut looks = 0;
    while !over.load(Ordering::Relaxed) {
        let now = place.import("web").await.expect("the import is there all the time");
        assert_eq!(now["metadata"]["uid"], first["metadata"]["uid"], "the import is the same all the time");
        assert_eq!(now["spec"]["ips"], first["spec"]["ips"], "its address is the same all the time");
        assert!(!place.addresses("web").await.is_empty(), "there are endpoints all the time");
        looks += 1;
    }
    looks
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_w52_r7_r18_five_exporters_come_and_go_and_nobody_is_interrupted() {
    let set = rough().await;
    let _controller = Controller::start(&set.bed, set.as_members()).await;
    let story = Story::new(&set, "week").await;
    let names: Vec<_> = set.clusters.iter().map(Cluster::name).collect();
    let address = |i: usize| format!("10.{}.0.1", i + 1);
    let over = AtomicBool::new(false);
    let week = async {
        let mut present: Vec<usize> = Vec::new();
        // Monday to Friday: one after the other, and each goes when the next two have come.
        for day in 0..6 {
            if day < 5 {
                story.at(day).apply(&exported("web", &[&address(day)])).await;
                present.push(day);
            }
            if day >= 2 {
                story.at(day - 2).delete("serviceexports", "web").await;
                present.retain(|other| *other != day - 2);
            }
            let addresses: Vec<_> = present.iter().map(|i| address(*i)).collect();
            story.until_addresses("web", &addresses.iter().map(String::as_str).collect::<Vec<_>>()).await;
            let exporters: Vec<_> = present.iter().map(|i| names[*i]).collect();
            for place in &story.places {
                until("who exports is told everywhere", PATIENCE, async || {
                    let mut found = place.exporters("web").await;
                    // Those of one second are in the order of their names, and these are.
                    found.sort();
                    if found == exporters { Ok(()) } else { Err(format!("{found:?}")) }
                })
                .await;
            }
        }
        over.store(true, Ordering::Relaxed);
    };
    let last = story.at(4);
    let ((), looks) = tokio::join!(week, uninterrupted(last, &over));
    assert!(looks > 5, "{looks}");
    story.at(4).delete("serviceexports", "web").await;
    story.until_gone("web").await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r3_w21_r83_clu_05_clu_08_a_member_joins_late_and_another_leaves_and_is_cleared() {
    let set = rough_three().await;
    let folder = Folder::new(&set, &[0, 1]);
    let controller = Controller::start(&set.bed, folder.args()).await;
    let story = Story::new(&set, "late").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    c3.apply(&exported("web", &["10.3.0.1"])).await;
    for place in [c1, c2] {
        place.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    }
    assert_eq!(c3.parts("web").await, (false, false, 0), "who is no member gets nothing");

    folder.put("c3", &set.kubeconfigs[2]);
    let all = ["10.1.0.1", "10.2.0.1", "10.3.0.1"];
    for place in [c1, c2, c3] {
        place.until_addresses("web", &all).await;
        place.until_ready("web").await;
    }

    // A foreign object beside ours, to see that it stays.
    let labels = json!({"multicluster.kubernetes.io/service-name": "theirs"});
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-theirs", "labels": labels},
                        "spec": {"ports": [{"port": 80}]}});
    c2.apply_values(vec![theirs]).await;
    folder.remove("c2");
    for place in [c1, c3] {
        place.until_addresses("web", &["10.1.0.1", "10.3.0.1"]).await;
        place.until_exporters("web", &["c1", "c3"]).await;
    }
    c2.until_gone("web").await;
    assert!(c2.get("services", "derived-theirs").await.is_some() && c2.get("services", "web").await.is_some());
    assert!(c2.get("serviceexports", "web").await.is_some(), "what users made stays");
    drop(controller);
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r83_registrations_that_are_all_gone_at_once_clear_nobody() {
    let set = rough_three().await;
    let folder = Folder::new(&set, &[0, 1]);
    let controller = Controller::start(&set.bed, folder.args()).await;
    let story = Story::new(&set, "emptied").await;
    let [c1, c2, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    for place in [c1, c2] {
        place.until_addresses("web", &["10.1.0.1"]).await;
        place.until_ready("web").await;
    }
    let before = c2.import("web").await.unwrap();
    folder.remove("c1");
    folder.remove("c2");
    let members = async || {
        let text = controller.metrics().await;
        let left = text.lines().filter(|line| line.starts_with("namesake_controller_cluster_up{")).count();
        if left == 0 { Ok(()) } else { Err(text) }
    };
    until("both are out of the set", PATIENCE, members).await;
    assert_eq!(
        c2.import("web").await.map(|import| import["metadata"]["uid"].clone()),
        Some(before["metadata"]["uid"].clone())
    );
    assert_eq!(
        (c1.parts("web").await, c2.parts("web").await),
        ((true, true, 1), (true, true, 1)),
        "nothing is deleted"
    );

    for at in 0..2 {
        folder.put(set.clusters[at].name(), &set.kubeconfigs[at]);
    }
    c1.apply(&exported("web", &["10.1.0.2"])).await;
    c2.until_addresses("web", &["10.1.0.2"]).await;
    let after = c2.import("web").await.expect("the import");
    assert_eq!(
        (&after["metadata"]["uid"], &after["spec"]["ips"]),
        (&before["metadata"]["uid"], &before["spec"]["ips"])
    );
    drop(controller);
    story.remove().await;
}

/// A token that ends when its Secret does.
async fn secret_token(cluster: &Cluster, name: &str) -> String {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                        "metadata": {"name": name, "namespace": ACCOUNT.0,
                                     "annotations": {"kubernetes.io/service-account.name": ACCOUNT.1}}});
    cluster.apply_values(vec![secret]).await.unwrap();
    let path = format!("/api/v1/namespaces/{}/secrets/{name}", ACCOUNT.0);
    until("the token is made", PATIENCE, async || {
        let secret = cluster.request("GET", &path, None).await.unwrap();
        let token: Option<k8s_openapi::ByteString> = serde_json::from_value(secret["data"]["token"].clone()).ok();
        token.map(|token| String::from_utf8(token.0).unwrap()).ok_or_else(|| secret.to_string())
    })
    .await
}

/// A kubeconfig like another one, with another token.
fn with_token(set: &Clusterset, like: &Path, token: &str) -> PathBuf {
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(like).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": token});
    set.bed.file(&format!("rotated-{}.kubeconfig", set.bed.port().unwrap()), &config.to_string()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_clu_07_credentials_are_rotated_and_nothing_is_lost() {
    let set = rough_three().await;
    let folder = Folder::new(&set, &[0, 1]);
    let old = secret_token(&set.clusters[0], "old").await;
    folder.put("c1", &with_token(&set, &set.kubeconfigs[0], &old));
    let _controller = Controller::start(&set.bed, folder.args()).await;
    let story = Story::new(&set, "rotated").await;
    let [c1, c2, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.until_addresses("web", &["10.1.0.1"]).await;
    c1.until_export_says("web", "Ready", "True/Exported").await;
    let before = c2.until_ready("web").await;

    // The new one comes in time, and the old one is taken away.
    let new = secret_token(&set.clusters[0], "new").await;
    folder.put("c1", &with_token(&set, &set.kubeconfigs[0], &new));
    c1.delete_in(ACCOUNT.0, "secrets", "old").await;
    c1.apply(&exported("web", &["10.1.0.2"])).await;
    c2.until_addresses("web", &["10.1.0.2"]).await;
    // Too late: it is refused for a while, and works again as soon as the file is there.
    let newest = secret_token(&set.clusters[0], "newest").await;
    c1.delete_in(ACCOUNT.0, "secrets", "new").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    folder.put("c1", &with_token(&set, &set.kubeconfigs[0], &newest));
    c1.apply(&exported("web", &["10.1.0.3"])).await;
    c2.until_addresses("web", &["10.1.0.3"]).await;
    c1.until_addresses("web", &["10.1.0.3"]).await;
    let after = c2.import("web").await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "the import was not written"
    );
    story.remove().await;
}
