//! Leases that say in every member which other ones are heard (R84, `--source-leases`).

use std::collections::BTreeMap;
use std::time::Duration;

use namesake::controller::enrol::manifests;
use serde_json::{Value, json};
use testbed::Cluster;

use crate::beds::rough;
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Controller, PATIENCE, until};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/namesake/leases";

/// The sources that have a Lease in a cluster, and when each was renewed.
async fn renewed(cluster: &Cluster) -> BTreeMap<String, String> {
    let list = cluster.request("GET", LEASES, None).await.unwrap();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let source =
        |item: &Value| item["metadata"]["name"].as_str().unwrap().strip_prefix("namesake-source-").map(str::to_owned);
    let renewed = |item: &Value| item["spec"]["renewTime"].as_str().unwrap().to_owned();
    items.iter().filter_map(|item| Some((source(item)?, renewed(item)))).collect()
}

async fn until_sources(cluster: &Cluster, wanted: &[&str]) {
    until(&format!("{} has the Leases of {wanted:?}", cluster.name()), PATIENCE, async || {
        let found: Vec<_> = renewed(cluster).await.into_keys().collect();
        if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Waits until the Lease of `source` is renewed twice more.
async fn until_renewed(cluster: &Cluster, source: &str) {
    for _ in 0..2 {
        let before = renewed(cluster).await.remove(source);
        until(&format!("{source} is renewed in {}", cluster.name()), PATIENCE, async || {
            let now = renewed(cluster).await.remove(source);
            if now.is_some() && now != before { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r84_leases_in_every_member_say_which_others_are_heard() {
    let set = rough().await;
    let [c1, c2, c3, ..] = &set.clusters[..] else { panic!() };
    let network = c1.proxy().unwrap();
    let mut kubeconfigs = set.kubeconfigs[..3].to_vec();
    kubeconfigs[0] = network.kubeconfig_through(&kubeconfigs[0]).unwrap();
    let with = |members: &[std::path::PathBuf]| {
        let mut args = set.as_members_by(members);
        args.extend(["--source-leases", "--unreachable-ttl=6s", "--unreachable-grace=1s"].map(str::to_owned));
        args
    };
    // What `namesake join --grant source-leases` adds to the account's rights.
    let granted: Vec<_> = manifests::source_leases(ACCOUNT.0).into_iter().map(|placed| placed.object).collect();
    for cluster in [c1, c2, c3] {
        cluster.apply_values(granted.clone()).await.unwrap();
    }
    // A foreign Lease that is called as one of ours would be is nothing to us.
    let foreign = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "namesake-source-zzz", "namespace": "namesake"},
        "spec": {"renewTime": "2000-01-01T00:00:00.000000Z"},
    });
    c3.apply_values(vec![foreign.clone()]).await.unwrap();

    let mut controller = Controller::start(&set.bed, with(&kubeconfigs)).await;
    // Each of the others, and none of itself: nobody is cut off from itself.
    until_sources(c1, &["c2", "c3"]).await;
    until_sources(c2, &["c1", "c3"]).await;
    until_sources(c3, &["c1", "c2", "zzz"]).await;
    let lease = c2.request("GET", &format!("{LEASES}/namesake-source-c1"), None).await.unwrap();
    assert_eq!(
        lease["metadata"]["labels"],
        json!({"app.kubernetes.io/managed-by": "namesake", "multicluster.kubernetes.io/source-cluster": "c1"})
    );
    assert_eq!([&lease["spec"]["holderIdentity"], &lease["spec"]["leaseDurationSeconds"]], [&json!("c1"), &json!(6)]);
    until_renewed(c2, "c1").await;
    assert!(
        controller.metric("namesake_controller_writes_total", &[r#"cluster="c2""#, r#"resource="leases""#]).await > 0.0
    );

    // One is cut off: its Leases stand still, those of the others don't.
    network.cut();
    until("nobody vouches for c1", PATIENCE, async || {
        let (_, body) = controller.get("/ready?verbose").await;
        if body.contains("cluster c1: unreachable") { Ok(()) } else { Err(body) }
    })
    .await;
    until_renewed(c3, "c2").await;
    let silent = [c2, c3].map(|cluster| async move { renewed(cluster).await["c1"].clone() });
    let silent = futures_util::future::join_all(silent).await;
    stays("c1 is silent", Duration::from_secs(5), async || {
        let now = [renewed(c2).await["c1"].clone(), renewed(c3).await["c1"].clone()];
        if now == silent[..] { Ok(()) } else { Err(format!("{silent:?} {now:?}")) }
    })
    .await;
    network.heal();
    until_renewed(c2, "c1").await;
    until_renewed(c1, "c2").await;
    until_renewed(c1, "c3").await;

    // The controller is dead: everything stands still, and stays.
    controller.process.kill().unwrap();
    let all = renewed(c1).await;
    stays("everything stands still", Duration::from_secs(5), async || {
        let now = renewed(c1).await;
        if now == all { Ok(()) } else { Err(format!("{all:?} {now:?}")) }
    })
    .await;

    // One that left while nobody looked is promised nothing any more.
    controller = Controller::start(&set.bed, with(&kubeconfigs[..2])).await;
    until_sources(c1, &["c2"]).await;
    until_sources(c2, &["c1"]).await;
    until_renewed(c1, "c2").await;
    until_sources(c3, &["c1", "c2", "zzz"]).await;
    assert_eq!(renewed(c3).await["zzz"], "2000-01-01T00:00:00.000000Z");

    // One that leaves while we look takes all of them with it.
    drop(controller);
    let folder = set.bed.dir().join("sources");
    std::fs::create_dir_all(&folder).unwrap();
    for (cluster, file) in set.clusters.iter().zip(&set.kubeconfigs[..3]) {
        std::fs::copy(file, folder.join(format!("{}.kubeconfig", cluster.name()))).unwrap();
    }
    let members =
        ["--no-hub".to_owned(), format!("--member-folder={}", folder.display()), "--source-leases".to_owned()];
    let controller = Controller::start(&set.bed, members.to_vec()).await;
    until_sources(c2, &["c1", "c3"]).await;
    std::fs::remove_file(folder.join("c3.kubeconfig")).unwrap();
    until_sources(c3, &["zzz"]).await;
    until_sources(c1, &["c2"]).await;
    until_sources(c2, &["c1"]).await;

    // Without the option there are none.
    drop(controller);
    for cluster in [c1, c2, c3] {
        for source in renewed(cluster).await.keys() {
            cluster.request("DELETE", &format!("{LEASES}/namesake-source-{source}"), None).await.unwrap();
        }
    }
    for cluster in [c1, c2, c3] {
        for placed in manifests::source_leases(ACCOUNT.0) {
            cluster.request("DELETE", &placed.path, None).await.unwrap();
        }
    }
    let _plain = Controller::start(&set.bed, set.as_members()).await;
    stays("there are none", Duration::from_secs(3), async || {
        let found = renewed(c1).await;
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}
