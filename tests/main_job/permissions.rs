//! Each right that the role grants is needed, and one that is missing is named and taken up when it is granted.

use super::objects::{RULES, clusterset, rbac};
use super::rig::{PATIENCE, Rig, Setup};

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l8_without_list_of_imports() {
    without(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l8_without_watch_of_imports() {
    without(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l8_without_list_of_slices() {
    without(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l8_without_watch_of_slices() {
    without(3).await;
}

async fn without(rule: usize) {
    let (group, resource, verb) = RULES[rule];
    let objects = rbac(Some(RULES[rule])) + "---\n" + &clusterset("v1beta1");
    let rig = Rig::start(Setup { crds: "v0.5.2", objects, flags: vec!["--startup-timeout", "100ms"] }).await;

    let named = format!("not allowed to {verb} {resource}.{group}");
    rig.until_readiness(&named, |_, text| text.contains(&named)).await;
    rig.namesake.wait_for_line(&named, PATIENCE).await.unwrap();
    let series = format!("namesake_watch_errors_total{{reason=\"forbidden\",resource=\"{resource}\"}}");
    assert!(rig.metric(&series).await >= Some(1.0));
    if verb == "list" {
        rig.not_ready("web.demo.svc").await;
        rig.not_ready("absent.demo.svc").await;
        let (code, text) = rig.readiness().await;
        assert_eq!(code, 503, "{text}");
    } else {
        // The list was complete, and it is listed again and again: answers are right, and freshness is in doubt.
        let doubt = format!("[!] {resource}");
        rig.until_readiness(&doubt, |code, text| code == 200 && text.contains(&doubt)).await;
        rig.until("web.demo.svc", "A", &["10.96.0.10"]).await;
    }

    rig.cluster.apply(&rbac(None)).await.unwrap();
    rig.until_readiness("granted", |code, text| code == 200 && text.contains(&format!("[+] {resource}"))).await;
    rig.until("web.demo.svc", "A", &["10.96.0.10"]).await;
    rig.until("db-0.east.db.demo.svc", "A", &["10.1.0.1"]).await;
}
