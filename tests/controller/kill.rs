//! The controller is killed at random points of a run of changes, fifty times, and the clusters end as if it had not been.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::beds::rough_three;
use crate::clusterset::objects::{endpoints, export, exported, service, slice, web};
use crate::clusterset::place::text;
use crate::clusterset::{Controller, Story, until};

/// How often the controller is killed at least.
const KILLS: usize = 50;

/// Time between two changes.
const PACE: Duration = Duration::from_millis(150);

/// Lets a change be younger than the ones before: exports are ordered by their seconds.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// One run of changes. It begins by taking back all of an earlier one, so how it ends depends on nothing before it.
async fn script(story: &Story) {
    let [c1, c2, c3, ..] = &story.places[..] else { panic!() };
    let pace = || tokio::time::sleep(PACE);
    for place in [c1, c2, c3] {
        for name in ["web", "db", "brief"] {
            place.delete("serviceexports", name).await;
            place.delete("services", name).await;
            place.delete("endpointslices", &format!("{name}-1")).await;
        }
        pace().await;
    }
    c1.apply(&exported("web", &["10.1.0.1"])).await;
    pace().await;
    c2.apply(&exported("web", &["10.2.0.1", "10.2.0.2"])).await;
    pace().await;
    c1.apply(&endpoints("web", &["10.1.0.1", "10.1.0.2"])).await;
    c3.apply(&(web("brief") + &endpoints("brief", &["10.3.0.9"]) + &export("brief"))).await;
    pace().await;
    let pg = "{name: pg, protocol: TCP, port: 5432}";
    c3.apply(&(service("db", "clusterIP: None, ports: [{name: pg, port: 5432}]") + &export("db"))).await;
    c3.apply(&slice("db", "1", "IPv4", pg, &["10.3.0.1", "10.3.0.2"])).await;
    pace().await;
    // A conflict comes …
    c2.patch("services", "web", json!({"spec": {"sessionAffinity": "ClientIP"}})).await;
    pace().await;
    c3.delete("serviceexports", "brief").await;
    pace().await;
    // … the oldest becomes the youngest …
    c1.delete("serviceexports", "web").await;
    tokio::time::sleep(NEXT_SECOND).await;
    c1.apply(&export("web")).await;
    pace().await;
    let many: Vec<_> = (1..40).map(|i| format!("10.1.1.{i}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    c1.apply(&endpoints("web", &many)).await;
    pace().await;
    // … a headless service gets an address, and loses it again …
    c3.delete("services", "db").await;
    c3.apply(&service("db", "ports: [{name: pg, port: 5432}]")).await;
    pace().await;
    c3.delete("services", "db").await;
    pace().await;
    c3.apply(&service("db", "clusterIP: None, ports: [{name: pg, port: 5432}]")).await;
    pace().await;
    c1.apply(&endpoints("web", &many[..30])).await;
    c2.apply(&endpoints("web", &["10.2.0.2"])).await;
    pace().await;
    // … and somebody meddles with what is ours.
    let slice = format!("{}-c2", c1.derived_name("web"));
    c1.delete("endpointslices", &slice).await;
    let labels = json!({"spec": {"exportedLabels": {"team": "red"}}});
    c2.patch("serviceexports", "web", labels).await;
    pace().await;
    c2.apply(&exported("brief", &["10.2.0.9"])).await;
    pace().await;
}

/// All that the story's clusters hold, without what is never the same twice.
async fn snapshot(story: &Story) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for place in &story.places[..3] {
        for plural in ["services", "serviceexports", "serviceimports", "endpointslices"] {
            let objects = place.list(plural, "").await;
            let derived: Vec<_> = objects.iter().map(|o| o["spec"]["clusterIPs"].clone()).collect();
            for mut object in objects {
                normalise(plural, &mut object);
                let name = text(&object["metadata"]["name"]).to_owned();
                found.insert(format!("{} {plural} {name}", place.id()), object);
            }
            // An import's addresses are its derived Service's.
            if plural == "services" {
                let imports = place.list("serviceimports", "").await;
                let ips = imports.iter().map(|import| import["spec"]["ips"].clone()).filter(|ips| !ips.is_null());
                let strange: Vec<_> = ips.filter(|ips| ips != &json!([]) && !derived.contains(ips)).collect();
                found.insert(format!("{} strange addresses", place.id()), json!(strange));
            }
        }
    }
    found
}

fn normalise(plural: &str, object: &mut Value) {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        metadata.remove(field);
    }
    for owner in list(object, "/metadata/ownerReferences") {
        owner["uid"] = json!("of the owner");
    }
    for condition in list(object, "/status/conditions") {
        condition["lastTransitionTime"] = json!("then");
        // How often its spec was written.
        if plural != "serviceexports" {
            condition["observedGeneration"] = json!("then");
        }
    }
    for ip in list(object, "/spec/ips") {
        *ip = json!("given");
    }
    for ip in list(object, "/spec/clusterIPs").filter(|ip| **ip != "None") {
        *ip = json!("given");
    }
    if let Some(ip) = object.pointer_mut("/spec/clusterIP").filter(|ip| **ip != "None") {
        *ip = json!("given");
    }
}

