//! The suite's objects, by its names and images.

use std::net::IpAddr;

use serde_json::{Value, json};

/// The name of the Service, its Deployment and its export.
pub const HELLO: &str = "hello";

/// The pod in which commands run.
pub const REQUEST: &str = "request";

/// Answers `pod ip ADDRESS` to whoever connects, with the pod's first address; over both families where the pod has both.
/// With `exec`, so that the container ends with its program and not after the grace period of a shell.
fn listen(protocol: &str) -> Value {
    let address = "42,crlf,reuseaddr,fork";
    let answer = "SYSTEM:'echo \"pod ip $first\"'";
    let script = format!(
        "export first=${{IPS%%,*}}\n\
         case $IPS in\n\
         *.*:* | *:*.*) exec socat -v -v {protocol}6-LISTEN:{address},ipv6only=0 {answer} ;;\n\
         *:*) exec socat -v -v {protocol}6-LISTEN:{address} {answer} ;;\n\
         *) exec socat -v -v {protocol}-LISTEN:{address} {answer} ;;\n\
         esac\n"
    );
    json!({
        "name": format!("hello-{}", protocol.to_lowercase()),
        "image": "alpine/socat:1.7.4.4",
        "command": ["/bin/sh"],
        "args": ["-c", script],
        "env": [{"name": "IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}}],
    })
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": HELLO}}, "spec": {"containers": [listen("TCP"), listen("UDP")]}})
}

/// The Deployment behind the Service.
pub fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": HELLO},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": HELLO}}, "template": template()},
    })
}

/// The StatefulSet that takes the Deployment's place where hostnames count.
pub fn stateful_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "hello-ss"},
        "spec": {"replicas": replicas, "serviceName": HELLO, "selector": {"matchLabels": {"app": HELLO}},
                 "template": template()},
    })
}

/// The Service.
pub fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": HELLO, "labels": {"dummy-svc": "dummy"}, "annotations": {"dummy-svc": "dummy"}},
        "spec": {"selector": {"app": HELLO}, "ipFamilyPolicy": "PreferDualStack", "sessionAffinity": "ClientIP",
                 "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
                 "ports": [{"name": "tcp", "port": 42, "protocol": "TCP"},
                           {"name": "udp", "port": 42, "protocol": "UDP"}]},
    })
}

/// The ServiceExport.
pub fn export(spec: Value) -> Value {
    let dummies = json!({"dummy-svcexport": "dummy"});
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": HELLO, "labels": dummies, "annotations": dummies}, "spec": spec,
    })
}

/// The pod in which commands run. With a nameserver of its own it has the same search list as other pods; without one it
/// asks the cluster's DNS, as pods do. Its shell does not end by SIGTERM: it gets a second for that and not thirty.
pub fn request_pod(namespace: &str, nameserver: Option<IpAddr>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": REQUEST, "labels": {"app": REQUEST}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": REQUEST, "image": "nicolaka/netshoot:v0.15",
                            "args": ["/bin/sh", "-ec", "while :; do echo .; sleep 5; done"]}],
        },
    });
    if let Some(nameserver) = nameserver {
        pod["spec"]["dnsPolicy"] = json!("None");
        pod["spec"]["dnsConfig"] = json!({
            "nameservers": [nameserver],
            "searches": [format!("{namespace}.svc.cluster.local"), "svc.cluster.local", "cluster.local"],
            "options": [{"name": "ndots", "value": "5"}],
        });
    }
    pod
}
