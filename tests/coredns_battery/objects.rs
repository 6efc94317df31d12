//! The clusterset that both servers see: every state of `dns.md` C1 to C16 and H1 to H18 that an API server accepts, as
//! tables that become real objects.

use std::net::IpAddr;

use serde_json::{Value, json};

/// The namespaces; `bare` and `hollow` have nothing that is served.
pub const NAMESPACES: &[&str] = &["demo", "shop", "svc", "bare", "hollow", LONG];

/// A label of the greatest length (T22).
const LONG: &str = "n23456789-123456789-123456789-123456789-123456789-123456789-123";
const LONG_SERVICE: &str = "s23456789-123456789-123456789-123456789-123456789-123456789-123";
const LONG_CLUSTER: &str = "c23456789-123456789-123456789-123456789-123456789-123456789-123";

/// ServiceImports: namespace/name, `spec.ips` or `headless`, `spec.ports` as `name:number/protocol`.
const IMPORTS: &[(&str, &str, &str)] = &[
    // ClusterSetIP
    ("demo/c1", "10.9.1.1", "http:80/TCP"),
    ("demo/c3", "fd00:9::3", "http:80/TCP"),
    ("demo/c4", "10.9.4.1 fd00:9::4", "http:80/TCP https:443/TCP stats:9090/UDP"),
    ("demo/c5", "10.9.5.1 10.9.5.2", "http:80/TCP"),
    ("demo/c5-twice", "10.9.5.3 10.9.5.3", "http:80/TCP"),
    ("demo/c6", "", "http:80/TCP"),
    ("demo/c7", "10.9.7.1", ""),
    ("demo/c7-empty", "", ""),
    ("demo/c8", "not-an-ip", "http:80/TCP"),
    ("demo/c8-beside", "10.9.8.1 not-an-ip", "http:80/TCP"),
    ("demo/c8-ours", "c4.demo.svc.clusterset.local", "http:80/TCP"),
    ("demo/c9", "10.9.9.1", "http:80/TCP"),
    ("demo/c11", "10.9.11.1", "http:80/TCP"),
    ("demo/c13", "10.9.13.1", "http:80/TCP"),
    ("demo/c14", "None", "http:80/TCP"),
    ("demo/c14-dot", "10.9.14.1 .", "http:80/TCP"),
    ("demo/c16", "127.0.0.1", "http:80/TCP"),
    ("demo/c16-beside", "10.9.16.1 169.254.16.1", "http:80/TCP dns:53/UDP"),
    ("demo/c16-mapped", "::ffff:10.9.16.2 fd00:9::16", "http:80/TCP"),
    ("demo/e5", "10.9.20.1", "http:80/TCP"),
    ("demo/unnamed", "10.9.21.1", ":80/TCP"),
    ("demo/mixed", "10.9.22.1 fd00:9::22", ":8080/TCP http:80/TCP :53/UDP"),
    ("demo/v7", "10.9.23.1", "tcp:42/TCP udp:42/UDP"),
    ("demo/v11", "10.9.24.1", "dns:53/TCP dns:53/UDP"),
    ("demo/v12", "10.9.25.1", "sig:2905/SCTP"),
    ("demo/v13", "10.9.26.1", "HTTP:80/TCP"),
    ("demo/v29", "10.9.27.1", "http:80 :81"),
    ("demo/one-number", "10.9.28.1", "http:80/TCP web:80/TCP"),
    ("demo/dotted.name", "10.9.29.1", "http:80/TCP"),
    ("demo/1-2-3-4", "10.9.30.1", "http:80/TCP"),
    ("demo/any", "10.9.31.1", "any:80/TCP"),
    ("shop/c1", "10.9.40.1", "http:80/TCP"),
    ("shop/pod", "10.9.41.1", "http:80/TCP"),
    ("svc/svc", "10.9.42.1", "svc:80/TCP"),
    // headless
    ("demo/h1", "headless", "http:80/TCP"),
    ("demo/h2", "headless", "http:80/TCP"),
    ("demo/h4", "headless", "http:80/TCP"),
    ("demo/h4-hosts", "headless", "sql:5432/TCP"),
    ("demo/h5", "headless", "http:80/TCP"),
    ("demo/h6", "headless", "http:80/TCP"),
    ("demo/h6-one", "headless", "http:80/TCP"),
    ("demo/h7", "headless", "http:80/TCP"),
    ("demo/h8", "headless", "http:80/TCP"),
    ("demo/h8-unready", "headless", "http:80/TCP"),
    ("demo/h9", "headless", ""),
    ("demo/h9-half", "headless", "http:80/TCP"),
    ("demo/h10", "headless", "http:80/TCP"),
    ("demo/h10-beside", "headless", "http:80/TCP"),
    ("demo/h11", "headless", "http:80/TCP"),
    ("demo/h12", "headless", "http:80/TCP"),
    ("demo/h12-beside", "headless", "http:80/TCP"),
    ("demo/h17", "headless 10.9.17.1", "http:80/TCP"),
    ("demo/h18", "headless", "http:80/TCP"),
    ("demo/e2", "headless", "http:80/TCP"),
    ("demo/e6", "headless", "sql:5432/TCP"),
    ("demo/e6-meet", "headless", "sql:5432/TCP"),
    ("demo/e14", "headless", "http:80/TCP"),
    ("demo/v8", "headless", ":80/TCP"),
    ("demo/v20", "headless", "http:80/TCP"),
    ("demo/v11-headless", "headless", "dns:53/TCP dns:53/UDP"),
    ("demo/dashes", "headless", "http:80/TCP"),
    ("demo/many", "headless", "http:80/TCP"),
    ("demo/db", "headless", "sql:5432/TCP"),
    ("shop/h1", "headless", "http:80/TCP"),
    ("hollow/h8", "headless", "http:80/TCP"),
    (LONG_AT, "headless", "http:80/TCP"),
];

