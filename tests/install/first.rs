//! The README's first answer: two existing clusters, four commands, and what they print is what stands there.

use std::process::Command;
use std::time::{Duration, Instant};

use testbed::{Bed, Cluster, binaries, dig};

use crate::product::{Namesake, binary, root};
use crate::rig::{contexts, controller, list, read, run_pods, text, until};
use crate::roles::condition;

/// The part of the README that is shown here.
const BEGIN: &str = "<!-- shown by tests/install/first.rs -->\n";
const END: &str = "<!-- /shown by tests/install/first.rs -->\n";

/// The only clusterset IP of a service as `cluster` has it.
async fn clusterset_ip(cluster: &Cluster) -> Option<String> {
    let path = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports/web";
    let import = cluster.request("GET", path, None).await.ok()?;
    import["spec"]["ips"][0].as_str().map(str::to_owned)
}

/// The addresses of the service's pods.
const PODS: [&str; 2] = ["10.1.0.1", "10.1.0.2"];

/// The addresses of the ready pods in east as `cluster` has them.
async fn ready_pods(cluster: &Cluster) -> Vec<String> {
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let of_east = "labelSelector=multicluster.kubernetes.io%2Fsource-cluster%3Deast";
    let slices = cluster.request("GET", &format!("{path}?{of_east}"), None).await.unwrap();
    let endpoints = list(&slices["items"]).iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let mut addresses: Vec<_> = ready.map(|endpoint| text(&endpoint["addresses"][0]).to_owned()).collect();
    addresses.sort();
    addresses
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_reach_a_first_answer_in_four_commands_as_the_readme_says() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["east", "west"]).await.unwrap();
    let [east, west] = clusters.as_slice() else { panic!() };
    // The kubeconfig where kubectl looks for it.
    let text_of_contexts = std::fs::read_to_string(contexts(&bed, &clusters)).unwrap();
    bed.file("home/.kube/config", &text_of_contexts).unwrap();
    let home = bed.dir().join("home");
    let readme = read("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the part begins");
    let (part, after) = rest.split_once(END).expect("the part ends");

    let mut running: Option<Namesake> = None;
    let (mut now, mut commands, mut took) = (String::new(), 0, Duration::ZERO);
    let mut lines = part.lines().peekable();
    while let Some(line) = lines.next() {
        now.push_str(&format!("{line}\n"));
        let Some(command) = line.strip_prefix("$ ") else { continue };
        commands += 1;
        let mut printed = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            printed.push(line.to_owned());
        }
        let path = format!(
            "{}:{}:{}",
            binary().parent().unwrap().display(),
            binaries().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", path).env("HOME", &home).env_remove("KUBECONFIG").current_dir(root());
        let began = Instant::now();
        let out = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
        took += began.elapsed();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && errors.is_empty(), "{command}: {errors}");
        let out = String::from_utf8(out.stdout).unwrap();
        let said = plain(&out, clusterset_ip(west).await.as_deref());
        let steady = |lines: &[String]| lines.iter().map(|line| words(line)).collect::<Vec<_>>();
        let kept = if steady(&said) == steady(&printed) { &printed } else { &said };
        kept.iter().for_each(|line| now.push_str(&format!("{line}\n")));

        // No pods run in a bed, neither the hub's nor the service's.
        if command.contains("apply -k") {
            running = Some(controller(&bed, east, "controller", &[]).await);
        }
        if command.contains("config/first") {
            let began = Instant::now();
            run_pods(east, "default", 2, "10.1.0").await;
            // What the next commands print is all there.
            until("west has the import with both pods, and east is told", || async {
                let (ip, pods) = (clusterset_ip(west).await, ready_pods(west).await);
                let ready = condition(east, "web", "Ready").await;
                let told = ready["status"] == "True" && ready["message"].to_string().contains("2 clusters");
                let all = ip.is_some() && pods == PODS && told;
                if all { Ok(()) } else { Err(format!("{ip:?}, {pods:?}, {ready}")) }
            })
            .await;
            took += began.elapsed();
        }
    }
    println!("{commands} commands took {took:?}");
    assert!(commands >= 5 && running.is_some(), "{commands} commands");
    let new = format!("{before}{BEGIN}{now}{END}{after}");
    if new != readme {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("README.first.md");
        std::fs::write(&file, new).unwrap();
        panic!("README.md has drifted. If that is meant: cp {} README.md", file.display());
    }

    // The answer of the DNS half in west, and that it follows the pods in east.
    let server = Namesake::start(&bed, &["--kubeconfig", west.kubeconfig().to_str().unwrap()]).unwrap();
    server.wait_ready().await;
    let ask = || dig(server.dns, &["web.default.svc.clusterset.local", "A"]).unwrap();
    assert_eq!(ask().data("A"), [clusterset_ip(west).await.unwrap()]);
    assert_eq!(ready_pods(west).await, PODS);
    east.kubectl(&["delete", "serviceexport", "web"]).unwrap();
    until("the name is gone", || async {
        let answer = ask();
        if answer.status == "NXDOMAIN" { Ok(()) } else { Err(answer.text) }
    })
    .await;
}

/// Lines as the README has them: another address in place of the one that an API server happened to choose, and without
/// the remark that a member on the loopback leads nowhere for others.
fn plain(out: &str, ip: Option<&str>) -> Vec<String> {
    let out = ip.map_or_else(|| out.to_owned(), |ip| out.replace(ip, "10.96.201.7"));
    let lines = out.lines().filter(|line| !line.contains("leads back to whoever asks"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// A line without what differs from run to run: spaces and ages.
fn words(line: &str) -> String {
    let age = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<u32>().is_ok());
    line.split_whitespace().map(|word| if age(word) { "AGE" } else { word }).collect::<Vec<_>>().join(" ")
}
