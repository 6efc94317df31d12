//! What went wrong for users of such systems (`cases.md`), as far as it is a decision: deletion, clusters that come
//! and go, scale and security.

use crate::set::*;
use namesake::model::SliceKey;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Action, Importing};

use crate::cases::f3;

#[test]
fn case_del_02_the_users_export_is_never_deleted() {
    let mut set = f3();
    set.no_service("east", "shop/web");
    let changes = set.run();
    assert!(!changes.iter().any(|change| matches!(change.action, Action::DeleteExport(..))));
    assert_eq!(set.says("east", "shop/web", "Valid"), "False/NoService");
}

#[test]
fn case_del_03_no_sweep_before_every_list_is_complete() {
    let mut set = Set::new(["east", "west"]);
    for n in 0..200 {
        set.exported(if n % 2 == 0 { "east" } else { "west" }, &format!("shop/web-{n}"), n, ["10.1.0.1"]);
    }
    set.run();
    let full = set.sim.world.clone();
    set.restart(["west"]);
    set.exported("east", "shop/fresh", 500, ["10.1.0.1"]);
    let changes = set.run();
    assert!(changes.iter().all(|change| !verb(change).starts_with("delete")), "{:?}", verbs(&changes));
    assert!(set.import("east", "shop/fresh").is_some(), "and new ones are not held up");
    set.hear("west", &full);
    let changes = set.run();
    assert!(changes.iter().all(|change| !verb(change).starts_with("delete")), "{:?}", verbs(&changes));
    assert_eq!(set.import_says("west", "shop/fresh"), "True/Ready");
}

#[test]
fn case_del_04_a_cluster_that_shall_not_import_any_more_is_cleaned() {
    let mut set = f3();
    set.settings.import_namespaces.deny.push("shop".into());
    set.run();
    for cluster in ["east", "west", "north"] {
        assert!(set.import(cluster, "shop/web").is_none());
        assert!(set.derived(cluster, "shop/web").is_none() && set.mirrored(cluster, "shop/web").is_empty());
        assert!(set.local(cluster, "shop/web").is_none_or(|local| local.service.is_some()), "users' own stay");
    }
}

#[test]
fn case_del_05_foreign_objects_with_our_names_stay_and_the_rest_goes_on() {
    let mut set = Set::new(["east", "west", "north"]);
    let derived = format!("shop/{}", namesake::reconcile::naming::derived(&key("shop/web")));
    set.service("west", &derived, cluster_ip(["theirs 1"]));
    let before = set.derived("west", "shop/web").cloned();
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.exported("east", "shop/other", 0, ["10.1.0.2"]);
    set.run();
    assert_eq!(set.derived("west", "shop/web").cloned(), before);
    assert_eq!(set.import_says("north", "shop/web"), "True/Ready");
    assert_eq!(set.import_says("west", "shop/other"), "True/Ready");
    set.unexport("east", "shop/web");
    set.run();
    assert_eq!(set.derived("west", "shop/web").cloned(), before, "nor is it deleted");
}

