//! Deletion and draining (controller.md 2.10, R78 to R83), and what of it is in 2.13.

use crate::set::*;
use namesake::api;
use namesake::model::SliceKey;
use namesake::reconcile::observed::Reach;
use namesake::reconcile::plan::Action;
use namesake::reconcile::{Settings, naming};
use std::time::Duration;

fn two() -> Set {
    let mut set = Set::new(["a", "b", "c"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    set
}

/// Nothing of ours is left of the service in this cluster.
fn clean(set: &Set, cluster: &str) -> bool {
    set.import(cluster, "shop/web").is_none_or(|import| !import.meta.is_ours())
        && set.derived(cluster, "shop/web").is_none_or(|service| !service.meta.is_ours())
        && set.mirrored(cluster, "shop/web").is_empty()
}

#[test]
fn mcs_r78_an_export_that_goes_takes_its_slices_along_and_the_last_one_everything() {
    let mut set = two();
    set.unexport("a", "shop/web");
    let changes = set.run();
    let in_c: Vec<_> = verbs(&changes).into_iter().filter(|verb| verb.starts_with("c ")).collect();
    assert_eq!(in_c, ["c delete slice", "c import status"]);
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
    set.unexport("b", "shop/web");
    let changes = set.run();
    let in_c: Vec<_> = verbs(&changes).into_iter().filter(|verb| verb.starts_with("c ")).collect();
    assert_eq!(in_c, ["c delete import", "c delete slice", "c delete service"], "the name first");
    assert!(["a", "b", "c"].iter().all(|cluster| clean(&set, cluster)));
    assert_eq!(set.sim.world.keys().count(), 0, "nothing to look after");
}

#[test]
fn mcs_r78_an_export_that_is_being_deleted_counts_as_gone() {
    let mut set = two();
    let mut export = set.local("a", "shop/web").expect("local").export.clone().expect("export");
    export.deleting = true;
    set.sim.world.set_export(&id("a"), &key("shop/web"), Some(export));
    let changes = set.run();
    assert_eq!(set.clusters("c", "shop/web"), ["b"]);
    assert!(!verbs(&changes).contains(&"a export status".to_owned()));
}

#[test]
fn mcs_r79_a_leaving_exports_endpoints_are_drained_first_by_option() {
    let mut set = two();
    set.settings.drain = Duration::from_secs(10);
    set.unexport("a", "shop/web");
    set.run();
    assert_eq!(set.clusters("c", "shop/web"), ["b"], "the status at once");
    let draining = |set: &Set| -> Vec<(bool, bool, bool)> {
        let slices = set.mirrored("c", "shop/web").into_iter().filter(|(_, slice)| slice.source() == Some(id("a")));
        let endpoints = slices.flat_map(|(_, slice)| slice.content.endpoints.clone());
        endpoints.map(|e| (e.ready, e.serving, e.terminating)).collect()
    };
    assert_eq!(draining(&set), [(false, true, true)]);
    assert_eq!(set.plan("shop/web").plan.again, Some(set.now + Duration::from_secs(10)));
    set.wait(9);
    assert_eq!(set.run(), []);
    // A restart does not begin anew.
    set.restart([]);
    assert_eq!(set.run(), []);
    set.wait(1);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn mcs_r79_the_last_export_is_drained_before_the_import_goes_and_a_new_one_ends_it() {
    let mut set = two();
    set.settings.drain = Duration::from_secs(10);
    set.unexport("a", "shop/web");
    set.unexport("b", "shop/web");
    set.run();
    assert!(set.derived("c", "shop/web").is_some(), "connections go through its address");
    set.export("b", "shop/web", 20);
    set.run();
    let (_, slice) = set.mirrored("c", "shop/web").into_iter().find(|(_, s)| s.source() == Some(id("b"))).expect("b's");
    assert!(slice.content.endpoints[0].ready && !slice.content.endpoints[0].terminating);
    assert_eq!(slice.draining_since(), None);
    set.unexport("b", "shop/web");
    set.run();
    set.wait(10);
    set.run();
    assert!(["a", "b", "c"].iter().all(|cluster| clean(&set, cluster)));
}

#[test]
fn mcs_r80_a_deleted_service_is_an_export_that_goes_and_says_why() {
    let mut set = two();
    set.no_service("a", "shop/web");
    set.run();
    assert_eq!(set.clusters("c", "shop/web"), ["b"]);
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
    assert_eq!(set.says("a", "shop/web", "Valid"), "False/NoService");
    assert!(set.local("a", "shop/web").expect("local").export.is_some(), "the user's export stays");
}

#[test]
fn mcs_r81_what_was_left_behind_while_nobody_watched_is_found_by_its_labels() {
    let mut set = two();
    set.unexport("a", "shop/web");
    set.unexport("b", "shop/web");
    // In c the import is gone already, and in b the derived Service alone is left.
    set.sim.world.set_import(&id("c"), &key("shop/web"), None);
    set.sim.world.set_import(&id("b"), &key("shop/web"), None);
    let names: Vec<String> = set.slice_names("b", "shop/web").into_iter().map(Into::into).collect();
    for name in names {
        set.sim.world.set_slice(&id("b"), &SliceKey { namespace: label("shop"), name: name.into() }, None);
    }
    set.restart([]);
    set.run();
    assert!(["a", "b", "c"].iter().all(|cluster| clean(&set, cluster)));
}

#[test]
fn mcs_r82_nothing_is_deleted_that_an_unheard_cluster_may_hold_up() {
    let mut set = two();
    let full = set.sim.world.clone();
    set.restart(["a"]);
    assert_eq!(set.run(), [], "nothing is known to have changed");
    // b goes while a is not heard: a's part stays.
    set.unexport("b", "shop/web");
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1"]);
    assert_eq!(set.clusters("c", "shop/web"), ["a"]);
    set.hear("a", &full);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1"]);
    assert!(set.says("a", "shop/web", "Ready").starts_with("True"));
}

#[test]
fn mcs_r82_half_a_list_is_not_taken_for_the_whole() {
    let mut set = two();
    let full = set.sim.world.clone();
    let before = set.imported("c", "shop/web").clone();
    set.restart(["a"]);
    // Its exports are listed, its Services are not yet.
    let export = full.members()[&id("a")].local(&key("shop/web")).expect("local").export.clone();
    set.sim.world.set_export(&id("a"), &key("shop/web"), export);
    assert_eq!(set.run(), []);
    // Its Services are, its slices are not; and it is another Service than before.
    set.service("a", "shop/web", headless(["http 81"]));
    assert_eq!(set.run(), []);
    assert_eq!(*set.imported("c", "shop/web"), before);
}

#[test]
fn mcs_r82_a_slice_waits_for_its_own_source_alone() {
    let mut set = two();
    set.restart(["c"]);
    set.unexport("a", "shop/web");
    set.run();
    assert_eq!(set.addresses("b", "shop/web"), ["10.2.0.1"], "c holds up nobody else's slices");
}

#[test]
fn mcs_r82_an_import_waits_for_every_unheard_cluster_but_not_for_ever() {
    let mut set = two();
    set.restart(["c"]);
    set.unexport("a", "shop/web");
    set.unexport("b", "shop/web");
    set.run();
    assert!(set.mirrored("b", "shop/web").is_empty());
    assert!(set.import("b", "shop/web").is_some(), "c may export it by now");
    assert_eq!(set.plan("shop/web").plan.again, Some(set.now + set.settings.unreachable.ttl));
    set.wait(300);
    set.run();
    assert!(clean(&set, "a") && clean(&set, "b"), "a dead member holds up nothing for ever");
}

#[test]
fn mcs_r82_a_cluster_that_is_not_known_yet_is_waited_for() {
    let mut set = two();
    set.sim.world.set_members_listed(false);
    set.sim.world.remove_member(&id("a"));
    set.unexport("b", "shop/web");
    set.wait(10_000);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1"], "a may still be found among the members");
    set.sim.world.set_members_listed(true);
    set.run();
    assert!(clean(&set, "c"), "it is none");
}

#[test]
fn mcs_r83_a_cluster_that_leaves_is_cleaned_and_forgotten() {
    let mut set = two();
    set.sim.world.set_leaving(&id("a"), true);
    set.run();
    assert!(clean(&set, "a"));
    assert_eq!(set.clusters("c", "shop/web"), ["b"]);
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
    let export = set.local("a", "shop/web").expect("local").export.as_ref().expect("the user's export stays");
    assert_eq!(export.conditions, [], "without our words on it");
    assert_eq!(set.message("b", "shop/web", "Ready"), "The service has been exported to 2 clusters.");

    set.sim.world.remove_member(&id("a"));
    assert_eq!(set.run(), []);
    set.join("a");
    set.run();
    assert_eq!(set.import_says("a", "shop/web"), "True/Ready", "and may come back");
}

#[test]
fn mcs_r83_a_cluster_that_was_removed_at_once_loses_its_slices_everywhere() {
    let mut set = two();
    set.sim.world.remove_member(&id("a"));
    set.run();
    assert_eq!(set.clusters("c", "shop/web"), ["b"]);
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn mcs_r86_nothing_is_named_like_the_users_service_and_no_slice_names_it() {
    let set = two();
    for plan in &set.log {
        for change in &plan.plan.changes {
            match &change.action {
                Action::ApplyService(service) => assert_ne!(service.name.as_str(), "web"),
                Action::ApplySlice(slice) => {
                    assert_ne!(&*slice.labels[api::LABEL_KUBERNETES_SERVICE_NAME], "web");
                    assert!(slice.name.starts_with("derived-"));
                }
                _ => {}
            }
        }
    }
    for cluster in ["a", "b"] {
        let service = set.local(cluster, "shop/web").expect("local").service.as_ref().expect("service");
        assert_eq!(service.spec.ports, ports(["http 80"]));
        assert!(service.meta.id.resource_version.starts_with('u'), "never written");
    }
}

#[test]
fn mcs_r94_deletes_name_the_version_that_was_seen_and_only_what_is_ours() {
    let mut set = two();
    let uid = set.imported("c", "shop/web").meta.id.clone();
    // A Service of the derived name that lost our label is not ours any more.
    let mut service = set.derived("c", "shop/web").expect("derived").clone();
    service.meta.labels.remove(api::LABEL_MANAGED_BY);
    service.meta.owners.clear();
    set.sim.world.set_service(&id("c"), &naming::derived_key(&key("shop/web")), Some(service));
    set.unexport("a", "shop/web");
    set.unexport("b", "shop/web");
    let plan = set.plan("shop/web").plan;
    let deleted = plan.changes.iter().find_map(|change| match &change.action {
        Action::DeleteImport(_, id) if change.cluster.as_str() == "c" => Some(id.clone()),
        _ => None,
    });
    assert_eq!(deleted, Some(uid));
    set.run();
    assert!(set.derived("c", "shop/web").is_some());
    assert!(set.import("c", "shop/web").is_none());
}

#[test]
fn mcs_r85_a_restart_writes_nothing() {
    let mut set = two();
    set.wait(3600);
    set.restart([]);
    assert_eq!(set.run(), []);
    // Nor does one that hears the clusters one after the other.
    let full = set.sim.world.clone();
    set.restart(["a", "b", "c"]);
    for cluster in ["c", "a", "b"] {
        assert_eq!(set.run(), [], "before {cluster}");
        set.hear(cluster, &full);
    }
    assert_eq!(set.run(), []);
}

#[test]
fn mcs_shapes_one_controller_per_cluster_writes_to_its_own_alone_and_all_agree() {
    let mut together = Set::new(["a", "b", "c"]);
    let mut apart = Set::new(["a", "b", "c"]);
    for set in [&mut together, &mut apart] {
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.exported("b", "shop/web", 10, ["10.2.0.1"]);
        set.service("b", "shop/web", headless(["http 81"]));
    }
    together.run();
    for _ in 0..3 {
        for cluster in ["b", "c", "a"] {
            apart.settings.write_only_to = Some(id(cluster));
            let changes = apart.run();
            assert!(changes.iter().all(|change| change.cluster == id(cluster)));
        }
    }
    for cluster in ["a", "b", "c"] {
        assert_eq!(apart.imported(cluster, "shop/web").spec, together.imported(cluster, "shop/web").spec);
        assert_eq!(apart.clusters(cluster, "shop/web"), together.clusters(cluster, "shop/web"));
        assert_eq!(apart.addresses(cluster, "shop/web"), together.addresses(cluster, "shop/web"));
        assert_eq!(apart.import_says(cluster, "shop/web"), "True/Ready");
    }
    for cluster in ["a", "b"] {
        for kind in ["Valid", "Ready", "Conflict"] {
            assert_eq!(apart.message(cluster, "shop/web", kind), together.message(cluster, "shop/web", kind));
        }
    }
}

#[test]
fn mcs_shapes_several_hubs_share_the_services() {
    use namesake::reconcile::settings::Shard;
    let shards: Vec<_> = (0..3).map(|index| Shard { index, count: 3 }).collect();
    let mut counts = [0; 3];
    for n in 0..300 {
        let key = key(&format!("shop/web-{n}"));
        let owners: Vec<_> = shards.iter().filter(|shard| shard.owns(&key)).collect();
        assert_eq!(owners.len(), 1, "{key}");
        counts[owners[0].index as usize] += 1;
    }
    assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
    let mut set = Set::with(Settings { shard: Shard { index: 0, count: 2 }, ..Settings::default() }, ["a"]);
    for n in 0..20 {
        set.exported("a", &format!("shop/web-{n}"), 0, ["10.1.0.1"]);
    }
    set.run();
    for n in 0..20 {
        let name = format!("shop/web-{n}");
        let own = set.settings.shard.owns(&key(&name));
        assert_eq!(set.import("a", &name).is_some(), own, "{name}");
    }
}

#[test]
fn mcs_r82_a_candidate_whose_id_nobody_says_holds_up_others_no_longer_than_a_member_would() {
    let mut set = two();
    set.sim.world.set_members_listed(false);
    set.sim.world.set_unlisted_since(set.now);
    set.unexport("a", "shop/web");
    set.unexport("b", "shop/web");
    set.run();
    assert!(set.import("c", "shop/web").is_some(), "the one that is not known yet may export it");
    assert_eq!(set.plan("shop/web").plan.again, Some(set.now + set.settings.unreachable.ttl));
    set.wait(300);
    set.run();
    assert!(clean(&set, "a") && clean(&set, "b") && clean(&set, "c"), "but not for ever");
}

#[test]
fn mcs_r84_a_member_whose_imports_are_not_known_stays_a_source() {
    let mut set = two();
    let since = set.now;
    set.sim.world.set_reach(&id("a"), Reach::Unreachable { since });
    set.sim.world.set_sources(&id("a"), Reach::Live);
    set.wait(1000);
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"], "its endpoints do not expire");
    assert!(
        set.plan("shop/web").plan.changes.iter().all(|change| change.cluster != id("a")),
        "nothing is written there"
    );
    set.sim.world.set_sources(&id("a"), Reach::Unreachable { since });
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
}
