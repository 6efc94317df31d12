//! Nothing is written when nothing has changed, counted from the API servers' audit logs (R73, R85).

use std::time::Duration;

use testbed::{Audit, AuditEntry, Cluster};

use crate::beds::{calm, cleared, rough_three};
use crate::clusterset::objects::{exported, web};
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Place, Story, until};
use crate::told::until_event;

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

/// Waits until a service that the first places export is in all of them, and every exporter was told: of all that is
/// written for it, the event of an export is the last.
pub async fn until_told(places: &[Place], name: &str, exporters: usize) {
    let ids: Vec<_> = places[..exporters].iter().map(Place::id).collect();
    for place in places {
        place.until_ready(name).await;
        place.until_exporters(name, &ids).await;
    }
    let told = format!("exported to {} clusters.", places.len());
    for place in &places[..exporters] {
        place.until_export_says(name, "Ready", "True/Exported").await;
        place.until_export_says(name, "Conflict", "False/NoConflicts").await;
        until(&format!("{}: the export says {told:?}", place.id()), PATIENCE, async || {
            let message = place.message("serviceexports", name, "Ready").await;
            if message.contains(&told) { Ok(()) } else { Err(message) }
        })
        .await;
        until_event(place, "ServiceExport", name, "Normal Exported: ").await;
    }
}

/// Whether nothing waits in these controllers or is under way, also nothing that waits for its time after trouble.
async fn idle(controllers: &[&Controller]) -> Result<(), String> {
    for controller in controllers {
        for queue in ["namesake_controller_planning_queue", "namesake_controller_cluster_queue"] {
            let length = controller.metric(queue, &[]).await;
            if length > 0.0 {
                return Err(format!("{queue} {length}"));
            }
        }
    }
    Ok(())
}

/// The logs, as soon as half a second passes in which nothing was written, and the controllers are idle before it and
/// after it. Nothing in a log is no sign by itself: on a busy machine one write may take longer. Controllers that others
/// use too are not to be given; what was done there is waited for by [`until_told`].
pub async fn settled(set: &Clusterset, controllers: &[&Controller], namespace: Option<&str>) -> Vec<Audit> {
    let logs = || -> Vec<Audit> { set.clusters.iter().map(|cluster| cluster.audit().unwrap()).collect() };
    // What somebody changed back again and again waits for up to a minute.
    until("the last writes end", PATIENCE * 4, async || {
        idle(controllers).await?;
        let before = logs();
        tokio::time::sleep(Duration::from_millis(500)).await;
        idle(controllers).await?;
        let now = logs();
        let written: usize =
            set.clusters.iter().zip(&before).map(|(c, before)| written(c, before, namespace).len()).sum();
        if written == 0 { Ok(now) } else { Err(format!("{written} writes")) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r73_w25_nothing_is_written_while_nothing_changes() {
    let set = &calm().await.set;
    let story = Story::new(set, "idle").await;
    let [a, b, _] = &story.places[..] else { panic!() };
    a.apply(&exported("web", &["10.1.0.1"])).await;
    b.apply(&exported("web", &["10.2.0.1"])).await;
    story.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    until_told(&story.places, "web", 2).await;
    // Not even by what does not matter: a label of the Service, another Service beside it.
    let before = settled(set, &[], Some(&story.namespace)).await;
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
    until_told(&story.places, "web", 2).await;
    let before = settled(&set, &[&controller], None).await;
    controller.kill_and_restart();
    controller.wait_ready().await;
    nothing_is_written(&set, &before, None, Duration::from_secs(8)).await;
    // It is alive all the same.
    story.at(0).apply(&exported("web", &["10.1.0.9"])).await;
    story.until_addresses("web", &["10.1.0.9", "10.2.0.1"]).await;
    story.remove().await;
}
