//! A database without a service address of its own: its pods find each other by name, over clusters.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;

use hickory_proto::rr::{RData, RecordType};

use crate::ask::{PATIENCE, Trouble};
use crate::clusterset::Place;
use crate::objects;
use crate::pod::ClientPod;
use crate::stage::{PODS, Stage, ready_pods, seconds, until_pod_runs};
use crate::world::{World, until};

pub const NAME: &str = "a headless database";

/// The port of the database, in its pods too: a headless name leads to the pods as they are.
const PORT: u16 = 5432;

/// The clusters that have a part of it, and how many pods each.
const CLUSTERS: [usize; 2] = [1, 2];
const PODS_EACH: u32 = 2;

/// A member of the database: a pod of a StatefulSet, as a client of the others.
struct Member {
    cluster: usize,
    host: String,
    pod: ClientPod,
}

/// Every pod looks up every pod by `<host>.<cluster>.<service>`, and all by SRV, and talks to it. Then one pod is deleted
/// and comes back with another address: its name leads to it again.
pub async fn peers(world: &World) {
    let stage = Stage::new(world, "database").await;
    for cluster in CLUSTERS {
        let objects = vec![
            objects::headless("db", &[objects::port("pg", PORT, PORT)]),
            objects::stateful_set("db", PODS_EACH, &[PORT]),
            objects::export("db"),
        ];
        stage.at(cluster).apply_values(objects).await;
    }
    let mut members = Vec::new();
    for cluster in CLUSTERS {
        for (host, address) in until_members(stage.at(cluster)).await {
            let pod = ClientPod::new(&stage.at(cluster).cluster, address, world.nameserver(cluster));
            members.push(Member { cluster, host, pod });
        }
    }
    let all = stage.name("db");
    let srv = format!("_pg._tcp.{all}");
    let wanted: BTreeSet<_> = members.iter().map(|member| member.pod.address).collect();
    for member in &members {
        until(&format!("{} sees all members", whole(&stage, member)), PODS, async || {
            let found: BTreeSet<_> = member.pod.addresses(&all).await.unwrap_or_default().into_iter().collect();
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        // The names of single members come by the same slices, but answers of before are cached one by one.
        for peer in &members {
            let name = whole(&stage, peer);
            until(&format!("{} sees {name}", whole(&stage, member)), PODS, async || {
                let found = member.pod.addresses(&name).await;
                if found == Ok(vec![peer.pod.address]) { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
        }
        until(&format!("{} sees all by SRV", whole(&stage, member)), PODS, async || {
            let found = services(&member.pod, &srv).await;
            let all = found.as_ref().is_ok_and(|found| found.len() == members.len());
            if all { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    let (mut asked, mut right, mut talked) = (0, 0, 0);
    for member in &members {
        for peer in &members {
            asked += 1;
            let found = member.pod.addresses(&whole(&stage, peer)).await;
            right += usize::from(found.as_ref() == Ok(&vec![peer.pod.address]));
            let Ok(found) = found else { continue };
            // The hosts of both clusters have the same names: whether it is the right one tells its address.
            let said = member.pod.connect(found[0], PORT, PATIENCE).await.said;
            talked += usize::from(said.as_deref() == Ok(&peer.host));
        }
    }
    let figures = format!("{right} of {asked} names right, {talked} of {asked} connections answered by that host");
    world.note(NAME, "each pod to each by <host>.<cluster>.<svc>", figures);

    let (mut targets, mut reached) = (0, 0);
    for member in &members {
        for (name, port) in services(&member.pod, &srv).await.unwrap() {
            targets += 1;
            reached += usize::from(member.pod.reach(&name, port).await.is_ok());
        }
    }
    let all_targets = members.len() * members.len();
    world.note(NAME, "each pod to all by SRV", format!("{targets} of {all_targets} targets, {reached} answered"));
    assert_eq!((right, talked), (asked, asked), "names and connections of the members");
    assert_eq!((targets, reached), (all_targets, all_targets), "targets of SRV and connections to them");

    comes_back(world, &stage, &members).await;
    stage.remove().await;
}

/// Deletes a pod of the first cluster and follows its name from the second.
async fn comes_back(world: &World, stage: &Stage, members: &[Member]) {
    let gone = members.iter().find(|member| member.cluster == CLUSTERS[0]).expect("a member in the first cluster");
    let asker = members.iter().find(|member| member.cluster == CLUSTERS[1]).expect("a member in the second cluster");
    let (place, name) = (stage.at(gone.cluster), whole(stage, gone));
    let old = place.get("pods", &gone.host).await.expect("the pod")["metadata"]["uid"].clone();
    place.delete("pods", &gone.host).await;
    until("the StatefulSet has made it anew", PODS, async || {
        let uid = place.get("pods", &gone.host).await.map(|pod| pod["metadata"]["uid"].clone());
        if uid.is_some() && uid != Some(old.clone()) { Ok(()) } else { Err(format!("{uid:?}")) }
    })
    .await;
    let address = until_pod_runs(place, &gone.host).await;
    let ready = Instant::now();
    assert_ne!(address, gone.pod.address, "a pod that is made anew has another address here");
    until(&format!("{name} leads to {address}"), PODS, async || {
        let found = asker.pod.addresses(&name).await;
        if found != Ok(vec![address]) {
            return Err(format!("{found:?}"));
        }
        asker.pod.reach(&name, PORT).await.map_err(|e| e.to_string())
    })
    .await;
    let figures = format!("answers by its name {} s after it was ready", seconds(ready, Instant::now()));
    world.note(NAME, "a pod that comes back with another address", figures);
}

/// The name of one member.
fn whole(stage: &Stage, member: &Member) -> String {
    format!("{}.{}.{}", member.host, stage.at(member.cluster).id(), stage.name("db"))
}

/// The members of a cluster, once all are ready.
async fn until_members(place: &Place) -> Vec<(String, IpAddr)> {
    until(&format!("{}: all pods of the database are ready", place.id()), PODS, async || {
        let pods = ready_pods(place, "db").await;
        if pods.len() == PODS_EACH as usize { Ok(pods.into_iter().collect()) } else { Err(format!("{pods:?}")) }
    })
    .await
}

/// The targets of an SRV name, and their ports.
async fn services(pod: &ClientPod, name: &str) -> Result<Vec<(String, u16)>, Trouble> {
    let records = pod.look_up(name, RecordType::SRV).await?;
    let targets = records.iter().filter_map(|data| match data {
        RData::SRV(srv) => Some((srv.target.to_string(), srv.port)),
        _ => None,
    });
    Ok(targets.collect())
}
