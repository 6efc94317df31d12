//! The hub is dead for a minute: API server, etcd, controllers, its node with all pods. Traffic and DNS go on, and what
//! was changed meanwhile is carried out when it is back.

use std::time::{Duration, Instant};

use serde_json::json;
use testbed::Part;

use crate::ask::Trouble;
use crate::objects::{self, Manners};
use crate::stage::{PODS, Stage, for_a_while, seconds};
use crate::stream::{Stream, Wanted};
use crate::world::{World, until};

pub const NAME: &str = "the hub is dead for a minute";

/// How long it is dead.
const DEAD: Duration = Duration::from_secs(60);

/// How long a node may take to have its pods again, and the controller the lease.
const BACK: Duration = Duration::from_secs(120);

/// The members; the hub, cluster 0, exports nothing.
const MEMBERS: [usize; 2] = [1, 2];

/// The parts in the order in which they are started.
const PARTS: [Part; 4] = [Part::Controllers, Part::Scheduler, Part::Proxy, Part::Node];

pub async fn for_a_minute(world: &World) {
    let stage = Stage::new(world, "hub-dead").await;
    for member in MEMBERS {
        stage.serve_and_export(member, "web", 2, Manners::PLAIN).await;
    }
    // `leaving` will not be exported any more, `late` will be.
    stage.serve_and_export(1, "leaving", 1, Manners::PLAIN).await;
    stage.serve(1, "late", 1, Manners::PLAIN).await;
    stage.until_reached(&MEMBERS, "web", 80, &[(1, 2), (2, 2)]).await;
    stage.until_reached(&MEMBERS, "leaving", 80, &[(1, 1)]).await;
    stage.until_served(1, "late", 1).await;

    let wanted = Wanted::new(&stage.name("web"), 80).every(Duration::from_millis(20));
    let streams: Vec<_> = MEMBERS.map(|member| Stream::start(&stage.clients[member], wanted.clone())).into();
    let hub = &stage.at(0).cluster;
    let died = Instant::now();
    for part in PARTS.into_iter().rev().chain([Part::Api, Part::Etcd]) {
        hub.kill(part).unwrap();
    }
    for_a_while(Duration::from_secs(5)).await;
    stage.at(2).patch("deployments", "west-web", json!({"spec": {"replicas": 3}})).await;
    stage.at(1).delete("serviceexports", "leaving").await;
    stage.at(1).apply_values(vec![objects::export("late")]).await;
    stage.until_served(2, "web", 3).await;
    for_a_while(DEAD.saturating_sub(died.elapsed())).await;
    // Nobody was there to carry it out: otherwise this would not be the scenario that it says it is.
    assert_eq!(stage.at(2).parts("late").await, (false, false, 0), "the hub is dead, and a new export is imported");

    hub.start_part(Part::Etcd).unwrap();
    hub.start_api().await.unwrap();
    for part in PARTS {
        hub.start_part(part).unwrap();
    }
    let started = Instant::now();
    for member in MEMBERS {
        let (place, client) = (stage.at(member), &stage.clients[member]);
        until(&format!("{}: what was changed meanwhile is carried out", place.id()), BACK, async || {
            let (web, late) = (place.addresses("web").await.len(), place.addresses("late").await.len());
            let leaving = place.parts("leaving").await;
            let seen = format!("web {web}, late {late}, leaving {leaving:?}");
            if (web, late, leaving) == (5, 1, (false, false, 0)) { Ok(()) } else { Err(seen) }
        })
        .await;
        until(&format!("{}: `late` answers and `leaving` is no name any more", place.id()), PODS, async || {
            let late = client.reach(&stage.name("late"), 80).await;
            let leaving = client.addresses(&stage.name("leaving")).await;
            if late.is_ok() && leaving == Err(Trouble::NoName) { Ok(()) } else { Err(format!("{late:?} {leaving:?}")) }
        })
        .await;
    }
    let carried_out = Instant::now();
    // The third pod of the second cluster is among those that answer the first.
    stage.until_reached(&[1], "web", 80, &[(1, 2), (2, 3)]).await;
    let mut failed = 0;
    for (member, stream) in MEMBERS.into_iter().zip(streams) {
        let tally = stream.stop().await;
        let part = tally.between(died, started);
        world.note(
            NAME,
            format!("client in {}: while it was dead ({} s)", stage.at(member).id(), seconds(died, started)),
            {
                format!(
                    "{}; answered by east {}, west {}",
                    part.words(),
                    part.answered_by("east"),
                    part.answered_by("west")
                )
            },
        );
        failed += tally.failed();
    }
    let what = "a pod more, an export more, an export less, made meanwhile";
    world.note(NAME, what, format!("carried out {} s after its start", seconds(started, carried_out)));
    assert_eq!(failed, 0, "look-ups or connections failed for want of a hub");
    stage.remove().await;
}
