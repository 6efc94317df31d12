//! What changes in the cluster, and how soon the answer follows.

use std::collections::BTreeMap;
use std::time::Duration;

use super::objects::{import, slice};
use super::rig::{PATIENCE, Rig};

/// The promise to people. A test machine has other work; the server itself needs about a millisecond (`dns_l12`).
const SOON: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l12_a_change_is_answered_within_a_second() {
    let rig = Rig::ready().await;
    let west = slice("db-west", "db", "west", &[("db-0", "10.2.0.1", true)]);
    let mut took: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut note = |kind, time| took.entry(kind).or_default().push(time);
    for round in 0..5 {
        let address = format!("10.1.1.{round}");
        let east = slice("db-east", "db", "east", &[("db-0", &address, true), ("db-1", "10.1.0.2", true)]);
        rig.cluster.apply(&east).await.unwrap();
        note("an address that changes", rig.until("db-0.east.db.demo.svc", "A", &[&address]).await);
        assert_eq!(rig.ask("db.demo.svc", "A").data("A"), ["10.1.0.2", &address, "10.2.0.1"]);
        // An endpoint that is no longer ready, and a whole slice that goes.
        let east = slice("db-east", "db", "east", &[("db-0", &address, false), ("db-1", "10.1.0.2", true)]);
        rig.cluster.apply(&east).await.unwrap();
        note("an endpoint that is not ready", rig.until("db.demo.svc", "A", &["10.1.0.2", "10.2.0.1"]).await);
        rig.cluster.delete(&west).await.unwrap();
        note("a slice that goes", rig.until("db.demo.svc", "A", &["10.1.0.2"]).await);
        rig.cluster.apply(&west).await.unwrap();
        note("a slice that comes", rig.until("db.demo.svc", "A", &["10.1.0.2", "10.2.0.1"]).await);

        // An import that comes, changes and goes.
        rig.cluster.apply(&import("v1beta1", "new", "10.96.0.77")).await.unwrap();
        note("an import that comes", rig.until("new.demo.svc", "A", &["10.96.0.77"]).await);
        rig.cluster.apply(&import("v1beta1", "new", "10.96.0.78")).await.unwrap();
        note("an import that changes", rig.until("new.demo.svc", "A", &["10.96.0.78"]).await);
        rig.cluster.delete(&import("v1beta1", "new", "")).await.unwrap();
        note("an import that goes", rig.until_status("new.demo.svc", "NXDOMAIN").await);
    }
    // The median of each kind: what else the machine does may hold up one of them.
    for (kind, mut all) in took {
        all.sort();
        println!("{kind}: answered {all:?} after the API server's reply");
        assert!(all[2] < SOON, "{kind}: {all:?}");
    }

    // All this was lists and watches alone: nothing was written, and nothing was listed twice.
    let audit = rig.cluster.audit().unwrap().service_account("namesake", "namesake-dns");
    assert_eq!(audit.clone().writes().count(), 0);
    for resource in ["serviceimports", "endpointslices"] {
        let lists: Vec<_> = audit.clone().resource(resource).verb("list").entries;
        let pages = lists.iter().filter(|entry| !entry.uri.contains("continue=")).count();
        assert_eq!(pages, 1, "{resource}: {lists:#?}");
    }
    let denied = audit.only(|entry| entry.code == 403);
    assert_eq!(denied.count(), 0, "more is asked for than the role grants: {:#?}", denied.entries);
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l15_a_signal_ends_it_in_order() {
    let rig = Rig::ready().await;
    rig.namesake.signal("TERM").unwrap();
    let status = rig.namesake.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", rig.namesake.log().unwrap());
}
