//! JSON of member clusters → the types of plans, as the watches of live members get it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

use namesake::model::{ClusterId, ImportKind, Protocol, ServiceKey};
use namesake::reconcile::World;
use namesake::reconcile::objects::{Family, OwnerKind, Status, TargetPort, Time};
use namesake::reconcile::observed::{Export, Import, Namespace, Reach, Service, Slice};
use namesake::reconcile::world::{Dirty, Kind};
use namesake::source::member::{Observed, Read, absent, observed};
use serde_json::{Value, json};

fn read(kind: Kind, value: &Value) -> Read {
    observed(kind, &value.to_string()).unwrap()
}

macro_rules! reader {
    ($name:ident, $type:ident, $kind:ident, $variant:ident) => {
        fn $name(value: &Value) -> $type {
            match read(Kind::$kind, value).object {
                Observed::$variant(_, Some(object)) => object,
                other => panic!("{other:?}"),
            }
        }
    };
}
reader!(namespace, Namespace, Namespaces, Namespace);
reader!(export, Export, Exports, Export);
reader!(service, Service, Services, Service);
reader!(import, Import, Imports, Import);
reader!(slice, Slice, Slices, Slice);

#[test]
fn an_export_is_its_time_its_spec_and_its_conditions() {
    let it = export(&json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"a": "b"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "long"},
        },
        "spec": {"exportedLabels": {"x": "y", "empty": null}, "exportedAnnotations": null},
        "status": {"conditions": [
            {"type": "Valid", "status": "True", "reason": "Valid", "message": "m", "observedGeneration": 2,
             "lastTransitionTime": "1970-01-01T00:01:00Z"},
            {"type": "Odd"}, {"status": "True"}, null,
        ]},
    }));
    assert_eq!((&*it.meta.id.uid, &*it.meta.id.resource_version, it.meta.generation), ("u1", "7", 3));
    assert_eq!(it.created, Time(1_767_323_045));
    assert!(!it.deleting && it.annotations.is_empty() && it.meta.annotations.is_empty());
    assert_eq!((it.labels["x"].as_ref(), it.labels["empty"].as_ref()), ("y", ""));
    assert_eq!(it.conditions.len(), 2);
    assert_eq!(
        (it.conditions[0].status, it.conditions[0].generation, it.conditions[0].since),
        (Status::True, 2, Time(60))
    );
    assert_eq!(it.conditions[1].status, Status::Unknown);
    let deleting = json!({"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(export(&deleting).deleting);
}

#[test]
fn a_namespace_is_terminating_by_phase_or_by_time() {
    let meta = json!({"name": "shop", "annotations": {"namesake/enabled": "false", "other": "x"}});
    let it = namespace(&json!({"metadata": meta, "status": {"phase": "Active"}}));
    assert!(!it.terminating);
    assert_eq!(it.meta.annotations.len(), 1, "what no plan reads is not kept");
    assert!(namespace(&json!({"metadata": meta, "status": {"phase": "Terminating"}})).terminating);
    assert!(namespace(&json!({"metadata": {"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}})).terminating);
}

#[test]
fn a_service_is_read_whole_and_a_foolish_port_costs_itself_alone() {
    let value = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
            "ipFamilies": ["IPv4", "IPv6", "IPX"], "ipFamilyPolicy": "RequireDualStack",
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "appProtocol": "h2c", "nodePort": 30080},
                {"port": 53, "protocol": "UDP", "targetPort": 5353},
                {"name": "text", "port": 81, "targetPort": "8081"},
                {"name": "huge", "port": 70000}, {"name": "odd", "port": 1, "protocol": "QUIC"}, {"name": "none"},
            ],
            "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
            "internalTrafficPolicy": "Local", "trafficDistribution": "PreferClose",
            "selector": {"app": "web"}, "publishNotReadyAddresses": true,
        },
    });
    let Read { object, skipped } = read(Kind::Services, &value);
    let spec = match object {
        Observed::Service(key, Some(service)) if key == ServiceKey::new("shop", "web").unwrap() => service.spec,
        other => panic!("{other:?}"),
    };
    assert_eq!(spec.ips.len(), 2);
    assert_eq!(spec.families, [Family::V4, Family::V6]);
    assert!(spec.dual_stack && spec.publish_not_ready && !spec.headless);
    let ports: Vec<_> = spec.ports.iter().map(|p| (&*p.name, p.port, p.protocol, p.target.clone())).collect();
    assert_eq!(
        ports,
        [
            ("http", 80, Protocol::Tcp, Some(TargetPort::Name("web".into()))),
            ("", 53, Protocol::Udp, Some(TargetPort::Number(5353))),
            ("text", 81, Protocol::Tcp, Some(TargetPort::Number(8081))),
        ]
    );
    assert_eq!(spec.ports[0].app_protocol.as_deref(), Some("h2c"));
    assert_eq!(spec.traffic.session_timeout, Some(10));
    assert_eq!(
        (spec.traffic.internal_policy.as_deref(), spec.traffic.distribution.as_deref()),
        (Some("Local"), Some("PreferClose"))
    );
    let skipped: Vec<_> = skipped.iter().map(|skipped| &*skipped.what).collect();
    assert_eq!(
        skipped,
        [
            "spec.ipFamilies[2]: \"IPX\" is neither IPv4 nor IPv6",
            "spec.ports[3].port: 70000 is no port number, these are 1 to 65535",
            "spec.ports[4].protocol: \"QUIC\" is none of TCP, UDP and SCTP",
            "spec.ports[5].port: there is no number",
        ]
    );
    let headless = service(&json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}));
    assert!(headless.spec.headless && headless.spec.ips.is_empty());
}

