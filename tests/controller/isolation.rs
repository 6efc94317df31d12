//! A member that is hung, slow or failing delays nobody else (R95): measured.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::beds::{rough, rough_three};
use crate::clusterset::faults::Faults;
use crate::clusterset::objects::{endpoints, exported};
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Place, Story, until};

/// How many changes are timed.
const CHANGES: usize = 12;

/// How far a slow member is away: a write takes twice as long there and back, and is just not given up, after 10 s.
const AWAY: Duration = Duration::from_secs(4);

/// The longest that a change may take to the others while one member is in trouble. Without isolation it would take that
/// member's delays, there and back, or its time-outs, which are longer; a machine that stands still for some seconds is no
/// such thing.
const QUICK: Duration = Duration::from_secs(7);

/// Changes the endpoints in the first cluster, and takes the time until each change is in the second and third.
async fn measured(story: &Story, what: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for i in 0..CHANGES {
        let address = format!("10.1.{}.{}", what.len(), i + 1);
        story.at(0).apply(&endpoints("web", &[&address])).await;
        let began = Instant::now();
        for place in &story.places[1..3] {
            place.until_addresses("web", &[&address]).await;
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    eprintln!("{what}: median {:?}, longest {:?}", times[CHANGES / 2], times[CHANGES - 1]);
    times
}

/// The same while a member is in trouble.
async fn must_be_quick(story: &Story, what: &str) {
    let times = measured(story, what).await;
    assert!(times[CHANGES - 1] < QUICK, "{times:?}");
}

/// The service in the fourth cluster, too, in the end.
async fn catches_up(story: &Story) {
    let now: Vec<_> = story.at(1).addresses("web").await.into_iter().collect();
    story.at(3).until_addresses("web", &now.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

async fn exported_from_the_first(set: &Clusterset, name: &str) -> Story {
    let story = Story::new(set, name).await;
    story.at(0).apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1, 2, 3], "web").await;
    story.at(3).until_addresses("web", &["10.1.0.1"]).await;
    story
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r95_a_hung_member_and_a_slow_one_delay_nobody_else() {
    let set = rough().await;
    let slow = set.clusters[3].proxy().unwrap();
    let mut kubeconfigs = set.kubeconfigs[..4].to_vec();
    kubeconfigs[3] = slow.kubeconfig_through(&kubeconfigs[3]).unwrap();
    let _controller = Controller::start(&set.bed, set.as_members_by(&kubeconfigs)).await;
    let story = exported_from_the_first(&set, "slow").await;
    measured(&story, "undisturbed").await;

    slow.delay(AWAY);
    must_be_quick(&story, "one member 4 s away").await;
    slow.heal();
    catches_up(&story).await;
    // A slow one has it too in the end, and not only when it is slow no more.
    slow.delay(AWAY / 2);
    story.at(0).apply(&endpoints("web", &["10.1.0.9"])).await;
    story.at(1).until_addresses("web", &["10.1.0.9"]).await;
    catches_up(&story).await;
    slow.heal();

    set.clusters[3].stop().unwrap();
    must_be_quick(&story, "one member hung").await;
    set.clusters[3].cont().unwrap();
    catches_up(&story).await;

    slow.cut();
    must_be_quick(&story, "one member cut off").await;
    slow.heal();
    catches_up(&story).await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r75_r95_w27_a_failing_member_is_retried_without_haste_and_delays_nobody_else() {
    let set = rough().await;
    let token = set.clusters[3].service_account_token(ACCOUNT.0, ACCOUNT.1, Duration::from_secs(3600)).await.unwrap();
    let faults = Faults::start(&set.bed, &set.clusters[3], &token).await;
    let mut kubeconfigs = set.kubeconfigs[..4].to_vec();
    kubeconfigs[3] = faults.kubeconfig(&set.bed, set.clusters[3].name());
    let _controller = Controller::start(&set.bed, set.as_members_by(&kubeconfigs)).await;
    let story = exported_from_the_first(&set, "failing").await;
    story.at(0).until_export_says("web", "Ready", "True/Exported").await;
    measured(&story, "undisturbed").await;
    catches_up(&story).await;

    for code in [500, 429, 409, 403] {
        faults.refuse_writes(code);
        let before = faults.refused();
        must_be_quick(&story, &format!("one member answers {code}")).await;
        until("the failing member is tried", PATIENCE, async || {
            if faults.refused() > before { Ok(()) } else { Err("it is not".to_owned()) }
        })
        .await;
        // Each change is a reason to try anew; between them tries get rare.
        let began = faults.refused();
        stays("it is not tried hot", Duration::from_secs(2), async || {
            let tried = faults.refused() - began;
            if tried <= 8 { Ok(()) } else { Err(format!("{tried} requests were refused")) }
        })
        .await;
        // Retries are no news for the exporter (R75).
        assert_eq!(story.at(0).says("serviceexports", "web", "Ready").await, "True/Exported");
        faults.heal();
        catches_up(&story).await;
    }
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r75_a_member_that_keeps_failing_is_named_to_the_exporter_and_forgotten_when_it_works() {
    let set = rough_three().await;
    let token = set.clusters[2].service_account_token(ACCOUNT.0, ACCOUNT.1, Duration::from_secs(3600)).await.unwrap();
    let faults = Faults::start(&set.bed, &set.clusters[2], &token).await;
    let mut kubeconfigs = set.kubeconfigs[..3].to_vec();
    kubeconfigs[2] = faults.kubeconfig(&set.bed, set.clusters[2].name());
    let mut args = set.as_members_by(&kubeconfigs);
    args.push("--failure-grace=2s".into());
    let _controller = Controller::start(&set.bed, args).await;
    let story = Story::new(&set, "named").await;
    faults.refuse_writes(500);
    story.at(0).apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1], "web").await;
    story.at(0).until_export_says("web", "Ready", "False/Failed").await;
    let message = story.at(0).message("serviceexports", "web", "Ready").await;
    assert!(
        message.starts_with("Not written everywhere: c3: ") && message.contains("the test refuses this"),
        "{message}"
    );
    faults.heal();
    story.at(0).until_export_says("web", "Ready", "True/Exported").await;
    story.at(2).until_addresses("web", &["10.1.0.1"]).await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r82_r95_a_member_that_answers_nonsense_delays_nobody_and_loses_nothing() {
    let set = rough().await;
    let token = set.clusters[3].service_account_token(ACCOUNT.0, ACCOUNT.1, Duration::from_secs(3600)).await.unwrap();
    let faults = Faults::start(&set.bed, &set.clusters[3], &token).await;
    let mut kubeconfigs = set.kubeconfigs[..4].to_vec();
    kubeconfigs[3] = faults.kubeconfig(&set.bed, set.clusters[3].name());
    let _controller = Controller::start(&set.bed, set.as_members_by(&kubeconfigs)).await;
    let story = exported_from_the_first(&set, "nonsense").await;
    story.at(3).apply(&exported("theirs", &["10.4.0.1"])).await;
    for place in &story.places[..4] {
        place.until_addresses("theirs", &["10.4.0.1"]).await;
    }
    measured(&story, "undisturbed").await;
    // Lists and watches are answered with something else, and with success; the connections that stand are ended.
    faults.refuse(|method, _| (method == "GET").then_some(200));
    set.clusters[3].kill_api().unwrap();
    set.clusters[3].start_api().await.unwrap();
    must_be_quick(&story, "one member answers nonsense").await;
    stays("what it exports stays", Duration::from_secs(2), async || {
        let found = story.at(1).addresses("theirs").await;
        if found.contains("10.4.0.1") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    assert!(faults.refused() > 0);
    faults.heal();
    story.at(3).apply(&exported("theirs", &["10.4.0.2"])).await;
    story.at(1).until_addresses("theirs", &["10.4.0.2"]).await;
    catches_up(&story).await;
    story.remove().await;
}

/// Waits until the controller may not write imports: an API server goes by the roles that its own watch has shown it.
async fn until_forbidden(place: &Place) {
    let write = json!({"verb": "patch", "group": "multicluster.x-k8s.io", "resource": "serviceimports",
                       "namespace": place.namespace});
    until("it may not write", PATIENCE, async || {
        let said = place.cluster.authorizes(ACCOUNT, write.clone()).await.unwrap();
        if said["allowed"] == false { Ok(()) } else { Err(said.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r75_r97_a_member_without_its_rights_is_named_and_delays_nobody() {
    let set = rough_three().await;
    let mut args = set.as_members_by(&set.kubeconfigs[..3]);
    args.push("--failure-grace=1s".into());
    let _controller = Controller::start(&set.bed, args).await;
    let story = Story::new(&set, "rights").await;
    let (first, third) = (story.at(0), story.at(2));
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}", ACCOUNT.1);
    let role = third.send("GET", &path, None).await.unwrap();
    let rules = role["rules"].clone();
    // It may read, and write nothing any more.
    let read: Vec<_> = rules
        .as_array()
        .unwrap()
        .iter()
        .cloned()
        .map(|mut rule| {
            rule["verbs"]
                .as_array_mut()
                .unwrap()
                .retain(|verb| ["get", "list", "watch"].iter().any(|read| verb == read));
            rule
        })
        .filter(|rule| rule["verbs"] != json!([]))
        .collect();
    third.send("PATCH", &path, Some(&json!({"rules": read}))).await.unwrap();
    until_forbidden(third).await;
    first.apply(&exported("web", &["10.1.0.1"])).await;
    story.until_imported([0, 1], "web").await;
    first.until_export_says("web", "Ready", "False/Failed").await;
    let message = first.message("serviceexports", "web", "Ready").await;
    third.send("PATCH", &path, Some(&json!({"rules": rules}))).await.unwrap();
    assert!(message.contains("c3: ") && message.contains("forbidden"), "{message}");
    third.until_ready("web").await;
    first.until_export_says("web", "Ready", "True/Exported").await;
    story.remove().await;
}
