//! The list and watch against a scripted API server: chapter 6 of the cases, and the lifecycle rows of `dns.md`.

#[path = "support/applied.rs"]
mod applied;
#[path = "support/following.rs"]
mod following;
#[path = "support/scripted.rs"]
mod scripted;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use applied::Applied;
use axum::http::StatusCode;
use following::Following;
use namesake::model::Resource;
use namesake::source::{Trouble, WatchPhase};
use scripted::{Crd, Prank, Scripted};
use serde_json::json;
use tempfile::TempDir;

/// A source on a scripted server, with the kubeconfig it uses.
struct Watching {
    following: Following,
    folder: TempDir,
}

impl Watching {
    async fn of(port: u16, watch_seconds: u64) -> Self {
        let folder = TempDir::new().unwrap();
        write_kubeconfig(&folder, port, "first");
        let following = Following::with(&folder.path().join("kubeconfig"), watch_seconds).await;
        Self { following, folder }
    }

    async fn start(server: &Scripted) -> Self {
        Self::of(server.port, 50).await
    }

    /// Follows a server until both lists are in and both watches run.
    async fn live(server: &Scripted) -> Self {
        let mut watching = Self::start(server).await;
        watching.until(Applied::synced).await;
        watching.until_live().await;
        watching
    }
}

impl Deref for Watching {
    type Target = Following;

    fn deref(&self) -> &Following {
        &self.following
    }
}

impl DerefMut for Watching {
    fn deref_mut(&mut self) -> &mut Following {
        &mut self.following
    }
}

fn write_kubeconfig(folder: &TempDir, port: u16, token: &str) {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    });
    // Replaced in one step, as whoever renews it should.
    let fresh = folder.path().join("fresh");
    std::fs::write(&fresh, text.to_string()).unwrap();
    std::fs::rename(fresh, folder.path().join("kubeconfig")).unwrap();
}

#[tokio::test]
async fn lists_and_then_follows_both_resources() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    server.slice("web-east", "web", "10.0.0.1");
    let mut following = Watching::live(&server).await;
    assert_eq!((following.applied.imports(), following.applied.slices()), (vec!["shop/web"], vec!["shop/web-east"]));
    server.import("db", "10.1.0.2");
    server.slice("web-east", "web", "10.0.0.9");
    following.until(|a| a.imports() == ["shop/db", "shop/web"] && a.addresses("shop/web-east") == ["10.0.0.9"]).await;
    server.delete("endpointslices", "web-east");
    server.delete("serviceimports", "web");
    following.until(|a| a.imports() == ["shop/db"] && a.slices().is_empty()).await;
    for resource in Resource::ALL {
        assert_eq!((following.applied.begun(resource), following.applied.ended(resource)), (1, 1));
    }
    let slices = server.queries("list", "endpointslices");
    assert!(slices[0].contains("labelSelector=multicluster.kubernetes.io%2Fservice-name"), "{slices:?}");
    assert!(server.queries("watch", "endpointslices")[0].contains("labelSelector="));
    following.cancel.cancel();
    following.following.task.await.unwrap();
}

#[tokio::test]
async fn every_request_is_observed() {
    let server = Scripted::start().await;
    server.change(|s| s.forbidden = vec![("list", Resource::Slices)]);
    let mut following = Watching::start(&server).await;
    following.until_trouble(Resource::Slices, "forbidden").await;
    following.poll("imports are live", |f| f.phase(Resource::Imports) == WatchPhase::Live).await;
    let heard = following.heard.0.lock().unwrap().clone();
    let host = format!("127.0.0.1:{}", server.port);
    for (code, verb) in [("200", "get"), ("200", "list"), ("200", "watch"), ("403", "list")] {
        let right = ("GET".to_owned(), host.clone(), code.to_owned(), verb.to_owned());
        assert!(heard.contains(&right), "{right:?} in {heard:?}");
    }
}