#[test]
fn case_clu_01_a_dead_clusters_endpoints_go_after_the_ttl_but_never_the_last_ones_and_are_back_at_once() {
    let mut set = f3();
    for cluster in ["east", "west"] {
        set.service(cluster, "shop/web", headless(["http 80"]));
    }
    set.run();
    set.cut("east");
    // Whoever applies plans is told when to look again: first to name it, then to take its endpoints away.
    let (mut looks, start) = (Vec::new(), set.now);
    while let Some(again) = set.plan("shop/web").plan.again.filter(|_| looks.len() < 5) {
        set.now = again;
        set.run();
        looks.push(again.since(start).as_secs());
    }
    assert_eq!(looks, [30, 300]);
    assert_eq!(set.addresses("north", "shop/web"), ["10.2.0.1"]);
    set.reach("east", Reach::Live);
    let changes = set.run();
    assert_eq!(set.addresses("north", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    assert!(changes.iter().all(|change| !verb(change).starts_with("delete")), "{:?}", verbs(&changes));
    // Both die: what is left stays, whoever was first.
    set.cut("east");
    set.cut("west");
    set.wait(100_000);
    set.run();
    assert_eq!(set.addresses("north", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
}

#[test]
fn case_clu_02_both_answers_to_an_unreachable_cluster() {
    for remove in [true, false] {
        let mut set = f3();
        set.settings.unreachable.remove = remove;
        let spec = set.imported("north", "shop/web").spec.clone();
        set.cut("east");
        set.wait(10_000);
        set.run();
        assert_eq!(set.addresses("north", "shop/web").len(), if remove { 1 } else { 2 });
        assert_eq!(set.imported("north", "shop/web").spec, spec);
        assert!(set.message("west", "shop/web", "Ready").contains("Unreachable: east."));
    }
}

#[test]
fn case_clu_03_a_restart_while_one_cluster_is_unreachable() {
    let mut set = f3();
    set.restart(["east"]);
    set.exported("north", "shop/new", 0, ["10.3.0.1"]);
    let changes = set.run();
    assert!(changes.iter().all(|change| !verb(change).starts_with("delete")));
    assert_eq!(set.addresses("west", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    assert_eq!(set.import_says("west", "shop/new"), "True/Ready");
}

#[test]
fn case_clu_04_a_cluster_that_was_never_heard_blocks_nothing_new() {
    let mut set = Set::new(["east", "west"]);
    set.reach("dead", Reach::Unheard { since: Time(START) });
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
    assert_eq!(set.importing("dead", "shop/web"), Some(Importing::Pending), "it may still come");
    set.wait(31);
    set.run();
    assert_eq!(set.says("east", "shop/web", "Ready"), "True/Exported");
    assert_eq!(
        set.message("east", "shop/web", "Ready"),
        "The service has been exported to 2 clusters. Unreachable: dead."
    );
}

#[test]
fn case_clu_05_a_removed_cluster_is_one_that_left() {
    let mut set = f3();
    set.sim.world.remove_member(&id("east"));
    set.restart([]);
    set.run();
    assert_eq!(set.addresses("north", "shop/web"), ["10.2.0.1"]);
    assert_eq!(set.clusters("north", "shop/web"), ["west"]);
}

#[test]
fn case_clu_06_a_list_again_with_the_same_result_changes_nothing() {
    use namesake::reconcile::world::{Dirty, Kind};
    let mut set = f3();
    let east = id("east");
    let member = set.sim.world.members()[&east].clone();
    for kind in Kind::ALL {
        set.sim.world.begin_list(&east, kind);
    }
    for name in member.namespaces() {
        let told = set.sim.world.set_namespace(&east, name, member.namespace(name).cloned());
        assert_eq!(told, Dirty::Nothing);
    }
    for (key, local) in member.locals() {
        for slice in local.sources.keys().chain(local.mirrored.keys()) {
            let slice_key = SliceKey { namespace: key.namespace.clone(), name: slice.clone() };
            let found = local.sources.get(slice).or(local.mirrored.get(slice)).cloned();
            assert_eq!(set.sim.world.set_slice(&east, &slice_key, found), Dirty::Nothing);
        }
        let told = [
            set.sim.world.set_export(&east, key, local.export.clone()),
            set.sim.world.set_service(&east, key, local.service.clone()),
            set.sim.world.set_import(&east, key, local.import.clone()),
        ];
        assert!(told.iter().all(|told| *told == Dirty::Nothing), "{key}: {told:?}");
    }
    for kind in Kind::ALL {
        assert_eq!(set.sim.world.end_list(&east, kind), []);
    }
    assert_eq!(set.run(), []);
    // And what a list does not hold any more is gone.
    set.sim.world.begin_list(&east, Kind::Exports);
    assert_eq!(set.sim.world.end_list(&east, Kind::Exports), [Dirty::Services(vec![key("shop/web")])]);
    set.run();
    assert_eq!(set.clusters("north", "shop/web"), ["west"]);
}

#[test]
fn case_clu_08_a_late_joiner_gets_everything() {
    let mut set = Set::new(["east", "west"]);
    for n in 0..50 {
        set.exported("east", &format!("shop/web-{n}"), n, ["10.1.0.1"]);
    }
    set.exported("east", "default/web", 0, ["10.1.0.1"]);
    set.run();
    set.join_with("north", &[Family::V4]);
    set.namespace("north", "default");
    set.run();
    assert_eq!(set.import_says("north", "default/web"), "True/Ready");
    assert!(set.import("north", "shop/web-0").is_none());
    set.namespace("north", "shop");
    set.run();
    for n in 0..50 {
        assert_eq!(set.import_says("north", &format!("shop/web-{n}")), "True/Ready");
    }
}

#[test]
fn case_clu_09_a_missing_namespace_concerns_its_own_services_alone() {
    let mut set = f3();
    set.namespace("east", "only-east");
    set.exported("east", "only-east/app", 0, ["10.1.0.5"]);
    set.run();
    assert!(set.import("west", "only-east/app").is_none());
    assert!(set.import("east", "only-east/app").is_some());
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
    assert!(set.message("east", "only-east/app", "Ready").contains("namespace is missing: north, west."));
    set.namespace("west", "only-east");
    set.run();
    assert_eq!(set.import_says("west", "only-east/app"), "True/Ready");
}

#[test]
fn case_clu_10_the_hub_was_away_and_comes_back_without_a_mass_rewrite() {
    let mut set = f3();
    set.wait(3600);
    set.restart([]);
    assert_eq!(set.run(), []);
}

#[test]
fn case_scl_03_long_names_fit() {
    let long = "n".repeat(63);
    let mut set = Set::unjoined(Settings::default());
    let cluster = "c".repeat(63);
    set.join_with(&cluster, &[Family::V4]);
    set.namespace(&cluster, &long);
    let name = format!("{long}/{}", "s".repeat(63));
    set.exported(&cluster, &name, 0, ["10.1.0.1"]);
    set.run();
    for slice in set.slice_names(&cluster, &name) {
        assert!(slice.len() <= 253);
    }
    let derived = |text: &str| namesake::reconcile::naming::derived(&key(text));
    assert_ne!(derived("a-b/c"), derived("a/b-c"));
}

#[test]
fn case_sec_01_addresses_come_from_the_services_own_namespace_and_slices_alone() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    // Somebody in another namespace names the Service, and somebody in the importing cluster's gives his slice the
    // label of ours.
    set.source("east", "default/web", "abc", ["http 8080"], endpoints(["10.66.6.6"]));
    let meta = |set: &mut Set| Meta {
        labels: map([
            ("multicluster.kubernetes.io/service-name", "web"),
            ("multicluster.kubernetes.io/source-cluster", "east"),
            ("kubernetes.io/service-name", "web"),
        ]),
        ..set.meta()
    };
    let name = SliceKey { namespace: label("shop"), name: "mine".into() };
    let content =
        SliceContent { family: Family::V4, ports: vec![slice_port("http 8080")], endpoints: endpoints(["10.66.6.7"]) };
    for cluster in ["east", "west"] {
        let slice = Slice { meta: meta(&mut set), content: content.clone() };
        set.sim.world.set_slice(&id(cluster), &name, Some(slice));
    }
    set.run();
    for cluster in ["east", "west"] {
        assert_eq!(set.addresses(cluster, "shop/web"), ["10.1.0.1"], "{cluster}");
        assert!(set.sim.world.members()[&id(cluster)].has_slice(&name), "his own, neither ours nor a source");
    }
}

#[test]
fn case_sec_02_nothing_gets_into_privileged_namespaces() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "kube-system/kube-dns", 0, ["10.1.0.1"]);
    let changes = set.run();
    assert_eq!(verbs(&changes), ["east export status"]);
    assert!(set.message("east", "kube-system/kube-dns", "Ready").contains("not allowed: east, west."));
}

#[test]
fn case_hdl_05_the_gaining_slice_is_written_before_the_losing_one() {
    let mut set = Set::new(["east"]);
    let pods =
        |range: std::ops::Range<usize>| range.map(|n| endpoint(&format!("10.1.0.{}", n + 1))).collect::<Vec<_>>();
    set.service("east", "shop/web", headless(["http 80"]));
    set.source("east", "shop/web", "1", ["http 8080"], pods(0..60));
    set.export("east", "shop/web", 0);
    set.run();
    // All move to another port, one after the other: from one slice to another.
    for moved in [1, 20, 59, 60] {
        set.source("east", "shop/web", "1", ["http 8080"], pods(moved..60));
        set.source("east", "shop/web", "2", ["http 9090"], pods(0..moved));
        let plan = set.plan("shop/web").plan;
        let mut there: Vec<_> =
            set.mirrored("east", "shop/web").into_iter().map(|(n, s)| (n.to_owned(), s.clone())).collect();
        for change in &plan.changes {
            match &change.action {
                Action::ApplySlice(slice) => {
                    let meta = Meta::default();
                    there.retain(|(name, _)| **name != *slice.name);
                    there.push((slice.name.to_string(), Slice { meta, content: slice.content.clone() }));
                }
                Action::DeleteSlice(_, name, _) => there.retain(|(other, _)| **other != **name),
                _ => {}
            }
            let addresses: std::collections::BTreeSet<_> =
                there.iter().flat_map(|(_, s)| s.content.endpoints.iter().map(|e| e.addresses[0])).collect();
            assert_eq!(addresses.len(), 60, "after {moved} moved: {}", verb(change));
        }
        set.run();
    }
}
