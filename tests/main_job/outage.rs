//! The API server goes away, in each way it can.

use std::time::Duration;

use super::objects::{import, slice};
use super::rig::{PATIENCE, Rig, until};

/// What must be answered all the time.
fn still_answers(rig: &Rig) {
    assert_eq!(rig.ask("web.demo.svc", "A").data("A"), ["10.96.0.10"]);
    assert_eq!(rig.ask("db-1.east.db.demo.svc", "A").data("A"), ["10.1.0.2"]);
    assert_eq!(rig.ask("absent.demo.svc", "A").status, "NXDOMAIN");
}

async fn watches_are(rig: &Rig, up: f64) {
    for resource in ["serviceimports", "endpointslices"] {
        let series = format!("namesake_watch_up{{resource=\"{resource}\"}}");
        until(PATIENCE, &format!("{series} is {up}"), async || rig.metric(&series).await == Some(up)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l9_l10_a_killed_api_server_is_outlived_and_what_was_deleted_meanwhile_goes() {
    let rig = Rig::ready().await;
    rig.cluster.apply(&import("v1beta1", "doomed", "10.96.0.66")).await.unwrap();
    rig.until("doomed.demo.svc", "A", &["10.96.0.66"]).await;

    rig.cluster.kill_api().unwrap();
    watches_are(&rig, 0.0).await;
    still_answers(&rig);
    let (code, text) = rig.readiness().await;
    assert_eq!(code, 200, "{text}");
    assert!(text.contains("can't be reached"), "{text}");

    // It comes back for everybody but Namesake, so that something can be deleted behind its back.
    rig.network.cut();
    rig.cluster.start_api().await.unwrap();
    rig.cluster.delete(&import("v1beta1", "doomed", "")).await.unwrap();
    rig.cluster.delete(&slice("db-west", "db", "west", &[("db-0", "10.2.0.1", true)])).await.unwrap();
    rig.cluster.apply(&import("v1beta1", "born", "10.96.0.67")).await.unwrap();
    still_answers(&rig);
    assert_eq!(rig.ask("doomed.demo.svc", "A").data("A"), ["10.96.0.66"], "nobody could tell it");

    rig.network.heal();
    let took = rig.until_status("doomed.demo.svc", "NXDOMAIN").await;
    println!("what was deleted during the outage went {took:?} after its end");
    rig.until("db.demo.svc", "A", &["10.1.0.1", "10.1.0.2"]).await;
    rig.until("born.demo.svc", "A", &["10.96.0.67"]).await;
    still_answers(&rig);
    watches_are(&rig, 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l9_a_hung_api_server_is_outlived() {
    let rig = Rig::ready().await;
    rig.cluster.stop().unwrap();
    // A while in which it looks alive: connections stand and nothing comes.
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        still_answers(&rig);
    }
    rig.cluster.cont().unwrap();
    rig.cluster.wait_ready().await.unwrap();
    rig.cluster.apply(&import("v1beta1", "after", "10.96.0.68")).await.unwrap();
    rig.until("after.demo.svc", "A", &["10.96.0.68"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l9_a_silent_network_is_outlived() {
    let rig = Rig::ready().await;
    rig.network.black_hole();
    rig.cluster.apply(&import("v1beta1", "after", "10.96.0.68")).await.unwrap();
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        still_answers(&rig);
        assert_eq!(rig.ask("after.demo.svc", "A").status, "NXDOMAIN");
    }
    rig.network.heal();
    rig.until("after.demo.svc", "A", &["10.96.0.68"]).await;
}
