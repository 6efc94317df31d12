//! Clusters with nodes keep the bed's promises too: pods of the suite's images, DNS in each arrangement, packets from
//! cluster to cluster, the machine's own network untouched, and an end to everything. Needs root.

mod owner;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use owner::{marked, pids};
use serde_json::{Value, json};
use testbed::{
    Arrangement, Bed, Cluster, ClusterOptions, NAMESAKE, NAMESPACE, NETSHOOT, NodeOptions, PacketBed, PacketOptions,
    SOCAT, binaries, suite_images,
};

/// How long anything in a cluster may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a command in a pod may take.
const EXEC: Duration = Duration::from_secs(20);

/// Waits until a question has an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A pod that waits to be asked to do something, with a nameserver of its own if one is given.
fn asking(name: &str, nameserver: Option<String>) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "asking", "image": NETSHOOT, "command": ["sleep", "600"]}],
    });
    if let Some(server) = nameserver {
        spec["dnsPolicy"] = json!("None");
        spec["dnsConfig"] = json!({"nameservers": [server]});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

/// A pod that says its address on port 42, its Service, and the export of that.
fn serving() -> Vec<Value> {
    let listen = ["TCP6-LISTEN:42,ipv6only=0,reuseaddr,fork", "SYSTEM:echo pod ip $(MY_IP)"];
    vec![
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hello", "labels": {"app": "hello"}}, "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "hello", "image": SOCAT, "args": listen, "env": [
                {"name": "MY_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hello"}, "spec": {
            "ipFamilyPolicy": "PreferDualStack", "selector": {"app": "hello"}, "ports": [{"name": "tcp", "port": 42}]}}),
        json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": "hello"}}),
    ]
}

/// Waits until a pod runs; its addresses.
async fn running(cluster: &Cluster, pod: &str) -> Vec<String> {
    until(&format!("{}: pod {pod} runs", cluster.name()), async || {
        let pod = cluster.request("GET", &format!("/api/v1/namespaces/default/pods/{pod}"), None).await.unwrap();
        let ready = pod["status"]["containerStatuses"][0]["ready"] == true;
        let ips = pod["status"]["podIPs"].as_array().cloned().unwrap_or_default();
        ready.then(|| ips.iter().map(|ip| ip["ip"].as_str().unwrap().to_owned()).collect())
    })
    .await
}

/// The interfaces of this machine's own network, the rules in it, and the settings of the kernel that a kubelet changes.
fn own_network() -> (BTreeSet<String>, String, Vec<String>) {
    let names = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let rules = Command::new("nft").args(["--stateless", "list", "ruleset"]).output().unwrap();
    assert!(rules.status.success(), "{}", String::from_utf8_lossy(&rules.stderr));
    let settings = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"];
    let settings = settings.map(|name| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap());
    (names, String::from_utf8(rules.stdout).unwrap(), settings.into())
}

/// What a bed has on this machine outside its folder.
#[derive(Debug, Default, PartialEq)]
struct Traces {
    processes: Vec<u32>,
    mounts: Vec<String>,
    control_groups: Vec<PathBuf>,
}

/// The processes of a bed in the network namespaces that it has, its mounts that the machine sees, its control groups.
fn traces(bed: &Path) -> Traces {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let groups = std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten();
    let groups = groups.map(|entry| entry.path().join("namesake-testbed").join(bed.file_name().unwrap()));
    Traces {
        processes: marked(bed),
        mounts: mounts.lines().filter(|line| line.contains(bed.to_str().unwrap())).map(str::to_owned).collect(),
        control_groups: groups.filter(|group| group.exists()).collect(),
    }
}

/// The network namespaces of these processes and of their descendants: those of nodes and pods.
fn networks(roots: &[u32]) -> BTreeSet<PathBuf> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let within = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|pid| roots.contains(&pid));
    let network = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = network(std::process::id());
    pids().filter(|pid| within(*pid)).filter_map(network).filter(|ns| Some(ns) != own.as_ref()).collect()
}

