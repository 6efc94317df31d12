//! The files in `deploy/`: the manifests fit the program and a real API server, and the stub blocks work with a real
//! CoreDNS in front of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod product;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use product::{Namesake, PATIENCE, example, root};
use serde_json::{Value, json};
use testbed::{Bed, CoreDns, binaries, dig, http};

/// The address of no one in every stub block.
const PLACEHOLDER: &str = "192.0.2.53";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What `kubectl apply -k deploy/kustomize/dns` would apply.
fn kustomized() -> String {
    let kubectl = binaries().unwrap().join("kubectl");
    let out = Command::new(kubectl).arg("kustomize").arg(root().join("deploy/kustomize/dns")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn object(kind: &str) -> Value {
    let mut objects = yaml(&kustomized());
    let at = objects.iter().position(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    objects.swap_remove(at)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The pods' only container.
fn container(deployment: &Value) -> &Value {
    let containers = list(&deployment["spec"]["template"]["spec"]["containers"]);
    assert_eq!(containers.len(), 1);
    &containers[0]
}

/// The ports of a container by name: number and protocol.
fn ports(container: &Value) -> BTreeMap<&str, (u64, &str)> {
    let port = |p: &'_ Value| (p["containerPort"].as_u64().unwrap(), p["protocol"].clone());
    list(&container["ports"])
        .iter()
        .map(|p| {
            let (number, protocol) = port(p);
            (text(&p["name"]), (number, if protocol == "UDP" { "UDP" } else { "TCP" }))
        })
        .collect()
}

/// The value of a flag among arguments, `--flag=value`.
fn flag<'a>(args: &'a [Value], name: &str) -> &'a str {
    let found = args.iter().find_map(|arg| text(arg).strip_prefix(&format!("--{name}=")));
    found.unwrap_or_else(|| panic!("no --{name} among {args:?}"))
}

#[test]
fn cfg_02_the_service_publishes_udp_and_tcp_on_53_and_leads_to_the_pods() {
    let (service, deployment) = (object("Service"), object("Deployment"));
    let container = container(&deployment);
    let (ports, args) = (ports(container), list(&container["args"]));
    let mut published = Vec::new();
    for port in list(&service["spec"]["ports"]) {
        let (number, protocol) = ports[text(&port["targetPort"])];
        assert_eq!(protocol, text(&port["protocol"]), "{port} leads to a port of another protocol");
        published.push((port["port"].as_u64().unwrap(), protocol, number));
    }
    published.sort_unstable();
    assert_eq!(published, [(53, "TCP", 1053), (53, "UDP", 1053), (9153, "TCP", 9153)]);
    assert_eq!(flag(args, "listen"), ":1053");
    assert_eq!(flag(args, "metrics"), ":9153");

    let selector = service["spec"]["selector"].as_object().unwrap();
    for selected in [
        &deployment["spec"]["selector"]["matchLabels"],
        &object("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(selected.as_object().unwrap(), selector);
    }
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert!(selector.iter().all(|(key, value)| &labels[key] == value), "{labels} is not selected by {selector:?}");
}

/// The Deployment's own arguments, with free ports for its own, on the example: whatever they say, the program takes
/// it, and the probes' paths and ports answer.
#[tokio::test]
async fn the_probes_meet_the_program_as_the_deployment_starts_it() {
    let deployment = object("Deployment");
    let container = container(&deployment);
    let ports = ports(container);
    let bed = Bed::new().unwrap();
    let mut taken = BTreeMap::new();
    for (number, _) in ports.values() {
        taken.entry(*number).or_insert_with(|| SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap())));
    }
    let args = list(&container["args"]).iter().map(|arg| {
        let arg = text(arg);
        match arg.split_once("=:").and_then(|(flag, port)| Some((flag, taken.get(&port.parse().ok()?)?))) {
            Some((flag, address)) => format!("{flag}={address}"),
            None => arg.to_owned(),
        }
    });
    let process = bed
        .process("as-deployed", product::binary())
        .args(args)
        .args(["--from", &example().to_string_lossy()])
        .env("NAMESAKE_NAMESERVER", "10.0.0.9,fd00::9")
        .env("NAMESAKE_NSID", "namesake-dns-0")
        .spawn()
        .unwrap();
    for probe in ["livenessProbe", "readinessProbe"] {
        let get = &container[probe]["httpGet"];
        let (path, address) = (text(&get["path"]), taken[&ports[text(&get["port"])].0]);
        let deadline = Instant::now() + PATIENCE;
        while http::get(address, path, Duration::from_secs(1)).await.unwrap_or_default() != (200, "OK".to_owned()) {
            assert!(Instant::now() < deadline, "{probe}: {path} does not answer\n{}", process.log_tail(20));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let scraped = taken[&text(&annotations["prometheus.io/port"]).parse().unwrap()];
    let (code, metrics) = http::get(scraped, "/metrics", Duration::from_secs(5)).await.unwrap();
    assert!(code == 200 && metrics.contains("namesake_synced 1"), "{code} {metrics}");
    let answer = dig(taken[&1053], &["ns.dns.clusterset.local", "AAAA", "+nsid"]).unwrap();
    assert_eq!(answer.data("AAAA"), ["fd00::9"], "{}", answer.text);
    assert!(answer.text.contains("namesake-dns-0"), "{}", answer.text);

    // The time that it is given suffices for what it is told to take.
    let seconds =
        |flag_name: &str| flag(list(&container["args"]), flag_name).trim_end_matches('s').parse::<u64>().unwrap();
    let given = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(given > seconds("lameduck") + 5, "{given} s");
}

#[test]
fn sec_03_the_role_is_exactly_the_calls_that_are_made() {
    let roles: Vec<_> = yaml(&kustomized())
        .into_iter()
        .filter(|object| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")))
        .collect();
    assert_eq!(roles.len(), 1);
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["list", "watch"]});
    let expected = json!([rule("multicluster.x-k8s.io", "serviceimports"), rule("discovery.k8s.io", "endpointslices")]);
    assert_eq!(roles[0]["rules"], expected, "tests/rbac.rs has the proof that these are needed and suffice");
    let binding = object("ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], roles[0]["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], object("ServiceAccount")["metadata"]["name"]);
    assert_eq!(object("Deployment")["spec"]["template"]["spec"]["serviceAccountName"], binding["subjects"][0]["name"]);
}

/// Everything is applied to a real API server, whose Pod Security admission enforces "restricted" in our namespace: the
/// pods come into being.
#[tokio::test]
async fn a_real_api_server_takes_the_manifests_and_admits_the_pods_as_restricted() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("c1").await.unwrap();
    cluster.apply(&kustomized()).await.unwrap();
    // Quotas are counted by a controller that the bed does not run.
    let quota = object("ResourceQuota");
    let status = json!({"status": {"hard": quota["spec"]["hard"], "used": {"pods": "0"}}}).to_string();
    let name = text(&quota["metadata"]["name"]);
    let patch =
        ["patch", "resourcequota", name, "-n", "namesake", "--subresource=status", "--type=merge", "-p", &status];
    cluster.kubectl(&patch).unwrap();

    let deadline = Instant::now() + PATIENCE;
    let pods = loop {
        let pods = cluster.request("GET", "/api/v1/namespaces/namesake/pods", None).await.unwrap();
        if list(&pods["items"]).len() == 2 {
            break pods;
        }
        let events = cluster.kubectl(&["get", "events", "-n", "namesake"]).unwrap();
        assert!(Instant::now() < deadline, "no pods\n{events}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let spec = &pods["items"][0]["spec"];
    assert_eq!(spec["priorityClassName"], "system-cluster-critical");
    assert!(list(&spec["volumes"]).iter().any(|volume| !volume["projected"].is_null()), "the token is mounted");

    // The admission can refuse: the same pod with a privilege.
    let mut bad = spec.clone();
    bad["containers"][0]["securityContext"] = json!({"privileged": true});
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad", "namespace": "namesake"}, "spec": bad});
    let refused = cluster.request("POST", "/api/v1/namespaces/namesake/pods", Some(&pod)).await.unwrap_err();
    assert!(refused.to_string().contains("violates PodSecurity"), "{refused}");
}

// --- the image and the unit

#[test]
fn the_image_exposes_what_its_command_opens_and_runs_as_a_number() {
    let dockerfile = read("deploy/image/Dockerfile");
    let line = |word: &str| {
        let mut lines = dockerfile.lines().filter_map(|line| line.strip_prefix(word));
        lines.next_back().unwrap_or_else(|| panic!("no {word}")).trim()
    };
    let command: Vec<Value> = serde_json::from_str(line("CMD")).unwrap();
    let (dns, admin) = (flag(&command, "listen"), flag(&command, "admin"));
    assert_eq!(
        line("EXPOSE"),
        format!("{0}/udp {0}/tcp {1}/tcp", dns.trim_start_matches(':'), admin.trim_start_matches(':'))
    );
    let user: u64 = line("USER").split(':').next().unwrap().parse().unwrap();
    assert_eq!(Some(user), object("Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"].as_u64());
    assert_eq!(dockerfile.lines().rfind(|line| line.starts_with("FROM")), Some("FROM scratch"));
    assert!(dockerfile.contains("target-feature=+crt-static") && dockerfile.contains("--target"));
}

/// The files that the image's build gets to see are a package that cargo understands.
#[test]
fn the_build_context_holds_what_cargo_needs() {
    let ignore = read("deploy/image/Dockerfile.dockerignore");
    let kept: Vec<_> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignore.lines().any(|line| line == "*") && kept.len() > 3, "{kept:?}");
    let folder = tempfile::tempdir().unwrap();
    for name in kept {
        if root().join(name).exists() {
            std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
        }
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let out =
        cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(folder.path()).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_unit_starts_the_example_settings_and_gives_it_time() {
    let unit = read("deploy/systemd/namesake-dns.service");
    let value = |key: &str| {
        unit.lines().find_map(|line| line.strip_prefix(&format!("{key}="))).unwrap_or_else(|| panic!("no {key}"))
    };
    assert_eq!(value("Type"), "notify");
    assert_eq!(value("TimeoutStartSec"), "infinity", "an API server that is away must not end it");
    assert_eq!(value("RestartPreventExitStatus"), "2", "the exit code of wrong settings");
    assert_eq!(value("StartLimitIntervalSec"), "0", "an address that comes up late must not leave it dead");
    assert_eq!(value("AmbientCapabilities"), "CAP_NET_BIND_SERVICE");
    let (program, args) = value("ExecStart").split_once(' ').unwrap();
    assert!(program.ends_with("/namesake"));
    // The same arguments, with a kubeconfig that is not there: the settings are taken, and the kubeconfig is missed.
    let args = args.replace("/etc/namesake/dns.yaml", &root().join("config/dns.example.yaml").to_string_lossy());
    let out = Command::new(product::binary())
        .args(args.split(' '))
        .args(["--listen=127.0.0.1:0", "--admin=127.0.0.1:0"])
        .env("NAMESAKE_KUBECONFIG", "/nonexistent/kubeconfig")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("/nonexistent/kubeconfig"), "{said}");
}

// --- stub blocks

/// The Corefile of each file, as its platform would make it.
fn corefiles() -> Vec<(&'static str, String)> {
    let data = |path: &'static str, key: &str| (path, text(&yaml(&read(path))[0]["data"][key]).to_owned());
    let rke2 = yaml(&read("deploy/coredns/rke2.yaml"));
    let values = yaml(text(&rke2[0]["spec"]["valuesContent"]));
    let stubs: Value = serde_json::from_str(&data("deploy/coredns/gke-kube-dns.yaml", "stubDomains").1).unwrap();
    vec![
        ("deploy/coredns/stub.corefile", read("deploy/coredns/stub.corefile")),
        data("deploy/coredns/kubeadm.yaml", "Corefile"),
        data("deploy/coredns/k3s.yaml", "clusterset.server"),
        data("deploy/coredns/aks.yaml", "clusterset.server"),
        ("deploy/coredns/rke2.yaml", list(&values[0]["servers"]).iter().map(helm_block).collect()),
        ("deploy/coredns/eks.yaml", text(&yaml(&read("deploy/coredns/eks.yaml"))[0]["corefile"]).to_owned()),
        ("deploy/coredns/gke-kube-dns.yaml", stubs.as_object().unwrap().iter().map(node_cache_block).collect()),
        ("deploy/coredns/nodelocal.corefile", read("deploy/coredns/nodelocal.corefile")),
    ]
}

/// A block as the Helm chart of CoreDNS writes it.
fn helm_block(server: &Value) -> String {
    let mut block = format!("{}:{} {{\n", text(&server["zones"][0]["zone"]), server["port"]);
    for plugin in list(&server["plugins"]) {
        let parameters = plugin["parameters"].as_str().map_or(plugin["parameters"].to_string(), str::to_owned);
        let parameters = if plugin["parameters"].is_null() { String::new() } else { format!(" {parameters}") };
        let inner = plugin["configBlock"].as_str().map(|inner| format!(" {{\n{inner}\n}}")).unwrap_or_default();
        block.push_str(&format!("    {}{parameters}{inner}\n", text(&plugin["name"])));
    }
    block + "}\n"
}

/// A block as NodeLocal DNSCache makes it of a stub domain.
fn node_cache_block((domain, servers): (&String, &Value)) -> String {
    let servers: Vec<_> = list(servers).iter().map(text).collect();
    format!(
        "{domain}:53 {{\n    errors\n    cache 30\n    bind 169.254.20.10\n    forward . {}\n}}\n",
        servers.join(" ")
    )
}

/// The same for a machine without cluster: our server, a free port, loopback only, and without the plugins that need a
/// cluster or ports of their own.
fn for_loopback(corefile: &str, upstream: SocketAddr) -> String {
    const LEFT_OUT: [&str; 6] = ["kubernetes", "health", "ready", "prometheus", "loop", "bind"];
    let mut out = String::new();
    let mut skipping = false;
    for line in corefile.lines() {
        let trimmed = line.trim();
        let word = trimmed.split(' ').next().unwrap_or_default();
        if skipping {
            skipping = trimmed != "}";
        } else if LEFT_OUT.contains(&word) {
            skipping = trimmed.ends_with('{');
        } else if trimmed.ends_with(":53 {") {
            out.push_str(&format!("{}:{{port}} {{\n    bind 127.0.0.1\n", trimmed.trim_end_matches(":53 {")));
        } else {
            out.push_str(&format!("{}\n", line.replace(PLACEHOLDER, &upstream.to_string())));
        }
    }
    out
}

#[tokio::test]
async fn cfg_03_every_stub_block_works_with_a_real_coredns() {
    let bed = Bed::new().unwrap();
    let server = Namesake::with_example(&bed).await.unwrap();
    for (path, corefile) in corefiles() {
        assert!(corefile.contains(PLACEHOLDER), "{path}");
        let corefile = for_loopback(&corefile, server.dns);
        let coredns =
            CoreDns::start_in(&bed, &corefile).await.unwrap_or_else(|error| panic!("{path}: {error}\n{corefile}"));
        let ask = |args: &[&str]| dig(coredns.address(), args).unwrap_or_else(|error| panic!("{path}: {error}"));
        for transport in ["+notcp", "+tcp"] {
            let a = ask(&["web.shop.svc.clusterset.local", "A", transport]);
            assert_eq!((a.status.as_str(), a.data("A")), ("NOERROR", vec!["10.96.40.17"]), "{path}\n{}", a.text);
            let srv = ask(&["_sql._tcp.db.shop.svc.clusterset.local", "SRV", transport]);
            assert_eq!(srv.answer.len(), 3, "{path}\n{}", srv.text);
            let none = ask(&["nothing.shop.svc.clusterset.local", "A", transport]);
            assert_eq!((none.status.as_str(), none.authority.len()), ("NXDOMAIN", 1), "{path}\n{}", none.text);
        }
        let aaaa = ask(&["db-1.east.db.shop.svc.clusterset.local", "AAAA"]);
        assert_eq!(aaaa.data("AAAA"), ["fd00:1::6"], "{path}\n{}", aaaa.text);
    }
}

/// What a forwarder that is set up wrongly would send us is refused, and goes nowhere from here.
#[tokio::test]
async fn cfg_03_the_zones_of_the_forwarder_are_refused() {
    let bed = Bed::new().unwrap();
    let server = Namesake::with_example(&bed).await.unwrap();
    for name in ["kubernetes.default.svc.cluster.local", "10.0.96.10.in-addr.arpa", "example.com", "."] {
        let answer = dig(server.dns, &[name, "A"]).unwrap();
        assert_eq!((answer.status.as_str(), answer.answer.len()), ("REFUSED", 0), "{}", answer.text);
    }
}

#[test]
fn dns_f3_every_stub_block_says_what_to_edit_and_warns_of_low_ttls() {
    let folder = root().join("deploy/coredns");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    let known: Vec<_> = corefiles().iter().map(|(path, _)| path.rsplit('/').next().unwrap().to_owned()).collect();
    for file in files {
        let file = file.into_string().unwrap();
        assert!(known.contains(&file), "{file} is not tried in cfg_03");
        let text = read(&format!("deploy/coredns/{file}"));
        let comments: String = text.lines().filter_map(|line| line.strip_prefix('#')).collect::<Vec<_>>().join("");
        assert!(comments.contains(PLACEHOLDER), "{file} does not say what to edit");
        assert!(comments.contains("get service namesake-dns -o jsonpath='{.spec.clusterIP}'"), "{file}");
        let words = comments.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("raises TTLs below 5 to 5"), "{file} does not warn");
    }
}
