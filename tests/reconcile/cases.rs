//! What went wrong for users of such systems (`cases.md`), as far as it is a decision: updates and conflicts.

use crate::set::*;
use namesake::model::ImportKind;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::plan::Importing;

/// East (older) and west export `shop/web`, north imports.
pub fn f3() -> Set {
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
