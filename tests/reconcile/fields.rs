//! Merged fields (controller.md 2.3).

use crate::set::*;
use namesake::model::ImportKind;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::Refusable;

/// `a` (older) and `b` export these; `c` imports.
fn two(older: ServiceSpec, younger: ServiceSpec) -> Set {
    let mut set = Set::new(["a", "b", "c"]);
    for (cluster, spec, created) in [("a", older, 0), ("b", younger, 10)] {
        set.exported(cluster, "shop/web", created, ["10.1.0.1"]);
        set.service(cluster, "shop/web", spec);
    }
    set.run();
    set
}

fn traffic(change: impl Fn(&mut Traffic)) -> ServiceSpec {
    let mut spec = cluster_ip(["http 80"]);
    change(&mut spec.traffic);
    spec
}

/// The condition is on both exporters, and the same.
fn conflict(set: &Set) -> (String, &str) {
    assert_eq!(set.says("a", "shop/web", "Conflict"), set.says("b", "shop/web", "Conflict"));
    assert_eq!(set.message("a", "shop/web", "Conflict"), set.message("b", "shop/web", "Conflict"));
    (set.says("a", "shop/web", "Conflict"), set.message("a", "shop/web", "Conflict"))
}

#[test]
fn mcs_r20_the_oldest_decides_whether_it_is_headless() {
    let set = two(headless(["http 80"]), cluster_ip(["http 80"]));
    assert_eq!(set.imported("c", "shop/web").spec.kind, ImportKind::Headless);
    assert_eq!(
        conflict(&set),
        (
            "True/TypeConflict".to_owned(),
            "Conflicting type. Using \"Headless\" from oldest service export in \"a\". 1/2 clusters disagree."
        )
    );
    let set = two(cluster_ip(["http 80"]), headless(["http 80"]));
    assert_eq!(set.imported("c", "shop/web").spec.kind, ImportKind::ClusterSetIp);
    assert_eq!(
        conflict(&set).1,
        "Conflicting type. Using \"ClusterSetIP\" from oldest service export in \"a\". 1/2 clusters disagree."
    );
}

#[test]
fn mcs_r21_ports_are_the_union() {
    let set = two(cluster_ip(["http 80"]), cluster_ip(["http 80", "admin 90"]));
    assert_eq!(set.imported("c", "shop/web").spec.ports, ports(["http 80", "admin 90"]));
    assert_eq!(conflict(&set).0, "True/PortConflict");
    assert_eq!(
        conflict(&set).1,
        "Conflicting ports. Using \"http 80/TCP, admin 90/TCP\" of all service exports, that in \"a\" being the \
         oldest. 1/2 clusters disagree."
    );
}

#[test]
fn mcs_r22_session_affinity_is_the_oldests() {
    let client_ip = || traffic(|t| (t.session_affinity, t.session_timeout) = (Some("ClientIP".into()), Some(10)));
    let set = two(client_ip(), cluster_ip(["http 80"]));
    let spec = &set.imported("c", "shop/web").spec;
    assert_eq!(spec.traffic.session_affinity.as_deref(), Some("ClientIP"));
    assert_eq!(conflict(&set).0, "True/SessionAffinityConflict,SessionAffinityConfigConflict");
    assert_eq!(
        conflict(&set).1,
        "Conflicting session affinity. Using \"ClientIP\" from oldest service export in \"a\". 1/2 clusters disagree. \
         Conflicting session affinity config. Using \"10s timeout\" from oldest service export in \"a\". 1/2 clusters \
         disagree."
    );
    let set = two(cluster_ip(["http 80"]), client_ip());
    assert_eq!(set.imported("c", "shop/web").spec.traffic.session_affinity.as_deref(), Some("None"));

    // Nobody keeps sessions on a headless service.
    let sticky = ServiceSpec { headless: true, ips: Vec::new(), ..client_ip() };
    let set = two(sticky, headless(["http 80"]));
    assert_eq!(set.imported("c", "shop/web").spec.traffic.session_affinity, None);
    assert_eq!(conflict(&set).0, "False/NoConflicts");
}

#[test]
fn mcs_r23_session_affinity_config_is_the_oldests() {
    let client_ip =
        |seconds| traffic(move |t| (t.session_affinity, t.session_timeout) = (Some("ClientIP".into()), seconds));
    let set = two(client_ip(Some(60)), client_ip(Some(90)));
    assert_eq!(set.imported("c", "shop/web").spec.traffic.session_timeout, Some(60));
    assert_eq!(conflict(&set).0, "True/SessionAffinityConfigConflict");
    // Three hours is what an API server fills in.
    let set = two(client_ip(None), client_ip(Some(10800)));
    assert_eq!(conflict(&set).0, "False/NoConflicts");
}

