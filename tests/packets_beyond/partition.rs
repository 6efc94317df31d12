//! A cluster that nobody reaches for a minute, and that reaches nobody: what clients on both sides see of it, and that all
//! is right again after.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::objects::Manners;
use crate::stage::{PODS, Stage, for_a_while, seconds};
use crate::stream::{Stream, Tally, Wanted};
use crate::world::{World, until};

pub const NAME: &str = "a cluster is cut off for a minute";

/// After how long a cluster that can't be reached loses its endpoints in the others. The default would outlast the minute.
pub const TTL: &str = "--unreachable-ttl=20s";
const TTL_TIME: Duration = Duration::from_secs(20);

/// After how long conditions name it.
pub const GRACE: &str = "--unreachable-grace=5s";

/// After how long the controller has noticed at the latest that packets no longer flow: 14 s of unanswered keepalive, and a
/// request that is not answered in 10 s (3 s where it needs a new connection).
const NOTICED: Duration = Duration::from_secs(25);

/// How long it is away at least; longer, if its endpoints go late.
const AWAY: Duration = Duration::from_secs(60);

/// The cluster that is cut off; the other exporter; the hub only asks.
const CUT: usize = 2;
const OTHER: usize = 1;

/// How long after a change of its slices kube-proxy may send there still.
const PROGRAMMED: Duration = Duration::from_secs(5);

/// Two exporters with two pods each and a client in each cluster; one of them is cut off, and both change meanwhile.
pub async fn for_a_minute(world: &World) {
    let stage = Stage::new(world, "partition").await;
    for cluster in [OTHER, CUT] {
        stage.serve_and_export(cluster, "web", 2, Manners::PLAIN).await;
    }
    stage.until_reached(&[0, 1, 2], "web", 80, &[(OTHER, 2), (CUT, 2)]).await;
    let wanted = Wanted::new(&stage.name("web"), 80).every(Duration::from_millis(50));
    let streams: Vec<_> = stage.clients.iter().map(|client| Stream::start(client, wanted.clone())).collect();
    for_a_while(Duration::from_secs(2)).await;

    let cut = Instant::now();
    stage.at(CUT).cluster.cut_off().unwrap();
    for cluster in [OTHER, CUT] {
        scale(&stage, cluster, 3).await;
    }
    let cut_id = stage.at(CUT).id();
    for cluster in [0, OTHER] {
        let what = format!("{}: the endpoints of {cut_id} are gone", stage.at(cluster).id());
        until(&what, TTL_TIME + NOTICED, async || {
            let left = stage.at(cluster).slices_of("web", cut_id).await.len();
            let found = stage.at(cluster).addresses("web").await;
            if left == 0 && found.len() == 3 { Ok(()) } else { Err(format!("{left} slices, {found:?}")) }
        })
        .await;
    }
    let removed = Instant::now();
    let said = stage.at(OTHER).message("serviceexports", "web", "Ready").await;
    assert!(said.contains(cut_id), "the condition does not name the cluster that is away: {said:?}");
    for_a_while(AWAY.saturating_sub(cut.elapsed())).await;

    // Before the call: packets pass again before it returns.
    let back = Instant::now();
    stage.at(CUT).cluster.reconnect().unwrap();
    for cluster in [0, 1, 2] {
        until(&format!("{}: all six are ready again", stage.at(cluster).id()), PODS, async || {
            let found = stage.at(cluster).addresses("web").await;
            if found.len() == 6 { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }
    let healed = Instant::now();
    let settled = healed + PROGRAMMED;
    for_a_while(PROGRAMMED + Duration::from_secs(3)).await;
    let end = Instant::now();

    let mut tallies = Vec::new();
    for stream in streams {
        tallies.push(stream.stop().await);
    }
    for (cluster, tally) in tallies.iter().enumerate() {
        let id = stage.at(cluster).id();
        let spans = if cluster == CUT {
            vec![("while it was away", cut, back)]
        } else {
            vec![("until its endpoints went", cut, removed), ("from then on", removed, back)]
        };
        for (span, from, to) in spans {
            let part = tally.between(from, to);
            let what = format!("client in {id}: {span} ({} s)", seconds(from, to));
            let last = part.failing(from).map_or_else(String::new, |(_, last)| format!(", the last after {last:.1} s"));
            world.note(NAME, what, format!("{}{last}; answered by {}", part.words(), shares(&stage, &part)));
        }
        let part = tally.between(settled, end);
        let what = format!("client in {id}: after it was back");
        let times = format!("all endpoints after {} s", seconds(back, healed));
        world.note(NAME, what, format!("{}; {times}; answered by {}", part.words(), shares(&stage, &part)));
    }
    for (cluster, tally) in tallies.iter().enumerate() {
        let id = stage.at(cluster).id();
        assert_eq!(tally.between(cut, end).failed_lookups(), 0, "{id}: look-ups failed");
        assert_eq!(tally.between(settled, end).failed(), 0, "{id}: not all is right after");
        assert!(tally.between(settled, end).answered_by(cut_id) > 0, "{id}: nothing of {cut_id} answers after");
        if cluster != CUT {
            let part = tally.between(removed + PROGRAMMED, back);
            // The client's kernel keeps each unanswered SYN's way for two minutes (nf_conntrack_tcp_timeout_syn_sent), and a
            // new connection that gets the same port by chance goes that way again: some 400 of 28,000 ports are such. If
            // endpoints of the cluster were still in use, 2 of 5 would fail.
            let (failed, asked) = (part.failed(), part.attempts.len());
            assert!(failed * 10 <= asked, "{id}: {failed} of {asked} failed after the endpoints had gone");
        }
    }
    stage.remove().await;
}

async fn scale(stage: &Stage, cluster: usize, replicas: u32) {
    let name = format!("{}-web", stage.at(cluster).id());
    stage.at(cluster).patch("deployments", &name, json!({"spec": {"replicas": replicas}})).await;
}

/// How often each exporter answered.
fn shares(stage: &Stage, tally: &Tally) -> String {
    let shares: Vec<_> = [OTHER, CUT]
        .into_iter()
        .map(|cluster| format!("{} {}", stage.at(cluster).id(), tally.answered_by(stage.at(cluster).id())))
        .collect();
    shares.join(", ")
}
