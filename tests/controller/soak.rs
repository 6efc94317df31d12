//! Many changes at once, at random, and a member's API server that restarts among them: in the end, a controller that
//! knows nothing of the way finds nothing to write.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::beds::{cleared, rough_three};
use crate::clusterset::objects::{endpoints, export, service, web};
use crate::clusterset::{Clusterset, Controller, PATIENCE, Place, Story, until};
use crate::writes::{nothing_is_written, settled};

/// How long changes are made.
const TIME: Duration = Duration::from_secs(12);

/// The services that are changed.
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// One change of somebody to one service in one cluster.
async fn change(place: &Place, name: &str, random: &mut fastrand::Rng) {
    let addresses: Vec<_> = (0..random.u8(0..4)).map(|i| format!("10.{}.1.{}", random.u8(1..5), i + 1)).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    match random.u8(0..12) {
        0..3 => place.apply(&(web(name) + &export(name))).await,
        3..6 => place.apply(&endpoints(name, &addresses)).await,
        6 => place.delete("serviceexports", name).await,
        7 => place.delete("services", name).await,
        8 => {
            place.delete("services", name).await;
            place.apply(&service(name, "clusterIP: None, ports: [{name: http, port: 80, targetPort: 8080}]")).await;
        }
        9 => {
            let affinity = json!({"spec": {"sessionAffinity": if random.bool() { "ClientIP" } else { "None" },
                                           "sessionAffinityConfig": null}});
            let path = format!("{}/{name}", place.path("services"));
            // Where there is none, there is none to change.
            place.send("PATCH", &path, Some(&affinity)).await.ok();
        }
        10 => {
            let labels = json!({"spec": {"exportedLabels": {"team": format!("t{}", random.u8(0..3))}}});
            let path = format!("{}/{name}", place.path("serviceexports"));
            place.send("PATCH", &path, Some(&labels)).await.ok();
        }
        _ => {
            // Somebody meddles with what is ours.
            let derived = place.derived_name(name);
            match random.u8(0..3) {
                0 => place.delete("services", &derived).await,
                1 => place.delete("serviceimports", name).await,
                _ => {
                    for slice in place.slices(name).await {
                        place.delete("endpointslices", slice["metadata"]["name"].as_str().unwrap()).await;
                    }
                }
            }
        }
    }
}

/// The last writes of anybody to what concerns a service, in each cluster.
fn history(story: &Story, name: &str) -> String {
    let mut lines = Vec::new();
    for place in &story.places[..3] {
        let derived = place.derived_name(name);
        let audit = place.cluster.audit().unwrap().writes();
        let audit = audit.only(|e| {
            e.namespace == place.namespace
                && (e.name == name || e.name == format!("{name}-1") || e.name.starts_with(&derived))
        });
        for e in audit.entries.iter().rev().take(16).rev() {
            let user = e.user.rsplit(':').next().unwrap_or_default();
            lines.push(format!(
                "{} {} {user} {} {} {} {} {}",
                place.id(),
                &e.received[11..],
                e.verb,
                e.resource,
                e.name,
                e.subresource,
                e.code
            ));
        }
    }
    lines.join("\n")
}

