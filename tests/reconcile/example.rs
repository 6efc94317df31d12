//! The request's own example (controller.md 2.15), as it must come out by default.

use crate::set::*;
use namesake::model::{ImportKind, Protocol};
use namesake::reconcile::naming;
use namesake::reconcile::objects::*;

/// `default/sample-service`, exported in `cluster-a`: port http 80 → 8080, two pods.
fn example() -> Set {
    let mut set = Set::new(["cluster-a", "cluster-b"]);
    set.service("cluster-a", "default/sample-service", cluster_ip(["http 80"]));
    let pods = ["10.0.1.1", "10.0.1.2"].map(|address| Endpoint {
        node: Some("node-1".into()),
        zone: Some("zone-1".into()),
        pod: Some(PodRef { name: "sample-0".into(), uid: "u".into() }),
        ..endpoint(address)
    });
    set.source("cluster-a", "default/sample-service", "x7k2p", ["http 8080"], pods.to_vec());
    set.export("cluster-a", "default/sample-service", 0);
    set.run();
    set
}

#[test]
fn mcs_2_15_the_import_in_cluster_b() {
    let set = example();
    let import = set.imported("cluster-b", "default/sample-service");
    assert_eq!(import.meta.labels, map([("app.kubernetes.io/managed-by", "namesake")]));
    assert_eq!(import.meta.annotations, map([("multicluster.kubernetes.io/derived-service", "derived-6kcte729st")]));
    let derived = set.derived("cluster-b", "default/sample-service").expect("a derived Service");
    assert_eq!(
        import.spec,
        ImportSpec {
            kind: ImportKind::ClusterSetIp,
            ports: vec![ServicePort {
                name: "http".into(),
                protocol: Protocol::Tcp,
                port: 80,
                app_protocol: None,
                target: None
            }],
            ips: derived.spec.ips.clone(),
            families: vec![Family::V4],
            traffic: Traffic {
                session_affinity: Some("None".into()),
                session_timeout: None,
                internal_policy: Some("Cluster".into()),
                distribution: None,
            },
        }
    );
    assert_eq!(import.spec.ips.len(), 1);
    assert_eq!(set.clusters("cluster-b", "default/sample-service"), ["cluster-a"]);
    assert!(import.status.slices_present);
    assert_eq!(import.status.conditions.len(), 1);
    assert_eq!(set.import_says("cluster-b", "default/sample-service"), "True/Ready");
}

#[test]
fn mcs_2_15_the_derived_service_in_cluster_b() {
    let set = example();
    let service = set.derived("cluster-b", "default/sample-service").expect("a derived Service");
    assert_eq!(naming::derived(&key("default/sample-service")).as_str(), "derived-6kcte729st");
    assert_eq!(
        service.meta.labels,
        map([
            ("multicluster.kubernetes.io/service-name", "sample-service"),
            ("multicluster.kubernetes.io/service-imported", "true"),
            ("app.kubernetes.io/managed-by", "namesake"),
        ])
    );
    let import = set.imported("cluster-b", "default/sample-service");
    assert_eq!(
        service.meta.owners,
        [Owner { kind: OwnerKind::Import, name: "sample-service".into(), uid: Some(import.meta.id.uid.clone()) }]
    );
    assert_eq!(service.spec.kind, ServiceType::ClusterIp);
    assert!(service.spec.dual_stack && !service.spec.headless);
    assert_eq!(service.spec.selector, Map::new());
    assert_eq!(service.spec.ports, ports(["http 80"]));
    assert_eq!(service.spec.traffic.session_affinity.as_deref(), Some("None"));
    assert_eq!(service.spec.traffic.internal_policy.as_deref(), Some("Cluster"));
}

#[test]
fn mcs_2_15_the_slice_in_cluster_b() {
    let set = example();
    let slices = set.mirrored("cluster-b", "default/sample-service");
    let [(name, slice)] = slices[..] else { panic!("one slice, not {slices:?}") };
    assert_eq!(name, "derived-6kcte729st-cluster-a");
    assert_eq!(
        slice.meta.labels,
        map([
            ("kubernetes.io/service-name", "derived-6kcte729st"),
            ("multicluster.kubernetes.io/service-name", "sample-service"),
            ("multicluster.kubernetes.io/source-cluster", "cluster-a"),
            ("endpointslice.kubernetes.io/managed-by", "namesake"),
        ])
    );
    assert_eq!(slice.meta.owners[0].name, "sample-service".into());
    let pod = |address| Endpoint { zone: Some("zone-1".into()), ..endpoint(address) };
    assert_eq!(
        slice.content,
        SliceContent {
            family: Family::V4,
            ports: vec![slice_port("http 8080")],
            endpoints: vec![pod("10.0.1.1"), pod("10.0.1.2")],
        }
    );
}

#[test]
fn mcs_2_15_external_db_gets_conditions_and_nothing_else() {
    let mut set = Set::new(["cluster-a", "cluster-b"]);
    let spec = ServiceSpec { kind: ServiceType::ExternalName, ..ServiceSpec::default() };
    set.service("cluster-a", "default/external-db", spec);
    set.export("cluster-a", "default/external-db", 0);
    let changes = set.run();
    assert_eq!(verbs(&changes), ["cluster-a export status"]);
    assert_eq!(set.says("cluster-a", "default/external-db", "Valid"), "False/InvalidServiceType");
    assert_eq!(set.says("cluster-a", "default/external-db", "Ready"), "False/Pending");
    assert_eq!(set.says("cluster-a", "default/external-db", "Conflict"), "none");
}

#[test]
fn mcs_2_15_the_writes_and_their_order() {
    let mut set = Set::new(["cluster-a", "cluster-b"]);
    set.exported("cluster-a", "default/sample-service", 0, ["10.0.1.1"]);
    let in_b = |changes: &[namesake::reconcile::plan::Change]| -> Vec<String> {
        verbs(changes).into_iter().filter(|verb| verb.starts_with("cluster-b")).collect()
    };
    assert_eq!(
        in_b(&set.run()),
        [
            "cluster-b apply import",
            "cluster-b apply service",
            "cluster-b apply slice",
            "cluster-b apply import",
            "cluster-b import status",
        ]
    );
    assert_eq!(set.run(), []);
}
