//! Elections in peace: one leads, the next one follows, and nobody is hurried by a clock or a person.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use namesake::controller::status::Writing;
use serde_json::json;
use testbed::Bed;

use crate::rig::{Candidate, Election, LASTS, LEASE, LONG, PATIENCE, spec, until};

#[tokio::test(flavor = "multi_thread")]
async fn lease_one_leads_the_other_follows_when_it_dies_and_at_once_when_it_ends() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let election = Election::new();
    let a = election.candidate("a", &hub.kubeconfig()).await;
    a.until_leading().await;
    assert_eq!(a.writing(), Writing::Leader);
    let lease = hub.request("GET", LEASE, None).await.unwrap();
    assert_eq!(lease["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "namesake"}));
    let fields =
        ["holderIdentity", "leaseDurationSeconds", "leaseTransitions"].map(|field| lease["spec"][field].clone());
    assert_eq!(fields, [json!("a"), json!(LASTS.as_secs()), json!(0)]);

    let b = election.long("b", &hub.kubeconfig()).await;
    b.until_standing_by("a").await;
    // Through several renewals nothing changes hands.
    let begin = Instant::now();
    let renewed = spec(&hub).await["renewTime"].clone();
    while begin.elapsed() < LASTS + LASTS / 2 {
        assert!(!b.leads());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let begin = Instant::now();
    a.until_leading().await;
    let lease = spec(&hub).await;
    assert_ne!(lease["renewTime"], renewed);
    assert_eq!(lease["leaseTransitions"], 0);

    a.kill();
    b.until_leading().await;
    // Who leads was renewed three quarters of the duration before, or later.
    assert!(begin.elapsed() >= LASTS / 4, "{:?}", begin.elapsed());
    assert_eq!(spec(&hub).await["leaseTransitions"], 1);

    let c = election.long("c", &hub.kubeconfig()).await;
    c.until_standing_by("b").await;
    let end = Instant::now();
    let given_up = b.end().await;
    let holder = spec(&hub).await["holderIdentity"].clone();
    assert!(!given_up || holder == "" || holder == "c", "{holder}");
    c.until_leading().await;
    assert!(!given_up || end.elapsed() < LONG, "{:?}: it has waited until the Lease expired", end.elapsed());
    assert_eq!(spec(&hub).await["holderIdentity"], "c");

    // A container that is started anew under its old name need not wait for itself.
    c.kill();
    let again = Instant::now();
    let c = election.long("c", &hub.kubeconfig()).await;
    c.until_leading().await;
    assert!(again.elapsed() < LONG, "{:?}", again.elapsed());
    assert_eq!(spec(&hub).await["leaseTransitions"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_many_one_leads_and_each_has_its_turn() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let election = Election::new();
    let began = Instant::now();
    let mut candidates = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        candidates.push(election.long(name, &hub.kubeconfig()).await);
    }
    let (mut turns, mut given_up) = (0, false);
    while !candidates.is_empty() {
        until("one leads", || candidates.iter().any(Candidate::leads)).await;
        let leader = candidates.iter().position(Candidate::leads).unwrap();
        let leader = candidates.swap_remove(leader);
        for other in &candidates {
            other.until_standing_by(&leader.name).await;
        }
        // Before it ends: then the next one may have it already.
        assert_eq!(spec(&hub).await["leaseTransitions"], turns);
        given_up = leader.end().await;
        turns += 1;
    }
    let holder = spec(&hub).await["holderIdentity"].clone();
    assert!(!given_up || holder == "", "{holder}: nobody is left");
    // Whoever stands by only reads, and makes no work for etcd.
    let audit = hub.audit().unwrap().only(|entry| entry.resource == "leases" && entry.name == "namesake-controller");
    let (reads, all) = (audit.clone().verb("get").count(), audit.count());
    let renewals = began.elapsed().as_secs() / (LONG / 3).as_secs();
    assert!(all - reads < 60 + usize::try_from(renewals).unwrap() && reads > 0, "{all} {reads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_another_counts_from_when_it_was_seen_and_what_a_person_deletes_is_its_leaders_still() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    // Expired for decades, by its own clock: but clocks differ.
    let foreign = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "namesake-controller", "namespace": "default", "annotations": {"someone": "else's"}},
        "spec": {"holderIdentity": "z", "leaseDurationSeconds": 3, "renewTime": "1999-01-01T00:00:00.000000Z"},
    });
    hub.apply_values(vec![foreign]).await.unwrap();
    let election = Election::new();
    let begin = Instant::now();
    let a = election.candidate("a", &hub.kubeconfig()).await;
    a.until_standing_by("z").await;
    a.until_leading().await;
    assert!(begin.elapsed() >= Duration::from_secs(3), "{:?}", begin.elapsed());
    let lease = hub.request("GET", LEASE, None).await.unwrap();
    assert_eq!(lease["metadata"]["annotations"]["someone"], "else's", "what others wrote stays");

    let b = election.candidate("b", &hub.kubeconfig()).await;
    b.until_standing_by("a").await;
    hub.request("DELETE", LEASE, None).await.unwrap();
    // Its leader makes it anew, and goes on to renew it; the other one has let it be meanwhile.
    let (end, mut renewals) = (Instant::now() + PATIENCE, BTreeSet::new());
    while renewals.len() < 4 {
        assert!(Instant::now() < end, "not made anew: {renewals:?}");
        assert!(!b.leads());
        if let Ok(lease) = hub.request("GET", LEASE, None).await {
            assert_eq!(lease["spec"]["holderIdentity"], "a", "made anew by its leader");
            renewals.insert(lease["spec"]["renewTime"].to_string());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    a.until_leading().await;

    // Somebody takes it by force: the leader gives way as soon as it sees that.
    let mut lease = hub.request("GET", LEASE, None).await.unwrap();
    lease["spec"]["holderIdentity"] = json!("y");
    // Until that is the last word: the leader may write at the same time.
    while hub.request("PUT", LEASE, Some(&lease)).await.is_err() {
        lease = hub.request("GET", LEASE, None).await.unwrap();
        lease["spec"]["holderIdentity"] = json!("y");
    }
    a.until_standing_by("y").await;
    assert!(!a.leads());
}
