//! Kubernetes objects → model values: the rows of `dns.md` that are decided on conversion.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use namesake::model::{
    Change, EndpointObjects, EndpointRef, Import, ImportKind, Protocol, Readiness, Resource, SkipReason, Slice,
};
use namesake::source::Convert;
use serde_json::{Value, json};

fn import_of(spec: &Value, status: &Value) -> Import {
    let object = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"namespace": "shop", "name": "web"}, "spec": spec, "status": status,
    });
    match Convert::default().import(&object.to_string()) {
        Some(Change::Import(key, Some(import))) => {
            assert_eq!(key.to_string(), "shop/web");
            import
        }
        other => panic!("not an import: {other:?}"),
    }
}

fn import(spec: &Value) -> Import {
    import_of(spec, &Value::Null)
}

fn slice_with(object: &Value, convert: &Convert) -> Slice {
    let mut full = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"namespace": "shop", "name": "web-a", "labels": {
            "multicluster.kubernetes.io/service-name": "web",
            "multicluster.kubernetes.io/source-cluster": "east",
        }},
        "addressType": "IPv4", "endpoints": [], "ports": [],
    });
    merge(&mut full, object);
    let change = convert.slice(&full.to_string());
    // The same comes of the same in protobuf, but for what no message can hold, such as a null in a list.
    if let Some(message) = testbed::protobuf::slice(&full) {
        assert_eq!(convert.slice_in_protobuf(&message.into()), change, "{full}");
    }
    match change {
        Some(Change::Slice(key, Some(slice))) => {
            assert_eq!(key.to_string(), "shop/web-a");
            slice
        }
        other => panic!("not a slice: {other:?}"),
    }
}

fn in_protobuf(slice: &Value) -> bytes::Bytes {
    testbed::protobuf::slice(slice).unwrap().into()
}

fn slice(object: &Value) -> Slice {
    slice_with(object, &Convert::default())
}

fn first(slice: &Slice) -> EndpointRef<'_> {
    slice.endpoints.iter().next().unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn reasons(skipped: &[namesake::model::Skipped]) -> Vec<SkipReason> {
    skipped.iter().map(|s| s.reason).collect()
}

