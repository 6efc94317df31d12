//! An exporter that leaves while clients connect: without an end of the service, and with a gap until the next exporter
//! comes. With `--drain` and without.

use std::time::{Duration, Instant};

use crate::objects::{self, Manners};
use crate::stage::{PODS, Stage, for_a_while, seconds};
use crate::stream::{Stream, Wanted};
use crate::world::{World, until};

pub const OLDEST: &str = "the oldest exporter leaves";
pub const HANDOVER: &str = "the only exporter hands over";

/// How long the exporter that leaves is drained, where it is.
pub const DRAIN: &str = "--drain=10s";

/// How long nobody exports the service, in a handover. Less than [`DRAIN`], and longer than negative answers are cached.
const GAP: Duration = Duration::from_secs(4);

/// How long clients go on after the last change.
const AFTER: Duration = Duration::from_secs(3);

/// A small pause before the change, in which all must be well.
const BEFORE: Duration = Duration::from_secs(2);

/// What the table says of the setting.
fn setting(drained: bool) -> &'static str {
    if drained { DRAIN } else { "--drain=0s" }
}

/// Two exporters; the older one leaves under traffic from all clusters, and a connection to each of its pods stays open.
pub async fn oldest(world: &World, drained: bool) {
    let stage = Stage::new(world, if drained { "leaves-drained" } else { "leaves" }).await;
    stage.serve_and_export(1, "web", 2, Manners::PLAIN).await;
    for_a_while(Duration::from_millis(1100)).await; // exports are ordered by their seconds
    stage.serve_and_export(2, "web", 2, Manners::PLAIN).await;
    let everywhere = [0, 1, 2];
    stage.until_reached(&everywhere, "web", 80, &[(1, 2), (2, 2)]).await;

    // Some of these go to the exporter that will leave: four choices out of two clusters, from each client.
    let held: Vec<_> = (0..12).map(|n| stage.clients[n % 3].hold(&stage.name("web"), objects::ECHO)).collect();
    let wanted = Wanted::new(&stage.name("web"), 80).every(Duration::from_millis(20));
    let streams: Vec<_> = stage.clients.iter().map(|client| Stream::start(client, wanted.clone())).collect();
    for_a_while(BEFORE).await;
    let left = Instant::now();
    stage.at(1).delete("serviceexports", "web").await;
    for cluster in everywhere {
        until("only the younger exporter is left", PODS, async || {
            let exporters = stage.at(cluster).exporters("web").await;
            let slices = stage.at(cluster).slices_of("web", "east").await.len();
            if exporters == ["west"] && slices == 0 { Ok(()) } else { Err(format!("{exporters:?}, {slices} slices")) }
        })
        .await;
    }
    let gone = Instant::now();
    for_a_while(AFTER).await;
    let (mut asked, mut failed, mut last) = (0, 0, left);
    for (cluster, stream) in streams.into_iter().enumerate() {
        let tally = stream.stop().await;
        asked += tally.len();
        failed += tally.failed();
        let by_leaver = |a: &&crate::stream::Attempt| a.outcome.as_ref().is_ok_and(|pod| pod.starts_with("east-"));
        last = last.max(tally.attempts.iter().rev().find(by_leaver).map_or(left, |attempt| attempt.at));
        let id = stage.at(cluster).id();
        assert_eq!(tally.failed(), 0, "{id}: {}", tally.words());
        assert!(tally.answered_by("east") > 0 && tally.answered_by("west") > 0, "{id}: {:?}", tally.pods());
    }
    let (mut open, mut exchanges) = (0, 0);
    for held in held {
        let (count, broken) = held.close().await;
        open += usize::from(broken.is_none());
        exchanges += count;
        assert_eq!(broken, None, "a connection that was open broke");
    }
    let figures = format!(
        "{asked} look-ups and connections, {failed} failed; 12 open connections, {open} stayed ({exchanges} echoes); last \
         new connection to the leaver {} s, slices gone {} s after",
        seconds(left, last),
        seconds(left, gone),
    );
    world.note(OLDEST, setting(drained), figures);
    stage.remove().await;
}

/// One exporter; it leaves, and only later another one comes. Drained, the name and its address live through the gap.
pub async fn handover(world: &World, drained: bool) {
    let stage = Stage::new(world, if drained { "handover-drained" } else { "handover" }).await;
    stage.serve_and_export(1, "web", 2, Manners::PLAIN).await;
    stage.serve(2, "web", 2, Manners::PLAIN).await;
    stage.until_served(2, "web", 2).await;
    stage.until_reached(&[0, 1, 2], "web", 80, &[(1, 2)]).await;
    let before = stage.clients[0].addresses(&stage.name("web")).await;

    let held: Vec<_> = (0..3).map(|n| stage.clients[n].hold(&stage.name("web"), objects::ECHO)).collect();
    let wanted = Wanted::new(&stage.name("web"), 80).every(Duration::from_millis(20));
    let streams: Vec<_> = stage.clients.iter().map(|client| Stream::start(client, wanted.clone())).collect();
    for_a_while(BEFORE).await;
    let left = Instant::now();
    stage.at(1).delete("serviceexports", "web").await;
    if !drained {
        // The gap begins when nothing is left, however long that takes.
        for place in &stage.places {
            place.until_gone("web").await;
        }
    }
    for_a_while(GAP).await;
    stage.at(2).apply_values(vec![objects::export("web")]).await;
    for (cluster, client) in stage.clients.iter().enumerate() {
        until("the new exporter answers, and nobody else", PODS, async || {
            let said = client.reach_often(&stage.name("web"), 80, 20).await;
            let right = said.iter().all(|said| said.as_ref().is_ok_and(|pod| pod.starts_with("west-")));
            if right { Ok(()) } else { Err(format!("{}: {said:?}", stage.at(cluster).id())) }
        })
        .await;
    }
    for_a_while(AFTER).await;
    let (mut asked, mut failed, mut why, mut span) = (0, 0, std::collections::BTreeMap::new(), None);
    for stream in streams {
        let tally = stream.stop().await;
        asked += tally.len();
        failed += tally.failed();
        tally.troubles().into_iter().for_each(|(trouble, count)| *why.entry(trouble).or_insert(0) += count);
        span = span.or(tally.failing(left));
    }
    let mut open = 0;
    for held in held {
        open += usize::from(held.close().await.1.is_none());
    }
    let after = stage.clients[0].addresses(&stage.name("web")).await;
    let why: Vec<_> = why.iter().map(|(trouble, count)| format!("{trouble} {count}")).collect();
    let when =
        span.map_or_else(String::new, |(from, to)| format!(" ({}, {from:.1} to {to:.1} s after)", why.join(", ")));
    let address = if before == after { "the same address" } else { "another address" };
    let figures = format!(
        "{asked} look-ups and connections, {failed} failed{when}; {open} of 3 open connections stayed; {address}"
    );
    world.note(HANDOVER, format!("{}, {GAP:?} without an exporter", setting(drained)), figures);
    if drained {
        assert_eq!(failed, 0, "drained, and look-ups or connections failed: {}", why.join(", "));
        assert_eq!((open, before), (3, after), "open connections, and the address before and after");
    } else {
        // Otherwise the scenario would show nothing of what draining is for.
        assert!(failed > 0, "nobody exports it for {GAP:?}, and nothing fails");
    }
    stage.remove().await;
}