/// Every import has what its exporters have, in every cluster alike.
async fn agrees(story: &Story) -> Result<(), String> {
    let places = &story.places[..3];
    for name in NAMES {
        let mut exporters = Vec::new();
        for place in places {
            if place.says("serviceexports", name, "Valid").await == "True/Valid" {
                exporters.push(place.id().to_owned());
                let ready = place.says("serviceexports", name, "Ready").await;
                if ready != "True/Exported" {
                    return Err(format!("{} {name}: the export says {ready}", place.id()));
                }
            }
            let Some(export) = place.get("serviceexports", name).await else { continue };
            let conditions = export["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let old = |condition: &Value| condition["observedGeneration"] != export["metadata"]["generation"];
            if conditions.is_empty() || conditions.iter().any(old) {
                return Err(format!("{} {name}: what the export says is not of its last change: {export}", place.id()));
            }
        }
        let first = places[0].import(name).await;
        for place in places {
            let import = place.import(name).await;
            let mut found = place.exporters(name).await;
            found.sort();
            if found != exporters {
                let mut all = String::new();
                for place in places {
                    let export = place.get("serviceexports", name).await.unwrap_or_default();
                    let service = place.get("services", name).await.unwrap_or_default();
                    all += &format!(
                        "\n{}: {} {} {} spec {}",
                        place.id(),
                        export["metadata"]["uid"],
                        export["metadata"]["creationTimestamp"],
                        export["status"],
                        service["spec"]
                    );
                }
                return Err(format!(
                    "{} {name}: {found:?} instead of {exporters:?}\n{all}\n{}",
                    place.id(),
                    history(story, name)
                ));
            }
            let what = |import: &Option<Value>| {
                import.as_ref().map(|i| (i["spec"]["type"].clone(), i["spec"]["ports"].clone()))
            };
            if what(&import) != what(&first) {
                return Err(format!("{} {name}: {import:?} and {first:?}", place.id()));
            }
            if import.is_none() && place.parts(name).await != (false, false, 0) {
                return Err(format!("{} {name}: {:?} is left", place.id(), place.parts(name).await));
            }
            if place.addresses(name).await != places[0].addresses(name).await {
                return Err(format!("{} {name}: other addresses than in the first", place.id()));
            }
        }
    }
    Ok(())
}

/// Users of three clusters change what they like for a while, and `trouble` happens meanwhile: all clusters agree in the
/// end, and a controller that knows nothing of the way finds nothing to write.
async fn soak(set: &Clusterset, members: &[PathBuf], seed: u64, trouble: impl AsyncFnOnce(&Story, Instant)) {
    cleared(set).await;
    let mut controller = Controller::start(&set.bed, set.as_members_by(members)).await;
    let story = Story::new(set, "soak").await;
    let end = Instant::now() + TIME;
    let users = story.places[..3].iter().enumerate().map(|(i, place)| async move {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(i as u64));
        let mut changes = 0;
        while Instant::now() < end {
            change(place, NAMES[random.usize(..NAMES.len())], &mut random).await;
            changes += 1;
        }
        changes
    });
    let (changes, ()) = tokio::join!(futures_util::future::join_all(users), trouble(&story, end));
    eprintln!("{} changes, seed {seed}", changes.into_iter().sum::<usize>());
    until(&format!("all clusters agree (seed {seed})"), PATIENCE * 2, async || agrees(&story).await).await;
    let before = settled(set, &[&controller], None).await;
    controller.kill_and_restart();
    controller.wait_ready().await;
    nothing_is_written(set, &before, None, Duration::from_secs(3)).await;
    agrees(&story).await.unwrap();
    story.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r19_r73_r85_after_any_changes_a_new_controller_finds_nothing_to_do() {
    let set = rough_three().await;
    let seed = fastrand::u64(..);
    soak(&set, &set.kubeconfigs[..3], seed, async |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r73_r82_r84_r95_after_any_changes_and_outages_too() {
    let set = rough_three().await;
    let seed = fastrand::u64(..);
    let networks: Vec<_> = set.clusters[..3].iter().map(|cluster| cluster.proxy().unwrap()).collect();
    let through =
        networks.iter().zip(&set.kubeconfigs).map(|(network, file)| network.kubeconfig_through(file).unwrap());
    let members: Vec<_> = through.collect();
    soak(&set, &members, seed, async |story, end| {
        let mut random = fastrand::Rng::with_seed(seed);
        while Instant::now() < end {
            let which = random.usize(..3);
            let network = &networks[which];
            match random.u8(0..4) {
                0 => network.cut(),
                1 => network.black_hole(),
                2 => network.delay(Duration::from_millis(random.u64(50..400))),
                _ => {
                    // All that is in it goes, also what is ours.
                    story.at(which).delete("serviceexports", NAMES[0]).await;
                    story.at(which).delete("serviceimports", NAMES[1]).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(random.u64(100..1200))).await;
            network.heal();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r82_r84_a_restarted_api_server_that_has_forgotten_its_history_is_read_anew() {
    let set = rough_three().await;
    let _controller = Controller::start(&set.bed, set.as_members_by(&set.kubeconfigs[..3])).await;
    let story = Story::new(&set, "anew").await;
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    let both = crate::clusterset::objects::exported("stays", &["10.1.0.1"]);
    c1.apply(&(both + &crate::clusterset::objects::exported("goes", &["10.1.0.2"]))).await;
    for name in ["stays", "goes"] {
        story.until_imported([0, 1, 2], name).await;
    }
    let import = c3.import("stays").await.unwrap();
    // The controller hears nothing of what happens while the API server is hung, and its history is gone after that.
    let network = c1.cluster.clone();
    network.kill_api().unwrap();
    network.start_api().await.unwrap();
    c1.delete("serviceexports", "goes").await;
    c1.apply(&endpoints("stays", &["10.1.0.3"])).await;
    network.compact().await.unwrap();
    network.kill_api().unwrap();
    network.start_api().await.unwrap();
    for place in [c1, c2, c3] {
        place.until_gone("goes").await;
        place.until_addresses("stays", &["10.1.0.3"]).await;
    }
    let after = c3.import("stays").await.unwrap();
    assert_eq!(after["metadata"]["uid"], import["metadata"]["uid"]);
    assert_eq!(after["spec"], import["spec"]);
    story.remove().await;
}
