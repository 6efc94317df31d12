//! Derived Services and clusterset IPs (controller.md 2.5 and 2.6), and names (1.7).

use crate::set::*;
use namesake::api;
use namesake::model::ImportKind;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::Action;
use namesake::reconcile::settings::DerivedSelector;
use namesake::reconcile::{Settings, describe_ips, naming};

#[test]
fn mcs_1_7_derived_names_are_the_reference_implementations() {
    for (name, derived) in [
        ("default/sample-service", "derived-6kcte729st"),
        ("default/web-service", "derived-1olp5p7fse"),
        ("default/stateful-service", "derived-1jo7sretm7"),
        ("demo/serve", "derived-ovtkn0laet"),
        ("loyalty/loyalty-accrual", "derived-kcbq6mqli9"),
        ("my-ns/my-svc", "derived-a2v4k9sqn6"),
        ("default/external-db", "derived-f4aid9aolq"),
    ] {
        assert_eq!(naming::derived(&key(name)).as_str(), derived, "{name}");
    }
}

fn one() -> Set {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set
}

fn drop_derived(set: &mut Set, cluster: &str) {
    set.sim.world.set_service(&id(cluster), &naming::derived_key(&key("shop/web")), None);
}

#[test]
fn mcs_r52_a_deleted_derived_service_comes_back_with_its_address() {
    let mut set = one();
    let ips = set.imported("b", "shop/web").spec.ips.clone();
    drop_derived(&mut set, "b");
    let asked = set.plan("shop/web").plan.changes.into_iter().find_map(|change| match change.action {
        Action::ApplyService(service) => Some(service.spec.ips),
        _ => None,
    });
    assert_eq!(asked, Some(ips.clone()));
    let changes = set.run();
    assert_eq!(set.imported("b", "shop/web").spec.ips, ips);
    assert_eq!(set.derived("b", "shop/web").expect("derived").spec.ips, ips);
    assert!(!verbs(&changes).contains(&"b apply import".to_owned()), "the import never lost it: {:?}", verbs(&changes));
}

#[test]
fn mcs_r52_where_the_address_is_taken_a_new_one_is_used_and_told() {
    let mut set = one();
    let ips = set.imported("b", "shop/web").spec.ips.clone();
    drop_derived(&mut set, "b");
    set.service("b", "shop/thief", ServiceSpec { ips: ips.clone(), ..cluster_ip(["http 80"]) });
    set.sim.reserve(&id("b"), &key("shop/thief"));
    let value = describe_ips(&ips);
    set.sim.world.set_refused(&id("b"), &key("shop/web"), Refusable::ClusterIps, &value);
    set.run();
    let now = &set.imported("b", "shop/web").spec.ips;
    assert_ne!(*now, ips);
    assert_eq!(set.derived("b", "shop/web").expect("derived").spec.ips, *now);
    assert!(set.told().contains(&"b IPChanged".to_owned()), "{:?}", set.told());
}