#[test]
fn import_is_reduced_to_what_dns_needs() {
    let import = import_of(
        &json!({"type": "ClusterSetIP", "ips": ["10.1.0.1", "fd00::1"],
                "ports": [{"name": "HTTP", "protocol": "TCP", "port": 80, "appProtocol": "h2c"}],
                "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}),
        &json!({"clusters": [{"cluster": "east"}, {"cluster": "bad id"}, {"cluster": "west.eu"}],
                "endpointSliceObjects": "Absent"}),
    );
    assert_eq!(import.kind, ImportKind::ClusterSetIp);
    assert_eq!(import.ips[..], [ip("10.1.0.1"), ip("fd00::1")]);
    assert_eq!(import.ports[0].name.as_ref().unwrap().as_str(), "http");
    assert_eq!((import.ports[0].protocol, import.ports[0].number), (Protocol::Tcp, 80));
    assert_eq!(import.clusters.iter().map(namesake::model::ClusterId::as_str).collect::<Vec<_>>(), ["east", "west.eu"]);
    assert_eq!(import.endpoint_objects, EndpointObjects::Absent);
    assert!(import.skipped.is_empty());
}

#[test]
fn dns_c8_text_that_is_no_address_is_skipped_and_named() {
    let import = import(&json!({"type": "ClusterSetIP", "ips": ["10.1.0.1", "not-an-ip"]}));
    assert_eq!(import.ips[..], [ip("10.1.0.1")]);
    assert_eq!(reasons(&import.skipped), [SkipReason::BadAddress]);
    assert_eq!(&*import.skipped[0].what, "spec.ips[1]: \"not-an-ip\" is no IP address");
}

#[test]
fn dns_c14_none_and_empty_addresses_are_skipped() {
    let import = import(&json!({"type": "ClusterSetIP", "ips": ["None", "", null, "10.1.0.1"]}));
    assert_eq!(import.ips[..], [ip("10.1.0.1")]);
    assert_eq!(reasons(&import.skipped), [SkipReason::BadAddress, SkipReason::BadAddress]);
}

#[test]
fn dns_c15_unknown_and_empty_types_are_clusterset_ip() {
    for kind in [json!("Weird"), json!(""), Value::Null] {
        let import = import(&json!({"type": kind, "ips": ["10.1.0.1"]}));
        assert_eq!(import.kind, ImportKind::ClusterSetIp);
        assert_eq!(import.ips[..], [ip("10.1.0.1")]);
        assert_eq!(reasons(&import.skipped), [SkipReason::UnknownType]);
    }
}

#[test]
fn dns_c16_addresses_nobody_may_have_are_skipped() {
    let bad =
        ["127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "fe80::1", "ff02::1", "::"];
    for text in bad.into_iter().chain(["::ffff:10.0.0.1"]) {
        let import = import(&json!({"type": "ClusterSetIP", "ips": [text, "10.1.0.1"]}));
        assert_eq!(import.ips[..], [ip("10.1.0.1")], "{text}");
        assert_eq!(reasons(&import.skipped), [SkipReason::ForbiddenAddress], "{text}");
    }
}

#[test]
fn dns_h17_ips_of_a_headless_import_are_dropped() {
    let import = import(&json!({"type": "Headless", "ips": ["10.1.0.1", "rubbish"]}));
    assert_eq!(import.kind, ImportKind::Headless);
    assert!(import.ips.is_empty());
    assert!(import.skipped.is_empty());
}

#[test]
fn dns_v29_a_port_without_protocol_is_tcp() {
    let import = import(
        &json!({"type": "ClusterSetIP", "ports": [{"name": "http", "port": 80}, {"port": 81, "protocol": null}]}),
    );
    assert_eq!(import.ports.iter().map(|p| p.protocol).collect::<Vec<_>>(), [Protocol::Tcp, Protocol::Tcp]);
    assert!(import.ports[1].name.is_none());
}

#[test]
fn ports_that_are_none_are_skipped_and_cost_nothing_else() {
    let import = import(&json!({"type": "ClusterSetIP", "ips": ["10.1.0.1"], "ports": [
        {"name": "a", "port": 0}, {"name": "b", "port": 70000}, {"name": "c", "port": -1}, {"name": "d"},
        {"name": "e", "port": 5, "protocol": "QUIC"}, {"name": "not.a.label", "port": 6}, null,
        {"name": "x".repeat(63), "port": 7}, {"name": "", "port": 8},
        {"name": "ok", "port": 65535, "protocol": "SCTP"},
    ]}));
    assert_eq!(import.ips[..], [ip("10.1.0.1")]);
    let kept: Vec<_> =
        import.ports.iter().map(|p| (p.name.as_ref().map(namesake::model::Label::as_str), p.number)).collect();
    assert_eq!(kept, [(None, 6), (None, 7), (None, 8), (Some("ok"), 65535)]);
    assert_eq!(reasons(&import.skipped), [SkipReason::BadPort; 7]);
    assert_eq!(&*import.skipped[1].what, "spec.ports[1].port: 70000 is no port number, these are 1 to 65535");
}

#[test]
fn null_and_missing_are_allowed_everywhere() {
    for object in [
        json!({"metadata": {"namespace": "shop", "name": "web"}}),
        json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": null, "status": null}),
        json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"type": null, "ips": null, "ports": null},
               "status": {"clusters": null, "endpointSliceObjects": null}}),
    ] {
        assert!(matches!(Convert::default().import(&object.to_string()), Some(Change::Import(_, Some(_)))), "{object}");
    }
    let slice = slice(&json!({"addressType": null, "endpoints": null, "ports": null}));
    assert!(slice.endpoints.is_empty() && slice.ports.is_empty() && slice.skipped.is_empty());
    let slice = self::slice(&json!({"endpoints": [null, {"addresses": null}, {"addresses": [null, "10.0.0.1"],
        "conditions": null, "hostname": null, "targetRef": null}]}));
    assert_eq!(slice.endpoints.len(), 1);
}

#[test]
fn endpoint_conditions_mean_what_discovery_v1_says() {
    let cases = [
        (json!(null), Readiness::Ready),
        (json!({}), Readiness::Ready),
        (json!({"ready": null}), Readiness::Ready),
        (json!({"ready": true}), Readiness::Ready),
        (json!({"ready": true, "serving": true, "terminating": true}), Readiness::Ready),
        (json!({"ready": false}), Readiness::NotReady),
        (json!({"ready": false, "serving": true}), Readiness::NotReady),
        (json!({"ready": false, "serving": false, "terminating": true}), Readiness::NotReady),
        (json!({"ready": false, "terminating": true}), Readiness::NotReady),
        (json!({"ready": false, "serving": true, "terminating": true}), Readiness::ServingTerminating),
    ];
    for (conditions, right) in cases {
        let slice = slice(&json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions}]}));
        assert_eq!(first(&slice).readiness, right, "{conditions}");
    }
}

#[test]
fn several_addresses_of_an_endpoint_are_several_endpoints() {
    let slice = slice(&json!({"endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"], "hostname": "DB-0"}]}));
    let seen: Vec<_> = slice.endpoints.iter().map(|e| (e.address, e.hostname.unwrap())).collect();
    assert_eq!(seen, [(ip("10.0.0.1"), "db-0"), (ip("10.0.0.2"), "db-0")]);
}