#[test]
fn mcs_r24_internal_traffic_policy_is_the_oldests() {
    let policy = |value: Option<&'static str>| traffic(move |t| t.internal_policy = value.map(Into::into));
    let set = two(policy(Some("Local")), policy(Some("Cluster")));
    assert_eq!(set.imported("c", "shop/web").spec.traffic.internal_policy.as_deref(), Some("Local"));
    assert_eq!(conflict(&set).0, "True/InternalTrafficPolicyConflict");
    let set = two(policy(None), policy(Some("Cluster")));
    assert_eq!(set.imported("c", "shop/web").spec.traffic.internal_policy, None, "verbatim");
    assert_eq!(conflict(&set).0, "False/NoConflicts");
}

#[test]
fn mcs_r25_traffic_distribution_is_the_oldests_verbatim() {
    let distribution = |value: Option<&'static str>| traffic(move |t| t.distribution = value.map(Into::into));
    let set = two(distribution(Some("PreferClose")), distribution(None));
    assert_eq!(set.imported("c", "shop/web").spec.traffic.distribution.as_deref(), Some("PreferClose"));
    assert_eq!(conflict(&set).0, "True/TrafficDistributionConflict");
    let set = two(distribution(Some("PreferClose")), distribution(Some("PreferSameZone")));
    assert_eq!(conflict(&set).0, "False/NoConflicts", "two names of one thing");
    let set = two(distribution(None), distribution(Some("PreferSameNode")));
    assert_eq!(
        conflict(&set).1,
        "Conflicting traffic distribution. Using \"none\" from oldest service export in \"a\". 1/2 clusters disagree."
    );
}

/// `a` (older) and `b` export with these labels and annotations.
fn labelled(older: (Map, Map), younger: (Map, Map)) -> Set {
    let mut set = Set::new(["a", "b", "c"]);
    for (cluster, (labels, annotations), created) in [("a", older, 0), ("b", younger, 10)] {
        set.exported(cluster, "shop/web", created, ["10.1.0.1"]);
        set.export_with(cluster, "shop/web", created, labels, annotations);
    }
    set.run();
    set
}

#[test]
fn mcs_r26_exported_labels_are_the_oldests_whole_set() {
    let set = labelled((map([("team", "a"), ("tier", "1")]), Map::new()), (map([("team", "b")]), Map::new()));
    let labels = &set.imported("c", "shop/web").meta.labels;
    assert_eq!(*labels, map([("team", "a"), ("tier", "1"), ("app.kubernetes.io/managed-by", "namesake")]));
    assert_eq!(conflict(&set).0, "True/LabelsConflict");
    assert_eq!(
        conflict(&set).1,
        "Conflicting exported labels. Using \"team=a, tier=1\" from oldest service export in \"a\". 1/2 clusters \
         disagree."
    );
}

#[test]
fn mcs_r27_exported_annotations_are_the_oldests_whole_set() {
    let set = labelled((Map::new(), map([("note", "from a")])), (Map::new(), map([("note", "from b"), ("more", "x")])));
    let annotations = &set.imported("c", "shop/web").meta.annotations;
    assert_eq!(annotations.get("note").map(|v| &**v), Some("from a"));
    assert!(!annotations.contains_key("more"));
    assert_eq!(conflict(&set).0, "True/AnnotationsConflict");
}

#[test]
fn mcs_r26_a_label_that_is_exported_no_more_goes_and_others_labels_stay() {
    let mut set = labelled((map([("team", "a")]), Map::new()), (map([("team", "a")]), Map::new()));
    let mut import = set.imported("c", "shop/web").clone();
    import.meta.labels.insert("theirs".into(), "x".into());
    set.sim.world.set_import(&id("c"), &key("shop/web"), Some(import));
    assert_eq!(set.run(), [], "somebody else's label is not our business");
    for cluster in ["a", "b"] {
        set.export_with(cluster, "shop/web", if cluster == "a" { 0 } else { 10 }, Map::new(), Map::new());
    }
    set.run();
    let labels = &set.imported("c", "shop/web").meta.labels;
    assert_eq!(*labels, map([("theirs", "x"), ("app.kubernetes.io/managed-by", "namesake")]));
}

