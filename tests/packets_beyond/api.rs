//! API servers that are killed and started while services change: nothing is lost, nothing is wrong, the final state is
//! right, and traffic goes on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ask::Trouble;
use crate::objects::{self, Manners};
use crate::stage::{PODS, Stage, for_a_while, seconds};
use crate::stream::{Stream, Wanted};
use crate::world::{World, until};

pub const NAME: &str = "API servers restart during changes";

/// The services of one cluster: they all lead to the pods of one Deployment.
const SERVICES: usize = 12;

/// How long an API server is away.
const AWAY: Duration = Duration::from_secs(4);

/// The clusters that export.
const EXPORTERS: [usize; 2] = [1, 2];

/// Kills the API server of a member, then the hub's, and changes something before, meanwhile and right after.
pub async fn restarts(world: &World) {
    let stage = Stage::new(world, "api-restarts").await;
    for cluster in EXPORTERS {
        stage.serve_and_export(cluster, "web", 2, Manners::PLAIN).await;
        for n in 0..SERVICES / 2 {
            add(&stage, cluster, n).await;
        }
    }
    stage.until_reached(&[0, 1, 2], "web", 80, &[(1, 2), (2, 2)]).await;
    let wanted = Wanted::new(&stage.name("web"), 80).every(Duration::from_millis(20));
    let streams: Vec<_> = stage.clients.iter().map(|client| Stream::start(client, wanted.clone())).collect();

    let mut changes = 0;
    // A change to a cluster is made while it can be: all the time in the other one, before and after in the one itself.
    for (round, killed) in [1, 0].into_iter().enumerate() {
        let api = &stage.at(killed).cluster;
        changes += change(&stage, 1, 3 * round).await;
        changes += change(&stage, 2, 3 * round).await;
        // At once: what was changed is under way to the importers.
        api.kill_api().unwrap();
        let away = Instant::now();
        changes += change(&stage, 2, 3 * round + 1).await;
        for_a_while(AWAY.saturating_sub(away.elapsed())).await;
        api.start_api().await.unwrap();
        changes += change(&stage, 1, 3 * round + 1).await;
        // And once more, while what was missed is being taken up.
        api.kill_api().unwrap();
        changes += change(&stage, 2, 3 * round + 2).await;
        api.start_api().await.unwrap();
        changes += change(&stage, 1, 3 * round + 2).await;
    }
    let last = Instant::now();

    let (mut looked, mut right) = (0, 0);
    for cluster in [0, 1, 2] {
        for exporter in EXPORTERS {
            let pods: BTreeSet<_> = stage.until_served(exporter, "web", 2).await.into_values().collect();
            for n in 0..SERVICES {
                looked += 1;
                let service = called(&stage, exporter, n);
                // The first half is gone, the second half is there.
                let is_there = n >= SERVICES / 2;
                let (place, client) = (stage.at(cluster), &stage.clients[cluster]);
                until(&format!("{}: {service}, there: {is_there}", place.id()), PODS, async || {
                    let found: BTreeSet<_> =
                        place.addresses(&service).await.iter().filter_map(|a| a.parse().ok()).collect();
                    let said = client.reach(&stage.name(&service), 80).await;
                    let well = match &said {
                        Ok(pod) => is_there && found == pods && pod.starts_with(stage.at(exporter).id()),
                        Err(trouble) => !is_there && found.is_empty() && *trouble == Trouble::NoName,
                    };
                    if well { Ok(()) } else { Err(format!("{found:?}, {said:?}")) }
                })
                .await;
                right += 1;
            }
        }
    }
    let settled = Instant::now();
    let (mut asked, mut failed, mut words) = (0, 0, String::new());
    for (cluster, stream) in streams.into_iter().enumerate() {
        let tally = stream.stop().await;
        asked += tally.len();
        failed += tally.failed();
        if tally.failed() > 0 {
            words += &format!(" {}: {}", stage.at(cluster).id(), tally.words());
        }
    }
    world.note(
        NAME,
        "a service that did not change, clients in 3 clusters",
        format!("{asked} asked, {failed} failed{words}"),
    );
    let figures = format!("{changes} changes, {right} of {looked} right after {} s", seconds(last, settled));
    world.note(NAME, "4 kills: services as each cluster sees them", figures);
    assert_eq!(failed, 0, "look-ups or connections failed:{words}");
    stage.remove().await;
}

/// One more service of the second half, one less of the first: by turns its export goes, or the Service too.
async fn change(stage: &Stage, cluster: usize, step: usize) -> usize {
    add(stage, cluster, SERVICES / 2 + step).await;
    let less = called(stage, cluster, step);
    stage.at(cluster).delete("serviceexports", &less).await;
    if step % 2 == 1 {
        stage.at(cluster).delete("services", &less).await;
    }
    2
}

async fn add(stage: &Stage, cluster: usize, n: usize) {
    let name = called(stage, cluster, n);
    let mut service = objects::service(&name, &objects::ports());
    service["spec"]["selector"] = json!({"app": "web"});
    stage.at(cluster).apply_values(vec![service, objects::export(&name)]).await;
}

/// Each service has one exporter, which its name tells.
fn called(stage: &Stage, cluster: usize, n: usize) -> String {
    format!("{}-{n}", stage.at(cluster).id())
}
