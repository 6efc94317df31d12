//! Whether the API server has what we ask for, and lets us have it: CRDs that come, go and change, and permissions.

use super::*;

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
    following.poll("the watch runs", |_| server.count("watch", "serviceimports") == 1).await;
    // As when a CRD is replaced: its watches are cut.
    server.change(|s| {
        s.crd = Crd::Only("v1beta1");
        s.cut += 1;
    });
    server.import("db", "10.1.0.2");
    following.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
    following.until_live().await;
    let lists = server.queries("list", "serviceimports");
    assert!(lists[0].contains("/v1alpha1/") && lists[1].contains("/v1beta1/"), "{lists:?}");
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
