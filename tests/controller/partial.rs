//! Members that work in part: one kind of object, one object, one namespace fails, and the rest goes on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::beds::rough_three;
use crate::clusterset::faults::Faults;
use crate::clusterset::objects::exported;
use crate::clusterset::running::stays;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, Folder, PATIENCE, Story, until};
use crate::writes::written;

/// The three clusters, one of them behind a proxy that can fail, and the controller's arguments.
async fn one_faulty(set: &Clusterset, which: usize) -> (Faults, Vec<String>) {
    let life = Duration::from_secs(3600);
    let token = set.clusters[which].service_account_token(ACCOUNT.0, ACCOUNT.1, life).await.unwrap();
    let faults = Faults::start(&set.bed, &set.clusters[which], &token).await;
    let mut kubeconfigs = set.kubeconfigs[..3].to_vec();
    kubeconfigs[which] = faults.kubeconfig(&set.bed, set.clusters[which].name());
    (faults, set.as_members_by(&kubeconfigs))
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r82_r84_a_source_whose_imports_cannot_be_read_stays_a_source() {
    let set = rough_three().await;
    let (faults, mut args) = one_faulty(&set, 0).await;
    args.extend(["--unreachable-ttl=3s", "--unreachable-grace=1s"].map(str::to_owned));
    let _controller = Controller::start(&set.bed, args).await;
    let story = Story::new(&set, "source").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    for place in [c1, c2, c3] {
        place.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    }
    // From now on one kind can't be read; the connections that stand are ended.
    faults.refuse(|method, path| (method == "GET" && path.ends_with("/serviceimports")).then_some(500));
    c1.cluster.kill_api().unwrap();
    c1.cluster.start_api().await.unwrap();
    until(
        "it is asked for",
        PATIENCE,
        async || {
            if faults.refused() > 0 { Ok(()) } else { Err("it is not".to_owned()) }
        },
    )
    .await;
    // On a busy machine the restart may have taken longer than its endpoints are kept.
    c3.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    // A member counts as away after 10 s, and its endpoints would go then.
    stays("its endpoints stay", Duration::from_secs(14), async || {
        let found = c3.addresses("web").await;
        if found.contains("10.1.0.1") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    c1.apply(&exported("web", &["10.1.0.9"])).await;
    c3.until_addresses("web", &["10.1.0.9", "10.2.0.1"]).await;
    faults.heal();
    c1.until_addresses("web", &["10.1.0.9", "10.2.0.1"]).await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r74_r75_r95_one_refused_object_holds_up_neither_the_rest_nor_the_word_about_it() {
    let set = rough_three().await;
    let (faults, mut args) = one_faulty(&set, 0).await;
    args.push("--failure-grace=1s".into());
    let _controller = Controller::start(&set.bed, args).await;
    let story = Story::new(&set, "refused").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    // One slice is refused, as an older API server would a field of it.
    let slice = format!("/endpointslices/{}-c2", c1.derived_name("web"));
    faults.refuse(move |method, path| (method != "GET" && path.ends_with(&slice)).then_some(422));
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    c3.apply(&exported("web", &["10.3.0.1"])).await;
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.until_addresses("web", &["10.1.0.1", "10.2.0.1", "10.3.0.1"]).await;
    c1.until_addresses("web", &["10.1.0.1", "10.3.0.1"]).await;
    // All exporters are told, also the one in which it fails.
    for place in [c1, c2, c3] {
        place.until_export_says("web", "Ready", "False/Failed").await;
        place.until_export_says("web", "Valid", "True/Valid").await;
    }
    faults.heal();
    c1.until_addresses("web", &["10.1.0.1", "10.2.0.1", "10.3.0.1"]).await;
    c1.until_export_says("web", "Ready", "True/Exported").await;

    // The derived Service is refused, as by a quota.
    let derived = format!("/services/{}", c1.derived_name("other"));
    faults.refuse(move |method, path| (method != "GET" && path.ends_with(&derived)).then_some(403));
    c1.apply(&exported("other", &["10.1.0.2"])).await;
    c2.until_addresses("other", &["10.1.0.2"]).await;
    c1.until_export_says("other", "Ready", "False/Failed").await;
    faults.heal();
    c1.until_export_says("other", "Ready", "True/Exported").await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r95_an_error_of_one_service_is_no_pause_of_the_member() {
    let set = rough_three().await;
    let (faults, args) = one_faulty(&set, 2).await;
    let _controller = Controller::start(&set.bed, args).await;
    let story = Story::new(&set, "webhook").await;
    let [c1, _, c3, ..] = &story.places[..] else { panic!() };
    // As of a webhook that fails for one namespace or object: 500, for ever.
    faults.refuse(|method, path| (method != "GET" && path.contains("/bad")).then_some(500));
    c1.apply(&(exported("bad", &["10.1.0.1"]) + &exported("good", &["10.1.0.2"]))).await;
    c3.until_addresses("good", &["10.1.0.2"]).await;
    // It waits 12 s at least when it has just failed for the sixth time: a pause of the member would be as long.
    until("the bad one has failed six times", PATIENCE * 2, async || {
        if faults.refused() >= 6 { Ok(()) } else { Err(faults.refused().to_string()) }
    })
    .await;
    let mut times = Vec::new();
    for i in 0..10 {
        let address = format!("10.1.1.{i}");
        c1.apply(&exported("good", &[&address])).await;
        let began = std::time::Instant::now();
        c3.until_addresses("good", &[&address]).await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    eprintln!("beside a service that fails: median {:?}, longest {:?}", times[5], times[9]);
    assert!(times[9] < Duration::from_secs(8), "{times:?}");
    faults.heal();
    c3.until_addresses("bad", &["10.1.0.1"]).await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r57_r95_somebody_who_changes_it_back_each_time_costs_little() {
    let set = rough_three().await;
    let _controller = Controller::start(&set.bed, set.as_members_by(&set.kubeconfigs[..3])).await;
    let story = Story::new(&set, "duel").await;
    let [c1, c2, ..] = &story.places[..] else { panic!() };
    c1.apply(&(exported("web", &["10.1.0.1"]) + &exported("calm", &["10.1.0.2"]))).await;
    let ours = c2.until_ready("web").await;
    c2.until_addresses("web", &["10.1.0.1"]).await;
    let before = c2.cluster.audit().unwrap();
    // Another controller with another opinion, as fast as it can.
    let theirs = json!({"spec": {"ports": [{"port": 1, "name": "theirs", "protocol": "TCP"}]}});
    let end = std::time::Instant::now() + Duration::from_secs(6);
    let mut changed = 0;
    while std::time::Instant::now() < end {
        if c2.import("web").await.unwrap()["spec"]["ports"] == ours["spec"]["ports"] {
            c2.patch("serviceimports", "web", theirs.clone()).await;
            changed += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let writes = written(&c2.cluster, &before, Some(&story.namespace)).len();
    eprintln!("{changed} changes of somebody, {writes} writes");
    assert!((2..40).contains(&writes), "{writes} writes in 6 s");
    // Others are served meanwhile, and in the end it is as it should be.
    c1.apply(&exported("calm", &["10.1.0.3"])).await;
    c2.until_addresses("calm", &["10.1.0.3"]).await;
    until("ours in the end", Duration::from_secs(40), async || {
        let now = c2.import("web").await.unwrap();
        if now["spec"] == ours["spec"] { Ok(()) } else { Err(now["spec"].to_string()) }
    })
    .await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r91_one_cluster_under_two_ids_is_refused_as_the_second() {
    let set = rough_three().await;
    let folder = Folder::new(&set, &[0, 1]);
    let controller = Controller::start(&set.bed, folder.args()).await;
    let story = Story::new(&set, "double").await;
    let [c1, c2, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.until_addresses("web", &["10.1.0.1"]).await;
    c2.until_exporters("web", &["c1"]).await;
    folder.put("another", &set.kubeconfigs[0]);
    until("it is named", PATIENCE, async || {
        let (_, ready) = controller.get("/ready?verbose").await;
        if ready.contains("another") { Ok(()) } else { Err(ready) }
    })
    .await;
    stays("its endpoints are not taken twice, and nobody fights", Duration::from_secs(4), async || {
        let (own, other) = (c2.slices("web").await.len(), c2.exporters("web").await);
        if own == 1 && other == ["c1"] { Ok(()) } else { Err(format!("{own} slices, {other:?}")) }
    })
    .await;
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r83_a_registration_that_is_taken_out_and_put_back_takes_nothing_away() {
    let set = rough_three().await;
    let folder = Folder::new(&set, &[0, 1, 2]);
    let _controller = Controller::start(&set.bed, folder.args()).await;
    let story = Story::new(&set, "back").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    for place in [c1, c2, c3] {
        place.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
    }
    let before: Vec<Value> = [c1.until_ready("web").await, c3.until_ready("web").await].to_vec();
    let audits: Vec<_> = set.clusters[..3].iter().map(|cluster| cluster.audit().unwrap()).collect();
    folder.remove("c1");
    tokio::time::sleep(Duration::from_secs(1)).await;
    folder.put("c1", &set.kubeconfigs[0]);
    c1.apply(&exported("web", &["10.1.0.5"])).await;
    for place in [c1, c2, c3] {
        place.until_addresses("web", &["10.1.0.5", "10.2.0.1"]).await;
    }
    for (cluster, audit) in set.clusters.iter().zip(&audits) {
        let deletes = written(cluster, audit, Some(&story.namespace)).into_iter().filter(|e| e.verb == "delete");
        assert_eq!(deletes.count(), 0, "{}", cluster.name());
    }
    let after = [c1.until_ready("web").await, c3.until_ready("web").await];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_eq!(before["spec"], after["spec"]);
    }
    story.remove().await;
}
