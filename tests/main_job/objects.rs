//! The objects of these tests, as YAML that a controller could have written.

use std::fmt::Write;

/// Where Namesake's ServiceAccount lives, and its name.
pub const ACCOUNT: (&str, &str) = ("namesake", "namesake-dns");

/// All that the DNS half may do: list and watch, on two resources.
pub const RULES: [(&str, &str, &str); 4] = [
    ("multicluster.x-k8s.io", "serviceimports", "list"),
    ("multicluster.x-k8s.io", "serviceimports", "watch"),
    ("discovery.k8s.io", "endpointslices", "list"),
    ("discovery.k8s.io", "endpointslices", "watch"),
];

/// A line of the role.
pub fn rule((group, resource, verb): (&str, &str, &str)) -> String {
    format!("- {{apiGroups: [{group}], resources: [{resource}], verbs: [{verb}]}}\n")
}

/// The ServiceAccount and its rights, without one of [`RULES`] if so wished.
pub fn rbac(without: Option<(&str, &str, &str)>) -> String {
    let (namespace, name) = ACCOUNT;
    let rules: String = RULES.into_iter().filter(|rule| Some(*rule) != without).map(rule).collect();
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: demo}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules:
{rules}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: ServiceAccount, name: {name}, namespace: {namespace}}}]
"
    )
}

/// A ClusterSetIP import in the namespace `demo` with a port `http`.
pub fn import(version: &str, name: &str, ips: &str) -> String {
    format!(
        "apiVersion: multicluster.x-k8s.io/{version}
kind: ServiceImport
metadata: {{name: {name}, namespace: demo}}
spec:
  type: ClusterSetIP
  ips: [{ips}]
  ports: [{{name: http, protocol: TCP, port: 80}}]
status:
  clusters: [{{cluster: east}}]
---
"
    )
}

/// A headless import in the namespace `demo` with a port `pg`.
pub fn headless(version: &str, name: &str) -> String {
    format!(
        "apiVersion: multicluster.x-k8s.io/{version}
kind: ServiceImport
metadata: {{name: {name}, namespace: demo}}
spec:
  type: Headless
  ports: [{{name: pg, protocol: TCP, port: 5432}}]
status:
  clusters: [{{cluster: east}}, {{cluster: west}}]
---
"
    )
}

/// One endpoint: hostname (may be empty), address, ready.
pub type Endpoint<'a> = (&'a str, &'a str, bool);

/// A slice of a headless import. Its family follows from the first address.
pub fn slice(name: &str, service: &str, cluster: &str, endpoints: &[Endpoint<'_>]) -> String {
    let family = if endpoints[0].1.contains(':') { "IPv6" } else { "IPv4" };
    let mut yaml = format!(
        "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {name}
  namespace: demo
  labels:
    multicluster.kubernetes.io/service-name: {service}
    multicluster.kubernetes.io/source-cluster: {cluster}
    endpointslice.kubernetes.io/managed-by: main-job-test
addressType: {family}
ports: [{{name: pg, protocol: TCP, port: 5432}}]
endpoints:
"
    );
    for (hostname, address, ready) in endpoints {
        let hostname = if hostname.is_empty() { String::new() } else { format!("hostname: {hostname}, ") };
        writeln!(yaml, "- {{{hostname}addresses: [\"{address}\"], conditions: {{ready: {ready}}}}}").unwrap();
    }
    yaml + "---\n"
}

/// A dual-stack ClusterSetIP service `web`, a headless service `db` in two clusters, and `big` with 500 endpoints.
pub fn clusterset(version: &str) -> String {
    let mut yaml =
        import(version, "web", "10.96.0.10, \"fd00::10\"") + &headless(version, "db") + &headless(version, "big");
    yaml += &slice("db-east", "db", "east", &[("db-0", "10.1.0.1", true), ("db-1", "10.1.0.2", true)]);
    yaml += &slice("db-east-v6", "db", "east", &[("db-0", "fd01::1", true)]);
    yaml += &slice("db-west", "db", "west", &[("db-0", "10.2.0.1", true), ("db-9", "10.2.0.9", false)]);
    for part in 0..5 {
        let addresses: Vec<_> = (0..100).map(|n| format!("10.20.{part}.{n}")).collect();
        let endpoints: Vec<_> = addresses.iter().map(|address| ("", address.as_str(), true)).collect();
        yaml += &slice(&format!("big-{part}"), "big", "east", &endpoints);
    }
    yaml
}
