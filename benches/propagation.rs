//! From a write in one cluster to the answer in another: how long, beside what a bare watch needs for the same write.
//!
//! Two real clusters, the controller for both, `namesake dns` in the second. A headless service is exported in the
//! first, with 0, 99 or 999 others beside it. One sample moves its endpoint to another address:
//!
//! ```text
//!  PATCH of the slice in east ─┬─► a bare watch in east            "watch": the floor, what any controller needs
//!                              └─► controller ─► slice in west     "import": a bare watch in west
//!                                                  └─► dns ─► A    "answer": asked all the time, over UDP
//! ```
//!
//! All times count from before the PATCH is sent. `cargo bench --bench propagation`, with `SAMPLES=200` by default.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a bench fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use futures_util::io::AsyncBufReadExt;
use futures_util::stream::StreamExt;
use namesake::controller::enrol::manifests;
use serde_json::{Value, json};
use testbed::{Bed, Cluster, Process, merge_kubeconfigs};
use tokio::sync::mpsc;

const OTHERS: [usize; 3] = [0, 99, 999];

/// How long one sample may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    let samples = std::env::var("SAMPLES").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run(samples));
}

async fn run(samples: usize) {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["east", "west"]).await.unwrap();
    let [east, west] = &clusters[..] else { panic!("two clusters") };
    let mut kubeconfigs = Vec::new();
    for cluster in &clusters {
        cluster.install_crds("v0.5.2").await.unwrap();
        let (namespace, account) = (manifests::NAMESPACE, manifests::ACCOUNT);
        cluster.apply_values(vec![manifests::namespace(namespace).object]).await.unwrap();
        let rights = manifests::Rights::Write(Vec::new());
        let objects = manifests::account(namespace, &rights).into_iter().map(|placed| placed.object).collect();
        cluster.apply_values(objects).await.unwrap();
        kubeconfigs.push(cluster.kubeconfig_for_service_account(namespace, account).await.unwrap());
    }
    let file = bed.file("members.kubeconfig", &merge_kubeconfigs(&kubeconfigs).unwrap()).unwrap();
    let binary = env!("CARGO_BIN_EXE_namesake");
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let (admin, dns, dns_admin) = (local(bed.port().unwrap()), local(bed.port().unwrap()), local(bed.port().unwrap()));
    let controller = bed
        .process("controller", binary)
        .args(["controller", "--no-hub", "--member=east=east", "--member=west=west"])
        .args([format!("--kubeconfig={}", file.display()), format!("--admin={admin}")])
        .spawn()
        .unwrap();
    let server = bed
        .process("dns", binary)
        .args(["dns".to_owned(), format!("--kubeconfig={}", west.kubeconfig().display())])
        .args([format!("--listen={dns}"), format!("--admin={dns_admin}")])
        .spawn()
        .unwrap();
    controller.wait_for_http(admin, "/ready", 200, PATIENCE * 3).await.unwrap();
    server.wait_for_http(dns_admin, "/ready", 200, PATIENCE * 3).await.unwrap();
    export(east, "probe").await;
    let mut from = Watch::start(east, "probe-0").await;
    let mut to = Watch::start(west, "derived-").await;
    println!("{samples} samples each, times in ms from before the write: median, p99");
    println!("{:>9} {:>17} {:>17} {:>17} {:>14}", "services", "watch", "import", "answer", "answer/watch");
    let client = east.admin();
    let mut there = 1;
    for others in OTHERS {
        while there <= others {
            export(east, &format!("other-{there}")).await;
            there += 1;
        }
        settled(&controller, admin, u64::try_from(others + 1).unwrap()).await;
        let (mut watch, mut import, mut answer) = (Vec::new(), Vec::new(), Vec::new());
        for sample in 0..samples {
            let address =
                Ipv4Addr::new(10, 9, u8::try_from(others % 251).unwrap(), u8::try_from(sample % 250).unwrap());
            let begin = Instant::now();
            let asking = tokio::task::spawn_blocking(move || asked_until(dns, address));
            patch(&client, "probe-0", address).await;
            watch.push(from.until(address).await - begin);
            import.push(to.until(address).await - begin);
            answer.push(asking.await.unwrap() - begin);
        }
        let (w, a) = (median(&mut watch), median(&mut answer));
        let row = |times: &mut Vec<Duration>| format!("{:.1} {:.1}", ms(median(times)), ms(percentile(times, 99)));
        println!(
            "{:>9} {:>17} {:>17} {:>17} {:>14.1}",
            others + 1,
            row(&mut watch),
            row(&mut import),
            row(&mut answer),
            a.as_secs_f64() / w.as_secs_f64()
        );
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// A headless Service with one endpoint, exported.
async fn export(cluster: &Cluster, name: &str) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{name}-0"), "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": [{"addresses": ["10.8.0.1"], "conditions": {"ready": true}}],
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    let export = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": name, "namespace": "default"},
    });
    cluster.apply_values(vec![slice, service, export]).await.unwrap();
}

