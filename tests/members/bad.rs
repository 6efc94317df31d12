//! Members that are dead, slow, wrong or hostile: named, tried again, and nobody else's trouble.

use std::time::{Duration, Instant};

use namesake::reconcile::world::Kind;
use namesake::source::WatchPhase;
use serde_json::{Value, json};
use testbed::Bed;

use crate::rig::{Followed, PATIENCE, Seen, connection, id, labelled, secret};

fn config(cluster: &testbed::Cluster) -> Value {
    serde_json::from_str(&std::fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap()
}

fn export(name: &str) -> String {
    format!(
        "{{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {{name: {name}, namespace: default}}}}"
    )
}

/// How long it takes until an export made now is seen.
async fn latency(cluster: &testbed::Cluster, followed: &mut Followed, name: &str) -> Duration {
    cluster.apply(&export(name)).await.unwrap();
    let since = Instant::now();
    let key = format!("default/{name}");
    followed.until(name, |f| f.local(&key).is_some_and(|local| local.export.is_some())).await;
    since.elapsed()
}

/// The median of 20 changes: whatever the others delay would be late each time, and what else the machine does is not.
async fn median(cluster: &testbed::Cluster, followed: &mut Followed, name: &str) -> Duration {
    let mut all = Vec::new();
    for i in 0..20 {
        all.push(latency(cluster, followed, &format!("{name}-{i}")).await);
    }
    all.sort();
    all[10]
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r95_clu_04_bad_members_are_named_and_delay_nobody() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub", "good"]).await.unwrap();
    let [hub, good] = clusters.as_slice() else { panic!() };
    good.install_crds("v0.5.2").await.unwrap();
    let proxy = good.proxy().unwrap();

    let with = |pointer: &str, value: Value| {
        let mut config = config(good);
        *config.pointer_mut(pointer).unwrap() = value;
        config.to_string()
    };
    let ca = config(hub).pointer("/clusters/0/cluster/certificate-authority-data").unwrap().clone();
    let through = std::fs::read_to_string(proxy.kubeconfig_through(&good.kubeconfig()).unwrap()).unwrap();
    let closed = format!("https://127.0.0.1:{}", bed.port().unwrap());
    let members = [
        ("good", config(good).to_string()),
        ("closed-port", with("/clusters/0/cluster/server", json!(closed))),
        ("black-hole", through),
        ("wrong-ca", with("/clusters/0/cluster/certificate-authority-data", ca)),
        ("expired", with("/users/0/user/token", json!("gone"))),
    ];
    proxy.black_hole();
    for (name, config) in &members {
        let label = format!("{{namesake/cluster: {name}}}");
        hub.apply(&secret(name, &label, "kubeconfig", config)).await.unwrap();
    }
    let mut seen = Seen::start(labelled(), Some(connection(&hub.kubeconfig()).await));
    // All are members: their registrations say who they are.
    seen.until_present(&["good", "closed-port", "black-hole", "wrong-ca", "expired"]).await;
    seen.until("all are known", |seen| seen.complete).await;

    let since = Instant::now();
    let mut bad: Vec<_> = members[1..].iter().map(|(name, _)| Followed::start(seen.member(name))).collect();
    let mut good_one = Followed::start(seen.member("good"));
    good_one.until_synced().await;
    println!("the good one is listed after {:?}, beside four bad ones", since.elapsed());
    let beside = median(good, &mut good_one, "beside").await;
    println!("the median of 20 changes of the good one took {beside:?}");
    assert!(beside < Duration::from_millis(500), "{beside:?}");

    // Each of the bad ones says what is wrong with it.
    for (followed, reason) in bad.iter_mut().zip(["unreachable", "unreachable", "unreachable", "unauthorized"]) {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = followed.watch.health().status(Kind::Exports);
            // A machine under load may have had another trouble before, such as no answer in time.
            if let WatchPhase::Down(trouble) = &status.phase
                && trouble.reason() == reason
            {
                println!("{}: {trouble}", followed.cluster);
                break;
            }
            assert!(Instant::now() < end, "{} is not {reason}: {:?}", followed.cluster, status.phase);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!followed.watch.health().synced());
    }

    // The dead one comes back and is right at once, whatever it was tried.
    proxy.heal();
    let back = Instant::now();
    bad[1].until_synced().await;
    println!("the black hole is listed {:?} after it is none any more", back.elapsed());

    // CLU-07: one is corrected in place.
    let told = seen.told.len();
    hub.apply(&secret("closed-port", "{namesake/cluster: closed-port}", "kubeconfig", &config(good).to_string()))
        .await
        .unwrap();
    seen.until("corrected", |seen| seen.told[told..].iter().any(|told| told == "closed-port present")).await;
    let member = seen.member("closed-port").clone();
    bad[0].again(&member);
    bad[0].until_synced().await;
    assert!(!seen.told.iter().any(|told| told.contains("left")), "{:?}", seen.told);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r95_a_slow_member_delays_nobody() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["slow", "fast"]).await.unwrap();
    let [slow, fast] = clusters.as_slice() else { panic!() };
    for cluster in &clusters {
        cluster.install_crds("v0.5.2").await.unwrap();
    }
    let proxy = slow.proxy().unwrap();
    let through = std::fs::read_to_string(proxy.kubeconfig_through(&slow.kubeconfig()).unwrap()).unwrap();
    let config = std::fs::read_to_string(fast.kubeconfig()).unwrap();
    fast.apply(&secret("slow", "{namesake/cluster: slow}", "kubeconfig", &through)).await.unwrap();
    fast.apply(&secret("fast", "{namesake/cluster: fast}", "kubeconfig", &config)).await.unwrap();
    let mut seen = Seen::start(labelled(), Some(connection(&fast.kubeconfig()).await));
    seen.until_present(&["slow", "fast"]).await;
    let (mut of_slow, mut of_fast) = (Followed::start(seen.member("slow")), Followed::start(seen.member("fast")));
    of_slow.until_synced().await;
    of_fast.until_synced().await;

    let alone = median(fast, &mut of_fast, "alone").await;
    proxy.delay(Duration::from_secs(2));
    // Nobody takes what the slow one says either: its queue fills up, and is its own.
    let many = (0..1500).map(|i| {
        json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
               "metadata": {"name": format!("many-{i}"), "namespace": "default"}})
    });
    slow.apply_values(many.collect()).await.unwrap();
    let beside = median(fast, &mut of_fast, "beside").await;
    println!("the median of 20 changes: {alone:?} alone, {beside:?} beside a slow one");
    assert!(beside < Duration::from_millis(500), "{beside:?}");
    of_slow.until("all of it comes in the end", |f| f.local("default/many-1499").is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_hostile_secrets_run_nothing_and_read_nothing() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let marker = bed.dir().join("was-run");
    let token = bed.file("token", config(&hub).pointer("/users/0/user/token").unwrap().as_str().unwrap()).unwrap();
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "touch", "args": [marker.to_str().unwrap()],
    }});
    let user = |user: Value| {
        let mut config = config(&hub);
        config["users"][0]["user"] = user;
        config.to_string()
    };
    let insecure = {
        let mut config = config(&hub);
        config["clusters"][0]["cluster"] = json!({"server": hub.server(), "insecure-skip-tls-verify": true});
        config.to_string()
    };
    let hostile = [
        ("runs-a-program", user(exec), "exec of user"),
        ("reads-a-file", user(json!({"tokenFile": token.to_str().unwrap()})), "tokenFile of user"),
        ("trusts-anybody", insecure, "insecure-skip-tls-verify of cluster"),
    ];
    for (name, config, _) in &hostile {
        hub.apply(&secret(name, &format!("{{namesake/cluster: {name}}}"), "kubeconfig", config)).await.unwrap();
    }
    let fine = config(&hub).to_string();
    hub.apply(&secret("fine", "{namesake/cluster: fine}", "kubeconfig", &fine)).await.unwrap();
    let mut seen = Seen::start(labelled(), Some(connection(&hub.kubeconfig()).await));
    seen.until_present(&["fine"]).await;
    seen.until("the others are refused", |seen| hostile.iter().all(|(name, ..)| seen.unusable(name).is_some())).await;
    for (name, _, named) in &hostile {
        let why = seen.unusable(name).unwrap();
        assert!(why.contains(named) && why.contains("key \"kubeconfig\""), "{why}");
        println!("Secret default/{name}: {why}");
    }
    seen.pass(Duration::from_secs(1)).await;
    assert!(!marker.exists(), "the program was run");

    // One that was fine turns bad: it is used no more, and has not left.
    let told = seen.told.len();
    hub.apply(&secret("fine", "{namesake/cluster: fine}", "kubeconfig", &hostile[0].1)).await.unwrap();
    seen.until("refused", |seen| seen.unusable("fine").is_some_and(|why| why.contains("exec"))).await;
    assert!(!seen.told[told..].iter().any(|told| told.contains("left")), "{:?}", seen.told);
    hub.apply(&secret("fine", "{namesake/cluster: fine}", "kubeconfig", &fine)).await.unwrap();
    seen.until_present(&["fine"]).await;
    hub.kubectl(&["delete", "secret", "fine"]).unwrap();
    seen.until("gone", |seen| !seen.members.contains_key(&id("fine"))).await;
    assert!(!marker.exists(), "the program was run");
}
