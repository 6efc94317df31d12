//! Submariner's Lighthouse. In submariner-io/lighthouse, `pkg/agent/controller`: the import of a service, merged on the
//! broker and brought to each cluster (`service_import.go`, `Distribute` and `onRemoteServiceImport`: annotations with the
//! exports' times and whether there are clusterset IPs; ports only where it is not headless), and one slice a cluster with
//! the cluster IP of its Service, or for a headless service with its pods (`service_endpoint_slices.go`,
//! `clusterIPEndpointSliceFrom`, `headlessEndpointSliceFrom`, `newEndpointSliceFrom`). None of the slices is of a Service:
//! Lighthouse's own DNS plugin reads them. In the agent's namespace there is an import for each export of the cluster
//! besides (`agent.go`, `newServiceImport`). Clusterset IPs are off unless asked for; then one address of a pool, by
//! default of 243.0.0.0/8, is the import's in all clusters.

use serde_json::json;

use crate::rig::Stage;

/// The import as the broker has merged it.
fn import(name: &str, spec: &str, clusterset_ip: bool) -> String {
    format!(
        "
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata:
  name: {name}
  annotations:
    timestamp.submariner.io/east: '1764460800000000000'
    timestamp.submariner.io/south: '1764460805000000000'
    lighthouse.submariner.io/use-clusterset-ip: '{clusterset_ip}'
spec: {{{spec}, sessionAffinity: None}}
"
    )
}

/// The slice of a cluster.
fn slice(stage: &Stage, name: &str, cluster: &str, headless: bool, ports: &str, endpoints: &str) -> String {
    let source = if headless { format!("lighthouse.submariner.io/source-name: {name}-5fk8x") } else { String::new() };
    format!(
        "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  name: {name}-{cluster}-rx2d9
  labels:
    endpointslice.kubernetes.io/managed-by: lighthouse-agent.submariner.io
    lighthouse.submariner.io/sourceNamespace: {}
    lighthouse.submariner.io/is-headless: '{headless}'
    multicluster.kubernetes.io/service-name: {name}
    multicluster.kubernetes.io/source-cluster: {cluster}
    {source}
  annotations:
    lighthouse.submariner.io/publish-not-ready-addresses: 'false'
    lighthouse.submariner.io/globalnet-enabled: 'false'
ports: [{ports}]
endpoints: [{endpoints}]
",
        stage.story.namespace
    )
}

const PORTS: &str = "{name: http, port: 80, protocol: TCP}";

async fn clusters(stage: &Stage, name: &str) {
    let clusters = json!({"clusters": [{"cluster": "east"}, {"cluster": "south"}]});
    stage.write_status("serviceimports", name, clusters).await;
}

/// Without clusterset IPs, which is Lighthouse's default, the import has no address; Lighthouse's plugin answers the
/// cluster IP of one of the exporting clusters' own Services, by a choice that it makes for every query. The
/// specification answers `spec.ips` and nothing else, and so do we: the name exists, without an address.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c6_submariner_imports_without_clusterset_ips_have_no_address_and_are_left_alone() {
    let stage = Stage::new("lighthouse").await;
    stage.write(&import("web", &format!("type: ClusterSetIP, ports: [{PORTS}]"), false)).await;
    for (cluster, address) in [("east", "10.201.7.7"), ("south", "10.203.7.7")] {
        let endpoint = format!("{{addresses: [{address}], conditions: {{ready: true}}}}");
        stage.write(&slice(&stage, "web", cluster, false, PORTS, &endpoint)).await;
    }
    clusters(&stage, "web").await;
    let answered = async || {
        stage.answers("web", "A", &[]).await;
        let why = stage.explained("web").await;
        assert!(why.contains("it has no address in spec.ips yet"), "{why}");
        stage.answers("east.web", "A", &["NXDOMAIN"]).await;
    };
    answered().await;
    stage.left_alone("web").await;
    answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_c1_e5_submariner_clusterset_ips_are_answered_and_left_alone() {
    let stage = Stage::new("lighthouse-ips").await;
    let spec = format!("type: ClusterSetIP, ips: [243.0.0.17], ports: [{PORTS}]");
    stage.write(&import("web", &spec, true)).await;
    let endpoint = "{addresses: [10.201.7.7], conditions: {ready: true}}";
    stage.write(&slice(&stage, "web", "east", false, PORTS, endpoint)).await;
    clusters(&stage, "web").await;
    let answered = async || {
        stage.answers("web", "A", &["243.0.0.17"]).await;
        stage.services("_http._tcp.web", &["80 web"]).await;
        stage.answers("10-201-7-7.east.web", "A", &["NXDOMAIN"]).await;
    };
    answered().await;
    stage.left_alone("web").await;
    answered().await;
}

/// Headless imports have no ports; those of the slices are answered.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_dns_h1_e1_e2_submariner_headless_imports_are_answered_and_left_alone() {
    let stage = Stage::new("lighthouse-headless").await;
    stage.write(&import("db", "type: Headless, ports: []", false)).await;
    let ports = "{name: sql, port: 5432, protocol: TCP}";
    let pod = |address: &str, host: &str, ready: bool| {
        let target = format!("targetRef: {{kind: Pod, name: {host}}}");
        format!(
            "{{addresses: [{address}], hostname: {host}, nodeName: node-1, conditions: {{ready: {ready}}}, {target}}}"
        )
    };
    let east = pod("10.1.0.5", "db-0", true) + ", " + &pod("10.1.0.6", "db-1", false);
    stage.write(&slice(&stage, "db", "east", true, ports, &east)).await;
    // With Globalnet the addresses are of 242.0.0.0/8.
    stage.write(&slice(&stage, "db", "south", true, ports, &pod("242.1.0.9", "db-0", true))).await;
    clusters(&stage, "db").await;
    let answered = async || {
        stage.answers("db", "A", &["10.1.0.5", "242.1.0.9"]).await;
        stage.answers("db-0.east.db", "A", &["10.1.0.5"]).await;
        stage.answers("db-0.south.db", "A", &["242.1.0.9"]).await;
        stage.answers("db-1.east.db", "A", &["NXDOMAIN"]).await;
        stage.services("_sql._tcp.db", &["5432 db-0.east.db", "5432 db-0.south.db"]).await;
    };
    answered().await;
    stage.left_alone("db").await;
    answered().await;
}

/// The agent's import of one cluster's export stands in the agent's namespace. It is an import of a name that nobody asks
/// for; it gets none of our objects and disturbs none.
#[tokio::test(flavor = "multi_thread")]
async fn mcs_r8_r94_submariner_imports_of_a_single_cluster_are_left_alone() {
    let stage = Stage::new("submariner-operator").await;
    let agent = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
        "metadata": {"name": "web-shop-west",
            "labels": {"multicluster.kubernetes.io/service-name": "web",
                       "lighthouse.submariner.io/sourceNamespace": "shop",
                       "multicluster.kubernetes.io/source-cluster": "west"},
            "annotations": {"lighthouse.submariner.io/publish-not-ready-addresses": "false"}},
        "spec": {"type": "ClusterSetIP", "ips": ["10.102.7.7"], "sessionAffinity": "None",
                 "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}});
    stage.write(&agent.to_string()).await;
    stage.answers("web-shop-west", "A", &["10.102.7.7"]).await;
    stage.left_alone("web-shop-west").await;
}
