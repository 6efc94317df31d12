//! Nothing is written when nothing has changed, counted from the API servers' audit logs (R73, R85).

use std::time::Duration;

use testbed::{Audit, AuditEntry, Cluster};

use crate::beds::{calm, cleared, rough_three};
use crate::clusterset::objects::{exported, web};
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Story, until};

/// What the controller has written to a cluster since `earlier`. What is only tried (`dryRun`) is not written.
pub fn written(cluster: &Cluster, earlier: &Audit, namespace: Option<&str>) -> Vec<AuditEntry> {
    let audit = cluster.audit().unwrap().since(earlier).service_account(ACCOUNT.0, ACCOUNT.1).writes();
    let kept = audit.only(|entry| {
        let reviews = entry.resource.starts_with("selfsubject");
        !reviews && !entry.uri.contains("dryRun") && namespace.is_none_or(|namespace| entry.namespace == namespace)
    });
    kept.entries
}

pub async fn nothing_is_written(set: &Clusterset, earlier: &[Audit], namespace: Option<&str>, time: Duration) {
    stays("nothing is written", time, async || {
        for (cluster, earlier) in set.clusters.iter().zip(earlier) {
            let written = written(cluster, earlier, namespace);
            if !written.is_empty() {
                return Err(format!("{}: {written:#?}", cluster.name()));
            }
        }
        Ok(())
    })
    .await;
}

/// The logs, as soon as half a second passes in which nothing was written.
pub async fn settled(set: &Clusterset, namespace: Option<&str>) -> Vec<Audit> {
    let logs = || -> Vec<Audit> { set.clusters.iter().map(|cluster| cluster.audit().unwrap()).collect() };
    let mut before = logs();
    until("the last writes end", PATIENCE, async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = logs();
        let written: usize =
            set.clusters.iter().zip(&before).map(|(c, before)| written(c, before, namespace).len()).sum();
        before = now;
        if written == 0 { Ok(()) } else { Err(format!("{written} writes")) }
    })
    .await;
    before
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r73_w25_nothing_is_written_while_nothing_changes() {
    let set = &calm().await.set;
    let story = Story::new(set, "idle").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    b.apply(&exported("web", &["10.2.0.1"])).await;
    story.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    for place in [a, b] {
        place.until_export_says("web", "Ready", "True/Exported").await;
    }
    // Not even by what does not matter: a label of the Service, another Service beside it.
    let before = settled(set, Some(&story.namespace)).await;
    a.apply(&(web("web").replace("name: web", "name: web, labels: {team: red}") + &web("other"))).await;
    nothing_is_written(set, &before, Some(&story.namespace), Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r85_without_the_controller_all_stays_and_its_return_writes_nothing() {
    let set = rough_three().await;
    cleared(&set).await;
    let story = Story::new(&set, "hubless").await;
    let mut controller = Controller::start(&set.bed, set.as_members()).await;
    story.at(0).apply(&exported("web", &["10.1.0.1"])).await;
    story.at(1).apply(&exported("web", &["10.2.0.1"])).await;
    story.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    for place in &story.places[..2] {
        place.until_export_says("web", "Ready", "True/Exported").await;
    }
    let before = settled(&set, None).await;
    controller.kill_and_restart();
    controller.wait_ready().await;
    nothing_is_written(&set, &before, None, Duration::from_secs(8)).await;
    // It is alive all the same.
    story.at(0).apply(&exported("web", &["10.1.0.9"])).await;
    story.until_addresses("web", &["10.1.0.9", "10.2.0.1"]).await;
    story.remove().await;
}