#[test]
fn mcs_r29_publish_not_ready_addresses_is_no_conflict() {
    let set = two(ServiceSpec { publish_not_ready: true, ..cluster_ip(["http 80"]) }, cluster_ip(["http 80"]));
    assert_eq!(conflict(&set).0, "False/NoConflicts");
}

#[test]
fn mcs_r30_metadata_of_services_and_exports_does_not_travel() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.service_labelled("a", "shop/web", cluster_ip(["http 80"]), map([("dummy-svc", "x")]));
    set.run();
    let import = set.imported("b", "shop/web");
    let derived = set.derived("b", "shop/web").expect("derived");
    for meta in [&import.meta, &derived.meta] {
        assert!(!meta.labels.contains_key("dummy-svc"));
    }
    assert_eq!(import.meta.annotations.len(), 1);
}

#[test]
fn mcs_r31_selectors_and_target_ports_are_not_part_of_the_import() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    let mut spec = cluster_ip(["http 80"]);
    spec.ports[0].target = Some(TargetPort::Number(8080));
    set.service("a", "shop/web", spec);
    set.run();
    assert_eq!(set.imported("b", "shop/web").spec.ports[0].target, None);
    let derived = set.derived("b", "shop/web").expect("derived");
    assert_eq!((&derived.spec.selector, &derived.spec.ports[0].target), (&Map::new(), &None));
}

#[test]
fn mcs_r32_ips_are_each_importing_clusters_own() {
    let set = two(cluster_ip(["http 80"]), cluster_ip(["http 80"]));
    for cluster in ["a", "b", "c"] {
        let derived = set.derived(cluster, "shop/web").expect("derived");
        assert_eq!(set.imported(cluster, "shop/web").spec.ips, derived.spec.ips);
    }
    assert_ne!(set.imported("a", "shop/web").spec.ips, set.imported("c", "shop/web").spec.ips);
}

#[test]
fn mcs_r33_sessions_and_traffic_reach_the_derived_service() {
    let spec = || {
        traffic(|t| {
            (t.session_affinity, t.session_timeout) = (Some("ClientIP".into()), Some(60));
            (t.internal_policy, t.distribution) = (Some("Local".into()), Some("PreferClose".into()));
        })
    };
    let set = two(spec(), spec());
    assert_eq!(set.derived("c", "shop/web").expect("derived").spec.traffic, spec().traffic);
    let headless = ServiceSpec { headless: true, ips: Vec::new(), ..spec() };
    let set = two(headless.clone(), headless);
    let traffic = &set.derived("c", "shop/web").expect("derived").spec.traffic;
    assert_eq!((traffic.session_timeout, &traffic.distribution), (None, &None));
}

#[test]
fn mcs_r34_a_refused_value_is_left_out_of_the_derived_service_only() {
    let spec = |value: &'static str| traffic(move |t| t.distribution = Some(value.into()));
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.service("a", "shop/web", spec("PreferSameNode"));
    set.sim.world.set_refused(&id("b"), &key("shop/web"), Refusable::TrafficDistribution, "PreferSameNode");
    set.run();
    let distribution = |set: &Set, cluster| {
        let derived = set.derived(cluster, "shop/web").expect("derived").spec.traffic.distribution.clone();
        let import = set.imported(cluster, "shop/web").spec.traffic.distribution.clone();
        (import.map(String::from), derived.map(String::from))
    };
    let same_node = || Some("PreferSameNode".to_owned());
    assert_eq!(distribution(&set, "a"), (same_node(), same_node()));
    assert_eq!(distribution(&set, "b"), (same_node(), None));
    let ready = &set.imported("b", "shop/web").status.conditions[0];
    assert_eq!(ready.status, Status::True);
    assert!(ready.message.contains("refuses trafficDistribution \"PreferSameNode\""), "{}", ready.message);
    assert!(set.told().contains(&"b Ready".to_owned()), "{:?}", set.told());

    // Another value is tried again.
    set.service("a", "shop/web", spec("PreferClose"));
    set.run();
    assert_eq!(distribution(&set, "b").1.as_deref(), Some("PreferClose"));
}

