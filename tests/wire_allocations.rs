//! The loop around the answer allocates nothing per query, and a UDP socket's thread nothing at all once it runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use namesake::answers::{Options, Store};
use namesake::dns::{Bound, ServerConfig};
use namesake::metrics::Metrics;
use namesake::source::Convert;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const IMPORT: &str = "\
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ips: [10.96.7.7], ports: [{name: http, port: 80, protocol: TCP}]}
";

/// `web.shop.svc.clusterset.local A`, with an OPT.
fn query() -> Vec<u8> {
    let mut query = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    for label in ["web", "shop", "svc", "clusterset", "local", ""] {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend(label.bytes());
    }
    query.extend([0, 1, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    query
}

#[test]
fn dns_udp_answers_without_allocating() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let convert = Convert { pod_names: false, namespaces: Vec::new() };
    let changes = namesake::source::folder::read_text("import.yaml", IMPORT, &convert).unwrap();
    let store: Arc<Store> = namesake::feed::load(Options::default(), changes);
    let metrics = Metrics::new(&store.options().zones, "multicluster");
    // A specific address, and the two kinds of wildcard, which say where each reply leaves from.
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let config = ServerConfig { udp_workers: Some(1), ..ServerConfig::new(vec![address.parse().unwrap()]) };
        let bound = Bound::bind(&config).unwrap();
        let running = runtime.block_on(async { bound.serve(&store, &metrics, None) }).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client.connect(("127.0.0.1", running.addresses()[0].port())).unwrap();
        let (query, mut reply) = (query(), [0; 1232]);
        let mut ask = |times: u32| {
            for _ in 0..times {
                // Four at once, so that batches occur.
                (0..4).for_each(|_| assert_eq!(client.send(&query).unwrap(), query.len()));
                for _ in 0..4 {
                    let len = client.recv(&mut reply).expect("an answer");
                    assert_eq!(reply[len - 15..len - 11], [10, 96, 7, 7]);
                }
            }
        };
        ask(100);
        let before = dhat::HeapStats::get();
        ask(5000);
        let after = dhat::HeapStats::get();
        assert_eq!(after.total_blocks - before.total_blocks, 0, "allocations in 20,000 answers on {address}");
    }
}