#[tokio::test]
async fn dns_l10_wch_01_what_was_deleted_during_an_outage_is_gone_after_it() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    server.import("old", "10.1.0.2");
    server.slice("web-east", "web", "10.0.0.1");
    server.slice("web-west", "web", "10.0.0.2");
    let mut following = Watching::live(&server).await;
    server.change(|s| s.down = true);
    following.until_trouble(Resource::Imports, "unreachable").await;
    following.until_trouble(Resource::Slices, "unreachable").await;
    // L9: the last data stays.
    assert_eq!(following.applied.imports(), ["shop/old", "shop/web"]);
    server.lose("serviceimports", "old");
    server.lose("endpointslices", "web-west");
    server.change(|s| {
        s.pranks.insert("serviceimports", vec![Prank::GoneStatus]);
        s.pranks.insert("endpointslices", vec![Prank::GoneEvent]);
        s.down = false;
    });
    let back = Instant::now();
    following.until(|a| a.imports() == ["shop/web"] && a.slices() == ["shop/web-east"]).await;
    following.until_live().await;
    // The pause is 1 s at most, and the lists themselves are nothing here.
    assert!(back.elapsed() < Duration::from_millis(1500), "{:?}", back.elapsed());
}

#[tokio::test]
async fn an_api_server_that_is_not_there_yet_is_waited_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut following = Watching::of(address.port(), 50).await;
    let trouble = following.until_trouble(Resource::Imports, "unreachable").await;
    assert!(trouble.to_string().contains("refused"), "{trouble}");
    assert!(!following.health.synced());
    let server = Scripted::on(tokio::net::TcpListener::bind(address).await.unwrap());
    server.import("web", "10.1.0.1");
    following.until(|a| a.synced() && a.imports() == ["shop/web"]).await;
    following.until_live().await;
}

#[tokio::test]
async fn wch_02_a_watch_that_falls_silent_is_left_and_the_next_brings_what_was_missed() {
    let server = Scripted::start().await;
    server.change(|s| drop(s.pranks.insert("serviceimports", vec![Prank::Silent])));
    // Watches of a second, so silence ends 5 s after it.
    let mut following = Watching::of(server.port, 1).await;
    following.until(Applied::synced).await;
    following.poll("the silent watch began", |_| server.count("watch", "serviceimports") == 1).await;
    server.import("web", "10.1.0.1");
    let since = Instant::now();
    following.until(|a| a.imports() == ["shop/web"]).await;
    assert!(since.elapsed() > Duration::from_secs(4), "the silent watch was not silent");
    assert_eq!(server.count("list", "serviceimports"), 1);
}

#[tokio::test]
async fn dns_l11_wch_03_410_in_both_forms_leads_to_one_list_at_once() {
    for prank in [Prank::GoneStatus, Prank::GoneEvent] {
        let server = Scripted::start().await;
        server.import("web", "10.1.0.1");
        server.change(|s| drop(s.pranks.insert("serviceimports", vec![prank])));
        let mut following = Watching::start(&server).await;
        following.until(|a| a.ended(Resource::Imports) == 2).await;
        following.until_live().await;
        server.import("db", "10.1.0.2");
        following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
        assert_eq!(server.count("list", "serviceimports"), 2, "{prank:?}");
        assert_eq!(server.count("list", "endpointslices"), 1, "{prank:?}");
    }
}

#[tokio::test]
async fn wch_03_410_for_ever_is_no_hot_loop_and_keeps_what_is_served() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    server.change(|s| drop(s.pranks.insert("serviceimports", vec![Prank::GoneStatus; 1000])));
    let mut following = Watching::start(&server).await;
    following.until(Applied::synced).await;
    following.pass(Duration::from_secs(3)).await;
    let lists = server.count("list", "serviceimports");
    assert!((3..=12).contains(&lists), "{lists} lists in 3 s");
    assert_eq!(following.applied.imports(), ["shop/web"]);
    server.change(|s| s.pranks.clear());
    server.import("db", "10.1.0.2");
    following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
}

#[tokio::test]
async fn an_error_event_of_another_kind_leads_to_a_list_too() {
    let server = Scripted::start().await;
    server.change(|s| drop(s.pranks.insert("endpointslices", vec![Prank::ErrorEvent])));
    let mut following = Watching::start(&server).await;
    following.until(|a| a.ended(Resource::Slices) == 2).await;
    following.until_live().await;
    assert_eq!(following.health.status(Resource::Slices).errors(), 1);
}