/// Waits until no process is in one of these network namespaces: one that was killed leaves it by and by.
fn wait_left(networks: &BTreeSet<PathBuf>, bed: &Path) {
    let deadline = Instant::now() + PATIENCE;
    let network = |pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    while pids().filter_map(network).any(|network| networks.contains(&network)) {
        assert!(Instant::now() < deadline, "processes of a bed that is gone go on: {:?}", traces(bed));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_bed_has_pods_dns_in_each_arrangement_and_namesake_and_leaves_nothing() {
    let before = own_network();
    let bed = PacketBed::start(PacketOptions::clusters(2).dual_stack()).await.unwrap();
    for (phase, took) in bed.phases() {
        println!("{:5.1} s  {phase}", took.as_secs_f64());
    }
    let [c1, c2] = &bed.clusters[..] else { panic!("two clusters") };
    assert_eq!((c1.name(), c1.number(), c2.name(), c2.number()), ("c1", 1, "c2", 2));

    // Pods in both, of the suite's images by their names, in a namespace that nobody has prepared.
    for cluster in [c1, c2] {
        let mut objects = vec![asking("request", None)];
        for (i, arrangement) in Arrangement::ALL.into_iter().enumerate() {
            let server = bed.nameserver(cluster.number() as usize - 1, arrangement);
            objects.push(asking(&format!("ask-{i}"), Some(server.to_string())));
        }
        objects.extend(if cluster.name() == "c1" { serving() } else { Vec::new() });
        cluster.apply_values(objects).await.unwrap();
    }
    let hello = running(c1, "hello").await;
    assert_eq!(hello.len(), 2, "an address of each family: {hello:?}");
    for cluster in [c1, c2] {
        let import = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/default/serviceimports/hello";
        let addresses = until("the import has its addresses", async || {
            let ips = cluster.request("GET", import, None).await.ok()?["spec"]["ips"].as_array()?.clone();
            (ips.len() == 2).then(|| ips.iter().map(|ip| ip.as_str().unwrap().to_owned()).collect::<Vec<_>>())
        })
        .await;
        // Who asks is told so by each of the ways in which a pod can come to the zone's answers.
        for i in 0..Arrangement::ALL.len() {
            let pod = format!("ask-{i}");
            running(cluster, &pod).await;
            let name = Arrangement::ALL[i].name();
            until(&format!("{}: an answer by {name}", cluster.name()), async || {
                let command = ["nslookup", "hello.default.svc.clusterset.local."];
                let said = cluster.exec("default", &pod, None, &command, EXEC).await.unwrap();
                addresses.iter().all(|address| said.stdout.contains(&format!("Address: {address}\n"))).then_some(())
            })
            .await;
            let command = ["nslookup", "kubernetes.default.svc.cluster.local."];
            let said = cluster.exec("default", &pod, None, &command, EXEC).await.unwrap();
            let own = cluster.service_ip(1).to_string();
            assert!(said.ok && said.stdout.contains(&own), "{name}: {said:?}");
        }
        // And packets flow, in both families, with the DNS that a pod has by itself.
        running(cluster, "request").await;
        for family in ["-4", "-6"] {
            until(&format!("{}: packets by {family}", cluster.name()), async || {
                let command = ["nc", family, "-w", "2", "hello.default.svc.clusterset.local", "42"];
                let said = cluster.exec("default", "request", None, &command, EXEC).await.unwrap();
                (said.stdout == format!("pod ip {}\n", hello[0])).then_some(())
            })
            .await;
        }
    }

    // kubectl's exec in the older protocol, which the conformance program speaks.
    let spdy = Command::new(binaries().unwrap().join("kubectl"))
        .args(["--context", "c2", "exec", "request", "--", "sh", "-c", "exec 2>&1; nslookup -version; nc -h || true"])
        .env("KUBECONFIG", bed.kubeconfig())
        .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&spdy.stdout);
    assert!(spdy.status.success() && said.contains("nslookup 9.") && said.contains("OpenBSD netcat"), "{said}");

    // A slow link is slow, and then it is not. 20 kB at 256 kbit/s are 0.6 s.
    let to = running(c2, "request").await[0].clone();
    let ping = ["ping", "-c", "1", "-W", "15", "-s", "20000", &to];
    // As ping says it: the start of a command in a pod takes longer than a packet.
    let took = async || {
        let said = c1.exec("default", "request", None, &ping, EXEC).await.unwrap();
        let time = said.stdout.split_once("time=").and_then(|(_, rest)| rest.split_whitespace().next());
        let Some(Ok(milliseconds)) = time.map(str::parse::<f64>) else { panic!("{said:?}") };
        Duration::from_secs_f64(milliseconds / 1e3)
    };
    c2.slow_link(Some(256)).unwrap();
    let slow = took().await;
    assert!(slow >= Duration::from_millis(500), "{slow:?}");
    c2.slow_link(None).unwrap();
    until("a fast packet", async || (took().await < Duration::from_millis(300)).then_some(())).await;

    // Namesake runs as its Dockerfile and its manifests say.
    let pods = c1.request("GET", &format!("/api/v1/namespaces/{NAMESPACE}/pods"), None).await.unwrap();
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.len(), 4, "two of the controller, two for DNS");
    for pod in pods {
        let status = &pod["status"]["containerStatuses"][0];
        assert_eq!((&status["image"], &status["restartCount"]), (&json!(NAMESAKE), &json!(0)), "{status}");
        assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    }

    // All of that is in the bed, and nothing of it in the machine's own network.
    let dir = bed.bed().dir().to_owned();
    let during = traces(&dir);
    let networks = networks(&during.processes);
    assert!(during.processes.len() > 20, "{during:?}");
    assert!(networks.len() > 10, "a fabric, two nodes and their pods: {networks:?}");
    assert!(!during.control_groups.is_empty(), "the containers have control groups");
    assert_eq!(own_network(), before);

    let began = Instant::now();
    drop(bed);
    println!("{:5.1} s  down", began.elapsed().as_secs_f64());
    assert!(!dir.exists());
    assert_eq!(traces(&dir), Traces::default());
    wait_left(&networks, &dir);
    assert_eq!(own_network(), before);
}

