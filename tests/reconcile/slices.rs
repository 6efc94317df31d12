//! Mirrored slices (controller.md 2.7).

use crate::set::*;
use namesake::api;
use namesake::model::{ClusterId, SliceKey};
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::Action;
use namesake::reconcile::settings::SliceOwner;
use namesake::reconcile::{Settings, naming};

fn one() -> Set {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set
}

/// `10.1.x.y` for each number.
fn pods(numbers: impl IntoIterator<Item = usize>) -> Vec<Endpoint> {
    numbers.into_iter().map(|n| endpoint(&format!("10.1.{}.{}", n / 250, n % 250 + 1))).collect()
}

/// `a` exports so many pods, in slices of a hundred, as kube-controller-manager makes them.
fn large(count: usize) -> Set {
    let mut set = Set::new(["a", "b"]);
    set.service("a", "shop/web", cluster_ip(["http 80"]));
    for (n, chunk) in pods(0..count).chunks(100).enumerate() {
        set.source("a", "shop/web", &n.to_string(), ["http 8080"], chunk.to_vec());
    }
    set.export("a", "shop/web", 0);
    set.run();
    set
}

fn sizes(set: &Set) -> Vec<usize> {
    set.mirrored("b", "shop/web").iter().map(|(_, slice)| slice.content.endpoints.len()).collect()
}

#[test]
fn mcs_r59_slices_have_their_labels_and_one_source_cluster() {
    let mut set = one();
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    for (_, slice) in set.mirrored("b", "shop/web") {
        let labels = &slice.meta.labels;
        let source = &*labels[api::LABEL_SOURCE_CLUSTER];
        let prefix = if source == "a" { "10.1." } else { "10.2." };
        assert!(slice.content.endpoints.iter().all(|e| e.addresses[0].to_string().starts_with(prefix)));
        assert_eq!(&*labels[api::LABEL_SERVICE_NAME], "web");
        assert_ne!(&*labels[api::LABEL_SLICE_MANAGED_BY], "endpointslice-controller.k8s.io");
    }
}

#[test]
fn mcs_r60_an_exporter_has_a_mirrored_slice_of_itself() {
    let set = one();
    let derived = naming::derived(&key("shop/web"));
    assert_eq!(set.slice_names("a", "shop/web"), [format!("{derived}-a")]);
}

#[test]
fn mcs_r61_every_slice_of_the_service_is_a_source_but_imported_ones() {
    let mut set = one();
    set.source("a", "shop/web", "hand-made", ["http 9090"], endpoints(["10.1.0.9"]));
    set.run();
    assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1", "10.1.0.9"]);
    // Slices that were imported, with the user's service name on them, are no loop: those that name their source (the
    // request's form, D3, and Cilium's), and those of Karmada, which don't.
    let of_web = (api::LABEL_KUBERNETES_SERVICE_NAME, "web");
    let imported = [
        map([of_web, (api::LABEL_SERVICE_NAME, "web"), (api::LABEL_SOURCE_CLUSTER, "b")]),
        map([of_web, (api::LABEL_SLICE_MANAGED_BY, api::KARMADA_DISPATCHER)]),
    ];
    for (i, labels) in imported.into_iter().enumerate() {
        let meta = Meta { labels, ..set.meta() };
        let (ports, endpoints) = (vec![slice_port("http 8080")], endpoints(["10.66.0.1"]));
        let content = SliceContent { family: Family::V4, ports, endpoints };
        let name = SliceKey { namespace: label("shop"), name: format!("imported-{i}").into() };
        set.sim.world.set_slice(&id("a"), &name, Some(Slice { meta, content }));
        assert_eq!(set.run(), []);
    }
}

#[test]
fn mcs_r62_the_first_slice_has_the_requests_name_and_others_a_suffix() {
    let set = large(250);
    let derived = naming::derived(&key("shop/web"));
    let names: Vec<_> = ["", "-2", "-3"].map(|suffix| format!("{derived}-a{suffix}")).to_vec();
    assert_eq!(set.slice_names("b", "shop/web"), names);
    assert_eq!(sizes(&set), [100, 100, 50]);
}

