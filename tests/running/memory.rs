//! SCL-01 and SCL-02: memory of the whole process, as the kernel that would kill it counts.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Watching, metric, until};
use crate::product::Namesake;
use crate::scripted::{Prank, Scripted};

const IMPORTS: usize = 10_000;
const SLICES: usize = 1_000;
const ENDPOINTS: usize = 100;

/// The line of `/proc/<pid>/status`, in kB: `VmRSS` now, `VmHWM` at most since the last [`forget_peak`].
fn memory(server: &Namesake, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.pid())).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn forget_peak(server: &Namesake) {
    fs::write(format!("/proc/{}/clear_refs", server.process.pid()), "5").unwrap();
}

/// Fields that others write and DNS does not need, about as long as they are in life.
fn burden() -> Value {
    let fields: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("f:some-field-of-the-object-{n}"), json!({"f:value": {}, ".": {}}))).collect();
    json!([{"manager": "controller", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}])
}

fn import(api: &Scripted, n: usize, headless: bool) {
    let spec = if headless {
        json!({"type": "Headless", "ports": [{"name": "pg", "port": 5432, "protocol": "TCP"}]})
    } else {
        let ip = format!("10.96.{}.{}", n / 250, n % 250 + 1);
        json!({"type": "ClusterSetIP", "ips": [ip], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]})
    };
    let status = json!({"clusters": [{"cluster": "east"}, {"cluster": "west"}]});
    let metadata =
        json!({"managedFields": burden(), "annotations": {"kubectl.kubernetes.io/last-applied": "x".repeat(500)}});
    api.put("serviceimports", &format!("svc-{n}"), json!({"metadata": metadata, "spec": spec, "status": status}));
}

fn slice(api: &Scripted, n: usize, endpoints: usize) {
    let all: Vec<Value> = (0..endpoints)
        .map(|e| {
            json!({"addresses": [format!("10.{}.{}.{}", n % 200, n / 200, e + 1)], "hostname": format!("pod-{e}"),
                   "conditions": {"ready": true, "serving": true, "terminating": false}, "nodeName": "node-with-a-name",
                   "targetRef": {"kind": "Pod", "namespace": "shop", "name": format!("svc-{n}-pod-{e}"), "uid": "u"}})
        })
        .collect();
    let labels = json!({"multicluster.kubernetes.io/service-name": format!("svc-{n}"),
                        "multicluster.kubernetes.io/source-cluster": "east"});
    let object = json!({"metadata": {"labels": labels, "managedFields": burden()}, "addressType": "IPv4",
                        "ports": [{"name": "pg", "port": 5432, "protocol": "TCP"}], "endpoints": all});
    api.put("endpointslices", &format!("svc-{n}-east"), object);
}

/// Waits until memory moves no more, and says how much it is.
async fn settled(server: &Namesake) -> u64 {
    let (mut last, mut since) = (memory(server, "VmRSS"), Instant::now());
    until("memory rests", async || {
        let now = memory(server, "VmRSS");
        if now.abs_diff(last) > 256 {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_secs(1)
    })
    .await;
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn case_scl_01_a_relist_of_everything_takes_half_as_much_again_at_most() {
    let api = Scripted::start().await;
    for n in 0..IMPORTS {
        import(&api, n, n < SLICES);
    }
    for n in 0..SLICES {
        slice(&api, n, ENDPOINTS);
    }
    api.forget_events();
    let watching = Watching::ready(api, &[]).await;
    assert_eq!(metric(&watching, "namesake_endpoints").await, (SLICES * ENDPOINTS) as f64);
    let steady = settled(&watching).await;
    println!(
        "{IMPORTS} imports, {} endpoints: resident {steady} kB, {} kB at most while loading",
        SLICES * ENDPOINTS,
        memory(&watching, "VmHWM")
    );
    // The first list is the first thing that a limit on memory could make impossible.
    assert!(memory(&watching, "VmHWM") * 2 <= steady * 3, "{} kB while loading", memory(&watching, "VmHWM"));

    let mut first = None;
    for round in 1..=3 {
        forget_peak(&watching);
        let lists = ["serviceimports", "endpointslices"].map(|resource| watching.api.count("watch", resource));
        watching.api.change(|script| {
            script.pranks.insert("serviceimports", vec![Prank::GoneStatus]);
            script.pranks.insert("endpointslices", vec![Prank::GoneEvent]);
            script.cut += 1;
        });
        // One watch that is told 410, and the one after the list.
        watching.asked("watch", "serviceimports", lists[0] + 2).await;
        watching.asked("watch", "endpointslices", lists[1] + 2).await;
        let (now, peak) = (settled(&watching).await, memory(&watching, "VmHWM"));
        println!("after relist {round}: resident {now} kB, {peak} kB at most");
        assert!(peak * 2 <= steady * 3, "{peak} kB at most, {steady} kB before");
        let first = *first.get_or_insert(now);
        assert!(now * 10 <= first * 11, "each relist leaves something: {first} kB became {now} kB");
    }
    assert_eq!(metric(&watching, "namesake_endpoints").await, (SLICES * ENDPOINTS) as f64);
    for selector in watching.api.queries("list", "endpointslices") {
        assert!(selector.contains("labelSelector=multicluster.kubernetes.io%2Fservice-name"), "{selector}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_scl_02_slices_of_clustersetip_imports_cost_their_endpoints_and_no_more() {
    const SERVICES: usize = 4_000;
    const EACH: usize = 10;
    let api = Scripted::start().await;
    for n in 0..SERVICES {
        import(&api, n, false);
    }
    api.forget_events();
    let watching = Watching::ready(api, &[]).await;
    watching.asked("watch", "endpointslices", 1).await;
    let without = settled(&watching).await;
    let mut bytes = 0;
    for n in 0..SERVICES {
        slice(&watching.api, n, EACH);
        bytes += watching.api.size("endpointslices", &format!("svc-{n}-east"));
    }
    let all = (SERVICES * EACH) as f64;
    until("all slices are in", async || metric(&watching, "namesake_endpoints").await == all).await;
    let with = settled(&watching).await;
    let each = (with - without) as f64 * 1024.0 / all;
    println!(
        "resident {without} kB without slices, {with} kB with: {each:.0} bytes an endpoint of {} of JSON",
        bytes as f64 / all
    );
    // As much as an endpoint may cost in all (issue 3); a tenth of what its object is on the wire.
    assert!(each <= 300.0, "{each} bytes an endpoint");
    assert!((with - without) as f64 * 1024.0 < bytes as f64 / 2.0);
}
