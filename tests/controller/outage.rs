//! Members that can't be reached: what becomes of their endpoints (R84), and of deletions that they might object to (R82).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use testbed::Proxy;

use crate::beds::rough_three;
use crate::clusterset::objects::exported;
use crate::clusterset::running::stays;
use crate::clusterset::{Clusterset, Controller, PATIENCE, Story, until};
use crate::writes::{settled, until_told, written};

/// How long a member may be away before its endpoints go.
const TTL: Duration = Duration::from_secs(4);

/// The first three clusters behind networks that can fail, and the arguments of a controller that reaches them so.
fn networks(set: &Clusterset) -> (Vec<Proxy>, Vec<String>) {
    let networks: Vec<_> = set.clusters[..3].iter().map(|cluster| cluster.proxy().unwrap()).collect();
    let through =
        networks.iter().zip(&set.kubeconfigs).map(|(network, file)| network.kubeconfig_through(file).unwrap());
    let mut args = set.as_members_by(&through.collect::<Vec<PathBuf>>());
    args.push("--unreachable-grace=1s".to_owned());
    (networks, args)
}

/// The same arguments, with a time after which endpoints go.
fn lasting(args: &[String], ttl: Duration) -> Vec<String> {
    [args, &[format!("--unreachable-ttl={}s", ttl.as_secs())]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r84_clu_01_endpoints_of_a_lost_member_go_after_a_time_but_not_the_last_and_are_back_at_once() {
    let set = rough_three().await;
    let (networks, args) = networks(&set);
    let _controller = Controller::start(&set.bed, lasting(&args, TTL)).await;
    let story = Story::new(&set, "lost").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&(exported("both", &["10.1.0.1"]) + &exported("alone", &["10.1.0.2"]))).await;
    c2.apply(&exported("both", &["10.2.0.1"])).await;
    for place in [c1, c2, c3] {
        place.until_addresses("both", &["10.1.0.1", "10.2.0.1"]).await;
        place.until_addresses("alone", &["10.1.0.2"]).await;
    }
    for place in [c1, c2] {
        place.until_export_says("both", "Ready", "True/Exported").await;
    }
    let import = c3.import("both").await.unwrap();

    let cut = Instant::now();
    networks[0].cut();
    // At first nothing happens: it may be back in a moment.
    stays("the endpoints stay for now", TTL - Duration::from_millis(1500), async || {
        let found = c3.addresses("both").await;
        if found.len() == 2 { Ok(()) } else { Err(format!("{found:?} after {:?}", cut.elapsed())) }
    })
    .await;
    for place in [c2, c3] {
        place.until_addresses("both", &["10.2.0.1"]).await;
    }
    assert!(cut.elapsed() > TTL - Duration::from_millis(200), "{:?}", cut.elapsed());
    until("the other exporter is told", PATIENCE, async || {
        let message = c2.message("serviceexports", "both", "Ready").await;
        if message.contains("Unreachable: c1.") { Ok(()) } else { Err(message) }
    })
    .await;
    // What it exports is not forgotten, and its endpoints are better than none.
    assert_eq!(c3.exporters("both").await, ["c1", "c2"]);
    assert_eq!(c3.import("both").await.unwrap()["spec"], import["spec"]);
    stays("the last endpoints stay", Duration::from_secs(2), async || {
        let found = c3.addresses("alone").await;
        if found.contains("10.1.0.2") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    // Meanwhile its own API server is as it was, for those who live there.
    assert_eq!(c1.addresses("both").await.len(), 2);

    networks[0].heal();
    let healed = Instant::now();
    for place in [c2, c3] {
        place.until_addresses("both", &["10.1.0.1", "10.2.0.1"]).await;
    }
    // The time is that of the next try to connect.
    assert!(healed.elapsed() < Duration::from_secs(12), "{:?}", healed.elapsed());
    until("all is well again", PATIENCE, async || {
        let message = c2.message("serviceexports", "both", "Ready").await;
        if message.contains("exported to 5 clusters") || !message.contains("Unreachable") {
            Ok(())
        } else {
            Err(message)
        }
    })
    .await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r84_clu_06_a_short_outage_writes_nothing_to_anybody() {
    let set = rough_three().await;
    let (networks, args) = networks(&set);
    // On a busy machine it may be some seconds until it is heard again.
    let ttl = TTL * 3;
    let controller = Controller::start(&set.bed, lasting(&args, ttl)).await;
    let story = Story::new(&set, "blink").await;
    story.at(0).apply(&exported("web", &["10.1.0.1"])).await;
    until_told(&story.places[..3], "web", 1).await;
    let before = settled(&set, &[&controller], Some(&story.namespace)).await;
    networks[0].cut();
    tokio::time::sleep(Duration::from_millis(500)).await;
    networks[0].heal();
    stays("nobody is written to", ttl + Duration::from_secs(1), async || {
        for (cluster, before) in set.clusters.iter().zip(&before) {
            let writes = written(cluster, before, Some(&story.namespace));
            if !writes.is_empty() {
                return Err(format!("{}: {writes:#?}", cluster.name()));
            }
        }
        Ok(())
    })
    .await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r82_clu_03_nothing_is_deleted_too_early_and_a_dead_member_holds_up_nobody() {
    let set = rough_three().await;
    let (networks, args) = networks(&set);
    // So patient that nothing goes because time has passed.
    let controller = Controller::start(&set.bed, lasting(&args, Duration::from_secs(3600))).await;
    let story = Story::new(&set, "dead").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&(exported("web", &["10.1.0.1"]) + &exported("early", &["10.1.0.2"]))).await;
    c3.apply(&exported("kept", &["10.3.0.1"])).await;
    for name in ["web", "early", "kept"] {
        for place in [c1, c2, c3] {
            place.until_ready(name).await;
        }
    }
    c2.until_addresses("kept", &["10.3.0.1"]).await;

    // A member dies that was heard: it exports nothing of `early`, so that goes at once.
    networks[2].cut();
    c1.delete("serviceexports", "early").await;
    let began = Instant::now();
    for place in [c1, c2] {
        place.until_gone("early").await;
    }
    eprintln!("gone after {:?} with a dead member", began.elapsed());

    // The controller starts anew and has never heard it: for all it knows, it exports `web`.
    drop(controller);
    c1.delete("serviceexports", "web").await;
    let began = Instant::now();
    let _controller = Controller::launch(&set.bed, lasting(&args, TTL));
    stays("nothing is deleted before its time", TTL - Duration::from_secs(1), async || {
        let (web, kept) = (c2.parts("web").await, c2.parts("kept").await);
        let there = web.0 && web.1 && kept == (true, true, 1);
        if there { Ok(()) } else { Err(format!("{web:?} {kept:?} after {:?}", began.elapsed())) }
    })
    .await;
    for place in [c1, c2] {
        place.until_gone("web").await;
    }
    // What the dead one is known to export stays, and its last endpoints do.
    stays("what it exports stays", Duration::from_secs(2), async || {
        let kept = c2.parts("kept").await;
        if kept == (true, true, 1) { Ok(()) } else { Err(format!("{kept:?}")) }
    })
    .await;
    assert!(c3.import("web").await.is_some(), "nobody could tell the dead one");
    networks[2].heal();
    c3.until_gone("web").await;
    c3.until_gone("early").await;
    assert_eq!(c2.addresses("kept").await.len(), 1);
    story.remove().await;
}