#[tokio::test]
async fn watches_that_end_at_once_are_no_hot_loop() {
    let server = Scripted::start().await;
    server.change(|s| drop(s.pranks.insert("endpointslices", vec![Prank::EndsAtOnce; 1000])));
    let mut following = Watching::start(&server).await;
    following.until(Applied::synced).await;
    following.pass(Duration::from_secs(3)).await;
    let watches = server.count("watch", "endpointslices");
    assert!((3..=12).contains(&watches), "{watches} watches in 3 s");
    assert_eq!(server.count("list", "endpointslices"), 1);
}

#[tokio::test]
async fn wch_04_all_pages_are_in_before_the_list_is_complete() {
    let server = Scripted::start().await;
    for i in 0..1201 {
        server.import(&format!("s{i:04}"), "10.1.0.1");
    }
    let mut following = Watching::start(&server).await;
    following.until(|a| a.ended(Resource::Imports) == 1).await;
    assert_eq!(following.applied.imports().len(), 1201);
    assert_eq!(server.count("list", "serviceimports"), 3);
}

#[tokio::test]
async fn wch_04_an_expired_page_token_starts_the_list_again() {
    for (expiring, lists) in [(1, 2 + 3), (2, 2 + 2 + 1)] {
        let server = Scripted::start().await;
        for i in 0..1201 {
            server.import(&format!("s{i:04}"), "10.1.0.1");
        }
        server.change(|s| s.expiring = expiring);
        let mut following = Watching::start(&server).await;
        following.until(|a| a.ended(Resource::Imports) == 1).await;
        assert_eq!(following.applied.imports().len(), 1201);
        assert_eq!(following.applied.begun(Resource::Imports), expiring + 1);
        // After the second time in one piece, as clients of Kubernetes do.
        assert_eq!(server.count("list", "serviceimports"), lists);
    }
}

#[tokio::test]
async fn wch_05_a_renewed_token_is_taken_up_without_a_restart() {
    let server = Scripted::start().await;
    server.change(|s| s.token = Some("first".to_owned()));
    server.import("web", "10.1.0.1");
    let mut following = Watching::of(server.port, 1).await;
    following.until(Applied::synced).await;
    following.until_live().await;
    server.change(|s| s.token = Some("second".to_owned()));
    let trouble = following.until_trouble(Resource::Imports, "unauthorized").await;
    assert!(trouble.to_string().contains("credentials"), "{trouble}");
    // Half a kubeconfig, as one that is being written, spoils nothing.
    std::fs::write(following.folder.path().join("kubeconfig"), "apiVersion: v1\nclus").unwrap();
    following.pass(Duration::from_millis(1500)).await;
    assert_eq!(following.applied.imports(), ["shop/web"]);
    write_kubeconfig(&following.folder, server.port, "second");
    following.until_live().await;
    server.import("db", "10.1.0.2");
    following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
    let refused = following.heard.0.lock().unwrap().iter().filter(|(_, _, code, _)| code == "401").count();
    assert!(refused < 40, "{refused} refused requests");
}

#[tokio::test]
async fn a_kubeconfig_that_leads_elsewhere_is_followed_with_a_new_list() {
    let (old, new) = (Scripted::start().await, Scripted::start().await);
    old.import("old", "10.1.0.1");
    new.import("new", "10.1.0.2");
    let mut following = Watching::of(old.port, 1).await;
    following.until(|a| a.synced() && a.imports() == ["shop/old"]).await;
    write_kubeconfig(&following.folder, new.port, "first");
    following.until(|a| a.imports() == ["shop/new"]).await;
    following.until_live().await;
    assert_eq!(new.count("list", "serviceimports"), 1);
}

#[tokio::test]
async fn wch_06_a_discovery_that_fails_says_nothing_about_the_crd() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    for code in [503, 500, 429] {
        server.change(|s| s.discovery = StatusCode::from_u16(code).unwrap());
        let mut following = Watching::start(&server).await;
        let trouble = following.until_trouble(Resource::Imports, "unreachable").await;
        assert!(trouble.to_string().contains(&code.to_string()), "{trouble}");
        assert_eq!(following.applied.ended(Resource::Imports), 0);
        server.change(|s| s.discovery = StatusCode::OK);
        following.until(|a| a.synced() && a.imports() == ["shop/web"]).await;
    }
}