const LONG_AT: &str = "LONG/LONG";

/// EndpointSlices: import, source cluster (`-` for no label, `""` for an empty one), ports as above, endpoints as
/// `[host@]address[,address][ word…]` with the words `unready`, `terminating`, `published`, `unknown`, `pod=NAME`.
const SLICES: &[(&str, &str, &str, &[&str])] = &[
    ("demo/c9", "east", "http:8080/TCP", &["10.1.9.1 unready"]),
    ("demo/e5", "east", "http:8080/TCP", &["a@10.1.20.1", "b@10.1.20.2", "10.1.20.3"]),
    ("demo/e5", "west", "http:8080/TCP", &["a@10.2.20.1", "10.2.20.2 unready"]),
    ("demo/gone", "east", "http:8080/TCP", &["a@10.1.99.1"]),
    ("demo/h1", "east", "http:8080/TCP", &["10.1.1.1", "10.1.1.2", "10.1.1.3"]),
    ("demo/h2", "east", "http:8080/TCP", &["10.1.2.1", "db-0@10.1.2.2"]),
    ("demo/h2", "east", "http:8080/TCP", &["10.1.2.3"]),
    ("demo/h2", "west", "http:8080/TCP", &["10.2.2.1", "db-0@10.2.2.2"]),
    ("demo/h4", "east", "http:8080/TCP", &["10.1.4.1", "10.1.4.2"]),
    ("demo/h4", "east", "http:8080/TCP", &["fd00:1::4:1", "fd00:1::4:2"]),
    ("demo/h4-hosts", "east", "sql:5432/TCP", &["db-0@10.1.4.3", "db-1@10.1.4.4"]),
    ("demo/h4-hosts", "east", "sql:5432/TCP", &["db-0@fd00:1::4:3", "db-1@fd00:1::4:4"]),
    ("demo/h4-hosts", "west", "sql:5432/TCP", &["db-0@10.2.4.3"]),
    ("demo/h5", "east", "http:8080/TCP", &["10.1.5.1", "10.1.5.2 unready", "10.1.5.3 unknown", "a@10.1.5.4 unready"]),
    ("demo/h6", "east", "http:8080/TCP", &["10.1.6.1 terminating"]),
    ("demo/h6-one", "east", "http:8080/TCP", &["10.1.6.2 terminating", "10.1.6.3"]),
    ("demo/h7", "east", "http:8080/TCP", &["10.1.7.1 published"]),
    // A label's value has its case, a Service's name has none: this is nobody's slice.
    ("demo/H8", "east", "http:8080/TCP", &["10.1.8.2"]),
    ("demo/h8-unready", "east", "http:8080/TCP", &["a@10.1.8.1 unready"]),
    ("demo/h9", "east", "", &["a@10.1.9.2", "10.1.9.3"]),
    ("demo/h9-half", "east", "", &["a@10.1.9.4"]),
    ("demo/h9-half", "west", "http:8080/TCP", &["a@10.2.9.4"]),
    ("demo/h10", "east", "http:8080/TCP", &["example.org"]),
    ("demo/h10-beside", "east", "http:8080/TCP", &["c4.demo.svc.clusterset.local"]),
    ("demo/h10-beside", "east", "http:8080/TCP", &["10.1.10.1"]),
    ("demo/h11", "east", "http:8080/TCP", &["10.1.11.1"]),
    ("demo/h11", "east", "admin:8081/TCP", &["10.1.11.1"]),
    ("demo/h11", "west", "http:8080/TCP", &["a@10.1.11.1", "b@10.1.11.1"]),
    ("demo/h12", "-", "http:8080/TCP", &["a@10.1.12.1", "10.1.12.2"]),
    ("demo/h12-beside", "", "http:8080/TCP", &["a@10.1.12.3"]),
    ("demo/h12-beside", "east", "http:8080/TCP", &["a@10.1.12.4"]),
    ("demo/h17", "east", "http:8080/TCP", &["10.1.17.1"]),
    ("demo/h18", "east", "http:8080/TCP", &["10.1.18.1", "239.1.18.1", "a@255.255.255.255"]),
    ("demo/e2", "east", "http:8080/TCP", &["a@10.1.32.1", "a@10.1.32.2", "a@10.1.32.3"]),
    ("demo/e6", "east.prod", "sql:5432/TCP", &["db-0@10.1.36.1", "10.1.36.2"]),
    ("demo/e6", "east.test", "sql:5432/TCP", &["db-0@10.1.36.3"]),
    ("demo/e6-meet", "b", "sql:5432/TCP", &["a@10.1.37.1"]),
    ("demo/e6-meet", "a.b", "sql:5432/TCP", &["c@10.1.37.2"]),
    ("demo/e14", "EAST", "http:8080/TCP", &["a@10.1.44.1"]),
    ("demo/v8", "east", ":8080/TCP", &["a@10.1.48.1", "10.1.48.2"]),
    ("demo/v20", "east", "http:8080/TCP admin:9000/TCP", &["10.1.50.1"]),
    ("demo/v20", "west", "http:8081/TCP", &["10.2.50.1"]),
    ("demo/v11-headless", "east", "dns:53/TCP", &["10.1.51.1"]),
    ("demo/v11-headless", "east", "dns:53/UDP", &["10.1.51.1"]),
    ("demo/dashes", "east", "http:8080/TCP", &["2001:db8::", "fd00:1::", "::5:5"]),
    ("demo/db", "east", "sql:5432/TCP metrics:9187/TCP", &["db-0@10.1.60.1", "db-1@10.1.60.2", "db-2@10.1.60.3"]),
    ("demo/db", "west", "sql:5432/TCP", &["db-0@10.2.60.1", "10.2.60.2 pod=db-7", "10.2.60.3,10.2.60.4"]),
    ("shop/h1", "east", "http:8080/TCP", &["10.1.70.1"]),
    ("hollow/h8", "east", "http:8080/TCP", &["10.1.80.1 unready"]),
    (
        LONG_AT,
        LONG_CLUSTER,
        "http:8080/TCP",
        &["h@10.1.90.1", "h23456789-123456789-123456789-123456789-123456789-123456789-123@10.1.90.2"],
    ),
];

