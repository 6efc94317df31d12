//! What a second look at the rules found: each of these went wrong before it was a test.

use std::time::Duration;

use namesake::api;
use namesake::model::SliceKey;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::settings::CreateNamespaces;

use crate::set::*;

fn west(set: &Set) -> &namesake::reconcile::world::Member {
    &set.sim.world.members()[&id("west")]
}

#[test]
fn mcs_r4_r84_a_dead_member_does_not_hold_up_a_namespace_for_ever() {
    let settings = Settings { create_namespaces: CreateNamespaces::CreateAndRemove, ..Settings::default() };
    let mut set = Set::with(settings, ["east"]);
    set.join_with("west", &[Family::V4]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set.reach("dead", Reach::Unheard { since: set.now });
    set.unexport("east", "shop/web");
    set.run();
    assert!(west(&set).namespace(&label("shop")).is_some(), "the one that was not heard may export into it");
    set.wait(301);
    set.run();
    assert!(west(&set).namespace(&label("shop")).is_none());
}

#[test]
fn mcs_r57_r50_the_family_policy_of_a_derived_service_is_put_back() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let mut service = set.derived("b", "shop/web").cloned().expect("derived");
    service.spec.dual_stack = false;
    let derived = namesake::reconcile::naming::derived_key(&key("shop/web"));
    set.sim.world.set_service(&id("b"), &derived, Some(service));
    assert_eq!(verbs(&set.run()), ["b apply service"]);
    assert!(set.derived("b", "shop/web").expect("derived").spec.dual_stack);
}

#[test]
fn mcs_r34_what_an_api_server_refused_is_forgotten_with_the_import() {
    let mut set = Set::new(["a", "b"]);
    let mut spec = cluster_ip(["http 80"]);
    spec.traffic.distribution = Some("PreferSameNode".into());
    set.service("a", "shop/web", spec);
    set.export("a", "shop/web", 0);
    set.run();
    set.sim.world.set_refused(&id("b"), &key("shop/web"), Refusable::TrafficDistribution, "PreferSameNode");
    set.run();
    set.unexport("a", "shop/web");
    set.run();
    assert!(set.local("b", "shop/web").is_none(), "nothing is kept of what is gone");
}

#[test]
fn mcs_r42_r82_an_unnamed_port_stays_served_while_the_oldest_exporter_is_unheard() {
    let mut set = Set::with(Settings { rename_ports: false, ..Settings::default() }, ["a", "b", "c"]);
    for (cluster, created, list, listens, address) in [
        ("a", 0, vec!["80"], "8080", "10.1.0.1"),
        ("b", 10, vec!["80"], "8080", "10.2.0.1"),
        ("c", 20, vec!["more 90"], "more 9090", "10.3.0.1"),
    ] {
        let spec = ServiceSpec { ports: list.into_iter().map(port).collect(), ..cluster_ip([]) };
        set.service(cluster, "shop/web", spec);
        set.source(cluster, "shop/web", "abc", [listens], endpoints([address]));
        set.export(cluster, "shop/web", created);
    }
    set.run();
    assert_eq!(describe(&set.imported("c", "shop/web").spec.ports), ["tcp-80 80/Tcp", "more 90/Tcp"]);
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1", "10.3.0.1"]);
    set.restart(["a"]);
    assert_eq!(set.run(), [], "what a had called its port is not known any more, and does not matter");
}

