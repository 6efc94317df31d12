//! Objects of the stories: Services, exports, and the slices of Services without a selector.

/// A ServiceExport.
pub fn export(name: &str) -> String {
    format!("---\n{{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {{name: {name}}}}}\n")
}

/// A Service without a selector; `spec` in YAML's flow style, such as `ports: [{name: http, port: 80}]`.
pub fn service(name: &str, spec: &str) -> String {
    format!("---\n{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n")
}

/// A Service of one port `http`, without a selector.
pub fn web(name: &str) -> String {
    service(name, "ports: [{name: http, port: 80, targetPort: 8080}]")
}

/// A slice of a Service with that port, as somebody makes it for a Service without a selector.
pub fn endpoints(name: &str, addresses: &[&str]) -> String {
    slice(name, "1", "IPv4", "{name: http, protocol: TCP, port: 8080}", addresses)
}

/// Another slice.
pub fn slice(name: &str, part: &str, family: &str, ports: &str, addresses: &[&str]) -> String {
    let endpoints: Vec<_> =
        addresses.iter().map(|a| format!("{{addresses: ['{a}'], conditions: {{ready: true}}}}")).collect();
    format!(
        "---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: {family}, metadata: {{name: {name}-{part}, \
         labels: {{kubernetes.io/service-name: {name}}}}}, ports: [{ports}], endpoints: [{}]}}\n",
        endpoints.join(", ")
    )
}

/// A Service, its slice and its export.
pub fn exported(name: &str, addresses: &[&str]) -> String {
    web(name) + &endpoints(name, addresses) + &export(name)
}
