//! Other shapes than one controller for all: one per cluster, several for parts of the services, two by mistake.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::beds::rough_three;
use crate::clusterset::objects::exported;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Story, until};
use crate::writes::{nothing_is_written, settled, until_told};

fn with(set: &Clusterset, args: &[&str]) -> Vec<String> {
    let mut all = set.as_members_by(&set.kubeconfigs[..3]);
    all.extend(args.iter().map(ToString::to_string));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r19_one_controller_per_cluster_comes_to_the_same() {
    let set = rough_three().await;
    let story = Story::new(&set, "each").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    // Each knows all and writes to its own; the first is alone at first.
    let first = Controller::start(&set.bed, with(&set, &["--write-only-to=c1"])).await;
    c1.until_addresses("web", &["10.1.0.1"]).await;
    assert_eq!((c2.parts("web").await, c3.parts("web").await), ((false, false, 0), (false, false, 0)));
    let _second = Controller::start(&set.bed, with(&set, &["--write-only-to=c2"])).await;
    let third = Controller::start(&set.bed, with(&set, &["--write-only-to=c3"])).await;
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    for place in [c1, c2, c3] {
        place.until_addresses("web", &["10.1.0.1", "10.2.0.1"]).await;
        place.until_ready("web").await;
        place.until_exporters("web", &["c1", "c2"]).await;
    }
    for place in [c1, c2] {
        place.until_export_says("web", "Ready", "True/Exported").await;
        place.until_export_says("web", "Conflict", "False/NoConflicts").await;
    }
    // One of them dies: its cluster stays as it is, the others go on.
    drop(third);
    c1.delete("serviceexports", "web").await;
    for place in [c1, c2] {
        place.until_addresses("web", &["10.2.0.1"]).await;
    }
    assert_eq!(c3.addresses("web").await.len(), 2);
    let _third = Controller::start(&set.bed, with(&set, &["--write-only-to=c3"])).await;
    c3.until_addresses("web", &["10.2.0.1"]).await;
    drop(first);
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r19_r95_several_controllers_share_the_services() {
    let set = rough_three().await;
    let story = Story::new(&set, "parts").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    let names: Vec<_> = (0..12).map(|i| format!("web-{i}")).collect();
    for name in &names {
        c1.apply(&exported(name, &["10.1.0.1"])).await;
    }
    let imported = async || -> BTreeSet<String> {
        let imports = c2.list("serviceimports", "").await;
        imports.iter().map(|import| import["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let even = Controller::start(&set.bed, with(&set, &["--shard=0/2"])).await;
    until("it has begun", PATIENCE, async || {
        if imported().await.is_empty() { Err("nothing is imported".to_owned()) } else { Ok(()) }
    })
    .await;
    settled(&set, &[&even], Some(&story.namespace)).await;
    let half = imported().await;
    assert!((1..12).contains(&half.len()), "{half:?}");
    let _odd = Controller::start(&set.bed, with(&set, &["--shard=1/2"])).await;
    for name in &names {
        for place in [c1, c2, c3] {
            place.until_addresses(name, &["10.1.0.1"]).await;
        }
    }
    assert_eq!(imported().await.len(), 12);
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r93_two_controllers_by_mistake_do_not_fight() {
    let set = rough_three().await;
    let one = Controller::start(&set.bed, with(&set, &[])).await;
    let two = Controller::start(&set.bed, with(&set, &[])).await;
    let story = Story::new(&set, "twice").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    for address in ["10.1.0.1", "10.1.0.2", "10.1.0.3"] {
        c1.apply(&exported("web", &[address])).await;
        for place in [c1, c2, c3] {
            place.until_addresses("web", &[address]).await;
        }
    }
    c2.apply(&exported("web", &["10.2.0.1"])).await;
    c3.until_addresses("web", &["10.1.0.3", "10.2.0.1"]).await;
    until_told(&story.places[..3], "web", 2).await;
    let before = settled(&set, &[&one, &two], Some(&story.namespace)).await;
    nothing_is_written(&set, &before, Some(&story.namespace), Duration::from_secs(5)).await;
    let refused = c3.cluster.audit().unwrap().service_account(ACCOUNT.0, ACCOUNT.1).writes();
    let refused = refused.only(|entry| entry.namespace == c3.namespace && entry.code == 409).count();
    assert!(refused < 20, "{refused} conflicts");
    for place in [c1, c2] {
        place.delete("serviceexports", "web").await;
    }
    story.until_gone("web").await;
    story.remove().await;
}