/// Not a test by itself: the process that the next test kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by nothing_is_left_of_nodes_whose_owner_is_killed"]
async fn owner_that_gets_killed() {
    let bed = Bed::new().unwrap();
    let options = ClusterOptions { node: Some(NodeOptions::default()), ..Default::default() };
    let cluster = bed.cluster_with("c1", options).await.unwrap();
    cluster.import_image(&suite_images().unwrap()).unwrap();
    cluster.apply_values(vec![asking("request", None)]).await.unwrap();
    running(&cluster, "request").await;
    println!("bed: {}", bed.dir().display());
    std::future::pending::<()>().await;
}

#[test]
fn nothing_is_left_of_nodes_whose_owner_is_killed() {
    let (mut owner, dir) = owner::start(&mut owner::command("owner_that_gets_killed"));
    let during = traces(&dir);
    let networks = networks(&during.processes);
    assert!(networks.len() >= 3, "a fabric, a node and a pod: {networks:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();

    // The kernel ends the processes, the pods' among them, without anybody's help.
    wait_left(&networks, &dir);
    // What is no process is taken away by the next bed.
    drop(Bed::new().unwrap());
    assert!(!dir.exists());
    assert_eq!(traces(&dir), Traces::default());
}

#[test]
fn the_command_brings_nodes_up_for_people_and_takes_them_down() {
    let home = Bed::new().unwrap();
    let dir = home.dir().join("up");
    let testbed = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_testbed")).args(args).arg("--dir").arg(&dir).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (out.status.success(), text(out.stdout), text(out.stderr))
    };
    let (ok, out, err) = testbed(&["up", "--packets", "--clusters", "2"]);
    assert!(ok, "{err}");
    println!("{out}");
    let (_, file, _) = testbed(&["kubeconfig", "--path"]);
    let kubectl = |args: &[&str]| {
        let out = Command::new(binaries().unwrap().join("kubectl"))
            .args(["--kubeconfig", file.trim()])
            .args(args)
            .output()
            .unwrap();
        assert!(out.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    // Its maker is gone, and all of it goes on: the CRDs are there, pods run, and the zone is answered in each.
    for context in ["c1", "c2"] {
        kubectl(&["--context", context, "get", "serviceexports", "-A"]);
        let image = NETSHOOT.trim_start_matches("docker.io/");
        kubectl(&["--context", context, "run", "request", "--image", image, "--command", "--", "sleep", "600"]);
        kubectl(&["--context", context, "wait", "--for=condition=Ready", "--timeout=60s", "pod/request"]);
        let said =
            kubectl(&["--context", context, "exec", "request", "--", "nslookup", "-type=SOA", "clusterset.local."]);
        assert!(said.contains("origin = ns.dns.clusterset.local"), "{said}");
    }
    let canonical = dir.canonicalize().unwrap();
    let networks = networks(&traces(&canonical).processes);
    let (ok, _, err) = testbed(&["down"]);
    assert!(ok, "{err}");
    assert!(!dir.exists());
    assert_eq!(traces(&canonical), Traces::default());
    wait_left(&networks, &canonical);
}

#[test]
fn who_is_not_root_is_told_so_at_once() {
    // Where somebody else may read and run it.
    let folder = std::env::temp_dir().join(format!("namesake-not-root-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("testbed");
    std::fs::copy(env!("CARGO_BIN_EXE_testbed"), &program).unwrap();
    for path in [&folder, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let out = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["up", "--packets", "--dir"])
        .arg(folder.join("up"))
        .current_dir(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("need root") && said.contains("--no-packets"), "{said}");
}
