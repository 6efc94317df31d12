//! How carefully it writes: by server-side apply, only what is ours, and never what has just become another's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::beds::{calm, rough_three};
use crate::clusterset::faults::Faults;
use crate::clusterset::objects::exported;
use crate::clusterset::place::text;
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Controller, PATIENCE, Story, until};

/// Each manager of an object, its operation and subresource.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut all: Vec<_> = entries
        .map(|e| format!("{} {} {}", text(&e["manager"]), text(&e["operation"]), text(&e["subresource"])))
        .collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r81_r93_one_field_manager_by_server_side_apply_and_no_finalizers() {
    let story = Story::new(&calm().await.set, "manager").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    b.until_ready("web").await;
    b.until_addresses("web", &["10.1.0.1"]).await;
    a.until_export_says("web", "Ready", "True/Exported").await;
    let slice = b.get("endpointslices", &format!("{}-cluster-a", b.derived_name("web"))).await.unwrap();
    let (import, derived) = (b.import("web").await.unwrap(), b.derived("web").await.unwrap());
    for (object, wanted) in [
        (&import, &["namesake Apply ", "namesake Apply status"][..]),
        (&derived, &["namesake Apply "]),
        (&slice, &["namesake Apply "]),
    ] {
        assert_eq!(managers(object), wanted, "{object:#}");
        assert!(object["metadata"]["finalizers"].is_null(), "{object:#}");
    }
    // Of what is the user's, nothing is written but conditions.
    let export = a.get("serviceexports", "web").await.unwrap();
    assert!(managers(&export).iter().all(|m| m == "namesake Apply status" || !m.starts_with("namesake")), "{export:#}");
    assert_eq!(export["metadata"]["generation"], 1);
    assert!(export["metadata"]["finalizers"].is_null());
    for (plural, name) in [("services", "web"), ("endpointslices", "web-1")] {
        let theirs = a.get(plural, name).await.unwrap();
        assert!(managers(&theirs).iter().all(|manager| !manager.starts_with("namesake")), "{theirs:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r94_what_has_become_anothers_at_the_last_moment_is_not_deleted() {
    let set = rough_three().await;
    let token = set.clusters[1].service_account_token(ACCOUNT.0, ACCOUNT.1, Duration::from_secs(3600)).await.unwrap();
    let faults = Faults::start(&set.bed, &set.clusters[1], &token).await;
    let kubeconfigs = [set.kubeconfigs[0].clone(), faults.kubeconfig(&set.bed, set.clusters[1].name())];
    let _controller = Controller::start(&set.bed, set.as_members_by(&kubeconfigs)).await;
    let story = Story::new(&set, "last").await;
    let [c1, c2, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.until_addresses("web", &["10.1.0.1"]).await;
    c1.until_export_says("web", "Ready", "True/Exported").await;
    // Between its decision and the arrival of its request, each object is given to somebody else.
    let theirs = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody",
                                                "endpointslice.kubernetes.io/managed-by": "somebody"},
                                     "ownerReferences": null}});
    faults.before("DELETE", theirs);
    c1.delete("serviceexports", "web").await;
    c1.until_gone("web").await;
    until("it has tried", PATIENCE, async || {
        let audit = c2.cluster.audit().unwrap().verb("delete").service_account(ACCOUNT.0, ACCOUNT.1);
        let refused = audit.only(|entry| entry.namespace == c2.namespace && entry.code == 409).count();
        if refused >= 1 { Ok(()) } else { Err("no delete was refused".to_owned()) }
    })
    .await;
    stays("it is there", Duration::from_secs(3), async || {
        let all = (c2.import("web").await.is_some(), c2.slices("web").await.len());
        // What it had not come to yet is ours and goes with the rest; what it was about to delete is not.
        let taken = async |plural: &str| {
            c2.list(plural, "app.kubernetes.io/managed-by=somebody").await.len()
                + c2.list(plural, "endpointslice.kubernetes.io/managed-by=somebody").await.len()
        };
        let kept = taken("serviceimports").await + taken("services").await + taken("endpointslices").await;
        if kept > 0 { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r81_del_01_a_namespace_goes_without_the_controller_and_what_is_left_elsewhere_with_its_return() {
    let set = rough_three().await;
    let mut controller = Controller::start(&set.bed, set.as_members_by(&set.kubeconfigs[..3])).await;
    let story = Story::new(&set, "stuck").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&(exported("web", &["10.1.0.1"]) + &exported("shop", &["10.1.0.2"]))).await;
    c2.apply(&exported("shop", &["10.2.0.2"])).await;
    for name in ["web", "shop"] {
        story.until_imported([0, 1, 2], name).await;
    }
    c3.until_addresses("shop", &["10.1.0.2", "10.2.0.2"]).await;
    controller.process.kill().unwrap();
    c1.delete_namespace().await;
    until("the namespace is gone", PATIENCE, async || {
        let found = c1.send("GET", &format!("/api/v1/namespaces/{}", c1.namespace), None).await;
        if found.is_err() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    // Something of ours that nothing stands for, as a crash of an older version might leave it.
    let labels = json!({"multicluster.kubernetes.io/service-name": "old", "app.kubernetes.io/managed-by": "namesake",
                        "multicluster.kubernetes.io/service-imported": "true"});
    let old = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": c3.derived_name("old"), "labels": labels},
                     "spec": {"ports": [{"port": 80}]}});
    c3.apply_values(vec![old]).await;
    controller.kill_and_restart();
    for place in [c2, c3] {
        place.until_gone("web").await;
        place.until_gone("old").await;
        place.until_addresses("shop", &["10.2.0.2"]).await;
        place.until_exporters("shop", &["c2"]).await;
    }
    story.remove().await;
}
