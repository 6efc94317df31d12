//! What went wrong for users of such systems (`cases.md`), as far as it is a decision.

use crate::set::*;
use namesake::model::ImportKind;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Action, Importing};

/// East (older) and west export `shop/web`, north imports.
fn f3() -> Set {
    let mut set = Set::new(["east", "west", "north"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.exported("west", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    set
}

#[test]
fn case_upd_02_a_service_deleted_while_the_controller_was_down() {
    let mut set = f3();
    set.source("east", "shop/web", "def", ["http 9090"], endpoints(["10.1.0.2"]));
    set.run();
    set.no_source("east", "shop/web", "def");
    set.restart([]);
    set.run();
    assert_eq!(set.addresses("north", "shop/web"), ["10.1.0.1", "10.2.0.1"], "one of two slices");
    set.no_service("east", "shop/web");
    set.no_source("east", "shop/web", "abc");
    set.restart([]);
    set.run();
    assert_eq!(set.addresses("north", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn case_upd_03_an_importing_namespace_deleted_and_recreated() {
    let mut set = f3();
    set.terminate("west", "shop");
    assert!(set.run().iter().all(|change| change.cluster != id("west")), "nothing is written into it");
    let west = id("west");
    // Gone, with all that was in it.
    let locals: Vec<_> = set.sim.world.members()[&west].locals().map(|(key, _)| key.clone()).collect();
    for key in locals {
        set.sim.world.set_export(&west, &key, None);
        set.sim.world.set_import(&west, &key, None);
        set.sim.world.set_service(&west, &key, None);
    }
    for slice in set.sim.world.members()[&west].slice_keys().cloned().collect::<Vec<_>>() {
        set.sim.world.set_slice(&west, &slice, None);
    }
    set.sim.world.set_namespace(&west, &label("shop"), None);
    set.run();
    assert_eq!(set.run(), [], "no retry while it is absent");
    assert_eq!(set.importing("west", "shop/web"), Some(Importing::NamespaceMissing));
    set.namespace("west", "shop");
    set.run();
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
    assert_eq!(set.addresses("west", "shop/web"), ["10.1.0.1"]);
}

#[test]
fn case_upd_04_a_service_deleted_and_recreated_under_a_standing_export() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set.no_service("east", "shop/web");
    set.no_source("east", "shop/web", "abc");
    set.run();
    assert_eq!(set.says("east", "shop/web", "Valid"), "False/NoService");
    assert!(set.import("west", "shop/web").is_none());
    set.service("east", "shop/web", cluster_ip(["http 81"]));
    set.source("east", "shop/web", "new", ["http 8081"], endpoints(["10.1.0.7"]));
    set.run();
    assert_eq!(set.says("east", "shop/web", "Valid"), "True/Valid");
    assert_eq!(set.imported("west", "shop/web").spec.ports, ports(["http 81"]));
    assert_eq!(set.addresses("west", "shop/web"), ["10.1.0.7"]);
}

#[test]
fn case_upd_05_an_export_valid_and_invalid_by_type_change() {
    let mut set = Set::new(["east", "west"]);
    let external = || ServiceSpec { kind: ServiceType::ExternalName, ..ServiceSpec::default() };
    set.source("east", "shop/web", "abc", ["http 8080"], endpoints(["10.1.0.1"]));
    set.export("east", "shop/web", 0);
    for (spec, valid) in [(external(), false), (cluster_ip(["http 80"]), true), (external(), false)] {
        set.service("east", "shop/web", spec);
        set.run();
        assert_eq!(set.import("west", "shop/web").is_some(), valid);
        let says = set.says("east", "shop/web", "Valid");
        assert_eq!(says, if valid { "True/Valid" } else { "False/InvalidServiceType" });
    }
}

#[test]
fn case_upd_06_the_derived_service_follows_its_ports() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let ips = set.imported("west", "shop/web").spec.ips.clone();
    for list in [vec!["web 80"], vec!["web 8081"], vec!["web 8081", "more 90"], vec!["more 90"]] {
        let spec = ServiceSpec { ports: list.iter().map(|text| port(text)).collect(), ..cluster_ip([]) };
        let wanted = spec.ports.clone();
        set.service("east", "shop/web", spec);
        set.run();
        assert_eq!(set.imported("west", "shop/web").spec.ports, wanted);
        assert_eq!(set.derived("west", "shop/web").expect("derived").spec.ports, wanted);
        assert_eq!(set.imported("west", "shop/web").spec.ips, ips, "its address stays");
        assert_eq!(set.run(), []);
    }
}

#[test]
fn case_upd_07_endpoints_change_without_any_change_of_service_or_export() {
    let mut set = f3();
    set.source("east", "shop/web", "abc", ["http 8080"], endpoints(["10.1.0.1", "10.1.0.2"]));
    let changes = set.run();
    assert!(changes.iter().all(|change| verb(change) == "apply slice"), "{:?}", verbs(&changes));
    assert_eq!(set.addresses("north", "shop/web"), ["10.1.0.1", "10.1.0.2", "10.2.0.1"]);
}

#[test]
fn case_upd_08_nothing_changed_nothing_written() {
    let mut set = Set::new(["east", "west", "north"]);
    for n in 0..100 {
        let name = format!("shop/web-{n}");
        set.exported("east", &name, n, ["10.1.0.1"]);
        set.exported("west", &name, 50, ["10.2.0.1"]);
        if n % 3 == 0 {
            set.service("west", &name, headless(["http 81"]));
        }
    }
    set.run();
    for _ in 0..5 {
        set.wait(60);
        assert_eq!(set.pending(), []);
        set.restart([]);
        assert_eq!(set.pending(), []);
    }
}

#[test]
fn case_upd_09_a_slice_that_its_source_removed_is_not_put_back() {
    let mut set = Set::new(["east", "west"]);
    let pods =
        |range: std::ops::Range<usize>| range.map(|n| endpoint(&format!("10.1.0.{}", n + 1))).collect::<Vec<_>>();
    set.service("east", "shop/web", cluster_ip(["http 80"]));
    set.source("east", "shop/web", "1", ["http 8080"], pods(0..100));
    set.source("east", "shop/web", "2", ["http 8080"], pods(100..150));
    set.export("east", "shop/web", 0);
    set.run();
    assert_eq!(set.slice_names("west", "shop/web").len(), 2);
    set.source("east", "shop/web", "1", ["http 8080"], pods(0..40));
    set.no_source("east", "shop/web", "2");
    set.run();
    assert_eq!(set.slice_names("west", "shop/web").len(), 1);
    assert_eq!(set.addresses("west", "shop/web").len(), 40);
    set.restart([]);
    assert_eq!(set.run(), []);
}

#[test]
fn case_cnf_01_one_port_name_two_numbers() {
    let mut set = f3();
    for (younger, wanted) in [
        (vec!["http 8080"], vec!["http 80"]),
        (vec!["web 80"], vec!["http 80"]),
        (vec![], vec!["http 80"]),
        (vec!["http 80", "more 90"], vec!["http 80", "more 90"]),
    ] {
        let spec = ServiceSpec { ports: younger.iter().map(|text| port(text)).collect(), ..cluster_ip([]) };
        set.service("west", "shop/web", spec);
        set.run();
        let wanted: Vec<_> = wanted.iter().map(|text| port(text)).collect();
        assert_eq!(set.imported("north", "shop/web").spec.ports, wanted, "{younger:?}");
        for cluster in ["east", "west"] {
            assert_eq!(set.says(cluster, "shop/web", "Conflict"), "True/PortConflict", "{younger:?}");
        }
    }
    let mut app = cluster_ip(["http 80"]);
    app.ports[0].app_protocol = Some("h2c".into());
    set.service("west", "shop/web", app);
    set.run();
    assert_eq!(set.says("west", "shop/web", "Conflict"), "True/PortConflict");
    set.service("west", "shop/web", cluster_ip(["http 80"]));
    set.run();
    for cluster in ["east", "west"] {
        assert_eq!(set.says(cluster, "shop/web", "Conflict"), "False/NoConflicts", "cleared when it is mended");
    }
}

#[test]
fn case_cnf_02_headless_here_cluster_ip_there() {
    let mut set = f3();
    set.service("east", "shop/web", headless(["http 80"]));
    set.run();
    let spec = &set.imported("north", "shop/web").spec;
    assert_eq!((spec.kind, spec.ips.len()), (ImportKind::Headless, 0));
    for cluster in ["east", "west"] {
        assert_eq!(set.says(cluster, "shop/web", "Conflict"), "True/TypeConflict");
    }
    set.unexport("east", "shop/web");
    set.run();
    let spec = &set.imported("north", "shop/web").spec;
    assert_eq!((spec.kind, spec.ips.len()), (ImportKind::ClusterSetIp, 1));
    assert_eq!(set.says("west", "shop/web", "Conflict"), "False/NoConflicts");
}

#[test]
fn case_cnf_03_ipv4_only_and_dual_stack_exporters() {
    let mut set = Set::unjoined(Settings::default());
    let dual = [Family::V4, Family::V6];
    for (cluster, families) in [("east", &dual[..]), ("west", &dual), ("north", &dual), ("old", &dual[..1])] {
        set.join_with(cluster, families);
        set.namespace(cluster, "shop");
    }
    for (cluster, families, created) in [("east", &dual[..1], 0), ("west", &dual[..], 10), ("north", &dual[1..], 20)] {
        set.service(cluster, "shop/web", ServiceSpec { families: families.to_vec(), ..cluster_ip(["http 80"]) });
        for family in families {
            let address = if *family == Family::V4 { format!("10.0.0.{created}") } else { format!("fd00::{created}") };
            set.source(cluster, "shop/web", family.as_str(), ["http 8080"], endpoints([&*address]));
        }
        set.export(cluster, "shop/web", created);
    }
    set.run();
    for importer in ["east", "old"] {
        let spec = &set.imported(importer, "shop/web").spec;
        assert_eq!((&spec.families[..], spec.ips.len()), (&dual[..1], 1), "{importer}");
        assert_eq!(set.addresses(importer, "shop/web"), ["10.0.0.0", "10.0.0.10"]);
    }
    for cluster in ["east", "west", "north"] {
        assert_eq!(set.says(cluster, "shop/web", "Conflict"), "True/IPFamilyConflict");
    }
    // Without the one that has IPv6 alone, the intersection is IPv4 and hides west's IPv6.
    set.unexport("north", "shop/web");
    set.run();
    assert_eq!(set.says("west", "shop/web", "Conflict"), "True/IPFamilyConflict");
    assert_eq!(
        set.message("west", "shop/web", "Conflict"),
        "Conflicting IP families. Using \"IPv4\", which all exporting clusters have. 1/2 clusters disagree."
    );
}

#[test]
fn case_cnf_04_conflict_texts_do_not_flap() {
    let make = |order: &[usize]| {
        let names = ["a", "b", "c", "d", "e"];
        let mut set = Set::unjoined(Settings::default());
        for n in order {
            set.join(names[*n]);
        }
        for n in order {
            let lists = [["x 1", "y 2", "z 3"], ["x 2", "y 2", "z 3"], ["x 1", "y 9", "z 3"], ["x 1", "y 2", "w 3"]];
            set.exported(names[*n], "shop/web", 7, ["10.1.0.1"]);
            set.service(names[*n], "shop/web", cluster_ip(lists[*n % 4]));
        }
        set.run();
        (set.says("c", "shop/web", "Conflict"), set.message("c", "shop/web", "Conflict").to_owned())
    };
    let first = make(&[0, 1, 2, 3, 4]);
    assert_eq!(first.0, "True/PortConflict");
    let mut order = vec![0, 1, 2, 3, 4];
    for n in 0..100 {
        order.swap(n % 5, (n * 3 + 1) % 5);
        assert_eq!(make(&order), first);
    }
}

#[test]
fn case_cnf_05_session_affinity_reaches_the_derived_service() {
    let sticky = |seconds| {
        let mut spec = cluster_ip(["http 80"]);
        (spec.traffic.session_affinity, spec.traffic.session_timeout) = (Some("ClientIP".into()), Some(seconds));
        spec
    };
    for (older, younger, wanted, conflict) in [
        (sticky(60), sticky(60), Some(60), false),
        (sticky(60), cluster_ip(["http 80"]), Some(60), true),
        (cluster_ip(["http 80"]), sticky(60), None, true),
    ] {
        let mut set = f3();
        set.service("east", "shop/web", older);
        set.service("west", "shop/web", younger);
        set.run();
        let import = &set.imported("north", "shop/web").spec.traffic;
        let derived = &set.derived("north", "shop/web").expect("derived").spec.traffic;
        assert_eq!((import.session_timeout, derived.session_timeout), (wanted, wanted));
        assert_eq!(import.session_affinity, derived.session_affinity);
        assert_eq!(set.says("west", "shop/web", "Conflict").contains("SessionAffinityConflict"), conflict);
    }
}

#[test]
fn case_cnf_06_metadata_does_not_leak() {
    let mut set = f3();
    let leaky = map([("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"), ("team", "x")]);
    set.service_labelled("east", "shop/web", cluster_ip(["http 80"]), leaky);
    set.export_with("east", "shop/web", 0, map([("tier", "1"), ("kubernetes.io/x", "y")]), Map::new());
    set.run();
    assert_eq!(
        set.imported("north", "shop/web").meta.labels,
        map([("app.kubernetes.io/managed-by", "namesake"), ("tier", "1")])
    );
}

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
            let slice_key = namesake::model::SliceKey { namespace: key.namespace.clone(), name: slice.clone() };
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