#[test]
fn an_address_of_the_other_family_is_skipped() {
    let v4 = slice(&json!({"endpoints": [{"addresses": ["fd00::1", "10.0.0.1"]}]}));
    assert_eq!((v4.endpoints.len(), reasons(&v4.skipped)), (1, vec![SkipReason::BadAddress]));
    let v6 = slice(&json!({"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1", "10.0.0.1"]}]}));
    assert_eq!((first(&v6).address, v6.endpoints.len()), (ip("fd00::1"), 1));
    assert!(v6.skipped[0].what.starts_with("endpoints[0].addresses[1]: \"10.0.0.1\" is not IPv6"), "{:?}", v6.skipped);
}

#[test]
fn dns_h9_a_slice_without_ports_keeps_its_endpoints() {
    let slice = slice(&json!({"ports": null, "endpoints": [{"addresses": ["10.0.0.1"]}]}));
    assert_eq!((slice.endpoints.len(), slice.ports.len()), (1, 0));
}

#[test]
fn dns_h10_an_fqdn_slice_has_no_endpoints() {
    let slice = slice(&json!({"addressType": "FQDN", "endpoints": [{"addresses": ["example.com"]}]}));
    assert!(slice.endpoints.is_empty());
    assert_eq!(reasons(&slice.skipped), [SkipReason::FqdnSlice]);
}

#[test]
fn dns_h12_a_slice_without_usable_cluster_keeps_its_addresses() {
    for label in [Value::Null, json!(""), json!("a.b.c"), json!("bad id")] {
        let slice = slice(&json!({
            "metadata": {"labels": {"multicluster.kubernetes.io/source-cluster": label}},
            "endpoints": [{"addresses": ["10.0.0.1"]}],
        }));
        assert_eq!((slice.cluster, slice.endpoints.len()), (None, 1), "{label}");
        assert_eq!(reasons(&slice.skipped), [SkipReason::NoCluster], "{label}");
    }
}

#[test]
fn dns_h18_endpoints_with_addresses_nobody_may_have_are_absent() {
    let slice = slice(&json!({"endpoints": [{"addresses": ["127.0.0.1"]}, {"addresses": ["10.0.0.1"]}]}));
    assert_eq!(slice.endpoints.iter().map(|e| e.address).collect::<Vec<_>>(), [ip("10.0.0.1")]);
    assert_eq!(reasons(&slice.skipped), [SkipReason::ForbiddenAddress]);
    assert!(slice.skipped[0].what.contains("cluster east"), "{:?}", slice.skipped);
}

#[test]
fn dns_e12_hostnames_that_cant_be_labels_are_left_out() {
    for bad in ["_tcp", "a.b", "with space", &"x".repeat(64)] {
        let slice = slice(&json!({"endpoints": [{"addresses": ["10.0.0.1"], "hostname": bad}]}));
        assert_eq!(first(&slice).hostname, None, "{bad}");
        assert_eq!(reasons(&slice.skipped), [SkipReason::BadHostname], "{bad}");
    }
}

#[test]
fn dns_e14_cluster_ids_are_case_blind() {
    let labels = json!({"labels": {"multicluster.kubernetes.io/source-cluster": "East.EU"}});
    assert_eq!(slice(&json!({"metadata": labels})).cluster.unwrap().as_str(), "east.eu");
}

#[test]
fn pod_names_are_kept_only_where_they_are_needed() {
    let object = json!({"endpoints": [
        {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "web-0"}},
        {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Pod", "name": "web-1"}, "hostname": "h"},
        {"addresses": ["10.0.0.3"], "targetRef": {"kind": "Pod", "name": "not.a.label"}},
    ]});
    let pods = |slice: &Slice| -> Vec<_> { slice.endpoints.iter().map(|e| e.pod.map(ToOwned::to_owned)).collect() };
    assert_eq!(pods(&slice(&object)), [None, None, None]);
    let convert = Convert { pod_names: true, ..Convert::default() };
    assert_eq!(pods(&slice_with(&object, &convert)), [Some("web-0".to_owned()), None, None]);
}

#[test]
fn the_trigger_time_is_read() {
    let at = |text: &str| {
        slice(&json!({"metadata": {"annotations": {"endpoints.kubernetes.io/last-change-trigger-time": text}}}))
            .triggered
    };
    let right = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    assert_eq!(at("2023-11-14T22:13:20Z"), Some(right));
    assert_eq!(at("2023-11-15T00:13:20.5+02:00"), Some(right + Duration::from_millis(500)));
    assert_eq!(at("yesterday"), None);
    assert_eq!(at("1960-01-01T00:00:00Z"), None);
}