#[test]
fn mcs_r77_a_missing_namespace_is_told_once_a_cluster() {
    let mut set = Set::new(["a"]);
    set.join_with("bare", &[Family::V4]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let missing = |set: &Set| -> Vec<String> {
        let of = set.events().filter(|event| *event.reason == *"NamespaceMissing");
        of.map(|event| event.message.to_string()).collect()
    };
    assert_eq!(missing(&set), ["Not imported in bare: namespace shop is missing."]);
    // Others come and go: the message of the condition changes, and this is no news.
    set.join("b");
    set.run();
    assert_eq!(missing(&set).len(), 1);
    set.join_with("bare-2", &[Family::V4]);
    set.run();
    assert_eq!(missing(&set)[1..], ["Not imported in bare-2: namespace shop is missing."]);
}

#[test]
fn mcs_r35_r82_a_new_conflict_is_told_although_a_cluster_was_not_heard() {
    let mut set = Set::new(["a", "b", "c"]);
    for (n, cluster) in ["a", "b", "c"].into_iter().enumerate() {
        set.exported(cluster, "shop/web", i64::try_from(n).expect("small"), ["10.1.0.1"]);
    }
    set.service("a", "shop/web", cluster_ip(["http 81"]));
    set.run();
    set.restart(["a"]);
    set.run();
    assert_eq!(set.says("b", "shop/web", "Conflict"), "True/PortConflict");
    set.service("c", "shop/web", headless(["http 80"]));
    set.run();
    assert_eq!(set.says("b", "shop/web", "Conflict"), "True/PortConflict,TypeConflict");
    // And nothing of it is taken back as long as who disagrees is not known.
    let said = set.message("b", "shop/web", "Conflict").to_owned();
    set.service("c", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert_eq!(set.message("b", "shop/web", "Conflict"), said);
}

#[test]
fn mcs_r81_r19_our_slice_without_its_label_is_found_in_whatever_order_things_become_known() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let (name, mut slice) = {
        let (name, slice) = set.mirrored("b", "shop/web")[0];
        (SliceKey { namespace: label("shop"), name: name.into() }, slice.clone())
    };
    slice.meta.labels.remove(api::LABEL_SERVICE_NAME);
    slice.content.endpoints = endpoints(["10.66.6.6"]);
    // A restart: this slice comes in first, before anything says which service its name stands for.
    set.sim.world.set_slice(&id("b"), &name, None);
    let old = set.sim.world.clone();
    let mut world = namesake::reconcile::World::new(None);
    world.set_members_listed(true);
    for cluster in ["a", "b"] {
        world.set_reach(&id(cluster), Reach::Live);
    }
    world.set_slice(&id("b"), &name, Some(slice));
    set.sim.world = world;
    for cluster in ["a", "b"] {
        set.hear(cluster, &old);
    }
    set.run();
    let all: Vec<_> = set.sim.world.members()[&id("b")].slice_keys().collect();
    assert_eq!(all, [&name], "nothing is left over, and no second one was made beside it");
    assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1"]);
}

#[test]
fn mcs_r47_a_family_that_is_listed_twice_is_one_family() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.service("a", "shop/web", ServiceSpec { families: vec![Family::V4, Family::V4], ..cluster_ip(["http 80"]) });
    set.run();
    let spec = &set.imported("b", "shop/web").spec;
    assert_eq!((&spec.families[..], spec.ips.len()), (&[Family::V4][..], 1));
}

#[test]
fn mcs_r83_a_cluster_that_leaves_has_no_part_in_a_service_whose_namespace_is_being_deleted() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set.terminate("b", "shop");
    set.sim.world.set_leaving(&id("b"), true);
    set.run();
    assert_eq!(set.importing("b", "shop/web"), None);
    assert_eq!(set.message("a", "shop/web", "Ready"), "The service has been exported to 1 cluster.");
}

#[test]
fn mcs_r79_r84_draining_is_not_begun_anew_by_an_outage_of_its_source() {
    let mut set = Set::new(["a", "b"]);
    set.settings.drain = Duration::from_secs(10);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.exported("b", "shop/web", 1, ["10.2.0.1"]);
    set.run();
    set.unexport("a", "shop/web");
    set.run();
    set.wait(5);
    set.cut("a");
    assert_eq!(set.run(), []);
    set.wait(5);
    set.run();
    assert_eq!(set.addresses("b", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn mcs_r57_labels_that_somebody_took_off_are_put_back_and_nothing_is_interrupted() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let derived = namesake::reconcile::naming::derived_key(&key("shop/web"));
    let (mut import, mut service) =
        (set.imported("b", "shop/web").clone(), set.derived("b", "shop/web").cloned().unwrap());
    let (slice_key, mut slice) = {
        let (name, slice) = set.mirrored("b", "shop/web")[0];
        (SliceKey { namespace: label("shop"), name: name.into() }, slice.clone())
    };
    // As an API server does it: what is gone from an object is nobody's any more.
    for (meta, label) in [
        (&mut import.meta, api::LABEL_MANAGED_BY),
        (&mut service.meta, api::LABEL_MANAGED_BY),
        (&mut slice.meta, api::LABEL_SLICE_MANAGED_BY),
    ] {
        meta.labels.remove(label);
        meta.owned_labels.remove(label);
    }
    set.sim.world.set_import(&id("b"), &key("shop/web"), Some(import.clone()));
    set.sim.world.set_service(&id("b"), &derived, Some(service.clone()));
    set.sim.world.set_slice(&id("b"), &slice_key, Some(slice));
    assert_eq!(verbs(&set.run()), ["b apply import", "b apply service", "b apply slice"]);
    assert!(set.imported("b", "shop/web").meta.is_ours() && set.derived("b", "shop/web").unwrap().meta.is_ours());
    assert_eq!(set.slice_names("b", "shop/web"), [&*slice_key.name]);
    // Another value is another's word: he has it, and we have no part in it.
    import.meta.labels.insert(api::LABEL_MANAGED_BY.into(), "theirs".into());
    set.sim.world.set_import(&id("b"), &key("shop/web"), Some(import.clone()));
    set.run();
    assert_eq!(set.import("b", "shop/web"), Some(&import));
    assert!(set.says("a", "shop/web", "Ready").starts_with("False/Failed"));
}
