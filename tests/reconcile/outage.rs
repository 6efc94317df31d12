//! Clusters that can't be reached (controller.md R84, DESIGN.md 6).

use crate::set::*;
use namesake::model::ImportKind;
use namesake::reconcile::Settings;
use namesake::reconcile::observed::Reach;
use namesake::reconcile::settings::Unreachable;

fn two(settings: Settings) -> Set {
    let mut set = Set::with(settings, ["a", "b", "c"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    set
}

fn unreachable(change: impl Fn(&mut Unreachable)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings.unreachable);
    settings
}

#[test]
fn mcs_r84_endpoints_of_an_unreachable_cluster_go_after_the_ttl_and_come_back_at_once() {
    let mut set = two(Settings::default());
    set.cut("a");
    set.wait(299);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    set.wait(1);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
    assert_eq!(set.clusters("c", "shop/web"), ["a", "b"], "it exports the service all the same");
    set.reach("a", Reach::Live);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
}

#[test]
fn mcs_r84_an_outage_does_not_change_the_service() {
    let mut set = two(Settings::default());
    set.service("a", "shop/web", headless(["http 80", "old 1"]));
    set.run();
    let before = set.imported("c", "shop/web").spec.clone();
    let conflict = set.message("b", "shop/web", "Conflict").to_owned();
    set.cut("a");
    for _ in 0..4 {
        set.wait(200);
        set.run();
        assert_eq!(set.imported("c", "shop/web").spec, before);
        assert_eq!(set.message("b", "shop/web", "Conflict"), conflict);
    }
    // Nor does a restart in the middle of it, when nothing of a is known but what it left in the imports.
    set.restart(["a"]);
    for _ in 0..4 {
        set.run();
        assert_eq!(set.imported("c", "shop/web").spec, before);
        assert_eq!(set.clusters("c", "shop/web"), ["a", "b"]);
        assert_eq!(set.message("b", "shop/web", "Conflict"), conflict);
        set.wait(200);
    }
    // What the others change goes on.
    set.service("b", "shop/web", cluster_ip(["http 80", "new 2"]));
    set.run();
    let spec = &set.imported("c", "shop/web").spec;
    assert_eq!(spec.kind, ImportKind::Headless);
    assert_eq!(spec.ports, ports(["http 80", "old 1", "new 2"]));
}

#[test]
fn mcs_r84_the_last_endpoints_stay_unless_told_otherwise() {
    for keep in [true, false] {
        let mut set = two(unreachable(|u| u.keep_last_endpoints = keep));
        set.cut("a");
        set.source("b", "shop/web", "abc", ["http 8080"], vec![]);
        set.wait(301);
        set.run();
        let left: &[&str] = if keep { &["10.1.0.1"] } else { &[] };
        assert_eq!(set.addresses("c", "shop/web"), left);
        // As soon as there are others, they go.
        set.source("b", "shop/web", "abc", ["http 8080"], endpoints(["10.2.0.9"]));
        set.run();
        assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.9"]);
    }
}

#[test]
fn mcs_r84_unready_endpoints_are_no_substitute() {
    let mut set = two(Settings::default());
    let mut unready = endpoint("10.2.0.1");
    (unready.ready, unready.serving) = (false, false);
    set.source("b", "shop/web", "abc", ["http 8080"], vec![unready]);
    set.cut("a");
    set.wait(301);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
}

#[test]
fn mcs_r84_the_policy_keep_keeps() {
    let mut set = two(unreachable(|u| u.remove = false));
    set.cut("a");
    set.wait(100_000);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    set.restart(["a"]);
    set.wait(100_000);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    // Also where nobody else exports it any more.
    set.unexport("b", "shop/web");
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1"]);
    assert_eq!(set.clusters("c", "shop/web"), ["a"]);
}

#[test]
fn mcs_r84_after_a_restart_the_ttl_and_the_guard_hold_as_before() {
    let mut set = two(Settings::default());
    set.restart(["a"]);
    set.wait(299);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    set.wait(1);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
    assert_eq!(set.clusters("c", "shop/web"), ["a", "b"]);
    // The last ones: b withdraws while a is still silent. Its endpoints are gone already, so nothing is kept for it.
    set.unexport("b", "shop/web");
    set.run();
    assert!(set.import("c", "shop/web").is_none());

    let mut set = two(Settings::default());
    set.restart(["a"]);
    set.unexport("b", "shop/web");
    set.wait(100_000);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1"], "a's endpoints are the last");
    assert_eq!(set.clusters("c", "shop/web"), ["a"]);
}

#[test]
fn mcs_r84_a_dead_member_holds_up_nobody_elses_changes() {
    let mut set = two(Settings::default());
    set.exported("b", "shop/other", 0, ["10.2.0.7"]);
    set.run();
    set.cut("a");
    set.wait(10_000);
    set.run();
    set.unexport("b", "shop/other");
    set.exported("c", "shop/new", 0, ["10.3.0.1"]);
    set.run();
    for cluster in ["b", "c"] {
        assert!(set.import(cluster, "shop/other").is_none());
        assert_eq!(set.import_says(cluster, "shop/new"), "True/Ready");
    }
    assert_eq!(set.message("c", "shop/new", "Ready"), "The service has been exported to 2 clusters. Unreachable: a.");
}

#[test]
fn mcs_r84_a_blip_writes_nothing() {
    let mut set = two(Settings::default());
    for _ in 0..50 {
        set.cut("a");
        set.wait(20);
        assert_eq!(set.run(), []);
        set.reach("a", Reach::Live);
        set.wait(1);
        assert_eq!(set.run(), []);
    }
}

#[test]
fn mcs_r84_a_late_importer_gets_the_last_known_endpoints() {
    let mut set = two(Settings::default());
    set.cut("a");
    set.wait(60);
    set.join("d");
    set.run();
    assert_eq!(set.addresses("d", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
}