/// Everything, in an order in which it can be applied.
pub fn all() -> Vec<Value> {
    let namespaces =
        NAMESPACES.iter().map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let imports = IMPORTS.iter().map(|(at, ips, ports)| import(at, ips, ports));
    let slices =
        SLICES.iter().enumerate().map(|(i, (at, cluster, ports, endpoints))| slice(i, at, cluster, ports, endpoints));
    let many = (0..10).map(|part| {
        let endpoints: Vec<_> = (0..10).map(|i| format!("10.3.{part}.{i}")).collect();
        let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
        slice(1000 + part, "demo/many", if part % 2 == 0 { "east" } else { "west" }, "http:8080/TCP", &endpoints)
    });
    namespaces.chain(imports).chain(slices).chain(many).collect()
}

/// What is deleted when all is there, and stays for its finalizer's sake (C11).
pub const DELETED: &str = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, \
    metadata: {namespace: demo, name: c11}}";

fn place(at: &str) -> (&str, &str) {
    if at == LONG_AT { (LONG, LONG_SERVICE) } else { at.split_once('/').expect("namespace/name") }
}

fn import(at: &str, ips: &str, ports: &str) -> Value {
    let (namespace, name) = place(at);
    let headless = ips.starts_with("headless");
    let ips: Vec<_> = ips.split_whitespace().filter(|ip| *ip != "headless").collect();
    let mut spec = json!({"type": if headless { "Headless" } else { "ClusterSetIP" }, "ports": port_list(ports)});
    if !ips.is_empty() {
        spec["ips"] = json!(ips);
    }
    let mut metadata = json!({"namespace": namespace, "name": name});
    match name {
        "c11" => metadata["finalizers"] = json!(["namesake.example/held"]), // see DELETED
        "c13" => spec["sessionAffinity"] = "ClientIP".into(),
        _ => {}
    }
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": metadata, "spec": spec,
    })
}