#[test]
fn mcs_r35_all_reasons_on_all_exporters_in_the_order_of_the_types() {
    let mut set = Set::new(["a", "b", "c", "d"]);
    let older = traffic(|_| {});
    let mut younger = headless(["http 81"]);
    younger.families = vec![Family::V4, Family::V6];
    younger.traffic = Traffic {
        session_affinity: Some("ClientIP".into()),
        session_timeout: Some(5),
        internal_policy: Some("Local".into()),
        distribution: Some("PreferClose".into()),
    };
    for (cluster, spec, created) in [("a", older.clone(), 0), ("b", younger, 10), ("c", older, 20)] {
        set.exported(cluster, "shop/web", created, ["10.1.0.1"]);
        set.service(cluster, "shop/web", spec);
    }
    set.export_with("b", "shop/web", 10, map([("l", "1")]), map([("a", "1")]));
    set.run();
    for cluster in ["a", "b", "c"] {
        assert_eq!(
            set.says(cluster, "shop/web", "Conflict"),
            "True/PortConflict,TypeConflict,SessionAffinityConflict,SessionAffinityConfigConflict,AnnotationsConflict,\
             LabelsConflict,InternalTrafficPolicyConflict,TrafficDistributionConflict,IPFamilyConflict"
        );
        assert_eq!(set.message(cluster, "shop/web", "Conflict").matches("1/3 clusters disagree.").count(), 9);
    }
    assert_eq!(set.plan("shop/web").conflicts.len(), 9);
    assert!(
        set.told().contains(
            &"a PortConflict,TypeConflict,SessionAffinityConflict,SessionAffinityConfigConflict,AnnotationsConflict,\
          LabelsConflict,InternalTrafficPolicyConflict,TrafficDistributionConflict,IPFamilyConflict"
                .to_owned()
        )
    );
}

#[test]
fn mcs_r36_reserved_keys_are_not_exported_and_bad_ones_are_reported() {
    let reserved = map([
        ("multicluster.kubernetes.io/service-name", "evil"),
        ("kubernetes.io/service-name", "evil"),
        ("app.kubernetes.io/managed-by", "evil"),
        ("app.kubernetes.io/instance", "argo"),
        ("argocd.argoproj.io/instance", "argo"),
        ("app.kubernetes.io/name", "web"),
    ]);
    let set = labelled((reserved.clone(), Map::new()), (reserved, Map::new()));
    assert_eq!(
        set.imported("c", "shop/web").meta.labels,
        map([("app.kubernetes.io/managed-by", "namesake"), ("app.kubernetes.io/name", "web")])
    );
    assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
    assert!(set.message("a", "shop/web", "Ready").contains("Reserved keys are not exported: "));

    let bad = map([("ok", "fine"), ("bad value", "x"), ("long", &"x".repeat(64)), ("a/b/c", "x"), ("-a", "x")]);
    let set = labelled((bad.clone(), Map::new()), (bad, Map::new()));
    assert_eq!(
        set.imported("c", "shop/web").meta.labels,
        map([("app.kubernetes.io/managed-by", "namesake"), ("ok", "fine")])
    );
    assert_eq!(set.says("a", "shop/web", "Ready"), "False/Failed");
    assert!(set.message("a", "shop/web", "Ready").contains("\"bad value\""));
    assert_eq!(set.says("b", "shop/web", "Ready"), "True/Exported", "its labels are not the ones used");
}

#[test]
fn mcs_r36_more_annotations_than_an_object_may_have_do_not_cost_the_import() {
    let big: Map = (0..5).map(|n| (format!("big-{n}").into(), "x".repeat(60_000).into())).collect();
    let set = labelled((Map::new(), big.clone()), (Map::new(), big));
    let annotations = &set.imported("c", "shop/web").meta.annotations;
    assert_eq!(annotations.keys().filter(|key| key.starts_with("big")).count(), 3);
    assert_eq!(set.says("a", "shop/web", "Ready"), "False/Failed");
    assert!(set.message("a", "shop/web", "Ready").contains("\"big-3\", \"big-4\""));
}

#[test]
fn mcs_r37_exported_metadata_reaches_the_derived_service_by_option() {
    for (labels, annotations) in [(false, false), (true, false), (true, true)] {
        let settings = Settings { derived_labels: labels, derived_annotations: annotations, ..Settings::default() };
        let mut set = Set::with(settings, ["a", "b"]);
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.export_with("a", "shop/web", 0, map([("team", "a")]), map([("note", "n")]));
        set.run();
        let meta = &set.derived("b", "shop/web").expect("derived").meta;
        assert_eq!(meta.labels.contains_key("team"), labels);
        assert_eq!(meta.annotations.contains_key("note"), annotations);
        assert!(set.imported("b", "shop/web").meta.labels.contains_key("team"));
    }
}
