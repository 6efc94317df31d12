//! The role of `deploy/kustomize/dns` on a real API server: its verbs suffice, nothing else is asked for, and without
//! each of them something is missed, named, and healed when it is granted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod product;

use std::process::Command;
use std::time::{Duration, Instant};

use product::{Namesake, PATIENCE, root};
use serde_json::{Value, json};
use testbed::{Bed, Cluster, binaries, dig};

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: db, namespace: shop}
spec: {type: Headless, ports: [{name: sql, protocol: TCP, port: 5432}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
ports: [{name: sql, protocol: TCP, port: 5432}]
endpoints: [{addresses: [10.1.0.5], hostname: db-0, conditions: {ready: true}}]
";

/// The manifests' ServiceAccount and role in a cluster with the CRDs, and a kubeconfig with its token.
async fn cluster(bed: &Bed, name: &str) -> (Cluster, String) {
    let cluster = bed.cluster(name).await.unwrap();
    cluster.install_crds("v0.5.2").await.unwrap();
    let kubectl = binaries().unwrap().join("kubectl");
    let out = Command::new(kubectl).arg("kustomize").arg(root().join("deploy/kustomize/dns")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    cluster.apply(&String::from_utf8(out.stdout).unwrap()).await.unwrap();
    cluster.apply(OBJECTS).await.unwrap();
    let kubeconfig = cluster.kubeconfig_for_service_account("namesake", "namesake-dns").await.unwrap();
    (cluster, kubeconfig.to_str().unwrap().to_owned())
}

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/namesake-dns";

/// What the role allows, one resource with one verb each.
async fn allowed(cluster: &Cluster) -> Vec<(Value, Value, Value)> {
    let role = cluster.request("GET", ROLE, None).await.unwrap();
    let mut allowed = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in rule["resources"].as_array().unwrap() {
            for verb in rule["verbs"].as_array().unwrap() {
                allowed.push((rule["apiGroups"].clone(), resource.clone(), verb.clone()));
            }
        }
    }
    allowed
}

async fn allow(cluster: &Cluster, what: &[(Value, Value, Value)]) {
    let mut role = cluster.request("GET", ROLE, None).await.unwrap();
    let rules = what
        .iter()
        .map(|(groups, resource, verb)| json!({"apiGroups": groups, "resources": [resource], "verbs": [verb]}));
    role["rules"] = rules.collect();
    cluster.request("PUT", ROLE, Some(&role)).await.unwrap();
}

/// Waits until the authorizer allows this, or does not. It learns of the role by a watch of its own: until then a request
/// is judged by what was before.
fn until_allowed(cluster: &Cluster, (groups, resource, verb): &(Value, Value, Value), wanted: bool) {
    let user = "--as=system:serviceaccount:namesake:namesake-dns";
    let (group, resource, verb) = (groups[0].as_str().unwrap(), resource.as_str().unwrap(), verb.as_str().unwrap());
    let what = format!("{resource}.{group}");
    let deadline = Instant::now() + PATIENCE;
    while cluster.kubectl(&["auth", "can-i", verb, &what, user, "-A"]).is_ok() != wanted {
        assert!(Instant::now() < deadline, "{verb} {what} is allowed: still not {wanted}");
    }
}

#[tokio::test]
async fn sec_03_the_role_suffices_and_nothing_else_is_asked_for() {
    let bed = Bed::new().unwrap();
    let (cluster, kubeconfig) = cluster(&bed, "c1").await;
    allowed(&cluster).await.iter().for_each(|granted| until_allowed(&cluster, granted, true));
    let server = Namesake::start(&bed, &["--kubeconfig", &kubeconfig]).unwrap();
    server.wait_ready().await;
    let answer = dig(server.dns, &["db-0.east.db.shop.svc.clusterset.local", "A"]).unwrap();
    assert_eq!(answer.data("A"), ["10.1.0.5"], "{}", answer.text);

    // A change comes through the watches.
    cluster.apply(&OBJECTS.replace("10.1.0.5", "10.1.0.6")).await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    while dig(server.dns, &["db.shop.svc.clusterset.local", "A"]).unwrap().data("A") != ["10.1.0.6"] {
        assert!(Instant::now() < deadline, "the change does not come\n{}", server.process.log_tail(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let asked = cluster.audit().unwrap().service_account("namesake", "namesake-dns");
    let mut calls: Vec<_> =
        asked.entries.iter().filter(|e| !e.resource.is_empty()).map(|e| (e.resource.clone(), e.verb.clone())).collect();
    calls.sort();
    calls.dedup();
    let call = |resource: &str, verb: &str| (resource.to_owned(), verb.to_owned());
    assert_eq!(
        calls,
        [
            call("endpointslices", "list"),
            call("endpointslices", "watch"),
            call("serviceimports", "list"),
            call("serviceimports", "watch"),
        ]
    );
    let denied: Vec<_> = asked.entries.iter().filter(|e| e.code == 403).collect();
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test]
async fn sec_03_each_verb_that_is_taken_away_is_missed_named_and_taken_up_again() {
    let bed = Bed::new().unwrap();
    let (cluster, kubeconfig) = cluster(&bed, "c1").await;
    let whole = allowed(&cluster).await;
    assert_eq!(whole.len(), 4, "{whole:?}");
    for left_out in 0..whole.len() {
        let (groups, resource, verb) = &whole[left_out];
        let (resource, verb) = (resource.as_str().unwrap(), verb.as_str().unwrap());
        let mut rest = whole.clone();
        rest.remove(left_out);
        allow(&cluster, &rest).await;
        until_allowed(&cluster, &whole[left_out], false);

        let group = groups[0].as_str().unwrap();
        let server = Namesake::start(&bed, &["--kubeconfig", &kubeconfig, "--startup-timeout=100ms"]).unwrap();
        let named = format!("not allowed to {verb} {resource}.{group}");
        let said = server.wait_for("/ready?verbose", |_, body| body.contains(&named)).await;
        let (_, metrics) = server.get("/metrics").await;
        assert!(metrics.contains(&format!("namesake_watch_up{{resource=\"{resource}\"}} 0")), "{said}\n{metrics}");
        if verb == "list" {
            // Nothing is known for sure, so nothing is denied.
            assert_eq!(server.get("/ready").await.0, 503, "{said}");
            let deadline = Instant::now() + PATIENCE;
            let answer = loop {
                match dig(server.dns, &["db.shop.svc.clusterset.local", "A"]) {
                    Ok(answer) => break answer,
                    Err(error) => assert!(Instant::now() < deadline, "{error}"),
                }
            };
            assert_eq!(answer.status, "SERVFAIL", "{}", answer.text);
        }

        allow(&cluster, &whole).await;
        server.wait_ready().await;
        let up = format!("namesake_watch_up{{resource=\"{resource}\"}} 1");
        server.wait_for("/metrics", |_, body| body.contains(&up)).await;
        let answer = dig(server.dns, &["db.shop.svc.clusterset.local", "A"]).unwrap();
        assert_eq!(answer.data("A"), ["10.1.0.5"], "{}", answer.text);
    }
}
