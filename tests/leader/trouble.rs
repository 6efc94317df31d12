//! Elections in trouble: a hub that hangs or is cut off, and one that does not let us.

use std::time::{Duration, Instant};

use namesake::controller::status::Writing;
use serde_json::json;
use testbed::Bed;

use crate::rig::{Election, LASTS, LONG, PATIENCE, spec, until};

#[tokio::test(flavor = "multi_thread")]
async fn lease_a_leader_stops_before_its_lease_expires_when_the_hub_hangs() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let election = Election::new();
    let a = election.long("a", &hub.kubeconfig()).await;
    a.until_leading().await;
    let b = election.long("b", &hub.kubeconfig()).await;
    b.until_standing_by("a").await;

    hub.stop().unwrap();
    let stopped = Instant::now();
    until("a stops writing", || !a.leads()).await;
    let took = stopped.elapsed();
    assert!(took < LONG, "{took:?}: the Lease has not expired yet");
    a.until_trouble(&["the hub can't be reached"]).await;
    assert_eq!(a.writing(), Writing::Standby(None));
    // Nobody leads while nobody can, also when it has expired.
    let end = stopped + LONG + Duration::from_secs(2);
    while Instant::now() < end {
        assert!(!a.leads() && !b.leads());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    hub.cont().unwrap();
    until("one leads again", || a.leads() || b.leads()).await;
    until("all is well", || a.trouble().is_none() && b.trouble().is_none()).await;

    // The hub dies, and comes back with the same data.
    hub.kill_api().unwrap();
    until("nobody leads", || !a.leads() && !b.leads()).await;
    hub.start_api().await.unwrap();
    until("one leads again", || a.leads() || b.leads()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_a_leader_that_is_cut_off_has_stopped_before_another_begins() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let proxy = hub.proxy().unwrap();
    let election = Election::new();
    let a = election.candidate("a", &proxy.kubeconfig()).await;
    a.until_leading().await;
    let b = election.candidate("b", &hub.kubeconfig()).await;
    b.until_standing_by("a").await;

    // Swallowed, not refused: what is sent may arrive late.
    proxy.black_hole();
    until("a stops writing", || !a.leads()).await;
    b.until_leading().await;
    assert_eq!(spec(&hub).await["holderIdentity"], "b");
    proxy.heal();
    a.until_standing_by("b").await;
    // An end while the hub is out of reach does not hang.
    proxy.black_hole();
    tokio::time::timeout(PATIENCE, a.end()).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_without_permission_or_namespace_nobody_leads_and_the_remedy_is_named() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    hub.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: controller, namespace: default}}")
        .await
        .unwrap();
    let account = hub.kubeconfig_for_service_account("default", "controller").await.unwrap();
    let election = Election::new();
    let a = election.candidate("a", &account).await;
    a.until_trouble(&["answers 403", "grant get, create and update of leases"]).await;
    assert_eq!(a.writing(), Writing::Standby(None));
    let role = |verbs: &[&str]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "controller", "namespace": "default"},
            "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}],
        })
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "controller", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "controller"},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": "default"}],
    });
    // Exactly these verbs are needed.
    hub.apply_values(vec![role(&["get"]), binding]).await.unwrap();
    a.until_trouble(&["POST"]).await;
    hub.apply_values(vec![role(&["get", "create"])]).await.unwrap();
    a.until_leading().await;
    // Renewals fail, and it does not lead any more.
    a.until_trouble(&["PUT"]).await;
    hub.apply_values(vec![role(&["get", "create", "update"])]).await.unwrap();
    a.until_leading().await;
    assert_eq!(a.trouble(), None);
    a.end().await;

    let b = election.candidate_in("missing", "b", &hub.kubeconfig(), LASTS).await;
    b.until_trouble(&["answers 404", "create the namespace"]).await;
    hub.apply("{apiVersion: v1, kind: Namespace, metadata: {name: missing}}").await.unwrap();
    b.until_leading().await;
}
