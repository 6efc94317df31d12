//! A gateway of somebody else's in front of what our controller imports: Envoy Gateway, in a pod of a cluster with a node,
//! with the `HTTPRoute` of `deploy/samples/httproute.yaml`, whose backend is a ServiceImport; requests over real packets
//! to pods' addresses in two clusters.
//!
//! How it finds the backends of a ServiceImport (envoyproxy/gateway 1.9.1): it reads the import in v1alpha1 and takes the
//! port by its number. Routing by service, which is asked for with `routingType: Service`, sends to `spec.ips` of the
//! import, where kube-proxy has the endpoints of the derived Service (`processServiceImportDestinationSetting` in
//! `internal/gatewayapi/route.go`). Routing by endpoints, its default, looks for EndpointSlices with the label
//! `multicluster.kubernetes.io/service-name`, but leaves out those that are a Service's as well
//! (`SetEndpointSlicesForBackend` in `internal/gatewayapi/contexts.go`: `kubernetes.io/service-name` comes first), as ours
//! are and must be for kube-proxy, and those of Cilium, AWS Cloud Map and the reference implementation. So by default it
//! answers 503, "no ready endpoints"; that was looked at once and is not tested here, since the next version may differ.
//!
//! It runs in its mode for hosts on the Kubernetes API, in which it starts Envoy itself, beside itself: no Service and no
//! Deployment of Envoy is made, which needs images of a registry. That is all that differs from an installation by its
//! chart; what it reads and makes of it is the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]
#![allow(clippy::print_stderr, reason = "the controller's log where a test fails")]

#[path = "../clusterset/mod.rs"]
mod clusterset;

mod proxy;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use testbed::{ClusterOptions, NodeOptions};

use clusterset::objects::{export, service, slice};
use clusterset::{Clusterset, Controller, Place, until};

/// Starting a gateway takes longer than a change.
const PATIENCE: Duration = Duration::from_secs(60);

const SAMPLE: &str = include_str!("../../deploy/samples/httproute.yaml");

/// The service of the sample, of one backend; the port has another number there, and has no name in the route.
fn store(backend: SocketAddr) -> String {
    let ports = format!("{{name: http, protocol: TCP, port: {}}}", backend.port());
    service("store", &format!("ports: [{{name: http, port: 80, targetPort: {}}}]", backend.port()))
        + &slice("store", "1", "IPv4", &ports, &[&backend.ip().to_string()])
        + &export("store")
}

/// Who answered how often, of `count` requests; each must be answered with 200.
async fn answers(west: &Place, gateway: SocketAddr, count: usize) -> Result<BTreeMap<String, usize>, String> {
    let network = west.cluster.node_network().unwrap();
    let asked = network.run(move || -> Result<BTreeMap<String, usize>, String> {
        let mut seen = BTreeMap::new();
        for _ in 0..count {
            let (status, body) = proxy::get(gateway, "store.example.com").map_err(|e| e.to_string())?;
            if status != 200 {
                return Err(format!("{status} {body}"));
            }
            *seen.entry(body).or_insert(0) += 1;
        }
        Ok(seen)
    });
    tokio::task::spawn_blocking(move || asked.unwrap().join().unwrap()).await.unwrap()
}

async fn until_answered_by(west: &Place, gateway: SocketAddr, wanted: &[&str]) {
    until(&format!("the gateway has answers of {wanted:?}"), PATIENCE, async || {
        let seen = answers(west, gateway, 20).await?;
        let by: Vec<&str> = seen.keys().map(String::as_str).collect();
        if by == wanted { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
}

/// A condition of the route, as its gateway has written it.
fn says<'a>(route: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = route["status"]["parents"][0]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_w46_w71_w72_envoy_gateway_routes_to_an_import() {
    let node = || ClusterOptions { node: Some(NodeOptions::default()), ..ClusterOptions::default() };
    let set = Clusterset::start(vec![("east", node()), ("west", node())]).await;
    let _controller = Controller::start(&set.bed, set.as_members()).await;
    let [east, west] = [0, 1].map(|cluster| Place::new(&set.clusters[cluster], "shop"));
    let mut backends = Vec::new();
    for place in [&east, &west] {
        place.create_namespace().await;
        backends.push(proxy::backend(place));
    }
    let gateway = proxy::start(&west).await;

    east.apply(&store(backends[0])).await;
    west.until_ready("store").await;
    west.apply(SAMPLE).await;
    until_answered_by(&west, gateway, &["east"]).await;
    // What it does comes before what it writes of it.
    until("the route is accepted, and its references are resolved", PATIENCE, async || {
        let route = west.cluster.request("GET", proxy::ROUTE, None).await.unwrap();
        let said = [says(&route, "Accepted"), says(&route, "ResolvedRefs")];
        if said == [Some("True"); 2] { Ok(()) } else { Err(route.to_string()) }
    })
    .await;

    // A second cluster exports it, and the route is to both; then it is to that one alone.
    west.apply(&store(backends[1])).await;
    until_answered_by(&west, gateway, &["east", "west"]).await;
    east.delete("serviceexports", "store").await;
    until_answered_by(&west, gateway, &["west"]).await;
    west.delete("serviceexports", "store").await;
    west.until_gone("store").await;
    until("no backend is left", PATIENCE, async || match answers(&west, gateway, 1).await {
        Err(said) if said.starts_with("500") || said.starts_with("503") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}
