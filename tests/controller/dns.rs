//! Both halves together: an export in one cluster, and an answer in another, through a CoreDNS that forwards.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{CoreDns, dig};

use crate::beds::calm;
use crate::clusterset::objects::{export, service};
use crate::clusterset::place::text;
use crate::clusterset::{PATIENCE, Story, kubelet, until};

#[tokio::test(flavor = "multi_thread")]
async fn mcs_w8_w13_w20_an_export_in_one_cluster_is_an_answer_in_another() {
    let set = &calm().await.set;
    let story = Story::new(set, "answers").await;
    let (a, b) = (story.at(0), story.at(1));
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let (dns, admin) = (local(set.bed.port().unwrap()), local(set.bed.port().unwrap()));
    let server = set
        .bed
        .process("dns", env!("CARGO_BIN_EXE_namesake"))
        .arg("dns")
        .args([format!("--kubeconfig={}", b.cluster.kubeconfig().display())])
        .args([format!("--listen={dns}"), format!("--admin={admin}")])
        .spawn()
        .unwrap();
    server.wait_for_http(admin, "/ready", 200, PATIENCE).await.unwrap();
    let corefile = format!(".:{{port}} {{\n bind 127.0.0.1\n errors\n forward clusterset.local {dns}\n}}\n");
    let coredns = CoreDns::start_in(&set.bed, &corefile).await.unwrap();
    let ask = |name: &str| -> Vec<String> {
        let name = format!("{name}.{}.svc.clusterset.local", a.namespace);
        let mut found: Vec<_> =
            dig(coredns.address(), &[&name, "A"]).unwrap().data("A").iter().map(ToString::to_string).collect();
        found.sort();
        found
    };
    let until_answer = async |name: &str, wanted: &[&str]| {
        let began = Instant::now();
        until(&format!("{name} is {wanted:?}"), PATIENCE, async || {
            let found = ask(name);
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        began.elapsed()
    };
    assert_eq!(ask("web"), [""; 0]);

    // Pods in a, made into slices by Kubernetes' own controller.
    let ports = "ports: [{name: http, port: 80, targetPort: 8080}]";
    a.apply(&(service("web", &format!("selector: {{app: web}}, {ports}")) + &export("web"))).await;
    a.apply(&(service("db", &format!("clusterIP: None, selector: {{app: web}}, {ports}")) + &export("db"))).await;
    for (name, address) in [("web-0", "10.0.2.1"), ("web-1", "10.0.2.2")] {
        kubelet::pod(a, name, &json!({"app": "web"}), address).await;
    }
    let import = b.until_ready("web").await;
    let ip = text(&import["spec"]["ips"][0]).to_owned();
    until_answer("web", &[&ip]).await;
    until_answer("db", &["10.0.2.1", "10.0.2.2"]).await;

    // A pod that is not ready leaves, and is back.
    kubelet::set_ready(a, "web-1", false).await;
    let gone = until_answer("db", &["10.0.2.1"]).await;
    kubelet::set_ready(a, "web-1", true).await;
    let back = until_answer("db", &["10.0.2.1", "10.0.2.2"]).await;
    eprintln!("unready to gone {gone:?}, ready to back {back:?}");
    assert!(gone.max(back) < Duration::from_secs(5), "{gone:?} {back:?}");

    for name in ["web", "db"] {
        a.delete("serviceexports", name).await;
        until_answer(name, &[]).await;
    }
}