#[test]
fn mcs_r62_names_fit_and_never_meet_another_clusters() {
    let long = ClusterId::new(&format!("{}.{}", "c".repeat(63), "d".repeat(63))).expect("an id");
    let derived = naming::derived(&key("shop/web"));
    for name in naming::slice_names(&derived, &long, Some(Family::V6)).take(1000) {
        assert!(name.len() <= 253, "{name}");
    }
    // `a`'s second slice would have the name of `a-2`'s first.
    let mut set = Set::new(["a", "a-2", "b"]);
    set.service("a", "shop/web", cluster_ip(["http 80"]));
    set.source("a", "shop/web", "1", ["http 8080"], pods(0..150));
    set.export("a", "shop/web", 0);
    set.run();
    set.exported("a-2", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    let first = format!("{derived}-a-2");
    let slice = &set.local("b", "shop/web").expect("local").mirrored[&*first];
    assert_eq!(slice.source(), Some(id("a-2")));
}

#[test]
fn mcs_r62_a_foreign_slice_of_that_name_is_left_alone() {
    let mut set = Set::new(["a", "b"]);
    let derived = naming::derived(&key("shop/web"));
    let name = SliceKey { namespace: label("shop"), name: format!("{derived}-a").into() };
    let content = SliceContent { family: Family::V4, ports: vec![], endpoints: vec![] };
    let theirs = Slice { meta: set.meta(), content };
    set.sim.world.set_slice(&id("b"), &name, Some(theirs));
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert_eq!(set.slice_names("b", "shop/web"), [format!("{derived}-a-2")]);
}

#[test]
fn mcs_r62_one_pods_change_writes_one_slice_per_importer() {
    let slices = |changes: &[namesake::reconcile::plan::Change]| -> Vec<String> {
        verbs(changes).into_iter().filter(|verb| verb.ends_with("slice")).collect()
    };
    let mut set = large(250);
    // One leaves.
    set.source("a", "shop/web", "0", ["http 8080"], pods(1..100));
    assert_eq!(slices(&set.run()), ["a apply slice", "b apply slice"]);
    assert_eq!(sizes(&set), [99, 100, 50]);
    // One comes.
    set.source("a", "shop/web", "2", ["http 8080"], pods(200..251));
    assert_eq!(slices(&set.run()), ["a apply slice", "b apply slice"]);
    assert_eq!(sizes(&set), [100, 100, 50], "into the fullest with room");
    // One is replaced by another.
    set.source("a", "shop/web", "1", ["http 8080"], pods((101..200).chain([300])));
    assert_eq!(slices(&set.run()), ["a apply slice", "b apply slice"]);
    // One turns unready.
    let mut unready = pods(200..251);
    (unready[7].ready, unready[7].serving) = (false, false);
    set.source("a", "shop/web", "2", ["http 8080"], unready);
    assert_eq!(slices(&set.run()), ["a apply slice", "b apply slice"]);
    assert_eq!(set.run(), []);
}

#[test]
fn mcs_r62_what_shrank_does_not_stay_scattered() {
    let mut set = large(250);
    set.source("a", "shop/web", "0", ["http 8080"], pods(0..20));
    set.no_source("a", "shop/web", "1");
    set.source("a", "shop/web", "2", ["http 8080"], pods(200..220));
    let changes = set.run();
    assert_eq!(sizes(&set), [40]);
    // What gains is written before what loses (HDL-05).
    let in_b: Vec<_> = verbs(&changes).into_iter().filter(|v| v.starts_with("b ") && v.contains("slice")).collect();
    assert_eq!(in_b, ["b apply slice", "b delete slice", "b delete slice"]);
}

#[test]
fn mcs_r62_a_lower_limit_moves_only_what_is_too_much() {
    let mut set = large(150);
    set.settings.endpoints_per_slice = 60;
    set.run();
    assert_eq!(sizes(&set), [60, 50, 40]);
    set.settings.endpoints_per_slice = 1000;
    assert_eq!(set.run(), [], "a higher one moves nothing");
    let mut set = Set::with(Settings { endpoints_per_slice: 0, ..Settings::default() }, ["a"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1", "10.1.0.2"]);
    set.run();
    assert_eq!(set.slice_names("a", "shop/web").len(), 2);
}

#[test]
fn mcs_r62_a_change_of_port_rewrites_slices_in_place() {
    let mut set = large(150);
    let before: Vec<String> = set.slice_names("b", "shop/web").into_iter().map(Into::into).collect();
    for n in 0..2 {
        set.source("a", "shop/web", &n.to_string(), ["http 9090"], pods(n * 100..(n * 100 + 100).min(150)));
    }
    let changes = set.run();
    assert!(changes.iter().all(|change| verb(change) == "apply slice"), "{:?}", verbs(&changes));
    assert_eq!(set.slice_names("b", "shop/web"), before);
    assert!(set.mirrored("b", "shop/web").iter().all(|(_, s)| s.content.ports == [slice_port("http 9090")]));
}

#[test]
fn mcs_r62_an_endpoint_in_two_source_slices_is_mirrored_once() {
    let mut set = one();
    let mut leaving = endpoint("10.1.0.2");
    (leaving.ready, leaving.serving) = (false, false);
    set.source("a", "shop/web", "old", ["http 8080"], vec![leaving]);
    set.source("a", "shop/web", "new", ["http 8080"], endpoints(["10.1.0.2"]));
    set.run();
    assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1", "10.1.0.2"]);
    let (_, slice) = set.mirrored("b", "shop/web")[0];
    assert!(slice.content.endpoints.iter().all(|endpoint| endpoint.ready), "the better one counts");
}

/// `a` exports one rich pod; the endpoint as `cluster` holds it.
fn carried(settings: Settings, cluster: &str) -> Endpoint {
    let mut set = Set::with(settings, ["a", "b"]);
    set.service("a", "shop/web", cluster_ip(["http 80"]));
    let pod = Endpoint {
        ready: false,
        serving: true,
        terminating: true,
        hostname: Some("db-0".into()),
        zone: Some("zone-1".into()),
        node: Some("node-1".into()),
        pod: Some(PodRef { name: "db-0".into(), uid: "u".into() }),
        hint_zones: vec!["zone-9".into()],
        ..endpoint("10.1.0.1")
    };
    set.source("a", "shop/web", "abc", ["http 8080"], vec![pod]);
    set.export("a", "shop/web", 0);
    set.run();
    set.mirrored(cluster, "shop/web")[0].1.content.endpoints[0].clone()
}

#[test]
fn mcs_r63_conditions_hostname_and_zone_travel_and_pods_stay_at_home() {
    for (cluster, has_pod) in [("a", true), ("b", false)] {
        let endpoint = carried(Settings::default(), cluster);
        assert_eq!((endpoint.ready, endpoint.serving, endpoint.terminating), (false, true, true));
        assert_eq!((endpoint.hostname.as_deref(), endpoint.zone.as_deref()), (Some("db-0"), Some("zone-1")));
        assert_eq!(endpoint.pod.is_some(), has_pod);
    }
}

#[test]
fn mcs_r64_node_names_stay_at_home_unless_told_otherwise() {
    let keep = || Settings { remote_node_names: true, ..Settings::default() };
    assert_eq!(carried(Settings::default(), "a").node.as_deref(), Some("node-1"));
    assert_eq!(carried(Settings::default(), "b").node, None);
    assert_eq!(carried(keep(), "b").node.as_deref(), Some("node-1"));
}

#[test]
fn mcs_r65_zone_hints_are_made_anew_for_all_or_for_none() {
    let hints = |distribution: Option<&str>, zones: [Option<&str>; 2], on: bool| {
        let mut set = Set::with(Settings { zone_hints: on, ..Settings::default() }, ["a", "b"]);
        let mut spec = cluster_ip(["http 80"]);
        spec.traffic.distribution = distribution.map(Into::into);
        set.service("a", "shop/web", spec);
        let pods = ["10.1.0.1", "10.1.0.2"].into_iter().zip(zones);
        let pods = pods.map(|(address, zone)| Endpoint { zone: zone.map(Into::into), ..endpoint(address) });
        set.source("a", "shop/web", "abc", ["http 8080"], pods.collect());
        set.export("a", "shop/web", 0);
        set.run();
        let slices = set.mirrored("b", "shop/web");
        slices[0].1.content.endpoints.iter().map(|e| e.hint_zones.join(",")).collect::<Vec<_>>()
    };
    let zones = [Some("z1"), Some("z2")];
    assert_eq!(hints(Some("PreferClose"), zones, true), ["z1", "z2"]);
    assert_eq!(hints(Some("PreferSameZone"), zones, true), ["z1", "z2"]);
    assert_eq!(hints(Some("PreferSameZone"), [Some("z1"), None], true), ["", ""]);
    for (distribution, on) in [(None, true), (Some("PreferSameNode"), true), (Some("PreferClose"), false)] {
        assert_eq!(hints(distribution, zones, on), ["", ""], "{distribution:?} {on}");
    }
}

#[test]
fn mcs_r65_hints_come_and_go_with_the_distribution() {
    let mut set = one();
    let pod = Endpoint { zone: Some("z1".into()), ..endpoint("10.1.0.1") };
    set.source("a", "shop/web", "abc", ["http 8080"], vec![pod]);
    let hints = |set: &mut Set, distribution: Option<&str>| {
        let mut spec = cluster_ip(["http 80"]);
        spec.traffic.distribution = distribution.map(Into::into);
        set.service("a", "shop/web", spec);
        set.run();
        set.mirrored("b", "shop/web")[0].1.content.endpoints[0].hint_zones.join(",")
    };
    assert_eq!(hints(&mut set, None), "");
    assert_eq!(hints(&mut set, Some("PreferClose")), "z1");
    assert_eq!(hints(&mut set, None), "");
}

#[test]
fn mcs_r67_labels_of_source_slices_do_not_travel_and_headless_is_marked() {
    let mut set = one();
    let keys = |set: &Set| -> Vec<String> {
        set.mirrored("b", "shop/web")[0].1.meta.labels.keys().map(|key| String::from(&**key)).collect()
    };
    assert!(!keys(&set).contains(&"team".to_owned()));
    assert!(!keys(&set).contains(&api::LABEL_HEADLESS.to_owned()));
    set.service("a", "shop/web", headless(["http 80"]));
    set.run();
    assert_eq!(&*set.mirrored("b", "shop/web")[0].1.meta.labels[api::LABEL_HEADLESS], "");
    set.service("a", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert!(!keys(&set).contains(&api::LABEL_HEADLESS.to_owned()), "and not any more");
}

#[test]
fn mcs_r68_an_exporter_without_endpoints_has_no_slice_and_stays_an_exporter() {
    let mut set = one();
    set.source("a", "shop/web", "abc", ["http 8080"], vec![]);
    set.run();
    assert!(set.mirrored("b", "shop/web").is_empty());
    assert_eq!(set.clusters("b", "shop/web"), ["a"]);
    assert!(set.imported("b", "shop/web").status.slices_present);
    assert_eq!(set.import_says("b", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r69_slices_are_owned_by_the_import_or_as_told() {
    for (option, headless_too, wanted) in [
        (SliceOwner::Import, true, vec![OwnerKind::Import]),
        (SliceOwner::Service, true, vec![OwnerKind::Service]),
        (SliceOwner::Both, true, vec![OwnerKind::Import, OwnerKind::Service]),
        (SliceOwner::Service, false, vec![OwnerKind::Import]),
    ] {
        let settings = Settings { slice_owner: option, headless_derived_service: headless_too, ..Settings::default() };
        let mut set = Set::with(settings, ["a", "b"]);
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.service("a", "shop/web", headless(["http 80"]));
        set.run();
        let owners = &set.mirrored("b", "shop/web")[0].1.meta.owners;
        assert_eq!(owners.iter().map(|owner| owner.kind).collect::<Vec<_>>(), wanted, "{option:?}");
        let import = &set.imported("b", "shop/web").meta.id.uid;
        let derived = set.derived("b", "shop/web").map(|service| service.meta.id.uid.clone());
        for owner in owners {
            let uid = if owner.kind == OwnerKind::Import { Some(import.clone()) } else { derived.clone() };
            assert_eq!(owner.uid, uid);
        }
    }
}

#[test]
fn mcs_r69_a_recreated_owner_is_followed() {
    let mut set = one();
    set.sim.world.set_import(&id("b"), &key("shop/web"), None);
    set.run();
    let import = set.imported("b", "shop/web").meta.id.uid.clone();
    for meta in [&set.mirrored("b", "shop/web")[0].1.meta, &set.derived("b", "shop/web").expect("derived").meta] {
        assert_eq!(meta.owners.len(), 1);
        assert_eq!(meta.owners[0].uid, Some(import.clone()));
    }
    assert_eq!(set.import_says("b", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r62_our_slice_without_its_labels_is_still_found_by_its_name() {
    let mut set = one();
    let (name, mut slice) = {
        let (name, slice) = set.mirrored("b", "shop/web")[0];
        (SliceKey { namespace: label("shop"), name: name.into() }, slice.clone())
    };
    slice.meta.labels.remove(api::LABEL_SERVICE_NAME);
    set.sim.world.set_slice(&id("b"), &name, Some(slice.clone()));
    set.run();
    assert!(set.mirrored("b", "shop/web")[0].1.meta.labels.contains_key(api::LABEL_SERVICE_NAME));
    // Whose endpoints it holds is not to be guessed: it goes, and a new one comes.
    slice.meta.labels.remove(api::LABEL_SOURCE_CLUSTER);
    slice.meta.id = set.mirrored("b", "shop/web")[0].1.meta.id.clone();
    set.sim.world.set_slice(&id("b"), &name, Some(slice));
    set.run();
    assert_eq!(set.addresses("b", "shop/web"), ["10.1.0.1"]);
    assert_eq!(set.mirrored("b", "shop/web")[0].1.source(), Some(id("a")));
}

#[test]
fn mcs_r93_writes_are_meant_for_the_object_that_was_seen() {
    let mut set = one();
    set.service("a", "shop/web", cluster_ip(["http 81"]));
    let id = set.imported("b", "shop/web").meta.id.clone();
    let existing = set.plan("shop/web").plan.changes.into_iter().find_map(|change| match change.action {
        Action::ApplyImport(import) if change.cluster.as_str() == "b" => Some(import.existing),
        _ => None,
    });
    assert_eq!(existing, Some(Some(id)));
}
