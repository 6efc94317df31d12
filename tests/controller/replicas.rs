//! Several replicas of one controller with a Lease in a hub: who holds it writes, the others are ready to go on; and a
//! hub that is dead takes nothing away (R85).

use std::time::{Duration, Instant};

use testbed::{Cluster, merge_kubeconfigs};

use crate::beds::rough;
use crate::clusterset::objects::exported;
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Place, Story, root, until};

/// How long the Lease lasts: a machine that stands still for some seconds does not lose it.
const LASTS: Duration = Duration::from_secs(8);

/// Three members, and a fourth cluster as the hub, with the account and the role of `deploy/kustomize/controller` there.
async fn with_hub(set: &Clusterset) -> Vec<String> {
    let hub = &set.clusters[3];
    let rbac = root().join("deploy/kustomize/controller/rbac.yaml");
    hub.kubectl(&["apply", "-n", ACCOUNT.0, "-f", rbac.to_str().unwrap()]).unwrap();
    let mut kubeconfigs = set.kubeconfigs[..3].to_vec();
    kubeconfigs.push(hub.kubeconfig_for_service_account(ACCOUNT.0, "namesake-controller").await.unwrap());
    let merged = merge_kubeconfigs(&kubeconfigs).unwrap();
    let file = set.bed.file(&format!("replicas-{}.kubeconfig", set.bed.port().unwrap()), &merged).unwrap();
    let mut args = vec![format!("--kubeconfig={}", file.display()), format!("--hub={}", hub.name())];
    args.extend(set.clusters[..3].iter().map(|cluster| format!("--member={0}={0}", cluster.name())));
    args.push(format!("--lease-duration={}s", LASTS.as_secs()));
    args
}

async fn leads(controller: &Controller) -> bool {
    controller.metric("namesake_controller_leader", &[]).await > 0.0
}

async fn writes(controller: &Controller) -> f64 {
    controller.metric("namesake_controller_writes_total", &[]).await
}

/// The writes of one that has none under way: for a second it has made no more.
async fn no_more_writes(controller: &Controller) -> f64 {
    let mut before = writes(controller).await;
    until("its last write ends", PATIENCE, async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = writes(controller).await;
        let more = now - before;
        before = now;
        if more < 0.5 { Ok(()) } else { Err(format!("{more} writes in a second")) }
    })
    .await;
    before
}

/// The one that leads and the one that does not.
async fn sorted(a: Controller, b: Controller) -> (Controller, Controller) {
    let a_leads = until("one of them leads", PATIENCE, async || match (leads(&a).await, leads(&b).await) {
        (true, false) => Ok(true),
        (false, true) => Ok(false),
        other => Err(format!("{other:?}")),
    })
    .await;
    if a_leads { (a, b) } else { (b, a) }
}

