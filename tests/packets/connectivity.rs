//! Connections: what is exported is reached by its name in every cluster, and nothing else is.

use std::time::Instant;

use serde_json::{Value, json};

use crate::asking::{PATIENCE, connect};
use crate::clusterset::place::text;
use crate::clusterset::{Place, until};
use crate::objects::HELLO;
use crate::stage::{PODS, Stage, as_it_is, deploy, export};

/// What a pod of the Service answers with, before its address.
const ANSWER: &str = "pod ip";

pub async fn c01_service_that_is_not_exported_is_inaccessible(stage: &Stage) {
    stage.hello(as_it_is).await;
    let name = stage.name();
    for family in stage.families().await {
        for place in &stage.places {
            never_reach(place, &family, &name).await;
        }
    }
    // The same commands reach it as soon as it is exported: it was for want of the export that they did not.
    export(stage.first(), json!({})).await;
    reach_from_all(stage, 42, ANSWER, 1).await;
}

/// Twenty times, one after the other.
async fn never_reach(place: &Place, family: &str, name: &str) {
    let command = connect(family, name, 42);
    let end = Instant::now() + PATIENCE * 20;
    let mut refused = 0;
    while refused < 20 {
        let answer = place.ask(&command).await;
        // The suite looks at this alone, which commands that never ran pass as well.
        assert!(!answer.seen().contains(ANSWER), "{}: it is reached: {}", place.id(), answer.seen());
        // So: they ran, and told that they were not let through. One that did not run, or not to its end, says nothing.
        if let Ok(printed) = &answer.printed {
            assert!(!answer.ok, "{}: `{command}` succeeds: {printed}", place.id());
            refused += usize::from(printed.contains(name));
        }
        assert!(Instant::now() < end, "{}: `{command}`: {refused} of 20 refused; {}", place.id(), answer.seen());
    }
}

pub async fn c02_exported_service_is_reachable_by_dns(stage: &Stage) {
    stage.exported(as_it_is).await;
    reach_from_all(stage, 42, ANSWER, 1).await;
}

pub async fn c03_service_exported_from_one_of_two_is_reached_in_that_one(stage: &Stage) {
    stage.hello(as_it_is).await;
    deploy(stage.second(), 1, as_it_is).await;
    export(stage.first(), json!({})).await;
    let pod = until_pod(stage.first()).await;
    reach_from_all(stage, 42, &pod, 10).await;
}

/// The Service with one port 4242, which leads to the same port of its pods.
fn port_4242(name: &'static str) -> impl FnOnce(&mut Value) {
    move |service| {
        service["spec"]["ports"] = json!([{"name": name, "port": 4242, "protocol": "TCP", "targetPort": 42}]);
    }
}

pub async fn c04_port_of_another_number_by_the_same_name_gets_no_traffic(stage: &Stage) {
    stage.two(as_it_is, port_4242("tcp")).await;
    let pod = until_pod(stage.first()).await;
    reach_from_all(stage, 42, &pod, 10).await;
}

pub async fn c05_each_port_leads_to_the_cluster_that_has_it(stage: &Stage) {
    stage.two(as_it_is, port_4242("tcp2")).await;
    let pods = [until_pod(stage.first()).await, until_pod(stage.second()).await];
    reach_from_all(stage, 42, &pods[0], 10).await;
    reach_from_all(stage, 4242, &pods[1], 10).await;
}

/// Waits for the address of the Service's pod in this cluster.
async fn until_pod(place: &Place) -> String {
    until(&format!("{}: a pod of the Service has an address", place.id()), PODS, async || {
        let pods = place.list("pods", &format!("app={HELLO}")).await;
        let address = pods.first().map_or("", |pod| text(&pod["status"]["podIP"]));
        if address.is_empty() { Err(format!("{} pods", pods.len())) } else { Ok(address.to_owned()) }
    })
    .await
}

/// In every cluster and over every family of the import there, so many passes in a row answer with this. One after the
/// other, as the suite goes.
async fn reach_from_all(stage: &Stage, port: u16, with: &str, times: u32) {
    for place in &stage.places {
        for family in place.until_families().await {
            reach_from(place, &stage.name(), &family, port, with, times).await;
        }
    }
}

async fn reach_from(place: &Place, name: &str, family: &str, port: u16, with: &str, times: u32) {
    let what = format!("{times} in a row of {name}:{port} over {family} answer `{with}`");
    // A whole word: 10.201.0.2 stands in 10.201.0.21 too.
    let is_in =
        |text: &str| text.match_indices(with).any(|(at, _)| !text[at + with.len()..].starts_with(is_of_address));
    place
        .until_passes(times, &connect(family, name, port), &what, |text| {
            if is_in(text) { Ok(()) } else { Err(format!("{text:?}")) }
        })
        .await;
}

fn is_of_address(c: char) -> bool {
    c.is_ascii_hexdigit() || c == ':'
}
