//! Two clusters join a hub, are found, followed and trusted no further than their role; one is rotated, one leaves, and
//! the other does so when the hub is gone.

use std::time::Instant;

use namesake::controller::members::{Convention, Inventory, MemberSettings};
use namesake::model::{Label, ServiceKey};
use namesake::reconcile::objects::Family;
use testbed::{Bed, Cluster};

use crate::rig::{Followed, Seen, connection, contexts, id, must, namesake};

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: shop}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints: [{addresses: [10.1.0.5], conditions: {ready: true}}]
";

/// The account may do what the rules say, and not the least bit more.
fn is_least_privileged(cluster: &Cluster) {
    let account = "--as=system:serviceaccount:namesake:namesake-member";
    let may = |verb: &str, resource: &str, namespace: &str| {
        let place = if namespace.is_empty() { "-A".to_owned() } else { format!("-n={namespace}") };
        cluster.kubectl(&["auth", "can-i", verb, resource, account, &place]).is_ok()
    };
    for resource in ["services", "endpointslices.discovery.k8s.io", "serviceimports.multicluster.x-k8s.io"] {
        for verb in ["get", "list", "watch", "create", "patch", "delete"] {
            assert!(may(verb, resource, ""), "{verb} {resource}");
        }
        assert!(!may("deletecollection", resource, ""), "{resource}");
    }
    for (verb, resource, namespace) in [
        ("list", "secrets", ""),
        ("get", "secrets", "namesake"),
        ("list", "pods", ""),
        ("create", "pods", "shop"),
        ("delete", "serviceexports.multicluster.x-k8s.io", ""),
        ("patch", "serviceexports.multicluster.x-k8s.io", ""),
        ("delete", "namespaces", ""),
        ("create", "namespaces", ""),
        ("patch", "customresourcedefinitions.apiextensions.k8s.io", ""),
        ("list", "customresourcedefinitions.apiextensions.k8s.io", ""),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io", ""),
        ("create", "leases.coordination.k8s.io", "kube-system"),
        ("impersonate", "users", ""),
    ] {
        assert!(!may(verb, resource, namespace), "{verb} {resource} in {namespace:?}");
    }
    assert!(!may("create", "leases.coordination.k8s.io", "namesake"));
    let status =
        ["auth", "can-i", "patch", "serviceexports.multicluster.x-k8s.io", "--subresource=status", account, "-A"];
    assert!(cluster.kubectl(&status).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r83_r90_r97_clusters_join_are_followed_and_leave() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub", "east", "west"]).await.unwrap();
    let [hub, east, west] = clusters.as_slice() else { panic!() };
    let kubeconfig = contexts(&bed, &clusters);

    // Without an id nobody joins, and nothing is touched.
    let ran = namesake(&kubeconfig, &["join", "east", "--hub", "hub"]).await;
    assert!(!ran.ok && ran.out.is_empty(), "{ran:?}");
    assert_eq!(
        ran.err,
        "namesake: east: nobody says what the id of this cluster is; give --id ID, or create the ClusterProperty \
         cluster.clusterset.k8s.io in it\n"
    );
    assert!(east.request("GET", "/api/v1/namespaces/namesake", None).await.is_err());

    let hub_account = connection(&hub.kubeconfig()).await;
    let settings = MemberSettings {
        inventories: vec![(Inventory::Secrets(Convention::Labelled), Some("namesake".to_owned()))],
        ..MemberSettings::default()
    };
    let mut seen = Seen::start(settings, Some(hub_account));
    seen.until("the hub says that there are none", |seen| seen.complete).await;
    assert!(seen.members.is_empty());

    // East joins, and says what it did; again, and there is nothing to do.
    let out = must(&kubeconfig, &["join", "east", "--hub", "hub", "--id", "east"]).await;
    for line in [
        "east: joins as cluster east",
        "east: CRD serviceexports.multicluster.x-k8s.io: created, v0.5.2",
        "east: CRD serviceimports.multicluster.x-k8s.io: created, v0.5.2",
        "east: Namespace namesake: created",
        "east: ServiceAccount namesake-member: created",
        "east: ClusterRole namesake-member: created",
        "east: ClusterRoleBinding namesake-member: created",
        "east: Secret namesake-member-token: created",
        "hub: Namespace namesake: created",
        "hub: Secret cluster-east: created",
        "hub: cluster east is registered",
    ] {
        assert!(out.lines().any(|said| said == line), "{line}\n{out}");
    }
    assert!(out.contains("leads back to whoever asks"), "{out}");
    let since = Instant::now();
    seen.until_present(&["east"]).await;
    println!("east is a member {:?} after the command", since.elapsed());
    let again = must(&kubeconfig, &["join", "east", "--hub", "hub", "--id", "east"]).await;
    assert!(
        !again.contains("created") && !again.contains("changed,") && again.contains("Secret cluster-east: unchanged")
    );
    assert!(again.lines().filter(|line| line.ends_with(": unchanged")).count() >= 9, "{again}");

    // The id of one cluster is not that of another, and one cluster has one id.
    let ran = namesake(&kubeconfig, &["join", "west", "--hub", "hub", "--id", "east"]).await;
    assert!(!ran.ok && ran.err.contains("Secret cluster-east registers another cluster as east"), "{ran:?}");
    let ran = namesake(&kubeconfig, &["join", "east", "--hub", "hub", "--id", "other"]).await;
    assert!(!ran.ok && ran.err.contains("registers this cluster as east already"), "{ran:?}");
    let ran = namesake(&kubeconfig, &["join", "west", "--hub", "hub", "--id", "West"]).await;
    assert!(!ran.ok && ran.err.contains("lower-case"), "{ran:?}");

    // What is in it is seen.
    east.apply(OBJECTS).await.unwrap();
    let mut followed = Followed::start(seen.member("east"));
    followed.until_synced().await;
    followed
        .until("the export, its Service and its slice", |f| {
            f.local("shop/web").is_some_and(|web| {
                web.export.as_ref().is_some_and(|export| export.created.0 > 0)
                    && web.service.as_ref().is_some_and(|service| service.spec.ports[0].port == 80)
                    && web.sources.len() == 1
            })
        })
        .await;
    let shop = Label::new("shop").unwrap();
    assert!(followed.world.members()[&id("east")].namespace(&shop).is_some());
    followed.until("what it can do", |f| f.served.as_ref().is_some_and(|s| s.features.families.is_some())).await;
    let served = followed.served.clone().unwrap();
    assert_eq!((served.version, served.features.endpoint_slice_objects), ("v1beta1", true));
    assert_eq!(served.features.families, Some(vec![Family::V4]));
    // Changes and deletes.
    east.apply(&OBJECTS.replace("10.1.0.5", "10.1.0.6")).await.unwrap();
    followed
        .until("the new address", |f| {
            let slices = f.local("shop/web").map(|web| web.sources.values().cloned().collect::<Vec<_>>());
            slices.is_some_and(|s| s[0].content.endpoints[0].addresses[0].to_string() == "10.1.0.6")
        })
        .await;
    east.kubectl(&["delete", "serviceexport", "-n", "shop", "web"]).unwrap();
    followed.until("the export is gone", |f| f.local("shop/web").is_some_and(|web| web.export.is_none())).await;
    east.apply(OBJECTS).await.unwrap();
    followed.until("the export is back", |f| f.local("shop/web").is_some_and(|web| web.export.is_some())).await;

    // Nothing that the account asks for is refused, and it has asked for nothing but this.
    is_least_privileged(east);
    let asked = east.audit().unwrap().service_account("namesake", "namesake-member");
    let denied: Vec<_> = asked.entries.iter().filter(|e| e.code == 403).collect();
    assert!(denied.is_empty(), "{denied:?}");
    let mut calls: Vec<_> =
        asked.entries.iter().filter(|e| !e.resource.is_empty()).map(|e| format!("{} {}", e.verb, e.resource)).collect();
    calls.sort();
    calls.dedup();
    assert_eq!(
        calls,
        [
            "create selfsubjectaccessreviews",
            "create services",
            "get customresourcedefinitions",
            "list endpointslices",
            "list namespaces",
            "list serviceexports",
            "list serviceimports",
            "list services",
            "watch endpointslices",
            "watch namespaces",
            "watch serviceexports",
            "watch serviceimports",
            "watch services",
        ]
    );
    let services = east.request("GET", "/api/v1/namespaces/default/services", None).await.unwrap();
    assert_eq!(services["items"].as_array().unwrap().len(), 1, "the Service that was tried was not made");

    // CLU-08: a late joiner, while the others run.
    must(&kubeconfig, &["join", "west", "--hub", "hub", "--id", "west"]).await;
    seen.until_present(&["east", "west"]).await;

    // WCH-05, CLU-07: its token is taken away; a new one comes by the Secret, and nothing is lost on the way.
    let told = seen.told.len();
    east.kubectl(&["delete", "secret", "-n", "namesake", "namesake-member-token"]).unwrap();
    must(&kubeconfig, &["join", "east", "--hub", "hub", "--id", "east"]).await;
    seen.until("east is reached anew", |seen| seen.told[told..].iter().any(|t| t == "east present")).await;
    assert!(!seen.told[told..].iter().any(|told| told.ends_with("left")), "{:?}", seen.told);
    followed.again(seen.member("east"));
    assert!(followed.local("shop/web").is_some_and(|web| web.export.is_some()), "what was known stays");
    followed.until_synced().await;
    east.apply(&OBJECTS.replace("10.1.0.5", "10.1.0.7")).await.unwrap();
    followed
        .until("the newest address", |f| {
            let slices = f.local("shop/web").map(|web| web.sources.values().cloned().collect::<Vec<_>>());
            slices.is_some_and(|s| s[0].content.endpoints[0].addresses[0].to_string() == "10.1.0.7")
        })
        .await;
    assert!(ServiceKey::new("shop", "web").is_some_and(|key| followed.world.keys().any(|k| k == key)));

    // West leaves.
    let out = must(&kubeconfig, &["leave", "west", "--hub", "hub"]).await;
    for line in [
        "hub: Secret cluster-west, which registers cluster west: deleted",
        "west: ClusterRoleBinding namesake-member: deleted",
        "west: ServiceAccount namesake-member: deleted",
        "west: Namespace namesake: deleted",
        "west: is no member any more",
    ] {
        assert!(out.lines().any(|said| said == line), "{line}\n{out}");
    }
    seen.until("west has left", |seen| !seen.members.contains_key(&id("west"))).await;
    assert!(west.kubectl(&["get", "clusterrole", "namesake-member"]).is_err());
    west.kubectl(&["get", "crd", "serviceimports.multicluster.x-k8s.io"]).expect("a CRD is never deleted");
    let out = must(&kubeconfig, &["leave", "west", "--hub", "hub"]).await;
    assert_eq!(
        out, "hub: no Secret in namespace namesake registers this cluster\nwest: is no member any more\n",
        "it may be repeated"
    );

    // The hub is gone: the member can be cleaned all the same.
    hub.kill_api().unwrap();
    let ran = namesake(&kubeconfig, &["leave", "east", "--hub", "hub"]).await;
    assert!(!ran.ok && ran.err.starts_with("namesake: hub: GET ") && ran.err.contains("repeat the command"), "{ran:?}");
    let out = must(&kubeconfig, &["leave", "east", "--member-only"]).await;
    assert!(out.contains("east: ServiceAccount namesake-member: deleted"), "{out}");
    assert!(out.contains("kubectl delete secret -n namesake -l namesake/cluster=<id>"), "{out}");
    assert!(east.kubectl(&["get", "clusterrolebinding", "namesake-member"]).is_err());
    assert!(seen.members.contains_key(&id("east")), "a hub that can't be read says of nobody that he left");
}