/// Waits until it is ready, and says this in `/ready?verbose`.
async fn until_says(controller: &Controller, words: &str) {
    until(&format!("it says {words:?}"), PATIENCE, async || match controller.get("/ready?verbose").await {
        (200, said) if said.contains(words) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

async fn until_addresses(places: &[&Place], name: &str, address: &str) {
    for place in places {
        place.until_addresses(name, &[address]).await;
    }
}

/// The writes of the controllers' account that the API servers have seen. What is only tried (`dryRun`) is not written.
fn written(clusters: &[Cluster]) -> usize {
    let of = |cluster: &Cluster| {
        let audit = cluster.audit().unwrap().service_account("namesake", "namesake-member").writes();
        audit.only(|entry| entry.resource != "leases" && !entry.uri.contains("dryRun")).count()
    };
    clusters.iter().map(of).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r85_replicas_follow_each_other_and_a_dead_hub_takes_nothing_away() {
    let set = rough().await;
    let hub = &set.clusters[3];
    let story = Story::new(&set, "replicas").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    let all = [c1, c2, c3];
    let a = Controller::start(&set.bed, with_hub(&set).await).await;
    let b = Controller::start(&set.bed, with_hub(&set).await).await;
    let (leader, standby) = sorted(a, b).await;
    until_says(&standby, "\n[+] lease: standing by, ").await;

    // One writes, the other one knows as much and writes nothing.
    c1.apply(&exported("one", &["10.1.0.1"])).await;
    until_addresses(&all, "one", "10.1.0.1").await;
    assert!(writes(&leader).await > 0.0);
    assert_eq!(writes(&standby).await, 0.0);
    until_says(&standby, "[+] cluster c3: live").await;

    // It dies, and the other one goes on by itself: what happens meanwhile is made up for.
    let began = Instant::now();
    assert!(leads(&leader).await);
    leader.process.kill().unwrap();
    c1.apply(&exported("two", &["10.1.0.2"])).await;
    until_addresses(&all, "two", "10.1.0.2").await;
    // Who leads has renewed it three quarters of its duration before, or later.
    assert!(began.elapsed() >= LASTS / 4, "{:?}: not before the Lease has expired", began.elapsed());
    let (leader, third) = (standby, Controller::start(&set.bed, with_hub(&set).await).await);

    // It is told to end, as in a rolling update: the next one does not wait for anything to expire.
    leader.process.signal("TERM").unwrap();
    c1.apply(&exported("three", &["10.1.0.3"])).await;
    until_addresses(&all, "three", "10.1.0.3").await;
    until("it has ended in order", PATIENCE, async || match leader.process.exited().unwrap() {
        Some(status) if status.success() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let log = leader.process.log().unwrap();
    // A busy hub may not answer in the second that there is for that.
    let given_up = ["gave up the Lease", "was not given up, it will expire: no answer in time"];
    assert!(given_up.iter().any(|words| log.contains(words)), "{}", leader.process.log_tail(30));
    let leader = third;
    let standby = Controller::start(&set.bed, with_hub(&set).await).await;

    // The hub hangs. Nobody may write, nobody does, and nothing is taken away.
    hub.stop().unwrap();
    until("nobody leads", PATIENCE, async || {
        if leads(&leader).await || leads(&standby).await { Err("one leads".to_owned()) } else { Ok(()) }
    })
    .await;
    let before = written(&set.clusters[..3]);
    c1.apply(&exported("four", &["10.1.0.4"])).await;
    stays("nothing is written", LASTS + Duration::from_secs(2), async || {
        let now = written(&set.clusters[..3]);
        if now == before { Ok(()) } else { Err(format!("{} writes", now - before)) }
    })
    .await;
    for (name, address) in [("one", "10.1.0.1"), ("two", "10.1.0.2"), ("three", "10.1.0.3")] {
        until_addresses(&all, name, address).await;
    }
    assert_eq!((c2.import("four").await, c3.import("four").await), (None, None));
    until_says(&leader, "\n[!] lease: standing by, nobody is known to write, the hub can't be reached: ").await;
    until_says(&leader, "\n[+] cluster c1: live").await;

    // Restarted meanwhile, it is not ready, since it does not know who leads; and takes nothing away either.
    let mut leader = leader;
    leader.kill_and_restart();
    until("it waits for the hub", PATIENCE, async || match leader.get("/ready").await {
        (503, body) if body == "lease" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(written(&set.clusters[..3]), before);

    hub.cont().unwrap();
    until_addresses(&all, "four", "10.1.0.4").await;
    leader.wait_ready().await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r85_a_leader_that_was_halted_writes_nothing_when_it_goes_on() {
    let set = rough().await;
    let story = Story::new(&set, "halted").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    let all = [c1, c2, c3];
    let a = Controller::start(&set.bed, with_hub(&set).await).await;
    let b = Controller::start(&set.bed, with_hub(&set).await).await;
    let (halted, next) = sorted(a, b).await;
    c1.apply(&exported("one", &["10.1.0.1"])).await;
    until_addresses(&all, "one", "10.1.0.1").await;
    for round in 0..3 {
        // A write that is under way when it is halted ends when it goes on, and counts then.
        let before = no_more_writes(&halted).await;
        assert!(before > 0.0, "it has written what led here");
        halted.process.signal("STOP").unwrap();
        // What happens meanwhile awaits it when it goes on; and it believes that it leads.
        let (name, address) = (format!("more-{round}"), format!("10.1.1.{round}"));
        c1.apply(&exported(&name, &[&address])).await;
        until_addresses(&all, &name, &address).await;
        c1.delete("serviceexports", &name).await;
        until("the next one has taken it back", PATIENCE, async || match c3.parts(&name).await {
            (false, false, 0) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        halted.process.signal("CONT").unwrap();
        until("it stands by", PATIENCE, async || {
            let (_, said) = halted.get("/ready?verbose").await;
            if said.contains("\n[+] lease: standing by, ") { Ok(()) } else { Err(said) }
        })
        .await;
        stays("nothing comes back", Duration::from_secs(1), async || match c3.parts(&name).await {
            (false, false, 0) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let after = writes(&halted).await;
        assert!((after - before).abs() < 0.5, "{} writes by a leader of the past", after - before);
        // Its turn again, for the next round.
        next.process.signal("STOP").unwrap();
        until("it leads again", PATIENCE, async || if leads(&halted).await { Ok(()) } else { Err(String::new()) })
            .await;
        next.process.signal("CONT").unwrap();
        until(
            "the other stands by",
            PATIENCE,
            async || {
                if leads(&next).await { Err("it leads".to_owned()) } else { Ok(()) }
            },
        )
        .await;
    }
    story.remove().await;
}