#[test]
fn what_our_manager_owns_is_known_of_our_own_objects() {
    let value = |by: &str| {
        json!({
            "metadata": {
                "name": "derived-x", "namespace": "shop",
                "labels": {"app.kubernetes.io/managed-by": by, "ours": "1", "theirs": "2"},
                "annotations": {"note": "x", "theirs": "y"},
                "ownerReferences": [
                    {"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "name": "web", "uid": "u"},
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "v"},
                ],
                "managedFields": [
                    {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}},
                    {"manager": "namesake", "operation": "Apply", "subresource": "status",
                     "fieldsV1": {"f:metadata": {"f:labels": {"f:status": {}}}}},
                    {"manager": "namesake", "operation": "Apply", "fieldsV1":
                        {"f:metadata": {"f:labels": {"f:ours": {}, "f:app.kubernetes.io/managed-by": {}}, "f:annotations": {"f:note": {}}}}},
                ],
            },
        })
    };
    let ours = service(&value("namesake")).meta;
    assert_eq!(ours.owned_labels.iter().map(|k| &**k).collect::<Vec<_>>(), ["app.kubernetes.io/managed-by", "ours"]);
    assert_eq!(ours.owned_annotations.iter().map(|k| &**k).collect::<Vec<_>>(), ["note"]);
    assert_eq!((ours.owners.len(), ours.owners[0].kind), (1, OwnerKind::Import));
    let theirs = service(&value("helm")).meta;
    assert!(theirs.owned_labels.is_empty() && theirs.owners.is_empty() && theirs.annotations.is_empty());
    assert_eq!(theirs.labels.len(), 3, "labels of Services are looked at by rules");
    // Somebody took our label off: what we wrote is known all the same.
    let mut value = value("namesake");
    value["metadata"]["labels"].as_object_mut().unwrap().remove("app.kubernetes.io/managed-by");
    let bare = service(&value).meta;
    assert!(!bare.is_ours() && bare.is_made_by_us() && bare.owners.len() == 1);
    value["metadata"]["managedFields"].as_array_mut().unwrap().pop();
    let user = service(&value).meta;
    assert!(!user.is_made_by_us() && user.owners.is_empty() && user.annotations.is_empty());
}

