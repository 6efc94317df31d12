//! Both halves together: an export in one cluster, and an answer in another, through a CoreDNS that forwards.

use std::net::SocketAddr;
use std::time::Instant;

use serde_json::json;
use testbed::{CoreDns, dig};

use crate::beds::calm;
use crate::clusterset::objects::{export, service};
use crate::clusterset::place::text;
use crate::clusterset::{PATIENCE, Place, Story, kubelet, until};

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
    let until_answer = async |name: &str, wanted: &[&str]| {
        let (began, full) = (Instant::now(), format!("{name}.{}.svc.clusterset.local", a.namespace));
        until(&format!("{name} is {wanted:?}"), PATIENCE, async || {
            let found = answers(&coredns, &[&full, "A"], "A")?;
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        began.elapsed()
    };
    until_answer("web", &[]).await;

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

    for name in ["web", "db"] {
        a.delete("serviceexports", name).await;
        until_answer(name, &[]).await;
    }
}

/// CoreDNS as the DNS of one cluster.
async fn cluster_dns(place: &Place) -> CoreDns {
    let kubeconfig = place.cluster.kubeconfig();
    let corefile = format!(
        ".:{{port}} {{\n bind 127.0.0.1\n errors\n kubernetes cluster.local in-addr.arpa {{\n  kubeconfig {} {}\n  \
         ttl 0\n }}\n}}\n",
        kubeconfig.display(),
        place.id()
    );
    CoreDns::start_in(place.cluster.bed(), &corefile).await.unwrap()
}

/// The data of all answers to a question, sorted; the reason, where there is no answer.
fn answers(server: &CoreDns, args: &[&str], kind: &str) -> Result<Vec<String>, String> {
    let dig = dig(server.address(), args).map_err(|error| error.to_string())?;
    let mut found: Vec<_> = dig.data(kind).iter().map(ToString::to_string).collect();
    found.sort();
    Ok(found)
}

/// Asks until there is an answer.
async fn answered(server: &CoreDns, args: &[&str], kind: &str) -> Vec<String> {
    until(&format!("an answer to {args:?}"), PATIENCE, async || answers(server, args, kind)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r86_r87_r88_w63_cluster_local_is_as_before_but_for_names_of_the_derived_service() {
    let story = Story::new(&calm().await.set, "local").await;
    let (a, b) = (story.at(0), story.at(1));
    a.apply(&service("web", "selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]")).await;
    kubelet::pod(a, "web-0", &json!({"app": "web"}), "10.0.3.1").await;
    let (in_a, in_b) = (cluster_dns(a).await, cluster_dns(b).await);
    let own = format!("web.{}.svc.cluster.local.", a.namespace);
    until("the cluster's own name is answered", PATIENCE, async || {
        let found = answers(&in_a, &[&own, "A"], "A")?;
        if found.len() == 1 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    let names = || answers(&in_a, &["-x", "10.0.3.1"], "PTR");
    let pod = until("the pod has a name", PATIENCE, async || {
        let names = names()?;
        if names.len() == 1 { Ok(names) } else { Err(format!("{names:?}")) }
    })
    .await;
    let before = (answered(&in_a, &[&own, "A"], "A").await, answered(&in_a, &[&own, "SRV"], "SRV").await);

    a.apply(&export("web")).await;
    story.until_addresses("web", &["10.0.3.1"]).await;
    let derived = format!("{}.{}.svc.cluster.local.", a.derived_name("web"), a.namespace);
    for (place, server) in [(a, &in_a), (b, &in_b)] {
        let import = place.until_ready("web").await;
        until("the derived Service's name is answered", PATIENCE, async || {
            let found = answers(server, &[&derived, "A"], "A")?;
            if found == [text(&import["spec"]["ips"][0])] { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }
    // In the exporter all is as before; its pod has one name more, which is the derived Service's.
    let added = format!("10-0-3-1.{derived}");
    until("the pod has another name", PATIENCE, async || {
        let mut wanted = [pod.clone(), vec![added.clone()]].concat();
        wanted.sort();
        let names = names()?;
        if names == wanted { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
    assert_eq!(answered(&in_a, &[&own, "A"], "A").await, before.0);
    assert_eq!(answered(&in_a, &[&own, "SRV"], "SRV").await, before.1);
    // In the importer the service has no name of the cluster's own.
    let dig = until("an answer", PATIENCE, async || dig(in_b.address(), &[&own, "A"]).map_err(|e| e.to_string())).await;
    assert_eq!(dig.status, "NXDOMAIN");
}
