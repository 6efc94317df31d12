//! The list and watch against a scripted API server: chapter 6 of the cases, and the lifecycle rows of `dns.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod access;
#[path = "../support/applied.rs"]
mod applied;
mod crd;
#[path = "../support/following.rs"]
mod following;
#[path = "../support/form.rs"]
mod form;
mod media;
mod outages;
#[path = "../support/scripted.rs"]
mod scripted;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use applied::Applied;
use axum::http::StatusCode;
use following::Following;
use namesake::model::Resource;
use namesake::source::{QUEUE, Trouble, WatchPhase};
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
    let host = format!("127.0.0.1:{}", server.port);
    for (code, verb) in [("200", "get"), ("200", "list"), ("200", "watch"), ("403", "list")] {
        let right = ("GET".to_owned(), host.clone(), code.to_owned(), verb.to_owned());
        following.poll(&format!("{right:?} is heard"), |f| f.heard.0.lock().unwrap().contains(&right)).await;
    }
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
    let mut following = Watching::live(&server).await;
    following
        .poll("both watches run", |_| {
            server.count("watch", "serviceimports") == 1 && server.count("watch", "endpointslices") == 1
        })
        .await;
    // Others write: the version moves on, without an event for the imports.
    for i in 0..5 {
        server.slice(&format!("s{i}"), "web", "10.0.0.1");
    }
    // The first two may be the answer that began the watch, and a bookmark of before. Then only a new one is left.
    for _ in 0..3 {
        let since = Instant::now();
        following
            .poll("a proof younger than that", |f| {
                let age = since.elapsed();
                f.health.staleness() < age
            })
            .await;
    }
    assert_eq!(server.count("watch", "serviceimports"), 1);
    server.change(|s| s.cut += 1);
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

#[tokio::test]
async fn case_scl_01_slices_come_in_pages_that_are_small_beside_what_is_kept() {
    let server = Scripted::start().await;
    for n in 0..250 {
        server.slice(&format!("s{n}"), "web", "10.0.0.1");
    }
    let following = Watching::live(&server).await;
    assert_eq!(following.applied.slices().len(), 250);
    let pages = server.queries("list", "endpointslices");
    assert_eq!(pages.len(), 5, "{pages:?}");
}

/// The server makes the next page while this one is taken in: seen where nobody takes anything any more.
#[tokio::test]
async fn case_scl_01_the_next_page_is_on_its_way_while_one_is_taken_in() {
    let (pages, page) = (18, 250);
    let all = pages * page;
    assert!((QUEUE / page) + 2 == pages, "the last page but one is the first that does not fit into the queue");
    let server = Scripted::start().await;
    for n in 0..all {
        server.import(&format!("s{n:04}"), "10.1.0.1");
    }
    let mut following = Watching::start(&server).await;
    let end = Instant::now() + Duration::from_secs(20);
    while server.count("list", "serviceimports") < pages {
        assert!(Instant::now() < end, "{} pages were asked for", server.count("list", "serviceimports"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    following.until(Applied::synced).await;
    assert_eq!(following.applied.imports().len(), all);
}