#[test]
fn slices_are_read_with_what_absence_means() {
    let value = json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {
            "kubernetes.io/service-name": "web", "app": "copied", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": null, "port": null}],
        "endpoints": [
            {"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod", "name": "p", "uid": "u", "namespace": "shop"},
             "nodeName": "n", "zone": "z", "hostname": "h", "hints": {"forZones": [{"name": "z"}]}},
            {"addresses": ["10.1.0.2"], "conditions": {"ready": false}, "targetRef": {"kind": "Node", "name": "n"}},
            {"addresses": ["10.1.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}},
            {"addresses": ["fd00::1"]},
        ],
    });
    let Read { skipped, .. } = read(Kind::Slices, &value);
    let it = slice(&value);
    assert_eq!(it.meta.labels.len(), 2, "what kube-controller-manager copied is not kept");
    let states: Vec<_> = it.content.endpoints.iter().map(|e| (e.ready, e.serving, e.terminating)).collect();
    assert_eq!(states, [(true, true, false), (false, false, false), (false, true, true)]);
    let first = &it.content.endpoints[0];
    assert_eq!(
        (first.node.as_deref(), first.zone.as_deref(), first.hostname.as_deref()),
        (Some("n"), Some("z"), Some("h"))
    );
    assert_eq!((&*first.pod.as_ref().unwrap().uid, first.hint_zones.len()), ("u", 1));
    assert_eq!(it.content.endpoints[1].pod, None);
    let skipped: Vec<_> = skipped.iter().map(|skipped| &*skipped.what).collect();
    assert_eq!(
        skipped,
        ["ports[1].port: there is no number", "endpoints[3].addresses[0]: \"fd00::1\" is no IPv4 address"]
    );
    let fqdn = json!({"metadata": {"name": "a", "namespace": "shop"}, "addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}]});
    assert!(matches!(read(Kind::Slices, &fqdn).object, Observed::Slice(_, None)));
}

#[test]
fn imports_are_read_whole() {
    let it = import(&json!({
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"a": "b"}},
        "spec": {"type": "Headless", "ports": [{"port": 80}], "ips": [], "ipFamilies": ["IPv6"]},
        "status": {"clusters": [{"cluster": "east"}, {"cluster": "bad id"}], "endpointSliceObjects": "Present",
                   "conditions": [{"type": "Ready", "status": "False", "reason": "Pending", "message": ""}]},
    }));
    assert_eq!((it.spec.kind, it.spec.families.as_slice()), (ImportKind::Headless, &[Family::V6][..]));
    assert_eq!(it.status.clusters, [ClusterId::new("east").unwrap()]);
    assert!(it.status.slices_present && it.status.conditions.len() == 1);
}

#[test]
fn what_does_not_decode_is_an_error_of_that_object_alone() {
    let error = |kind, value: &Value| observed(kind, &value.to_string()).unwrap_err().what.to_string();
    let broken = error(Kind::Services, &json!({"metadata": {"name": "web"}, "spec": {"ports": "http"}}));
    assert!(broken.starts_with("does not decode: invalid type: string \"http\""), "{broken}");
    let name = error(Kind::Exports, &json!({"metadata": {"name": "a.b", "namespace": "shop"}}));
    assert!(name.contains("namespace and name of a ServiceExport must be DNS labels"), "{name}");
    for kind in Kind::ALL {
        assert!(observed(kind, "[]").is_err() && observed(kind, "").is_err());
        assert!(observed(kind, "{\"metadata\": {\"name\": \"a\", \"namespace\": \"b\"}}").is_ok());
        assert!(observed(kind, "{\"metadata\": {\"name\": \"a\"}, \"spec\": null, \"status\": null}").is_ok());
    }
}

#[test]
fn what_is_told_and_taken_back_leaves_nothing() {
    let mut world = World::new(None);
    let east = ClusterId::new("east").unwrap();
    world.set_reach(&east, Reach::Live);
    let value = json!({"metadata": {"name": "web", "namespace": "shop"}});
    let told = read(Kind::Exports, &value).object;
    let key = ServiceKey::new("shop", "web").unwrap();
    assert_eq!(told.clone().tell(&mut world, &east), Dirty::Services(vec![key.clone()]));
    assert_eq!(told.clone().tell(&mut world, &east), Dirty::Nothing);
    assert_eq!(world.keys().collect::<Vec<_>>(), std::slice::from_ref(&key));
    let gone = absent(Kind::Exports, &value.to_string()).unwrap();
    assert_eq!((gone.clone(), gone.kind()), (told.absent(), Kind::Exports));
    gone.tell(&mut world, &east);
    assert_eq!(world.keys().count(), 0);
    assert_eq!(absent(Kind::Exports, "{}"), None);
}
