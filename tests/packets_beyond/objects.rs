//! The objects of the scenarios: servers that say who they are, Services, exports, pods to ask from.

use serde_json::{Value, json};

/// The port on which every server says the name of its pod.
pub const NAME: u16 = 8080;

/// The port on which every server echoes.
pub const ECHO: u16 = 7;

/// How the pods of a server behave.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// Seconds for which a pod that is to go serves on, so that all who still know it may.
    pub linger: u32,
    /// Whether a pod counts only once its port has answered.
    pub ready_when_listening: bool,
}

impl Manners {
    /// A pod that goes when it is told to.
    pub const PLAIN: Self = Self { linger: 0, ready_when_listening: true };
}

/// The container of a server. `exec`: the program that listens is process 1 and ends by SIGTERM.
fn container(ports: &[u16], manners: Manners) -> Value {
    let echo = format!("socat TCP-LISTEN:{ECHO},reuseaddr,fork,backlog=128 PIPE &");
    let (last, others) = ports.split_last().expect("a server without a port");
    let listen = |port: &u16| format!("socat -U TCP-LISTEN:{port},reuseaddr,fork,backlog=128 OPEN:/name,rdonly");
    let others: Vec<_> = others.iter().map(|port| format!("{} &", listen(port))).collect();
    let script = format!("echo $POD > /name\n{echo}\n{}\nexec {}\n", others.join("\n"), listen(last));
    let mut container = json!({
        "name": "server",
        "image": "alpine/socat:1.7.4.4",
        "command": ["/bin/sh", "-c", script],
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    });
    if manners.ready_when_listening {
        container["readinessProbe"] = json!({"tcpSocket": {"port": last}, "periodSeconds": 1});
    }
    if manners.linger > 0 {
        container["lifecycle"] = json!({"preStop": {"sleep": {"seconds": manners.linger}}});
    }
    container
}

fn template(name: &str, ports: &[u16], manners: Manners) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": manners.linger + 2,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "containers": [container(ports, manners)],
        },
    })
}

/// A Deployment whose pods are called `<id>-…`, so that an answer tells the cluster. It replaces a fifth of its pods at a
/// time, and never has fewer ready ones than it should.
pub fn deployment(id: &str, name: &str, replicas: u32, ports: &[u16], manners: Manners) -> Value {
    let surge = replicas.div_ceil(5);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("{id}-{name}")},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}},
            "template": template(name, ports, manners),
        },
    })
}

/// A StatefulSet; its pods are called `<name>-0`, `<name>-1` … in every cluster.
pub fn stateful_set(name: &str, replicas: u32, ports: &[u16]) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, ports, Manners::PLAIN),
        },
    })
}

/// A port of a Service: its name and number, and where it leads.
pub fn port(name: &str, port: u16, target: u16) -> Value {
    json!({"name": name, "port": port, "targetPort": target, "protocol": "TCP"})
}

/// The two ports of most services here: `http` and `echo`.
pub fn ports() -> Vec<Value> {
    vec![port("http", 80, NAME), port("echo", ECHO, ECHO)]
}

/// A Service for the pods of the server of that name.
pub fn service(name: &str, ports: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": ports},
    })
}

/// The same without an address of its own.
pub fn headless(name: &str, ports: &[Value]) -> Value {
    let mut service = service(name, ports);
    service["spec"]["clusterIP"] = json!("None");
    service
}

/// The ServiceExport of a Service.
pub fn export(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": name},
    })
}

/// A pod to ask from. It does nothing itself: the test makes sockets in its network.
pub fn client(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "containers": [{"name": "client", "image": "alpine/socat:1.7.4.4",
                            "command": ["/bin/sh", "-c", "exec sleep infinity"]}],
        },
    })
}