#[tokio::test]
async fn dns_l7_wch_06_wch_07_a_missing_crd_is_named_and_taken_up_when_it_appears() {
    for (crd, version) in
        [(Crd::Only("v1alpha1"), "v1alpha1"), (Crd::Only("v1beta1"), "v1beta1"), (Crd::Both, "v1beta1")]
    {
        let server = Scripted::start().await;
        server.change(|s| s.crd = Crd::Missing);
        let mut following = Watching::start(&server).await;
        let trouble = following.until_trouble(Resource::Imports, "crd_missing").await;
        assert_eq!(trouble, Trouble::CrdMissing { crd: "serviceimports.multicluster.x-k8s.io" });
        // The other resource goes on alone, and nothing counts as synced.
        following.until(|a| a.ended(Resource::Slices) == 1).await;
        assert_eq!(following.applied.begun(Resource::Imports), 0);
        server.import("web", "10.1.0.1");
        server.change(|s| s.crd = crd);
        following.until(|a| a.synced() && a.imports() == ["shop/web"]).await;
        following.until_live().await;
        let lists = server.queries("list", "serviceimports");
        assert!(lists.len() == 1 && lists[0].contains(&format!("/{version}/")), "{crd:?}: {lists:?}");
    }
}

#[tokio::test]
async fn a_missing_crd_is_asked_for_ever_more_seldom() {
    let server = Scripted::start().await;
    server.change(|s| s.crd = Crd::Missing);
    let mut following = Watching::start(&server).await;
    following.pass(Duration::from_secs(4)).await;
    // Two versions a time; pauses of 100, 200, 400, 800, 1600 ms and so on, less jitter.
    let asked = server.count("get", "discovery");
    assert!((6..=18).contains(&asked), "{asked}");
    assert_eq!(server.count("list", "serviceimports"), 0);
}