fn port_list(ports: &str) -> Vec<Value> {
    let port = |text: &str| {
        let (name, rest) = text.split_once(':').expect("name:number");
        let (number, protocol) = rest.split_once('/').unwrap_or((rest, ""));
        let mut port = json!({"port": number.parse::<u16>().expect("a port number")});
        for (field, value) in [("name", name), ("protocol", protocol)] {
            if !value.is_empty() {
                port[field] = value.into();
            }
        }
        port
    };
    ports.split_whitespace().map(port).collect()
}

fn slice(number: usize, at: &str, cluster: &str, ports: &str, endpoints: &[&str]) -> Value {
    let (namespace, service) = place(at);
    let mut labels = json!({"multicluster.kubernetes.io/service-name": service});
    if cluster != "-" {
        labels["multicluster.kubernetes.io/source-cluster"] = cluster.into();
    }
    let endpoints: Vec<_> = endpoints.iter().map(|text| endpoint(text)).collect();
    let family = match endpoints[0]["addresses"][0].as_str().map(str::parse::<IpAddr>) {
        Some(Ok(IpAddr::V4(_))) => "IPv4",
        Some(Ok(IpAddr::V6(_))) => "IPv6",
        _ => "FQDN",
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"namespace": namespace, "name": format!("slice-{number}"), "labels": labels},
        "addressType": family, "ports": port_list(ports), "endpoints": endpoints,
    })
}

fn endpoint(text: &str) -> Value {
    let mut words = text.split_whitespace();
    let place = words.next().expect("an address");
    let (host, addresses) = place.split_once('@').unwrap_or(("", place));
    let mut endpoint = json!({
        "addresses": addresses.split(',').collect::<Vec<_>>(),
        "conditions": {"ready": true, "serving": true, "terminating": false},
    });
    if !host.is_empty() {
        endpoint["hostname"] = host.into();
    }
    for word in words {
        endpoint["conditions"] = match word {
            "unready" => json!({"ready": false, "serving": false, "terminating": false}),
            "terminating" => json!({"ready": false, "serving": true, "terminating": true}),
            "published" => json!({"ready": true, "serving": false, "terminating": true}),
            "unknown" => json!({}),
            pod => {
                let name = pod.strip_prefix("pod=").expect("a word that is known");
                endpoint["targetRef"] = json!({"kind": "Pod", "name": name});
                continue;
            }
        };
    }
    endpoint
}
