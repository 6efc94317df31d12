//! The world tells which services a change concerns, and planning one service reads no others.

use crate::set::*;
use namesake::api;
use namesake::model::SliceKey;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::world::{Dirty, Kind};
use namesake::reconcile::{naming, plan_service};

fn one() -> Set {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set
}

fn only(name: &str) -> Dirty {
    Dirty::Services(vec![key(name)])
}

#[test]
fn what_nobody_exports_concerns_nobody() {
    let mut set = one();
    let service = Service { meta: set.meta(), spec: cluster_ip(["http 80"]) };
    assert_eq!(set.sim.world.set_service(&id("a"), &key("shop/private"), Some(service)), Dirty::Nothing);
    let name = SliceKey { namespace: label("shop"), name: "private-abc".into() };
    let meta = Meta { labels: map([(api::LABEL_KUBERNETES_SERVICE_NAME, "private")]), ..set.meta() };
    let content = SliceContent { family: Family::V4, ports: vec![], endpoints: endpoints(["10.1.0.9"]) };
    assert_eq!(set.sim.world.set_slice(&id("a"), &name, Some(Slice { meta, content })), Dirty::Nothing);
    assert_eq!(set.sim.world.keys().collect::<Vec<_>>(), [key("shop/web")]);
    // Until somebody does.
    let export = Export { meta: set.meta(), ..Export::default() };
    assert_eq!(set.sim.world.set_export(&id("a"), &key("shop/private"), Some(export)), only("shop/private"));
    set.run();
    assert_eq!(set.import_says("b", "shop/private"), "True/Ready");
}

#[test]
fn a_change_concerns_its_own_service() {
    let mut set = one();
    let name = SliceKey { namespace: label("shop"), name: "web-abc".into() };
    let mut slice = set.local("a", "shop/web").expect("local").sources["web-abc"].clone();
    assert_eq!(set.sim.world.set_slice(&id("a"), &name, Some(slice.clone())), Dirty::Nothing, "the same again");
    slice.meta.id.resource_version = "another".into();
    slice.meta.labels.insert("x".into(), "y".into());
    assert_eq!(set.sim.world.set_slice(&id("a"), &name, Some(slice.clone())), Dirty::Nothing, "nothing that counts");
    slice.content.endpoints = endpoints(["10.1.0.9"]);
    assert_eq!(set.sim.world.set_slice(&id("a"), &name, Some(slice.clone())), only("shop/web"));
    // A slice that changes hands concerns both.
    set.export("a", "shop/other", 0);
    slice.meta.labels = map([(api::LABEL_KUBERNETES_SERVICE_NAME, "other")]);
    let dirty = set.sim.world.set_slice(&id("a"), &name, Some(slice));
    assert_eq!(dirty, Dirty::Services(vec![key("shop/web"), key("shop/other")]));
    assert_eq!(set.sim.world.set_slice(&id("a"), &name, None), only("shop/other"));
}

#[test]
fn a_derived_service_concerns_its_import_with_or_without_its_labels() {
    let mut set = one();
    let derived = naming::derived_key(&key("shop/web"));
    let mut service = set.derived("b", "shop/web").expect("derived").clone();
    service.spec.ports = ports(["hacked 1"]);
    assert_eq!(set.sim.world.set_service(&id("b"), &derived, Some(service.clone())), only("shop/web"));
    service.meta.labels.clear();
    assert_eq!(set.sim.world.set_service(&id("b"), &derived, Some(service)), only("shop/web"));
    assert_eq!(set.sim.world.set_service(&id("b"), &derived, None), only("shop/web"));
}

#[test]
fn a_namespace_concerns_its_services_and_a_member_all() {
    let mut set = one();
    let meta = set.meta();
    let namespace = Namespace { meta, terminating: true };
    let told = set.sim.world.set_namespace(&id("b"), &label("shop"), Some(namespace));
    assert_eq!(told, Dirty::Namespace(label("shop")));
    assert_eq!(set.sim.world.keys_in(&label("shop")).collect::<Vec<_>>(), [key("shop/web")]);
    assert_eq!(set.sim.world.keys_in(&label("default")).count(), 0);
    let cut = Reach::Unreachable { since: set.now };
    assert_eq!(set.sim.world.set_reach(&id("b"), cut), Dirty::All);
    assert_eq!(set.sim.world.set_reach(&id("b"), cut), Dirty::Nothing);
    assert_eq!(set.sim.world.set_leaving(&id("b"), true), Dirty::All);
    assert_eq!(set.sim.world.remove_member(&id("b")), Dirty::All);
    assert_eq!(set.sim.world.remove_member(&id("b")), Dirty::Nothing);
    let export = Export { meta: Meta::default(), ..Export::default() };
    assert_eq!(set.sim.world.set_export(&id("b"), &key("shop/web"), Some(export)), Dirty::Nothing, "no member");
}

#[test]
fn what_a_failed_write_says_concerns_its_service() {
    let mut set = one();
    let failure = Failure { since: set.now, message: "no".into() };
    assert_eq!(set.sim.world.set_failure(&id("b"), &key("shop/web"), Some(failure.clone())), only("shop/web"));
    assert_eq!(set.sim.world.set_failure(&id("b"), &key("shop/web"), Some(failure)), Dirty::Nothing);
    assert_eq!(set.sim.world.set_failure(&id("b"), &key("shop/web"), None), only("shop/web"));
    let refuse = |set: &mut Set, value| {
        set.sim.world.set_refused(&id("b"), &key("shop/web"), Refusable::TrafficDistribution, value)
    };
    assert_eq!(refuse(&mut set, "x"), only("shop/web"));
    assert_eq!(refuse(&mut set, "x"), Dirty::Nothing);
}

#[test]
fn a_second_list_begins_over() {
    let mut set = one();
    let a = id("a");
    set.sim.world.begin_list(&a, Kind::Slices);
    let name = SliceKey { namespace: label("shop"), name: "web-abc".into() };
    let slice = set.local("a", "shop/web").expect("local").sources["web-abc"].clone();
    set.sim.world.set_slice(&a, &name, Some(slice));
    // It broke off, and the next one does not hold the slice any more.
    set.sim.world.begin_list(&a, Kind::Slices);
    let told = set.sim.world.end_list(&a, Kind::Slices);
    assert!(told.contains(&only("shop/web")), "{told:?}");
    assert!(set.local("a", "shop/web").expect("local").sources.is_empty());
    assert_eq!(set.sim.world.end_list(&a, Kind::Slices), [], "no list is running");
}

/// What a plan depends on is that service's entries: with everything else away, it is the same.
#[test]
fn planning_one_service_reads_no_others() {
    let mut crowd = Set::new(["a", "b", "c"]);
    for n in 0..200 {
        crowd.exported("a", &format!("shop/crowd-{n}"), n, ["10.1.0.1"]);
    }
    let mut alone = Set::new(["a", "b", "c"]);
    for set in [&mut crowd, &mut alone] {
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.exported("b", "shop/web", 5, ["10.2.0.1"]);
    }
    let plan = |set: &Set| plan_service(&set.sim.world, &key("shop/web"), &set.settings, set.now);
    assert_eq!(plan(&crowd), plan(&alone));
}
