//! CRDs that come late, are upgraded, go, and come back.

use super::objects::{clusterset, import, rbac};
use super::rig::{PATIENCE, Rig, Setup};

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l7_l17_crds_come_late_are_upgraded_go_and_come_back() {
    let flags = vec!["--startup-timeout", "100ms"];
    let rig = Rig::start(Setup { crds: "", objects: rbac(None), flags }).await;

    // Nothing is known: SERVFAIL and the reason, never NXDOMAIN; the apex has no cluster data in it (L3, L4, L7).
    rig.until_readiness("the CRD is named", |code, text| {
        code == 503 && text.contains("CRD serviceimports.multicluster.x-k8s.io is not installed")
    })
    .await;
    rig.not_ready("web.demo.svc").await;
    assert_eq!(rig.ask("", "SOA").data("SOA").len(), 1);
    let missing = r#"namesake_watch_errors_total{reason="crd_missing",resource="serviceimports"}"#;
    assert!(rig.metric(missing).await >= Some(1.0));
    let line = "serviceimports.multicluster.x-k8s.io is not installed";
    rig.namesake.wait_for_line(line, PATIENCE).await.unwrap();

    // An old release appears: v1alpha1 alone.
    rig.cluster.install_crds("v0.4.1").await.unwrap();
    rig.wait_ready().await;
    assert_eq!(rig.ask("web.demo.svc", "A").status, "NXDOMAIN", "now it is known that there is none");
    rig.cluster.apply(&clusterset("v1alpha1")).await.unwrap();
    rig.until("web.demo.svc", "A", &["10.96.0.10"]).await;
    rig.until("db.demo.svc", "A", &["10.1.0.1", "10.1.0.2", "10.2.0.1"]).await;

    // It is upgraded under way, and nothing is lost.
    rig.cluster.install_crds("v0.5.2").await.unwrap();
    rig.cluster.apply(&import("v1beta1", "new", "10.96.0.20")).await.unwrap();
    rig.until("new.demo.svc", "A", &["10.96.0.20"]).await;
    assert_eq!(rig.ask("web.demo.svc", "A").data("A"), ["10.96.0.10"]);

    // It goes, with all objects. What was known is served on, and is known not to be fresh (L17).
    rig.cluster.uninstall_crds("v0.5.2").await.unwrap();
    rig.until_readiness("ready, and the CRD is named", |code, text| {
        code == 200 && text.contains("CRD serviceimports.multicluster.x-k8s.io is not installed")
    })
    .await;
    assert_eq!(rig.ask("web.demo.svc", "A").data("A"), ["10.96.0.10"]);
    assert_eq!(rig.ask("db.demo.svc", "A").data("A").len(), 3);

    // It comes back, and with it the truth.
    rig.cluster.install_crds("v0.5.2").await.unwrap();
    rig.cluster.apply(&import("v1beta1", "again", "10.96.0.21")).await.unwrap();
    rig.until("again.demo.svc", "A", &["10.96.0.21"]).await;
    rig.until_status("web.demo.svc", "NXDOMAIN").await;
    rig.until_readiness("fresh again", |code, text| code == 200 && text.contains("[+] serviceimports")).await;
}
