//! Session affinity: a client stays with one pod, and the pod may be of any cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::objects::{self, Manners};
use crate::stage::{PODS, Stage};
use crate::world::{World, until};

pub const NAME: &str = "session affinity across clusters";

/// How many connections each client makes.
const TIMES: usize = 150;

/// Two exporters with two pods each, and a client in each cluster: each stays with one pod, without affinity all answer.
/// Then the cluster of the first client's pod leaves, and the client stays with another one.
pub async fn across_clusters(world: &World) {
    let stage = Stage::new(world, "affinity").await;
    let exporters = [1, 2];
    for (service, affinity) in [("sticky", "ClientIP"), ("loose", "None")] {
        for exporter in exporters {
            stage.serve(exporter, service, 2, Manners::PLAIN).await;
            stage.at(exporter).patch("services", service, json!({"spec": {"sessionAffinity": affinity}})).await;
            stage.at(exporter).apply_values(vec![objects::export(service)]).await;
        }
    }
    let everywhere = [0, 1, 2];
    // All four pods answer where nobody sticks; then those of the other service are there as well.
    stage.until_reached(&everywhere, "loose", 80, &[(1, 2), (2, 2)]).await;
    for cluster in everywhere {
        until("the slices of the sticky service are there", PODS, async || {
            let found = stage.at(cluster).addresses("sticky").await;
            if found.len() == 4 { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        let import = stage.at(cluster).until_ready("sticky").await;
        assert_eq!(import["spec"]["sessionAffinity"], "ClientIP", "{}", stage.at(cluster).id());
    }
    // A slice that is there is not yet in every kube-proxy.
    for cluster in everywhere {
        until("the sticky service is reached", PODS, async || {
            let said = stage.clients[cluster].reach(&stage.name("sticky"), 80).await;
            said.map(drop).map_err(|trouble| format!("{}: {trouble}", stage.at(cluster).id()))
        })
        .await;
    }
    let mut stuck_to = Vec::new();
    for cluster in everywhere {
        let pods = reached_by(&stage, cluster, "sticky").await;
        let id = stage.at(cluster).id();
        world.note(NAME, format!("client in {id}: {TIMES} connections"), format!("0 failed, answered by {pods:?}"));
        assert_eq!(pods.len(), 1, "a client in {id} does not stay with one pod");
        stuck_to.extend(pods);
    }
    // A client whose pod's cluster leaves goes to the other one, and stays there.
    let leaving = exporters.into_iter().find(|id| stuck_to[0].starts_with(&format!("{}-", stage.at(*id).id())));
    let leaving = leaving.expect("the pod that answered is of one of the exporters");
    let staying = exporters.into_iter().find(|id| *id != leaving).expect("there are two");
    stage.at(leaving).delete("serviceexports", "sticky").await;
    let away = format!("{}-", stage.at(leaving).id());
    until("the client has left the cluster that does not export any more", PODS, async || {
        let said = stage.clients[0].reach(&stage.name("sticky"), 80).await;
        if said.as_ref().is_ok_and(|pod| !pod.starts_with(&away)) { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    let pods = reached_by(&stage, 0, "sticky").await;
    let what = format!("the same after {} left: {TIMES} connections", stage.at(leaving).id());
    world.note(NAME, what, format!("0 failed, answered by {pods:?}"));
    assert_eq!(pods.len(), 1, "the client does not stay with one pod");
    assert!(pods.iter().all(|pod| pod.starts_with(stage.at(staying).id())), "{pods:?}");
    stage.remove().await;
}

/// The pods that answer a client's connections, none of which may fail.
async fn reached_by(stage: &Stage, cluster: usize, service: &str) -> BTreeSet<String> {
    let said = stage.clients[cluster].reach_often(&stage.name(service), 80, TIMES).await;
    let mut counts = BTreeMap::new();
    for said in &said {
        *counts.entry(said.clone().unwrap_or_else(|trouble| trouble.to_string())).or_insert(0) += 1;
    }
    assert!(said.iter().all(Result::is_ok), "{}: connections failed: {counts:?}", stage.at(cluster).id());
    said.into_iter().flatten().collect()
}
