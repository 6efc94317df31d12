//! `explain`: the answer and the reason for it, down to slice, endpoint, condition and source cluster; for a negative
//! answer what is missing, and the nearest names that exist.

use std::sync::{Arc, RwLock};

use namesake::answers::{Options, Store, explain};
use namesake::feed::{Feed, Now, resync};
use namesake::index::Index;
use namesake::source::{Convert, Health, folder};

const OBJECTS: &str = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ips: ["10.96.7.7", "none"], ports: [{name: http, port: 80, protocol: TCP}]}
status: {clusters: [{cluster: east}, {cluster: west}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: db, namespace: shop}
spec: {type: Headless, ports: [{name: sql, port: 5432, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
ports: [{name: sql, port: 5432, protocol: TCP}]
endpoints:
- {addresses: ["10.1.0.11"], hostname: db-0, conditions: {ready: true}}
- {addresses: ["10.1.0.12"], hostname: db-1, conditions: {ready: false}}
- {addresses: ["10.1.0.13"], hostname: db-2, conditions: {ready: false, serving: true, terminating: true}}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: idle, namespace: shop}
spec: {type: Headless, ports: []}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: early-east
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: early, multicluster.kubernetes.io/source-cluster: east}
addressType: IPv4
ports: []
endpoints: [{addresses: ["10.1.0.20"]}]
"#;

fn load(objects: &str, options: Options) -> (Arc<RwLock<Index>>, Arc<Store>) {
    let convert = Convert { pod_names: options.endpoint_pod_names, namespaces: options.namespaces.clone() };
    let changes = folder::read_text("objects.yaml", objects, &convert).unwrap();
    let store = Arc::new(Store::new(options));
    let mut feed = Feed::new(Arc::clone(&store), Arc::new(Health::new(true)), None, Now::read());
    feed.take(resync(changes), Now::read());
    (feed.index(), store)
}

/// What is said of a name below `svc.clusterset.local`.
fn told_with(options: Options, name: &str, qtype: u16) -> String {
    let (index, store) = load(OBJECTS, options);
    let text = explain(&index.read().unwrap(), &store, &format!("{name}.svc.clusterset.local"), qtype);
    println!("{text}");
    text
}

fn told(name: &str, qtype: u16) -> String {
    told_with(Options::default(), name, qtype)
}

#[track_caller]
fn says(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "wanted {part:?} in:\n{text}");
    }
}

#[test]
fn a_positive_answer_names_import_exporters_ports_and_what_is_skipped() {
    says(
        &told("web.shop", 1),
        &[
            "NOERROR: 1 record\n  web.shop.svc.clusterset.local. 5 IN A 10.96.7.7",
            "ServiceImport shop/web: ClusterSetIP 10.96.7.7; ports http 80/TCP; exported by east, west",
            "not served: spec.ips[1]: \"none\"",
            "(bad_address)",
        ],
    );
}

#[test]
fn an_endpoint_name_leads_to_slice_cluster_and_condition() {
    says(
        &told("db-0.east.db.shop", 1),
        &[
            "5 IN A 10.1.0.11",
            "EndpointSlice shop/db-east: cluster east; ports sql 5432/TCP; 3 endpoints, 1 ready",
            "10.1.0.11 db-0 ready",
        ],
    );
}

#[test]
fn an_endpoint_that_is_not_ready_is_named_as_the_reason() {
    let text = told("db-1.east.db.shop", 1);
    says(&text, &["NXDOMAIN", "10.1.0.12 db-1 not ready", "in front of db.shop.svc there are:", "db-0.east"]);
    says(&told("db-2.east.db.shop", 1), &["10.1.0.13 db-2 not ready: terminating, still serving"]);
    assert!(!text.contains("10.1.0.11"), "the others are of no interest:\n{text}");
}

#[test]
fn a_missing_import_is_named_with_the_nearest_names() {
    says(
        &told("webb.shop", 1),
        &["NXDOMAIN", "there is no ServiceImport shop/webb", "nearest   web.shop.svc, db.shop.svc"],
    );
    says(&told("web.shp", 28), &["there is no ServiceImport shp/web", "nearest   web.shop.svc"]);
    says(&told("wob.shap", 1), &["there is no ServiceImport shap/wob", "web.shop.svc"]);
    says(&told("early.shop", 1), &["shop/early-east name it: they wait for the import"]);
}

#[test]
fn nodata_is_told_from_nxdomain() {
    says(&told("web.shop", 28), &["NODATA: the name exists, but not with this type", "ClusterSetIP 10.96.7.7"]);
}

#[test]
fn a_headless_import_without_endpoints_says_why_it_has_no_name() {
    says(&told("idle.shop", 1), &["NXDOMAIN", "no EndpointSlice names it"]);
    let options = Options { no_endpoints: true, ..Options::default() };
    says(&told_with(options, "db.shop", 1), &["NXDOMAIN", "option no_endpoints"]);
}

#[test]
fn a_port_that_is_not_there_leads_to_those_that_are() {
    says(&told("_http._udp.web.shop", 33), &["NXDOMAIN", "no port of that name and protocol", "_http._tcp"]);
    says(&told("_pg._tcp.db.shop", 33), &["_sql._tcp"]);
}

#[test]
fn endpoint_names_of_a_clusterset_ip_import_are_explained() {
    says(&told("db-0.east.web.shop", 1), &["NXDOMAIN", "no names of endpoints or clusters (specification §2.3.4)"]);
}

#[test]
fn other_places_of_the_tree_are_explained() {
    let (index, store) = load(OBJECTS, Options::default());
    let told = |name: &str| explain(&index.read().unwrap(), &store, name, 1);
    says(&told("example.org"), &["REFUSED", "none of ours: this server has clusterset.local."]);
    says(&told("shop.svc.clusterset.local"), &["NODATA", "shop: 3 imports, 2 of them with names", "web"]);
    says(&told("lab.svc.clusterset.local"), &["NXDOMAIN", "lab: 0 imports"]);
    says(&told("pod.clusterset.local"), &["NXDOMAIN"]);
    says(&told("clusterset.local"), &["NODATA", "the zone itself"]);
    says(&told(&"a.".repeat(200)), &["can't be a DNS name"]);
}

#[test]
fn namespaces_that_are_not_served_and_data_that_is_not_there_yet_are_named() {
    let options = Options { namespaces: vec!["lab".to_owned()], ..Options::default() };
    says(&told_with(options, "web.shop", 1), &["NXDOMAIN", "shop is not among those served"]);
    let unsynced = Store::new(Options::default());
    let text = explain(&Index::new(), &unsynced, "web.shop.svc.clusterset.local", 1);
    says(&text, &["SERVFAIL (EDE 14)", "the first lists are not complete yet"]);
}