#[tokio::test]
async fn dns_l8_wch_09_a_missing_permission_is_named_and_taken_up_when_granted() {
    for (verb, resource, plural) in [
        ("list", Resource::Imports, "serviceimports.multicluster.x-k8s.io"),
        ("watch", Resource::Imports, "serviceimports.multicluster.x-k8s.io"),
        ("list", Resource::Slices, "endpointslices.discovery.k8s.io"),
        ("watch", Resource::Slices, "endpointslices.discovery.k8s.io"),
    ] {
        let server = Scripted::start().await;
        server.import("web", "10.1.0.1");
        server.slice("web-east", "web", "10.0.0.1");
        server.change(|s| s.forbidden = vec![(verb, resource)]);
        let mut following = Watching::start(&server).await;
        match following.until_trouble(resource, "forbidden").await {
            Trouble::Forbidden { verb: named, resource: full, message } => {
                assert_eq!((named, full.as_str()), (verb, plural));
                assert!(message.contains("cannot"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        // A list that came in before the watch was refused does not make it live.
        following.pass(Duration::from_millis(500)).await;
        assert!(matches!(following.phase(resource), WatchPhase::Down(_)), "{:?}", following.health);
        let asked = following.heard.0.lock().unwrap().iter().filter(|(_, _, code, _)| code == "403").count();
        assert!(asked <= 8, "{asked} refused requests in about 0.6 s");
        server.change(|s| s.forbidden.clear());
        following.until_live().await;
        following.until(|a| a.synced() && a.imports() == ["shop/web"] && a.slices() == ["shop/web-east"]).await;
    }
}

#[tokio::test]
async fn dns_l17_a_crd_deleted_while_serving_empties_nothing_and_is_taken_up_again() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    server.import("db", "10.1.0.2");
    let mut following = Watching::live(&server).await;
    server.delete_crd();
    let trouble = following.until_trouble(Resource::Imports, "crd_missing").await;
    assert!(trouble.to_string().contains("serviceimports.multicluster.x-k8s.io"), "{trouble}");
    assert_eq!(following.applied.imports(), ["shop/db", "shop/web"]);
    server.change(|s| s.crd = Crd::Missing);
    following.pass(Duration::from_millis(800)).await;
    assert_eq!(following.applied.imports(), ["shop/db", "shop/web"]);
    assert!(following.health.status(Resource::Imports).quiet_for.unwrap() > Duration::from_millis(700));
    // Back, with one of the two: mark and sweep.
    server.import("web", "10.1.0.7");
    server.change(|s| s.crd = Crd::Both);
    following.until(|a| a.imports() == ["shop/web"] && a.ips("shop/web") == ["10.1.0.7"]).await;
    following.until_live().await;
}

#[tokio::test]
async fn dns_l17_a_list_of_a_crd_that_is_going_is_not_swept_by() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    let mut following = Watching::live(&server).await;
    // The watch breaks, and the objects are gone before the next list.
    server.change(|s| s.down = true);
    following.until_trouble(Resource::Imports, "unreachable").await;
    server.delete_crd();
    server.change(|s| {
        s.pranks.insert("serviceimports", vec![Prank::GoneStatus]);
        s.down = false;
    });
    following.until_trouble(Resource::Imports, "crd_missing").await;
    following.pass(Duration::from_millis(500)).await;
    assert_eq!(following.applied.imports(), ["shop/web"]);
}

#[tokio::test]
async fn deletes_wait_while_discovery_fails_and_pass_when_it_answers() {
    let server = Scripted::start().await;
    for i in 0..50 {
        server.import(&format!("s{i}"), "10.1.0.1");
    }
    let mut following = Watching::live(&server).await;
    let asked = server.count("get", "discovery");
    server.change(|s| s.discovery = StatusCode::SERVICE_UNAVAILABLE);
    for i in 0..49 {
        server.delete("serviceimports", &format!("s{i}"));
    }
    server.import("s49", "10.1.0.9");
    server.import("s7", "10.1.0.7");
    // Changes pass the deletes by, and an import that is there again is not deleted.
    following.until(|a| a.ips("shop/s49") == ["10.1.0.9"] && a.ips("shop/s7") == ["10.1.0.7"]).await;
    following.pass(Duration::from_millis(400)).await;
    assert_eq!(following.applied.imports().len(), 50);
    assert_eq!(following.phase(Resource::Imports), WatchPhase::Live);
    server.change(|s| s.discovery = StatusCode::OK);
    following.until(|a| a.imports() == ["shop/s49", "shop/s7"]).await;
    let asked = server.count("get", "discovery") - asked;
    assert!(asked <= 8, "{asked} requests for a burst of deletes");
}

#[tokio::test]
async fn a_version_that_is_no_longer_served_is_left_for_one_that_is() {
    let server = Scripted::start().await;
    server.change(|s| s.crd = Crd::Only("v1alpha1"));
    server.import("web", "10.1.0.1");
    let mut following = Watching::live(&server).await;
    // As when a CRD is replaced: its watches are cut.
    server.change(|s| s.down = true);
    server.change(|s| {
        s.crd = Crd::Only("v1beta1");
        s.down = false;
    });
    server.import("db", "10.1.0.2");
    following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
    following.until_live().await;
}

#[tokio::test]
async fn the_preferred_version_is_taken_up_when_the_crd_gets_it() {
    let server = Scripted::start().await;
    server.change(|s| s.crd = Crd::Only("v1alpha1"));
    server.import("web", "10.1.0.1");
    let mut following = Watching::live(&server).await;
    following.poll("the watch runs", |_| server.count("watch", "serviceimports") == 1).await;
    // The API server ends the watches of a CRD that is changed.
    server.change(|s| {
        s.crd = Crd::Both;
        s.cut += 1;
    });
    following.until(|a| a.ended(Resource::Imports) == 2).await;
    following.until_live().await;
    let lists = server.queries("list", "serviceimports");
    assert!(lists[0].contains("/v1alpha1/") && lists[1].contains("/v1beta1/"), "{lists:?}");
    assert_eq!(following.health.status(Resource::Imports).errors(), 0, "a cut watch alone is no trouble");
}

#[tokio::test]
async fn one_object_that_does_not_decode_hides_no_other() {
    let server = Scripted::start().await;
    server.import("a", "10.1.0.1");
    server.put("serviceimports", "b", json!({"spec": {"type": 7}}));
    server.put("serviceimports", "c", json!({"spec": null}));
    server.import("z", "10.1.0.2");
    let mut following = Watching::live(&server).await;
    assert_eq!(following.applied.imports(), ["shop/a", "shop/c", "shop/z"]);
    assert_eq!(following.applied.unreadable(), ["shop/b"]);
    // The same through the watch: what was readable stays.
    server.put("serviceimports", "a", json!({"spec": {"ips": "oops"}}));
    server.import("y", "10.1.0.3");
    following.until(|a| a.imports() == ["shop/a", "shop/c", "shop/y", "shop/z"]).await;
    assert_eq!(following.applied.ips("shop/a"), ["10.1.0.1"]);
    assert_eq!(following.applied.unreadable(), ["shop/a", "shop/b"]);
}

#[tokio::test]
async fn bookmarks_keep_a_quiet_watch_fresh_and_move_it_on() {
    let server = Scripted::start().await;
    server.change(|s| s.bookmarks = Duration::from_millis(200));
    let mut following = Watching::of(server.port, 2).await;
    following.until(Applied::synced).await;
    // Others write: the version moves on, without an event for the imports.
    for i in 0..5 {
        server.slice(&format!("s{i}"), "web", "10.0.0.1");
    }
    following.pass(Duration::from_millis(1000)).await;
    assert!(following.health.staleness() < Duration::from_millis(700), "{:?}", following.health.staleness());
    following.poll("a second watch", |_| server.count("watch", "serviceimports") >= 2).await;
    let versions = server.queries("watch", "serviceimports");
    assert!(versions[1].contains("resourceVersion=105"), "{versions:?}");
    assert_eq!(server.count("list", "serviceimports"), 1);
}

#[tokio::test]
async fn a_closed_feed_ends_the_source() {
    let server = Scripted::start().await;
    let following = Watching::start(&server).await;
    let following = following.following;
    drop(following.applied);
    tokio::time::timeout(Duration::from_secs(10), following.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_import_whose_name_is_no_label_is_forgotten_when_it_is_deleted() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    server.import("a.b", "10.1.0.2");
    let mut following = Watching::live(&server).await;
    assert_eq!(following.applied.unreadable(), ["shop/a.b"]);
    server.delete("serviceimports", "a.b");
    following.until(|a| a.unreadable().is_empty()).await;
    assert_eq!(following.applied.imports(), ["shop/web"]);
}

/// Hears of requests, and panics at some.
struct Panics(std::sync::atomic::AtomicUsize);

impl namesake::source::kube::Observer for Panics {
    fn request(&self, _: &str, _: &str, _: &str, _: f64, verb: &str) {
        if verb == "watch" {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(number >= 2, "as this test wants");
        }
    }
}

#[tokio::test]
async fn case_wch_10_a_watch_that_panics_is_named_and_started_again_with_a_list() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    let folder = TempDir::new().unwrap();
    write_kubeconfig(&folder, server.port, "first");
    let observer = std::sync::Arc::new(Panics(0.into()));
    let mut following = Following::observed(&folder.path().join("kubeconfig"), 50, observer).await;
    // Both watches panic once, as soon as they begin.
    for resource in Resource::ALL {
        let trouble = following.until_trouble(resource, "unreachable").await;
        assert!(trouble.to_string().contains("panicked"), "{trouble}");
    }
    server.import("db", "10.1.0.2");
    following.until_live().await;
    following.until(|a| a.imports() == ["shop/db", "shop/web"] && a.ended(Resource::Imports) == 2).await;
    server.import("new", "10.1.0.3");
    following.until(|a| a.imports() == ["shop/db", "shop/new", "shop/web"]).await;
}

#[tokio::test]
async fn case_scl_01_slices_come_in_pages_that_are_small_beside_what_is_kept() {
    let server = Scripted::start().await;
    for n in 0..250 {
        server.slice(&format!("s{n}"), "web", "10.0.0.1");
    }
    let following = Watching::live(&server).await;
    assert_eq!(following.applied.slices().len(), 250);
    let pages = server.queries("list", "endpointslices");
    assert_eq!(pages.len(), 3, "{pages:?}");
}
