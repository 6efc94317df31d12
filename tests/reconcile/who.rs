//! Who exports and who imports (controller.md 2.1).

use crate::set::*;
use namesake::api;
use namesake::model::ImportKind;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::Importing;
use namesake::reconcile::settings::{CreateNamespaces, LabelRule, NamespaceConsent, NamespaceRule};

#[test]
fn mcs_r1_only_a_cluster_with_its_own_export_takes_part() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.service("west", "shop/web", cluster_ip(["http 80"]));
    set.source("west", "shop/web", "abc", ["http 8080"], endpoints(["10.2.0.1"]));
    set.run();
    for cluster in ["east", "west"] {
        assert_eq!(set.clusters(cluster, "shop/web"), ["east"]);
        assert_eq!(set.addresses(cluster, "shop/web"), ["10.1.0.1"]);
    }
}

#[test]
fn mcs_r2_exports_of_one_name_are_one_service() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.exported("west", "shop/web", 1, ["10.2.0.1"]);
    set.exported("west", "default/web", 1, ["10.2.0.9"]);
    set.run();
    assert_eq!(set.clusters("east", "shop/web"), ["east", "west"]);
    assert_eq!(set.addresses("east", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    assert_eq!(set.addresses("east", "default/web"), ["10.2.0.9"]);
}

#[test]
fn mcs_r3_every_cluster_with_the_namespace_imports_exporters_too() {
    let mut set = Set::new(["east", "west", "north"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    for cluster in ["east", "west", "north"] {
        assert_eq!(set.import_says(cluster, "shop/web"), "True/Ready");
        assert_eq!(set.addresses(cluster, "shop/web"), ["10.1.0.1"]);
    }
}

#[test]
fn mcs_r4_a_cluster_without_the_namespace_does_not_import_until_it_appears() {
    let mut set = Set::new(["east"]);
    set.join_with("west", &[Family::V4]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert!(set.import("west", "shop/web").is_none());
    assert_eq!(set.importing("west", "shop/web"), Some(Importing::NamespaceMissing));
    assert_eq!(set.says("east", "shop/web", "Ready"), "True/Exported");
    assert_eq!(
        set.message("east", "shop/web", "Ready"),
        "The service has been exported to 1 cluster. Not imported where the namespace is missing: west."
    );
    assert!(set.told().contains(&"east NamespaceMissing".to_owned()), "{:?}", set.told());

    set.namespace("west", "shop");
    set.run();
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
    assert_eq!(set.message("east", "shop/web", "Ready"), "The service has been exported to 2 clusters.");
}

#[test]
fn mcs_r4_missing_namespaces_are_made_and_removed_by_option_only() {
    let settings = Settings { create_namespaces: CreateNamespaces::CreateAndRemove, ..Settings::default() };
    let mut set = Set::with(settings, ["east"]);
    set.join_with("west", &[Family::V4]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let made = set.sim.world.members()[&id("west")].namespace(&label("shop")).expect("made");
    assert_eq!(made.meta.labels, map([("app.kubernetes.io/managed-by", "namesake")]));
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");

    set.unexport("east", "shop/web");
    set.run();
    assert!(set.sim.world.members()[&id("west")].namespace(&label("shop")).is_none(), "ours went");
    assert!(set.sim.world.members()[&id("east")].namespace(&label("shop")).is_some(), "the user's stayed");
}

#[test]
fn mcs_r4_a_namespace_that_was_made_stays_with_others_in_it_and_without_the_second_option() {
    for (option, other, stays) in [
        (CreateNamespaces::Create, false, true),
        (CreateNamespaces::CreateAndRemove, true, true),
        (CreateNamespaces::CreateAndRemove, false, false),
    ] {
        let mut set = Set::with(Settings { create_namespaces: option, ..Settings::default() }, ["east"]);
        set.join_with("west", &[Family::V4]);
        set.exported("east", "shop/web", 0, ["10.1.0.1"]);
        set.run();
        if other {
            set.service("west", "shop/theirs", cluster_ip(["http 80"]));
        }
        set.unexport("east", "shop/web");
        set.run();
        let there = set.sim.world.members()[&id("west")].namespace(&label("shop")).is_some();
        assert_eq!(there, stays, "{option:?}, others in it: {other}");
    }
}

#[test]
fn mcs_r5_a_terminating_namespace_is_left_alone() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set.terminate("west", "shop");
    set.source("east", "shop/web", "abc", ["http 8080"], endpoints(["10.1.0.2"]));
    let changes = set.run();
    assert!(changes.iter().all(|change| change.cluster == id("east")), "{:?}", verbs(&changes));
    assert!(set.message("east", "shop/web", "Ready").contains("being deleted: west"));

    set.namespace("west", "shop");
    set.run();
    assert_eq!(set.addresses("west", "shop/web"), ["10.1.0.2"]);
}

#[test]
fn mcs_r6_one_import_per_service_not_per_exporter() {
    let mut set = Set::new(["east", "west", "north"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.exported("west", "shop/web", 1, ["10.2.0.1"]);
    let changes = set.run();
    for cluster in ["east", "west", "north"] {
        let made = changes.iter().filter(|c| c.cluster == id(cluster) && verb(c) == "apply service").count();
        assert_eq!(made, 1, "{cluster}");
        assert_eq!(set.clusters(cluster, "shop/web"), ["east", "west"]);
    }
}

#[test]
fn mcs_r7_the_import_lives_as_long_as_one_valid_exporter() {
    let mut set = Set::new(["east", "west", "north"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.exported("west", "shop/web", 1, ["10.2.0.1"]);
    set.run();
    let before = set.imported("north", "shop/web").clone();
    set.unexport("east", "shop/web");
    set.run();
    let after = set.imported("north", "shop/web");
    assert_eq!(after.meta.id.uid, before.meta.id.uid);
    assert_eq!(after.spec, before.spec);
    assert_eq!(set.clusters("north", "shop/web"), ["west"]);
    assert_eq!(set.addresses("north", "shop/web"), ["10.2.0.1"]);

    set.unexport("west", "shop/web");
    set.run();
    for cluster in ["east", "west", "north"] {
        assert!(set.import(cluster, "shop/web").is_none());
        assert!(set.derived(cluster, "shop/web").is_none());
        assert!(set.mirrored(cluster, "shop/web").is_empty());
    }
}

/// A ServiceImport that somebody else wrote.
fn foreign_import(set: &mut Set, cluster: &str, name: &str) {
    let meta = set.meta();
    let spec = ImportSpec {
        kind: ImportKind::ClusterSetIp,
        ports: ports(["http 80"]),
        ips: vec![ip("10.9.9.9")],
        families: vec![Family::V4],
        traffic: Traffic::default(),
    };
    let import = Import { meta, spec, status: ImportStatus::default() };
    set.sim.world.set_import(&id(cluster), &key(name), Some(import));
}

#[test]
fn mcs_r8_a_foreign_import_is_reported_and_never_touched() {
    let mut set = Set::new(["east", "west"]);
    foreign_import(&mut set, "west", "shop/web");
    foreign_import(&mut set, "west", "shop/other");
    let before = set.imported("west", "shop/web").clone();
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    let changes = set.run();
    assert!(changes.iter().all(|change| change.cluster == id("east")), "{:?}", verbs(&changes));
    assert_eq!(*set.imported("west", "shop/web"), before);
    assert!(set.import("west", "shop/other").is_some());
    assert_eq!(set.says("east", "shop/web", "Ready"), "False/Failed");
    assert_eq!(
        set.message("east", "shop/web", "Ready"),
        "Not written everywhere: west: ServiceImport web exists and is not managed by namesake."
    );
    assert!(set.told().contains(&"east Failed".to_owned()));
    assert_eq!(set.import_says("east", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r8_r54_a_foreign_import_is_adopted_by_option() {
    let mut set = Set::with(Settings { adopt_imports: true, ..Settings::default() }, ["east", "west"]);
    foreign_import(&mut set, "west", "shop/web");
    let uid = set.imported("west", "shop/web").meta.id.uid.clone();
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let import = set.imported("west", "shop/web");
    assert_eq!(import.meta.id.uid, uid);
    assert!(import.meta.is_ours());
    // R54: addresses that somebody wrote into it are not relied on.
    assert_eq!(import.spec.ips, set.derived("west", "shop/web").expect("derived").spec.ips);
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
    assert_eq!(set.says("east", "shop/web", "Ready"), "True/Exported");
}

#[test]
fn mcs_r9_node_port_and_load_balancer_services_are_exported_as_cluster_set_ip() {
    for kind in [ServiceType::NodePort, ServiceType::LoadBalancer, ServiceType::ClusterIp] {
        let mut set = Set::new(["east", "west"]);
        set.exported("east", "shop/web", 0, ["10.1.0.1"]);
        set.service("east", "shop/web", ServiceSpec { kind: kind.clone(), ..cluster_ip(["http 80"]) });
        set.run();
        assert_eq!(set.imported("west", "shop/web").spec.kind, ImportKind::ClusterSetIp);
        assert_eq!(set.derived("west", "shop/web").expect("derived").spec.kind, ServiceType::ClusterIp);
        assert_eq!(set.says("east", "shop/web", "Valid"), "True/Valid");
    }
}

#[test]
fn mcs_r10_external_name_contributes_nothing_and_has_no_say() {
    let mut set = Set::new(["east", "west"]);
    let external = ServiceSpec { kind: ServiceType::ExternalName, ..ServiceSpec::default() };
    set.service("east", "shop/web", external);
    set.export("east", "shop/web", 0);
    set.exported("west", "shop/web", 1, ["10.2.0.1"]);
    set.run();
    assert_eq!(set.clusters("east", "shop/web"), ["west"]);
    assert_eq!(set.says("east", "shop/web", "Valid"), "False/InvalidServiceType");
    assert!(set.message("east", "shop/web", "Valid").starts_with("ExternalName services cannot be exported"));
    assert_eq!(set.says("east", "shop/web", "Ready"), "False/Pending");
    assert_eq!(set.says("east", "shop/web", "Conflict"), "none");
    assert_eq!(set.says("west", "shop/web", "Conflict"), "False/NoConflicts");
}

#[test]
fn mcs_r11_a_missing_service_is_waited_for() {
    let mut set = Set::new(["east", "west"]);
    set.export("east", "shop/web", 0);
    set.run();
    assert_eq!(set.says("east", "shop/web", "Valid"), "False/NoService");
    assert_eq!(set.message("east", "shop/web", "Valid"), "Service shop/web does not exist in cluster \"east\".");
    assert!(set.import("west", "shop/web").is_none());
    set.service("east", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert_eq!(set.says("east", "shop/web", "Valid"), "True/Valid");
    assert_eq!(set.says("east", "shop/web", "Ready"), "True/Exported");
    assert_eq!(set.import_says("west", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r12_an_imported_service_is_not_exported_again() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    let derived = namesake::reconcile::naming::derived(&key("shop/web"));
    let name = format!("shop/{derived}");
    set.export("west", &name, 5);
    let changes = set.run();
    assert_eq!(verbs(&changes), ["west export status"]);
    assert_eq!(set.says("west", &name, "Valid"), "False/ImportedService");

    // Whoever made it: the label alone says what it stands for.
    set.service_labelled("west", "shop/copy", cluster_ip(["http 80"]), map([(api::LABEL_SERVICE_IMPORTED, "true")]));
    set.export("west", "shop/copy", 5);
    set.run();
    assert_eq!(set.says("west", "shop/copy", "Valid"), "False/ImportedService");
    assert!(set.import("east", "shop/copy").is_none());
}

#[test]
fn mcs_r13_privileged_namespaces_are_not_imported_into_by_default() {
    let mut set = Set::new(["east", "west"]);
    set.exported("east", "kube-system/dns", 0, ["10.1.0.1"]);
    set.exported("east", "default/web", 0, ["10.1.0.1"]);
    set.run();
    assert!(set.import("west", "kube-system/dns").is_none());
    assert!(set.derived("west", "kube-system/dns").is_none());
    assert!(set.import("west", "default/web").is_some());
    assert_eq!(
        set.message("east", "kube-system/dns", "Ready"),
        "The service has been exported to 0 clusters. Not imported where that is not allowed: east, west."
    );
}

#[test]
fn mcs_r13_a_denied_export_says_so() {
    let rule = NamespaceRule { allow: vec!["sh*".into(), "prod".into()], deny: vec!["shadow*".into()] };
    assert!(rule.allows(&label("shop")) && rule.allows(&label("prod")));
    assert!(!rule.allows(&label("shadow-1")) && !rule.allows(&label("production")));
    let settings = Settings { export_namespaces: rule, ..Settings::default() };
    let mut set = Set::with(settings, ["east", "west"]);
    set.exported("east", "default/web", 0, ["10.1.0.1"]);
    set.exported("east", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert!(set.import("west", "default/web").is_none());
    assert!(set.import("west", "shop/web").is_some());
    assert_eq!(set.says("east", "default/web", "Ready"), "False/Failed");
    assert_eq!(set.says("east", "default/web", "Conflict"), "none");
    assert!(set.message("east", "default/web", "Ready").contains("allow no exports from this namespace"));
}

#[test]
fn mcs_r13_a_namespace_has_its_say_where_the_settings_listen() {
    use NamespaceConsent::{Ignored, OptIn, OptOut};
    for (consent, says, imports) in [
        (Ignored, Some("false"), true),
        (OptOut, None, true),
        (OptOut, Some("false"), false),
        (OptIn, None, false),
        (OptIn, Some("true"), true),
    ] {
        let mut set = Set::with(Settings { namespace_consent: consent, ..Settings::default() }, ["east", "west"]);
        set.annotate_namespace("east", "shop", "true");
        if let Some(says) = says {
            set.annotate_namespace("west", "shop", says);
        }
        set.exported("east", "shop/web", 0, ["10.1.0.1"]);
        set.run();
        assert_eq!(set.import("west", "shop/web").is_some(), imports, "{consent:?} {says:?}");

        set.unexport("east", "shop/web");
        set.exported("west", "shop/web", 0, ["10.2.0.1"]);
        set.run();
        assert_eq!(set.import("east", "shop/web").is_some(), imports, "export: {consent:?} {says:?}");
    }
}

#[test]
fn mcs_w65_services_with_the_label_are_exported_without_a_users_export() {
    let rule = LabelRule { key: "export".into(), value: Some("yes".into()) };
    let settings = Settings { auto_export: Some(rule), ..Settings::default() };
    let mut set = Set::with(settings, ["east", "west"]);
    set.service_labelled("east", "shop/web", cluster_ip(["http 80"]), map([("export", "yes")]));
    set.service_labelled("east", "shop/no", cluster_ip(["http 80"]), map([("export", "no")]));
    set.run();
    assert_eq!(set.says("east", "shop/web", "Ready"), "True/Exported");
    assert!(set.import("west", "shop/web").is_some());
    assert!(set.import("west", "shop/no").is_none());

    set.export("east", "shop/no", 3);
    set.run();
    set.service("east", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert!(set.import("west", "shop/web").is_none(), "the label went");
    assert!(set.import("west", "shop/no").is_some(), "a user's own export stays");
}
