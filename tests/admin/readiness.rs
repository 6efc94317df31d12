//! `/health` and `/ready` through a life: start, trouble of every kind, ready, outage, shutdown.

use std::sync::Arc;
use std::time::Instant;

use namesake::admin::AdminParts;
use namesake::model::Resource;
use namesake::source::{Health, Trouble};

use crate::http::{Bed, ages_from, get, one, parts};

/// Both lists are complete and both watches deliver.
fn synced(bed: &Bed) {
    for resource in Resource::ALL {
        bed.health.alive(resource);
        bed.health.mark_synced(resource);
    }
}

#[test]
fn dns_l1_health_is_ok_from_the_start_while_ready_is_503_with_the_plugin() {
    let bed = Bed::new();
    let health = get(bed.address(), "/health");
    assert_eq!((health.code, health.body.as_str()), (200, "OK"));
    let ready = get(bed.address(), "/ready");
    assert_eq!((ready.code, ready.body.as_str()), (503, "multicluster"));
    assert!(ready.head.to_ascii_lowercase().contains("content-type: text/plain"), "{}", ready.head);
}

#[test]
fn dns_l6_ready_after_the_first_complete_lists_and_with_dns_sockets() {
    let bed = Bed::new();
    bed.health.alive(Resource::Imports);
    bed.health.mark_synced(Resource::Imports);
    bed.state.set_dns_bound();
    assert_eq!(get(bed.address(), "/ready").code, 503, "slices are missing");
    synced(&bed);
    let ready = get(bed.address(), "/ready");
    assert_eq!((ready.code, ready.body.as_str()), (200, "OK"));

    let unbound = Bed::new();
    synced(&unbound);
    let ready = get(unbound.address(), "/ready");
    assert_eq!((ready.code, ready.body.as_str()), (503, "multicluster"), "nobody can ask yet");
    let verbose = get(unbound.address(), "/ready?verbose");
    assert!(verbose.body.contains("[-] dns sockets: not bound yet\n"), "{}", verbose.body);
}

#[test]
fn dns_l5_without_lists_ready_stays_503_and_says_what_it_waits_for() {
    let bed = Bed::new();
    bed.state.set_dns_bound();
    let verbose = get(bed.address(), "/ready?verbose");
    assert_eq!(verbose.code, 503);
    assert_eq!(
        verbose.body,
        "[-] serviceimports: not synced, waiting for the first list\n\
         [-] endpointslices: not synced, waiting for the first list\n\
         [+] dns sockets: bound\n\
         [+] process: running\n\
         not ready: multicluster\n"
    );
}

#[test]
fn dns_l7_dns_l8_every_trouble_is_named_with_its_remedy() {
    let troubles = [
        (
            Trouble::CrdMissing { crd: "serviceimports.multicluster.x-k8s.io" },
            "the CRD serviceimports.multicluster.x-k8s.io is not installed; install the CRDs of mcs-api, it is picked \
             up by itself",
        ),
        (
            Trouble::Forbidden {
                verb: "watch",
                resource: "endpointslices.discovery.k8s.io".to_owned(),
                message: "forbidden:\nUser \"x\"".to_owned(),
            },
            "not allowed to watch endpointslices.discovery.k8s.io; grant it in the ClusterRole, it is tried again \
             (forbidden: User \"x\")",
        ),
        (
            Trouble::Unauthorized { message: "Unauthorized".to_owned() },
            "the API server does not accept our credentials; renew the token or kubeconfig (Unauthorized)",
        ),
        (
            Trouble::Unreachable { message: "connection refused".to_owned() },
            "the API server can't be reached: connection refused",
        ),
        (Trouble::BrokenFile { message: "a.yaml:3: no name; add one".to_owned() }, "a.yaml:3: no name; add one"),
    ];
    let bed = Bed::new();
    bed.state.set_dns_bound();
    for (trouble, words) in troubles {
        bed.health.down(Resource::Slices, trouble);
        let verbose = get(bed.address(), "/ready?verbose");
        assert_eq!(verbose.code, 503);
        assert!(verbose.body.contains(&format!("\n[-] endpointslices: not synced, {words}\n")), "{}", verbose.body);
        assert_eq!(get(bed.address(), "/ready").body, "multicluster", "the short body is CoreDNS's all the same");
    }
}

#[test]
fn dns_l9_dns_l17_a_lost_api_server_changes_nothing_but_the_words() {
    let bed = Bed::new();
    bed.state.set_dns_bound();
    let began = Instant::now();
    synced(&bed);
    let verbose = ages_from(began, &get(bed.address(), "/ready?verbose").body);
    assert!(verbose.starts_with("[+] serviceimports: synced, live, last event 0 s ago\n"), "{verbose}");
    assert!(verbose.ends_with("\nOK\n"), "{verbose}");

    bed.health.down(Resource::Imports, Trouble::Unreachable { message: "no route".to_owned() });
    bed.health.down(Resource::Slices, Trouble::CrdMissing { crd: "x" });
    let verbose = get(bed.address(), "/ready?verbose");
    assert_eq!((verbose.code, get(bed.address(), "/ready").code), (200, 200));
    let line = "[!] serviceimports: synced, the API server can't be reached: no route, last event 0 s ago\n";
    assert!(ages_from(began, &verbose.body).contains(line), "{}", verbose.body);
    let metrics = get(bed.address(), "/metrics").body;
    assert!(metrics.contains("\nnamesake_watch_up{resource=\"serviceimports\"} 0\n"), "{metrics}");
    assert!(metrics.contains("\nnamesake_synced 1\n"), "{metrics}");
    let age = "namesake_watch_last_event_age_seconds{resource=\"serviceimports\"} ";
    let age = metrics.lines().find_map(|line| line.strip_prefix(age)?.parse::<f64>().ok());
    assert!(age.is_some_and(|age| age > 0.0 && age <= began.elapsed().as_secs_f64()), "{metrics}");
}

#[test]
fn dns_l15_during_lameduck_health_stays_ok_and_ready_says_shutting_down() {
    let bed = Bed::new();
    bed.state.set_dns_bound();
    synced(&bed);
    assert_eq!(get(bed.address(), "/ready").code, 200);
    bed.state.set_shutting_down();
    let ready = get(bed.address(), "/ready");
    assert_eq!((ready.code, ready.body.as_str()), (503, "Shutting down"));
    let verbose = get(bed.address(), "/ready?verbose");
    assert_eq!(verbose.code, 503);
    assert!(verbose.body.ends_with("[-] process: shutting down\nShutting down\n"), "{}", verbose.body);
    let health = get(bed.address(), "/health");
    assert_eq!((health.code, health.body.as_str()), (200, "OK"));
}

#[test]
fn dns_l14_slices_that_are_not_watched_are_no_condition() {
    let bed = Bed::start(&one(), AdminParts { health: Arc::new(Health::new(false)), plugin: "kubernetes", ..parts() });
    bed.state.set_dns_bound();
    assert_eq!(get(bed.address(), "/ready").body, "kubernetes");
    bed.health.alive(Resource::Imports);
    bed.health.mark_synced(Resource::Imports);
    let verbose = get(bed.address(), "/ready?verbose");
    assert_eq!(verbose.code, 200);
    assert!(!verbose.body.contains("endpointslices"), "{}", verbose.body);
}
