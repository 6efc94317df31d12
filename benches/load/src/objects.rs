//! A set as Kubernetes objects: for an API server, and as a folder for `namesake dns --from`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::set::{SLICE, Set, cluster};

/// The namespaces.
pub fn namespaces(set: Set) -> impl Iterator<Item = Value> {
    (0..set.namespaces)
        .map(|i| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("ns-{i}")}}))
}

/// The ServiceImports, ClusterSetIP ones first.
pub fn imports(set: Set) -> impl Iterator<Item = Value> {
    (0..set.services).map(move |i| import(set, i)).chain((0..set.headless).map(move |i| headless(set, i)))
}

/// The ServiceImport of a ClusterSetIP service.
#[must_use]
pub fn import(set: Set, i: u32) -> Value {
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
    let spec = json!({"type": "ClusterSetIP", "ips": [set.service_address(i).to_string()], "ports": ports});
    service_import(format!("svc-{i}"), set.namespace(i), cluster(i), spec)
}

fn headless(set: Set, i: u32) -> Value {
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 8080}]);
    service_import(format!("db-{i}"), set.namespace(i), cluster(i), json!({"type": "Headless", "ports": ports}))
}

fn service_import(name: String, namespace: u32, cluster: u32, spec: Value) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"namespace": format!("ns-{namespace}"), "name": name},
        "spec": spec,
        "status": {"clusters": [{"cluster": format!("cluster-{cluster}")}]},
    })
}

/// How many EndpointSlices a headless service has.
#[must_use]
pub fn slices_of_each(set: Set) -> u32 {
    set.endpoints.div_ceil(SLICE)
}

/// The EndpointSlices.
pub fn slices(set: Set) -> impl Iterator<Item = Value> {
    let each = slices_of_each(set);
    (0..set.headless * each).map(move |n| slice(set, n / each, n % each, 0))
}

/// One EndpointSlice; `turn` moves its addresses to others.
#[must_use]
pub fn slice(set: Set, i: u32, part: u32, turn: u8) -> Value {
    let endpoints: Vec<Value> = (part * SLICE..set.endpoints.min((part + 1) * SLICE))
        .map(|n| {
            let [a, b, c, d] = set.endpoint_address(i, n).octets();
            let address = format!("{}.{b}.{c}.{d}", a + turn);
            json!({"addresses": [address], "hostname": format!("pod-{n}"), "conditions": {"ready": true}})
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "namespace": format!("ns-{}", set.namespace(i)),
            "name": format!("db-{i}-{part:05x}"),
            "labels": {
                "multicluster.kubernetes.io/service-name": format!("db-{i}"),
                "multicluster.kubernetes.io/source-cluster": format!("cluster-{}", cluster(i)),
            },
        },
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints,
    })
}

/// The path of an object's collection at the API server.
#[must_use]
pub fn collection(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    match object["kind"].as_str() {
        Some("Namespace") => "/api/v1/namespaces".to_owned(),
        Some("ServiceImport") => format!("/apis/multicluster.x-k8s.io/v1beta1/namespaces/{namespace}/serviceimports"),
        _ => format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
    }
}

/// Writes the folder, a file for each namespace.
///
/// # Errors
/// What the system says.
pub fn write_folder(set: Set, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = |i| Ok(BufWriter::new(File::create(folder.join(format!("ns-{i}.yaml")))?));
    let mut files = (0..set.namespaces).map(file).collect::<io::Result<Vec<_>>>()?;
    for object in imports(set).chain(slices(set)) {
        let namespace = object["metadata"]["namespace"].as_str().and_then(|name| name.strip_prefix("ns-"));
        let namespace: Option<usize> = namespace.and_then(|number| number.parse().ok());
        // JSON is YAML.
        if let Some(file) = namespace.and_then(|number| files.get_mut(number)) {
            writeln!(file, "---\n{object}")?;
        }
    }
    files.iter_mut().try_for_each(Write::flush)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_every_endpoint_once_and_a_turn_moves_them() {
        let set = Set { services: 1, headless: 2, endpoints: 250, namespaces: 1 };
        let all: Vec<Value> = slices(set).collect();
        assert_eq!(all.len(), 6);
        let endpoints: usize = all.iter().filter_map(|slice| slice["endpoints"].as_array()).map(Vec::len).sum();
        assert_eq!(endpoints, 500);
        assert_eq!(all[5]["endpoints"][49]["addresses"][0], "100.0.1.243");
        assert_eq!(slice(set, 1, 2, 1)["endpoints"][49]["addresses"][0], "101.0.1.243");
    }
}