async fn patch(client: &kube::Client, slice: &str, address: Ipv4Addr) {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{slice}");
    let body = json!({"endpoints": [{"addresses": [address.to_string()], "conditions": {"ready": true}}]});
    let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    client.request_text(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
}

/// Waits until so many services are imported everywhere and nothing is left to write.
async fn settled(controller: &Process, admin: SocketAddr, services: u64) {
    let end = Instant::now() + PATIENCE * 30;
    loop {
        let (_, text) = testbed::http::get(admin, "/metrics", PATIENCE).await.unwrap();
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name) && line.contains("west"));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or(-1.0)
        };
        let done = value("namesake_controller_imports{") >= services as f64
            && value("namesake_controller_cluster_queue{") == 0.0;
        if done {
            return;
        }
        assert!(Instant::now() < end, "{services} services are imported: {}", controller.log_tail(20));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A bare watch of slices whose names begin in one way.
struct Watch {
    seen: mpsc::UnboundedReceiver<(Instant, Vec<String>)>,
}

impl Watch {
    async fn start(cluster: &Cluster, name: &'static str) -> Self {
        let client = cluster.admin();
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let list: Value = serde_json::from_str(&client.request_text(get(path)).await.unwrap()).unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let (sender, seen) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let uri = format!("{path}?watch=1&resourceVersion={version}&timeoutSeconds=3600");
            let mut lines = client.request_stream(get(&uri)).await.unwrap().lines();
            while let Some(Ok(line)) = lines.next().await {
                let at = Instant::now();
                let event: Value = serde_json::from_str(&line).unwrap();
                let object = &event["object"];
                if object["metadata"]["name"].as_str().is_some_and(|it| it.starts_with(name)) {
                    let endpoints = object["endpoints"].as_array().cloned().unwrap_or_default();
                    let first = |it: &Value| it["addresses"][0].as_str().unwrap_or_default().to_owned();
                    let _ = sender.send((at, endpoints.iter().map(first).collect()));
                }
            }
        });
        Self { seen }
    }

    /// When it showed this address.
    async fn until(&mut self, address: Ipv4Addr) -> Instant {
        let address = address.to_string();
        loop {
            let next = tokio::time::timeout(PATIENCE, self.seen.recv()).await;
            let (at, addresses) = next.expect("the watch shows it").unwrap();
            if addresses.contains(&address) {
                return at;
            }
        }
    }
}

fn get(uri: &str) -> http::Request<Vec<u8>> {
    http::Request::get(uri).body(Vec::new()).unwrap()
}

/// Asks for the probe's address without a pause until it is this one.
fn asked_until(server: SocketAddr, address: Ipv4Addr) -> Instant {
    // RFC 1035 §4.1: id, flags, one question; the name; A, IN.
    let mut query = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["probe", "default", "svc", "clusterset", "local"] {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(server).unwrap();
    let end = Instant::now() + PATIENCE;
    let mut reply = [0; 512];
    loop {
        socket.send(&query).unwrap();
        let length = socket.recv(&mut reply).unwrap();
        // Of one record the address stands at the end.
        if length > 4 && reply[..length].ends_with(&address.octets()) {
            return Instant::now();
        }
        assert!(Instant::now() < end, "{} is never answered", IpAddr::from(address));
        std::thread::sleep(Duration::from_micros(200));
    }
}