fn list<'a>(object: &'a mut Value, at: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(at).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The first differences of two snapshots.
fn differences(is: &BTreeMap<String, Value>, shall: &BTreeMap<String, Value>) -> Vec<String> {
    let names = is.keys().chain(shall.keys()).collect::<std::collections::BTreeSet<_>>();
    let differ = names.into_iter().filter(|name| is.get(*name) != shall.get(*name));
    differ.take(3).map(|name| format!("{name}: {:?}\n  instead of {:?}", is.get(name), shall.get(name))).collect()
}

/// Waits until the clusters are at rest: two looks a second apart that say the same, with all exports told.
async fn at_rest(story: &Story) -> BTreeMap<String, Value> {
    let mut last = BTreeMap::new();
    until("the clusters are at rest", Duration::from_secs(30), async || {
        let now = snapshot(story).await;
        let exports = now.iter().filter(|(name, _)| name.contains(" serviceexports "));
        let told = exports.into_iter().all(|(_, export)| {
            export["status"]["conditions"].as_array().is_some_and(|c| c.iter().any(|c| c["reason"] == "Exported"))
        });
        let same = now == last;
        let differ = differences(&last, &now);
        last = now;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if same && told { Ok(()) } else { Err(format!("told: {told}; {differ:#?}")) }
    })
    .await;
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r81_r85_w16_killed_fifty_times_it_ends_as_if_undisturbed() {
    let set = rough_three().await;
    let story = Story::named(&set, "script");
    for place in &story.places[..3] {
        place.create_namespace().await;
    }
    let mut controller = Controller::start(&set.bed, set.as_members_by(&set.kubeconfigs[..3])).await;
    script(&story).await;
    let shall = at_rest(&story).await;
    let of = |what: &str| shall.keys().filter(|name| name.contains(what)).count();
    assert_eq!((of(" serviceimports "), of(" serviceexports "), of(" strange ")), (9, 4, 3), "{:#?}", shall.keys());
    assert!(shall.iter().all(|(name, value)| !name.contains("strange") || value == &json!([])), "{shall:#?}");

    let enough = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    let seed = fastrand::u64(..);
    let began = Instant::now();
    let kill = async {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kills = 0;
        while !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(random.u64(30..900))).await;
            controller.kill_and_restart();
            kills += 1;
            enough.store(kills >= KILLS, Ordering::Relaxed);
        }
        kills
    };
    let run = async {
        while !enough.load(Ordering::Relaxed) {
            script(&story).await;
        }
        // It is killed in the last run too.
        script(&story).await;
        over.store(true, Ordering::Relaxed);
    };
    let (kills, ()) = tokio::join!(kill, run);
    eprintln!("{kills} kills in {:?}, seed {seed}", began.elapsed());
    until(&format!("all is as in an undisturbed run (seed {seed})"), Duration::from_secs(30), async || {
        let differ = differences(&snapshot(&story).await, &shall);
        if differ.is_empty() { Ok(()) } else { Err(format!("{differ:#?}")) }
    })
    .await;
    assert_eq!(differences(&at_rest(&story).await, &shall), [""; 0], "and it stays so");
    story.remove().await;
}
