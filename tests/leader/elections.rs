//! Elections in peace: one leads, the next one follows, and nobody is hurried by a clock or a person.

use std::time::{Duration, Instant};

use namesake::controller::status::Writing;
use serde_json::json;
use testbed::Bed;

use crate::rig::{Election, LASTS, LEASE, spec, until};

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
    assert_eq!(fields, [json!("a"), json!(4), json!(0)]);

    let b = election.candidate("b", &hub.kubeconfig()).await;
    b.until_standing_by("a").await;
    // Through several renewals nothing changes hands.
    let begin = Instant::now();
    let renewed = spec(&hub).await["renewTime"].clone();
    while begin.elapsed() < LASTS + LASTS / 2 {
        assert!(a.leads() && !b.leads());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_ne!(spec(&hub).await["renewTime"], renewed);

    a.kill();
    let killed = Instant::now();
    b.until_leading().await;
    let took = killed.elapsed();
    // It was renewed at most a third of the duration before.
    assert!(took >= LASTS / 2 && took < LASTS + Duration::from_secs(2), "{took:?}");
    assert_eq!(spec(&hub).await["leaseTransitions"], 1);

    let c = election.candidate("c", &hub.kubeconfig()).await;
    c.until_standing_by("b").await;
    let end = Instant::now();
    b.end().await;
    c.until_leading().await;
    assert!(end.elapsed() < Duration::from_secs(1), "{:?}", end.elapsed());
    assert_eq!(spec(&hub).await["holderIdentity"], "c");

    // A container that is started anew under its old name need not wait for itself.
    c.kill();
    let again = Instant::now();
    let c = election.candidate("c", &hub.kubeconfig()).await;
    c.until_leading().await;
    assert!(again.elapsed() < LASTS / 2, "{:?}", again.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_many_one_leads_and_each_has_its_turn() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let election = Election::new();
    let mut candidates = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        candidates.push(election.candidate(name, &hub.kubeconfig()).await);
    }
    let mut turns = 0;
    while !candidates.is_empty() {
        until("one leads", || candidates.iter().any(crate::rig::Candidate::leads)).await;
        let leader = candidates.iter().position(crate::rig::Candidate::leads).unwrap();
        let leader = candidates.swap_remove(leader);
        for other in &candidates {
            other.until_standing_by(&leader.name).await;
        }
        leader.end().await;
        assert_eq!(spec(&hub).await["leaseTransitions"], turns);
        turns += 1;
    }
    assert_eq!(spec(&hub).await["holderIdentity"], "", "nobody is left");
    // Whoever stands by only reads, and makes no work for etcd.
    let audit = hub.audit().unwrap();
    let writes = audit.entries.iter().filter(|e| e.resource == "leases" && e.verb != "get").count();
    let reads = audit.entries.iter().filter(|e| e.resource == "leases" && e.verb == "get").count();
    assert!(writes < 60 && reads > 0, "{writes} {reads}");
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
    let end = Instant::now() + LASTS * 2;
    while Instant::now() < end {
        assert!(a.leads() && !b.leads());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(spec(&hub).await["holderIdentity"], "a", "made anew by its leader");

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
