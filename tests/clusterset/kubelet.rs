//! What a kubelet would do, as far as the API shows it: pods get a node and an address and become ready.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use testbed::Cluster;

use super::PATIENCE;
use super::place::{Place, text};
use super::running::until;

/// The node that pods are on, and its zone.
pub const NODE: (&str, &str) = ("node-1", "zone-1");

pub async fn node(cluster: &Cluster) {
    let labels = json!({"topology.kubernetes.io/zone": NODE.1});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE.0, "labels": labels}});
    cluster.apply_values(vec![node]).await.unwrap();
}

/// Waits until a namespace has its ServiceAccount, without which no pod is admitted.
async fn account(place: &Place) {
    until("the default account is there", PATIENCE, async || {
        place.get("serviceaccounts", "default").await.map(drop).ok_or_else(|| "it is not".to_owned())
    })
    .await;
}

/// A running pod with these labels and address.
pub async fn pod(place: &Place, name: &str, labels: &Value, address: &str) {
    account(place).await;
    let containers = json!([{"name": "app", "image": "app"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
                     "spec": {"nodeName": NODE.0, "containers": containers}});
    place.apply_values(vec![pod]).await;
    status(place, name, &[address], true).await;
}

/// Says that a pod is ready, or that it is not any more.
pub async fn set_ready(place: &Place, name: &str, ready: bool) {
    let pod = place.get("pods", name).await.unwrap();
    let addresses: Vec<_> = pod["status"]["podIPs"].as_array().unwrap().iter().map(|ip| text(&ip["ip"])).collect();
    status(place, name, &addresses, ready).await;
}

async fn status(place: &Place, name: &str, addresses: &[&str], ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let ips: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    let condition = json!([{"type": "Ready", "status": ready}]);
    let status = json!({"status": {"phase": "Running", "podIP": addresses[0], "podIPs": ips, "conditions": condition}});
    let path = format!("{}/{name}/status", place.path("pods"));
    place.send("PATCH", &path, Some(&status)).await.unwrap();
}

/// Runs all pods that wait for a node, until `count` with these labels run. Their IPv4 addresses; each has one of
/// the other family too.
pub async fn run_pods(place: &Place, selector: &str, count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    until(&format!("{}: {count} pods {selector} run", place.id()), PATIENCE, async || {
        let pods = place.list("pods", selector).await;
        for pod in pods.iter().filter(|pod| pod["status"]["podIP"].is_null()) {
            let name = text(&pod["metadata"]["name"]);
            if pod["spec"]["nodeName"].is_null() {
                let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                     "target": {"kind": "Node", "name": NODE.0}});
                let path = format!("{}/{name}/binding", place.path("pods"));
                place.send("POST", &path, Some(&binding)).await.ok();
            }
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let four = format!("10.250.{}.{}", number / 250, number % 250 + 1);
            status(place, name, &[&four, &format!("fd00:250::{number:x}")], true).await;
        }
        let addresses: Vec<_> = pods.iter().map(|pod| text(&pod["status"]["podIP"]).to_owned()).collect();
        let running = addresses.iter().filter(|address| !address.is_empty()).count();
        if running == count { Ok(addresses) } else { Err(format!("{running} run: {addresses:?}")) }
    })
    .await
}
