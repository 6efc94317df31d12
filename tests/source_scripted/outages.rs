//! What breaks between us and the API server, and what is right again after it.

use std::sync::Arc;

use namesake::source::kube::{Access, KubeSource, Observer};
use namesake::source::{Convert, Health, QUEUE};
use tokio_util::sync::CancellationToken;

use super::*;

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
    following.until(|a| a.imports() == ["shop/web"] && a.slices() == ["shop/web-east"]).await;
    following.until_live().await;
}

#[tokio::test]
async fn an_api_server_that_is_not_there_yet_is_waited_for() {
    // A port that nobody takes meanwhile.
    let bed = testbed::Bed::new().unwrap();
    let port = bed.port().unwrap();
    let mut following = Watching::of(port, 50).await;
    let trouble = following.until_trouble(Resource::Imports, "unreachable").await;
    assert!(trouble.to_string().contains("refused"), "{trouble}");
    assert!(!following.health.synced());
    let server = Scripted::on(tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap());
    server.import("web", "10.1.0.1");
    following.until(|a| a.synced() && a.imports() == ["shop/web"]).await;
    following.until_live().await;
}

#[tokio::test]
async fn wch_02_a_watch_that_falls_silent_is_left_and_the_next_brings_what_was_missed() {
    let server = Scripted::start().await;
    server.change(|s| drop(s.pranks.insert("serviceimports", vec![Prank::Silent])));
    // Watches of a second, so silence ends 5 s after it.
    let since = Instant::now();
    let mut following = Watching::of(server.port, 1).await;
    following.until(Applied::synced).await;
    following.poll("the silent watch began", |_| server.count("watch", "serviceimports") == 1).await;
    server.import("web", "10.1.0.1");
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
    for i in 0..601 {
        server.import(&format!("s{i:04}"), "10.1.0.1");
    }
    let mut following = Watching::start(&server).await;
    following.until(|a| a.ended(Resource::Imports) == 1).await;
    assert_eq!(following.applied.imports().len(), 601);
    assert_eq!(server.count("list", "serviceimports"), 3);
}

#[tokio::test]
async fn wch_04_an_expired_page_token_starts_the_list_again() {
    for (expiring, lists) in [(1, 2 + 3), (2, 2 + 2 + 1)] {
        let server = Scripted::start().await;
        for i in 0..601 {
            server.import(&format!("s{i:04}"), "10.1.0.1");
        }
        server.change(|s| s.expiring = expiring);
        let mut following = Watching::start(&server).await;
        following.until(|a| a.ended(Resource::Imports) == 1).await;
        assert_eq!(following.applied.imports().len(), 601);
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

/// Panics in the middle of a watch task, once.
struct PanicOnce(std::sync::atomic::AtomicBool);

impl Observer for PanicOnce {
    fn request(&self, _: &str, _: &str, _: &str, _: f64, verb: &str) {
        if verb == "watch" && !self.0.swap(true, std::sync::atomic::Ordering::SeqCst) {
            panic!("injected");
        }
    }
}

#[tokio::test]
async fn wch_10_a_watch_task_that_panics_is_named_and_started_again_with_a_list() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    let folder = TempDir::new().unwrap();
    write_kubeconfig(&folder, server.port, "first");
    let access = Access::Kubeconfig { file: folder.path().join("kubeconfig"), context: None };
    let source = KubeSource::new(access, Convert::default(), Arc::new(PanicOnce(false.into()))).await.unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
    let (health, mut applied) = (Arc::new(Health::new(false)), Applied::new(receiver));
    tokio::spawn(source.run(sender, health.clone(), CancellationToken::new()));
    applied.until(|a| a.ended(Resource::Imports) == 2).await;
    assert_eq!(health.status(Resource::Imports).errors(), 1);
    server.import("db", "10.1.0.2");
    applied.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
}