#[test]
fn a_slice_without_service_label_is_absent() {
    for labels in [json!(null), json!({}), json!({"multicluster.kubernetes.io/service-name": ""})] {
        let object =
            json!({"metadata": {"namespace": "shop", "name": "web-a", "labels": labels}, "addressType": "IPv4"});
        let change = Convert::default().slice(&object.to_string());
        assert!(matches!(change, Some(Change::Slice(_, None))), "{change:?}");
        assert_eq!(Convert::default().slice_in_protobuf(&in_protobuf(&object)), change);
    }
}

#[test]
fn names_that_are_no_labels_are_unreadable() {
    let object = json!({"metadata": {"namespace": "shop", "name": "a.b"}, "spec": {"type": "Headless"}});
    match Convert::default().import(&object.to_string()) {
        Some(Change::Unreadable { resource: Resource::Imports, namespace, name, skipped }) => {
            assert_eq!((&*namespace, &*name, skipped.reason), ("shop", "a.b", SkipReason::BadName));
        }
        other => panic!("{other:?}"),
    }
    for service in ["a.b", "Web"] {
        let labels = json!({"multicluster.kubernetes.io/service-name": service});
        let object = json!({"metadata": {"namespace": "shop", "name": "s", "labels": labels}});
        match Convert::default().slice(&object.to_string()) {
            Some(Change::Unreadable { skipped, .. }) => assert_eq!(skipped.reason, SkipReason::BadName),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_object_that_does_not_decode_says_who_it_is_and_where() {
    let object = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"type": "Headless", "ips": "oops"}});
    match Convert::default().import(&object.to_string()) {
        Some(Change::Unreadable { namespace, name, skipped, .. }) => {
            assert_eq!((&*namespace, &*name, skipped.reason), ("shop", "web", SkipReason::Unreadable));
            assert!(skipped.what.contains("oops") && !skipped.what.contains("line 1"), "{}", skipped.what);
        }
        other => panic!("{other:?}"),
    }
    let slice = in_protobuf(&json!({"metadata": {"namespace": "shop", "name": "web-a"}, "addressType": "IPv4"}));
    match Convert::default().slice_in_protobuf(&slice.slice(..slice.len() - 1)) {
        Some(Change::Unreadable { resource: Resource::Slices, namespace, name, skipped }) => {
            assert_eq!((&*namespace, &*name, skipped.reason), ("shop", "web-a", SkipReason::Unreadable));
            assert!(
                skipped.what.starts_with("does not decode: failed to decode Protobuf message: "),
                "{}",
                skipped.what
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(Convert::default().import("not json"), Some(Change::Unreadable { .. })));
    assert!(matches!(Convert::default().import("[]"), Some(Change::Unreadable { .. })));
}

#[test]
fn dns_n8_objects_of_other_namespaces_are_dropped() {
    let convert = Convert { namespaces: vec!["Shop".to_owned()], ..Convert::default() };
    let object = |namespace: &str| json!({"metadata": {"namespace": namespace, "name": "web"}}).to_string();
    assert!(convert.import(&object("shop")).is_some());
    assert!(convert.import(&object("bank")).is_none());
    assert!(convert.absent(Resource::Imports, &object("bank")).is_none());
    let slice = in_protobuf(&json!({"metadata": {"namespace": "bank", "name": "web"}}));
    assert!(convert.slice_in_protobuf(&slice).is_none() && convert.absent_in_protobuf(&slice).is_none());
    let broken = json!({"metadata": {"namespace": "bank", "name": "web"}, "spec": 5}).to_string();
    assert!(convert.import(&broken).is_none());
}

#[test]
fn a_deleted_object_needs_nothing_but_its_names() {
    let object = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": 5}).to_string();
    let change = Convert::default().absent(Resource::Imports, &object);
    assert!(matches!(change, Some(Change::Import(_, None))), "{change:?}");
    let slice = in_protobuf(&json!({"metadata": {"namespace": "shop", "name": "web-a"}}));
    let change = Convert::default().absent_in_protobuf(&slice);
    assert!(matches!(change, Some(Change::Slice(_, None))), "{change:?}");
}

#[test]
fn a_deleted_object_whose_name_is_no_label_is_forgotten() {
    let object = json!({"metadata": {"namespace": "shop", "name": "a.b"}}).to_string();
    match Convert::default().absent(Resource::Imports, &object) {
        Some(Change::Forgotten { resource: Resource::Imports, namespace, name }) => {
            assert_eq!((&*namespace, &*name), ("shop", "a.b"));
        }
        other => panic!("{other:?}"),
    }
    let elsewhere = Convert { namespaces: vec!["bank".to_owned()], ..Convert::default() };
    assert!(elsewhere.absent(Resource::Imports, &object).is_none());
}