#[test]
fn mcs_r52_only_a_change_of_type_makes_the_derived_service_anew() {
    let mut set = one();
    let uid = |set: &Set| set.derived("b", "shop/web").expect("derived").meta.id.uid.clone();
    let (before, import) = (uid(&set), set.imported("b", "shop/web").meta.id.uid.clone());
    set.service("a", "shop/web", cluster_ip(["web 81", "admin 90"]));
    set.run();
    assert_eq!(uid(&set), before);
    set.service("a", "shop/web", headless(["http 80"]));
    let changes = set.run();
    let in_b: Vec<_> = verbs(&changes).into_iter().filter(|verb| verb.starts_with("b ")).take(3).collect();
    assert_eq!(in_b, ["b apply import", "b delete service", "b apply service"]);
    assert_ne!(uid(&set), before);
    assert_eq!(set.imported("b", "shop/web").meta.id.uid, import, "the import stays");
    assert!(set.imported("b", "shop/web").spec.ips.is_empty());
    assert!(set.told().contains(&"b TypeChanged".to_owned()));
    set.service("a", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert_eq!(set.imported("b", "shop/web").spec.ips.len(), 1);
    assert_eq!(set.import_says("b", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r52_a_headless_service_with_another_first_family_is_made_anew() {
    let mut set = Set::unjoined(Settings::default());
    set.join_with("a", &[Family::V4, Family::V6]);
    set.namespace("a", "shop");
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.service("a", "shop/web", headless(["http 80"]));
    set.run();
    let spec = ServiceSpec { families: vec![Family::V6, Family::V4], ..headless(["http 80"]) };
    set.service("a", "shop/web", spec);
    set.run();
    assert_eq!(set.derived("a", "shop/web").expect("derived").spec.families, [Family::V6, Family::V4]);
}

#[test]
fn mcs_r53_addresses_come_from_each_importing_cluster() {
    let set = one();
    for cluster in ["a", "b"] {
        assert_eq!(set.imported(cluster, "shop/web").spec.ips, set.derived(cluster, "shop/web").expect("d").spec.ips);
    }
}

#[test]
fn mcs_r55_the_derived_service_is_a_cluster_ip_owned_by_the_import() {
    let set = one();
    let derived = set.derived("b", "shop/web").expect("derived");
    assert_eq!((&derived.spec.kind, &derived.spec.selector), (&ServiceType::ClusterIp, &Map::new()));
    assert_eq!(derived.meta.owners[0].uid.as_deref(), Some(&*set.imported("b", "shop/web").meta.id.uid));
}

#[test]
fn mcs_r56_a_headless_import_has_a_derived_service_unless_told_not_to() {
    for wanted in [true, false] {
        let settings = Settings { headless_derived_service: wanted, ..Settings::default() };
        let mut set = Set::with(settings, ["a", "b"]);
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.service("a", "shop/web", headless(["http 80"]));
        set.run();
        assert_eq!(set.derived("b", "shop/web").is_some(), wanted);
        let annotated = set.imported("b", "shop/web").meta.annotations.contains_key(api::ANNOTATION_DERIVED_SERVICE);
        assert_eq!(annotated, wanted);
        assert_eq!(set.import_says("b", "shop/web"), "True/Ready");
        assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1"]);
    }
}

#[test]
fn mcs_r57_drift_is_corrected_everywhere() {
    let mut set = one();
    let key = key("shop/web");
    let good = set.sim.world.members()[&id("b")].clone();
    let mut service = set.derived("b", "shop/web").expect("derived").clone();
    service.spec.ports = ports(["hacked 1"]);
    service.spec.selector = map([("app", "mine")]);
    service.meta.labels.remove(api::LABEL_SERVICE_NAME);
    set.sim.world.set_service(&id("b"), &naming::derived_key(&key), Some(service));
    let mut import = set.imported("b", "shop/web").clone();
    import.spec.kind = ImportKind::Headless;
    import.spec.ips = vec![ip("10.9.9.9")];
    import.meta.annotations.clear();
    import.status.clusters.clear();
    set.sim.world.set_import(&id("b"), &key, Some(import));
    let (name, mut slice) = {
        let (name, slice) = set.mirrored("b", "shop/web")[0];
        (name.to_owned(), slice.clone())
    };
    slice.content.endpoints = endpoints(["10.66.6.6"]);
    let slice_key = namesake::model::SliceKey { namespace: key.namespace.clone(), name: name.into() };
    set.sim.world.set_slice(&id("b"), &slice_key, Some(slice));
    set.run();
    assert_eq!(set.imported("b", "shop/web").spec, good.local(&key).expect("l").import.as_ref().expect("i").spec);
    assert_eq!(set.clusters("b", "shop/web"), ["a"]);
    let derived = &set.derived("b", "shop/web").expect("derived").spec;
    assert_eq!((&derived.ports, &derived.selector), (&ports(["http 80"]), &Map::new()));
    assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1"]);
}

#[test]
fn mcs_r58_the_import_names_its_derived_service() {
    let set = one();
    let annotations = &set.imported("b", "shop/web").meta.annotations;
    assert_eq!(annotations[api::ANNOTATION_DERIVED_SERVICE], naming::derived(&key("shop/web")).as_str().into());
}

#[test]
fn mcs_1_7_a_foreign_service_of_the_derived_name_is_not_taken_over() {
    let mut set = Set::new(["a", "b"]);
    let derived = format!("shop/{}", naming::derived(&key("shop/web")));
    set.service("b", &derived, cluster_ip(["theirs 1"]));
    let before = set.derived("b", "shop/web").expect("theirs").clone();
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert_eq!(*set.derived("b", "shop/web").expect("theirs"), before);
    assert_eq!(set.import_says("b", "shop/web"), "False/Pending");
    let message = &set.imported("b", "shop/web").status.conditions[0].message;
    assert!(message.contains(naming::derived(&key("shop/web")).as_str()), "{message}");
    assert!(set.mirrored("b", "shop/web").is_empty(), "his clients are not sent to our endpoints");
    assert!(set.imported("b", "shop/web").spec.ips.is_empty());
    assert!(set.told().contains(&"b Pending".to_owned()), "{:?}", set.told());
    assert_eq!(set.says("a", "shop/web", "Ready"), "False/Failed");
    assert_eq!(set.import_says("a", "shop/web"), "True/Ready");

    set.no_service("b", &derived);
    set.run();
    assert_eq!(set.import_says("b", "shop/web"), "True/Ready");
    assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
}

#[test]
fn mcs_d2_the_derived_service_selects_pods_by_option_only() {
    for (option, in_exporter, in_importer, own_slice) in [
        (DerivedSelector::None, false, false, true),
        (DerivedSelector::LocalExport, true, false, false),
        (DerivedSelector::Always, true, true, true),
    ] {
        let mut set = Set::with(Settings { derived_selector: option, ..Settings::default() }, ["a", "b"]);
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        let mut spec = cluster_ip(["http 80"]);
        spec.ports[0].target = Some(TargetPort::Number(8080));
        set.service("a", "shop/web", spec);
        set.run();
        let selects = |cluster| !set.derived(cluster, "shop/web").expect("derived").spec.selector.is_empty();
        assert_eq!((selects("a"), selects("b")), (in_exporter, in_importer), "{option:?}");
        assert_eq!(!set.mirrored("a", "shop/web").is_empty(), own_slice, "{option:?}: local pods appear once");
        assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1"]);
        let target = set.derived("a", "shop/web").expect("derived").spec.ports[0].target.clone();
        assert_eq!(target, in_exporter.then_some(TargetPort::Number(8080)));
        let target = set.derived("b", "shop/web").expect("derived").spec.ports[0].target.clone();
        assert_eq!(target, in_importer.then_some(TargetPort::Number(8080)));
    }
}
