//! Manifests in one line each; several are joined with `+`.

use std::fmt::Write as _;

/// `cases.md` F1: a ClusterSetIP import.
pub const F1: &str = r#"
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ips: ["10.96.7.7"], ports: [{name: http, port: 80, protocol: TCP}]}
"#;

/// `cases.md` F2: a headless import with two source clusters.
pub const F2: &str = r#"
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: db, namespace: shop}
spec: {type: Headless, ports: [{name: pg, port: 5432, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
ports: [{name: pg, port: 5432, protocol: TCP}]
endpoints:
- {addresses: ["10.1.0.11"], hostname: db-0, conditions: {ready: true}}
- {addresses: ["10.1.0.12"], hostname: db-1, conditions: {ready: true}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-west
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: west}
addressType: IPv4
ports: [{name: pg, port: 5432, protocol: TCP}]
endpoints:
- {addresses: ["10.2.0.21"], hostname: db-0, conditions: {ready: true}}
"#;

/// `name/number/PROTOCOL`: `http/80/TCP`, `/42/UDP` (unnamed); `http/80` is TCP, `http/80/-` says no protocol.
fn port(text: &str) -> String {
    let mut parts = text.split('/');
    let (name, number, protocol) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or("TCP"));
    let mut port = format!("port: {number}");
    if !name.is_empty() {
        write!(port, ", name: {name:?}").unwrap();
    }
    if protocol != "-" {
        write!(port, ", protocol: {protocol}").unwrap();
    }
    format!("{{{port}}}")
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
}

fn key(key: &str) -> (&str, &str) {
    key.split_once('/').expect("namespace/name")
}

/// A ServiceImport with a `spec` and whatever follows it in flow style: `import("a/b", "type: Headless", "")`.
pub fn import(import: &str, spec: &str, more: &str) -> String {
    let (namespace, name) = key(import);
    format!(
        "\n---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\n\
         metadata: {{name: {name:?}, namespace: {namespace:?}}}\nspec: {{{spec}}}\n{more}\n"
    )
}

/// A ClusterSetIP import.
pub fn clustersetip(name: &str, ips: &[&str], ports: &[&str]) -> String {
    let (ips, ports) = (list(ips, |ip| format!("{ip:?}")), list(ports, |p| port(p)));
    import(name, &format!("type: ClusterSetIP, ips: {ips}, ports: {ports}"), "")
}

/// A headless import.
pub fn headless(name: &str, ports: &[&str]) -> String {
    import(name, &format!("type: Headless, ports: {}", list(ports, |p| port(p))), "")
}

/// `[hostname=]address[,address][ flag]...`, ready unless a flag says otherwise: `notready`, `nil` (no `ready`),
/// `bare` (no conditions), `terminating`, `serving`, `pod=NAME`.
fn endpoint(text: &str) -> String {
    let mut words = text.split_whitespace();
    let first = words.next().expect("an address");
    let (hostname, addresses) = first.split_once('=').map_or((None, first), |(h, a)| (Some(h), a));
    let addresses: Vec<_> = addresses.split(',').collect();
    let (mut conditions, mut bare, mut more) = (vec!["ready: true".to_owned()], false, String::new());
    for flag in words {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("notready", _) => conditions[0] = "ready: false".to_owned(),
            ("nil", _) => conditions[0] = "ready: null".to_owned(),
            ("bare", _) => bare = true,
            ("pod", pod) => write!(more, ", targetRef: {{kind: Pod, name: {pod:?}}}").unwrap(),
            (condition, _) => conditions.push(format!("{condition}: true")),
        }
    }
    if let Some(hostname) = hostname {
        write!(more, ", hostname: {hostname:?}").unwrap();
    }
    if !bare {
        write!(more, ", conditions: {{{}}}", conditions.join(", ")).unwrap();
    }
    format!("{{addresses: {}{more}}}", list(&addresses, |a| format!("{a:?}")))
}

/// An EndpointSlice of a service from a cluster, named `<service>-<cluster>`, or `<service>-<cluster>-<n>` for
/// `namespace/service#n`. The cluster `-` leaves its label out. The family is the first address's.
pub fn slice(service: &str, cluster: &str, ports: &[&str], endpoints: &[&str]) -> String {
    let (service, number) = service.split_once('#').unwrap_or((service, ""));
    let (namespace, name) = key(service);
    let source = if matches!(cluster, "" | "-") { "none".to_owned() } else { cluster.to_lowercase() };
    let object = format!("{name}-{source}{}{number}", if number.is_empty() { "" } else { "-" });
    let address = endpoints.first().map_or("", |e| e.split_whitespace().next().unwrap());
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    let source = match cluster {
        "-" => String::new(),
        cluster => format!(", multicluster.kubernetes.io/source-cluster: {cluster:?}"),
    };
    format!(
        "\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {object:?}, namespace: {namespace:?}, \
         labels: {{multicluster.kubernetes.io/service-name: {name:?}{source}}}}}\n\
         addressType: {family}\nports: {}\nendpoints: {}\n",
        list(ports, |p| port(p)),
        list(endpoints, |e| endpoint(e)),
    )
}

/// The same manifests with one text replaced by another, which must be there.
#[track_caller]
pub fn replace(manifests: &str, from: &str, to: &str) -> String {
    assert!(manifests.contains(from), "{from} is not in the manifests");
    manifests.replace(from, to)
}
