//! Ports about which the exporters disagree: what is the same port under another name is reached in both clusters, what is
//! another port under the same name only in its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ask::Trouble;
use crate::objects::{self, Manners, port};
use crate::stage::{PODS, Stage};
use crate::world::{World, until};

pub const RENAMED: &str = "a port under two names";
pub const CONFLICTING: &str = "a port that clashes";

/// How many connections each client makes to a port.
const TIMES: usize = 80;

/// Both clusters expose 80/TCP, the older as `http` to 8080 of its pods, the younger as `web` to 9090 of its own.
pub async fn renamed(world: &World) {
    let stage = Stage::new(world, "renamed-port").await;
    export_in_turn(&stage, "shop", [(1, vec![port("http", 80, 8080)]), (2, vec![port("web", 80, 9090)])]).await;
    until_conflict_and_slices(&stage, "shop", &[1, 2]).await;
    let import = stage.at(0).until_ready("shop").await;
    assert_eq!(names(&import), ["http 80"], "{}", import["spec"]["ports"]);
    for cluster in [0, 1, 2] {
        until_settled(&stage, cluster, "shop", 80, &["east", "west"]).await;
        let found = count(&stage, cluster, "shop", 80).await;
        let id = stage.at(cluster).id();
        world.note(RENAMED, format!("client in {id}: {TIMES} connections to port 80"), words(&found));
        assert!(found.keys().eq(["east", "west"]), "{found:?}");
    }
    stage.remove().await;
}

/// The older has `http` at 80; the younger has `http` at 8080, which clashes, and `admin` at 9000, which does not.
pub async fn conflicting(world: &World) {
    let stage = Stage::new(world, "clashing-port").await;
    let younger = vec![port("http", 8080, 8080), port("admin", 9000, 9090)];
    export_in_turn(&stage, "shop", [(1, vec![port("http", 80, 8080)]), (2, younger)]).await;
    until_conflict_and_slices(&stage, "shop", &[1, 2]).await;
    let import = stage.at(0).until_ready("shop").await;
    assert_eq!(names(&import), ["http 80", "admin 9000"], "{}", import["spec"]["ports"]);
    for cluster in [0, 1, 2] {
        let id = stage.at(cluster).id();
        for (port, cluster_of_it) in [(80, "east"), (9000, "west")] {
            until_settled(&stage, cluster, "shop", port, &[cluster_of_it]).await;
            let found = count(&stage, cluster, "shop", port).await;
            world.note(CONFLICTING, format!("client in {id}: {TIMES} connections to port {port}"), words(&found));
            assert!(found.keys().eq([cluster_of_it]), "{found:?}");
        }
        // The younger cluster's number of `http` is none of the service's ports: nobody may answer there.
        let address = stage.clients[cluster].addresses(&stage.name("shop")).await.unwrap()[0];
        let mut answered = 0;
        let mut troubles = BTreeMap::new();
        for _ in 0..3 {
            match stage.clients[cluster].connect(address, 8080, Duration::from_secs(1)).await.said {
                Ok(_) => answered += 1,
                Err(trouble) => *troubles.entry(trouble.to_string()).or_insert(0) += 1,
            }
        }
        let figures = format!("{answered} answered, {troubles:?}");
        world.note(CONFLICTING, format!("client in {id}: 3 connections to port 8080"), figures);
        assert_eq!(answered, 0, "port 8080 clashes and is answered");
    }
    // In its own cluster the Service is what it was.
    let own = format!("shop.{}.svc.cluster.local.", stage.at(2).namespace);
    let said = stage.clients[2].reach_often(&own, 8080, TIMES).await;
    let answered = said.iter().filter(|said| said.as_ref().is_ok_and(|pod| pod.starts_with("west-"))).count();
    world.note(CONFLICTING, format!("{TIMES} connections to port 8080 of the younger's own Service"), {
        format!("{answered} answered by its own pods")
    });
    assert_eq!(answered, TIMES, "{said:?}");
    stage.remove().await;
}

/// Exports a service of two pods in each of these clusters, the first of which is the older.
async fn export_in_turn(stage: &Stage, name: &str, clusters: [(usize, Vec<serde_json::Value>); 2]) {
    for (cluster, ports) in &clusters {
        let place = stage.at(*cluster);
        let deployment = objects::deployment(place.id(), name, 2, &[8080, 9090], Manners::PLAIN);
        place.apply_values(vec![deployment, objects::service(name, ports)]).await;
    }
    for (cluster, _) in clusters {
        stage.at(cluster).apply_values(vec![objects::export(name)]).await;
        // Exports are ordered by their seconds.
        crate::stage::for_a_while(Duration::from_millis(1100)).await;
    }
}

/// Waits until all exporters are told, and until every cluster has the slices of all of them.
async fn until_conflict_and_slices(stage: &Stage, name: &str, exporters: &[usize]) {
    for exporter in exporters {
        stage.at(*exporter).until_export_says(name, "Conflict", "True/PortConflict").await;
    }
    for place in &stage.places {
        until(&format!("{}: four endpoints of {name}", place.id()), PODS, async || {
            let found = place.addresses(name).await;
            if found.len() == 4 { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }
}

/// Waits until kube-proxy has taken up what the slices say: a port is answered, by all that should.
async fn until_settled(stage: &Stage, cluster: usize, name: &str, port: u16, clusters: &[&str]) {
    until(&format!("port {port} is answered by {clusters:?}"), PODS, async || {
        let found = count(stage, cluster, name, port).await;
        let all = clusters.iter().all(|cluster| found.contains_key(*cluster));
        if all && !found.contains_key("failed") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// How many connections the pods of each cluster answered, and how many failed.
async fn count(stage: &Stage, cluster: usize, name: &str, port: u16) -> BTreeMap<String, usize> {
    let said: Vec<Result<String, Trouble>> = stage.clients[cluster].reach_often(&stage.name(name), port, TIMES).await;
    let mut found = BTreeMap::new();
    for said in said {
        let who = said.map_or_else(|_| "failed".to_owned(), |pod| pod.split('-').next().unwrap_or_default().to_owned());
        *found.entry(who).or_default() += 1;
    }
    found
}

fn words(found: &BTreeMap<String, usize>) -> String {
    let words: Vec<_> = found.iter().map(|(who, count)| format!("{who} {count}")).collect();
    words.join(", ")
}

/// `http 80`: the ports of an import.
fn names(import: &serde_json::Value) -> Vec<String> {
    let ports = import["spec"]["ports"].as_array().cloned().unwrap_or_default();
    ports.iter().map(|port| format!("{} {}", port["name"].as_str().unwrap_or_default(), port["port"])).collect()
}
