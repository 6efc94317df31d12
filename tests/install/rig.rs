//! Clusters, commands, and the controller as the manifests would start it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{Bed, Cluster, binaries, merge_kubeconfigs};

use crate::product::{Namesake, PATIENCE, binary, root};

pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// What `kubectl apply -k` of a folder would apply.
pub fn kustomized(folder: &Path) -> String {
    let kubectl = binaries().unwrap().join("kubectl");
    let out = Command::new(kubectl).arg("kustomize").arg(folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

pub fn object(objects: &[Value], kind: &str) -> Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}")).clone()
}

/// A kubeconfig with the administrators of all of these, each a context of its name.
pub fn contexts(bed: &Bed, clusters: &[Cluster]) -> PathBuf {
    let merged = merge_kubeconfigs(clusters.iter().map(Cluster::kubeconfig)).unwrap();
    bed.file("contexts.kubeconfig", &merged).unwrap()
}

/// What `namesake` prints with these arguments.
pub async fn namesake(kubeconfig: &Path, args: &[&str]) -> String {
    let args: Vec<_> = args.iter().map(ToString::to_string).collect();
    let kubeconfig = kubeconfig.to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let out = Command::new(binary()).args(&args).arg("--kubeconfig").arg(kubeconfig).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    });
    tokio::time::timeout(PATIENCE * 2, run).await.expect("the command ends").unwrap()
}

/// Waits until `what` holds.
pub async fn until<F: Future<Output = Result<(), String>>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match holds().await {
            Ok(()) => return,
            Err(why) => assert!(Instant::now() < deadline, "never: {what}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One request as somebody with this token: the status, and what was said.
pub async fn ask(
    cluster: &Cluster,
    token: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, String> {
    let content = match method {
        "PATCH" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(body.map(Value::to_string).unwrap_or_default().into_bytes())
        .unwrap();
    let answer = cluster.client(token).unwrap().request_text(request).await;
    answer.map(|text| serde_json::from_str(&text).unwrap()).map_err(|error| error.to_string())
}

/// Makes the pods of a namespace ready, as a scheduler and a kubelet would: none run in a bed.
pub async fn run_pods(cluster: &Cluster, namespace: &str, count: usize, network: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}});
    let _ = cluster.request("POST", "/api/v1/nodes", Some(&node)).await;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let deadline = Instant::now() + PATIENCE;
    let pods = loop {
        let pods = cluster.request("GET", &path, None).await.unwrap();
        let pods: Vec<_> = list(&pods["items"]).iter().map(|p| text(&p["metadata"]["name"]).to_owned()).collect();
        if pods.len() == count {
            break pods;
        }
        assert!(Instant::now() < deadline, "there are no {count} pods but {pods:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for (at, name) in pods.iter().enumerate() {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node"},
        });
        cluster.request("POST", &format!("{path}/{name}/binding"), Some(&binding)).await.unwrap();
        let ip = format!("{network}.{}", at + 1);
        let status = json!({"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        }});
        let patch = ["patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p"];
        cluster.kubectl(&[&patch[..], &[&status.to_string()]].concat()).unwrap();
    }
}

/// The Deployment's own arguments, with an address of the bed for that of its admin port.
pub fn arguments(deployment: &Value, admin: SocketAddr) -> Vec<String> {
    let containers = list(&deployment["spec"]["template"]["spec"]["containers"]);
    assert_eq!(containers.len(), 1);
    let args = list(&containers[0]["args"]).iter().map(text);
    args.map(|arg| if arg == "--admin=:8081" { format!("--admin={admin}") } else { arg.to_owned() }).collect()
}

/// The controller of the hub's Deployment. No pods run in a bed: it is a process with the token of the Deployment's
/// ServiceAccount and the Deployment's own arguments, told by flags what a pod knows by itself.
pub async fn controller(bed: &Bed, hub: &Cluster, folder: &str, more: &[&str]) -> Namesake {
    let deployment = object(&yaml(&kustomized(&root().join("deploy/kustomize").join(folder))), "Deployment");
    let account = text(&deployment["spec"]["template"]["spec"]["serviceAccountName"]);
    let kubeconfig = hub.kubeconfig_for_service_account("namesake", account).await.unwrap();
    let admin = SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap()));
    let mut process = bed
        .process(&format!("controller-{}", admin.port()), binary())
        .args(arguments(&deployment, admin))
        .args(["--kubeconfig", kubeconfig.to_str().unwrap(), "--namespace", "namesake"])
        .args(more);
    for variable in deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().into_iter().flatten() {
        let from = &variable["valueFrom"]["configMapKeyRef"];
        let path = format!("/api/v1/namespaces/namesake/configmaps/{}", text(&from["name"]));
        let map = hub.request("GET", &path, None).await.unwrap();
        process = process.env(text(&variable["name"]), text(&map["data"][text(&from["key"])]));
    }
    Namesake { dns: admin, admin, process: process.spawn().unwrap() }
}

/// Applies the hub's manifests, as the README does.
pub fn apply_hub(hub: &Cluster, folder: &str) {
    let path = root().join("deploy/kustomize").join(folder);
    hub.kubectl(&["apply", "-k", path.to_str().unwrap()]).unwrap();
}
