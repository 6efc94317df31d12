//! Where the request documents differ from the KEP or from what works (controller.md 2.14), as far as it is decided
//! here. D2 stands in `derived.rs`, D7, D16 and D19 in `status.rs`; D1, D17, D25 and D26 are about documentation and
//! the group's name.

use crate::set::*;
use namesake::api;
use namesake::model::ImportKind;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Action, Importing};
use namesake::reconcile::settings::{CreateNamespaces, SliceOwner};
use namesake::reconcile::{Settings, naming};

fn one_with(settings: Settings) -> Set {
    let mut set = Set::with(settings, ["cluster-a", "cluster-b"]);
    set.exported("cluster-a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set
}

fn one() -> Set {
    one_with(Settings::default())
}

fn slice(set: &Set) -> &Slice {
    set.mirrored("cluster-b", "shop/web")[0].1
}

#[test]
fn mcs_d1_the_group_is_the_real_one() {
    assert_eq!(api::GROUP, "multicluster.x-k8s.io");
}

#[test]
fn mcs_d3_slices_name_the_derived_service_never_the_users() {
    let set = one();
    let derived = naming::derived(&key("shop/web"));
    assert_eq!(&*slice(&set).meta.labels[api::LABEL_KUBERNETES_SERVICE_NAME], derived.as_str());
}

#[test]
fn mcs_d4_the_source_label_is_the_keps_and_cluster_apis_by_option() {
    let set = one();
    assert_eq!(&*slice(&set).meta.labels[api::LABEL_SOURCE_CLUSTER], "cluster-a");
    assert!(!slice(&set).meta.labels.contains_key(api::LABEL_CLUSTER_API_NAME));
    let set = one_with(Settings { cluster_api_label: true, ..Settings::default() });
    assert_eq!(&*slice(&set).meta.labels[api::LABEL_CLUSTER_API_NAME], "cluster-a");
    assert_eq!(&*slice(&set).meta.labels[api::LABEL_SOURCE_CLUSTER], "cluster-a");
}

#[test]
fn mcs_d5_slices_survive_a_recreated_derived_service() {
    for option in [SliceOwner::Import, SliceOwner::Service, SliceOwner::Both] {
        let mut set = one_with(Settings { slice_owner: option, ..Settings::default() });
        set.service("cluster-a", "shop/web", headless(["http 80"]));
        set.run();
        assert_eq!(set.addresses("cluster-b", "shop/web"), ["10.1.0.1"], "{option:?}");
        let derived = set.derived("cluster-b", "shop/web").expect("derived");
        let owners = &slice(&set).meta.owners;
        let by_service = owners.iter().find(|owner| owner.kind == OwnerKind::Service);
        assert_eq!(by_service.is_some(), option != SliceOwner::Import);
        assert!(by_service.is_none_or(|owner| owner.uid.as_deref() == Some(&*derived.meta.id.uid)), "the new one");
    }
}

#[test]
fn mcs_d6_owner_references_have_the_uid_of_what_is_there() {
    let set = one();
    let import = set.imported("cluster-b", "shop/web");
    assert_eq!(slice(&set).meta.owners[0].uid.as_deref(), Some(&*import.meta.id.uid));
}

#[test]
fn mcs_d8_slice_ports_are_where_pods_listen() {
    let set = one();
    assert_eq!(slice(&set).content.ports, [slice_port("http 8080")]);
}

#[test]
fn mcs_d9_the_hash_is_of_namespace_and_name() {
    assert_ne!(naming::derived(&key("default/sample-service")).as_str(), "derived-bulsoci59b");
    assert_ne!(naming::derived(&key("a/web")), naming::derived(&key("b/web")));
}

#[test]
fn mcs_d10_the_cluster_id_stands_in_the_name_as_it_is() {
    let set = one();
    assert!(set.slice_names("cluster-b", "shop/web")[0].ends_with("-cluster-a"));
}

#[test]
fn mcs_d11_one_source_cluster_may_need_several_slices() {
    let mut set = one();
    set.source("cluster-a", "shop/web", "other", ["http 9090"], endpoints(["10.1.0.2"]));
    set.run();
    assert_eq!(set.slice_names("cluster-b", "shop/web").len(), 2);
}

#[test]
fn mcs_d12_a_headless_import_has_a_derived_service_by_default() {
    let mut set = one();
    set.service("cluster-a", "shop/web", headless(["http 80"]));
    set.run();
    assert!(set.derived("cluster-b", "shop/web").expect("derived").spec.headless);
}

#[test]
fn mcs_d13_node_names_of_other_clusters_are_stripped() {
    let mut set = one();
    let pod = Endpoint { node: Some("kind-control-plane".into()), ..endpoint("10.1.0.1") };
    set.source("cluster-a", "shop/web", "abc", ["http 8080"], vec![pod]);
    set.run();
    assert_eq!(slice(&set).content.endpoints[0].node, None);
}

#[test]
fn mcs_d14_a_headless_import_has_no_ips() {
    let mut set = one();
    set.service("cluster-a", "shop/web", headless(["http 80"]));
    set.run();
    let spec = &set.imported("cluster-b", "shop/web").spec;
    assert_eq!((spec.kind, spec.ips.len()), (ImportKind::Headless, 0));
}

#[test]
fn mcs_d15_the_derived_service_is_an_ordinary_cluster_ip() {
    let set = one();
    assert_eq!(set.derived("cluster-b", "shop/web").expect("derived").spec.kind, ServiceType::ClusterIp);
    assert_eq!(set.imported("cluster-b", "shop/web").spec.kind, ImportKind::ClusterSetIp);
}

#[test]
fn mcs_d18_slices_are_always_made() {
    assert_eq!(one().mirrored("cluster-b", "shop/web").len(), 1);
}

#[test]
fn mcs_d20_exporters_import_too() {
    assert_eq!(one().import_says("cluster-a", "shop/web"), "True/Ready");
}

#[test]
fn mcs_d21_our_manager_is_our_own() {
    let set = one();
    let by = &*slice(&set).meta.labels[api::LABEL_SLICE_MANAGED_BY];
    assert_eq!(by, "namesake");
    assert!(!by.ends_with("k8s.io"));
}

#[test]
fn mcs_d22_no_finalizers_but_owners_and_a_sweep() {
    let mut set = one();
    let owned = slice(&set).meta.owners.clone();
    assert_eq!(owned.len(), 1);
    // The owner goes without us: what it owned goes with it, and the rest is swept up.
    set.unexport("cluster-a", "shop/web");
    set.sim.world.set_import(&id("cluster-b"), &key("shop/web"), None);
    set.run();
    assert!(set.derived("cluster-b", "shop/web").is_none() && set.mirrored("cluster-b", "shop/web").is_empty());
}

#[test]
fn mcs_d23_namespaces_are_nobodys_business_by_default() {
    assert_eq!(Settings::default().create_namespaces, CreateNamespaces::Never);
    let mut set = one();
    set.join_with("bare", &[Family::V4]);
    let changes = set.run();
    assert!(!changes.iter().any(|change| matches!(change.action, Action::CreateNamespace(_))));
    assert_eq!(set.importing("bare", "shop/web"), Some(Importing::NamespaceMissing));
}

#[test]
fn mcs_d24_an_import_is_always_made() {
    let mut set = one();
    set.service("cluster-a", "shop/web", headless([]));
    set.run();
    assert!(set.import("cluster-b", "shop/web").is_some());
}
