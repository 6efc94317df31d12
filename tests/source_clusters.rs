//! A folder of clusters → what each would hold: what API servers, kubelets and controllers fill in.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;

use std::collections::BTreeSet;
use std::net::IpAddr;

use clusters::{Folder, exported, pod};
use namesake::model::ClusterId;
use namesake::reconcile::objects::{Endpoint, Family, ServiceSpec, Time};
use namesake::reconcile::observed::{Export, Slice};
use namesake::reconcile::world::Kind;
use namesake::source::clusters::{Cluster, ObjectId, Watched, read};
use namesake::source::member::Observed;

const PORTS: &str = "ports: [{name: http, port: 80}]";

fn cluster(folder: &Folder, id: &str) -> Cluster {
    read(folder.path()).unwrap().0.remove(&ClusterId::new(id).unwrap()).unwrap()
}

fn get<'a>(cluster: &'a Cluster, kind: Kind, namespace: &str, name: &str) -> &'a Observed {
    let id = ObjectId { kind, namespace: namespace.into(), name: name.into() };
    cluster.objects.get(&id).unwrap_or_else(|| panic!("no {id:?}"))
}

fn service(cluster: &Cluster, name: &str) -> ServiceSpec {
    match get(cluster, Kind::Services, "shop", name) {
        Observed::Service(_, Some(service)) => service.spec.clone(),
        other => panic!("{other:?}"),
    }
}

fn export(cluster: &Cluster, name: &str) -> Export {
    match get(cluster, Kind::Exports, "shop", name) {
        Observed::Export(_, Some(export)) => export.clone(),
        other => panic!("{other:?}"),
    }
}

fn slices(cluster: &Cluster) -> Vec<Slice> {
    let slices = cluster.objects.values().filter_map(|object| match object {
        Observed::Slice(_, Some(slice)) => Some(slice.clone()),
        _ => None,
    });
    slices.collect()
}

/// One cluster with one Service, these pods, and its slices.
fn made(spec: &str, pods: &[String]) -> Vec<Slice> {
    let folder = Folder::new(&[("east/web.yaml", &(exported("web", spec, "") + &pods.concat()))]);
    slices(&cluster(&folder, "east"))
}

fn only(spec: &str, pod: String) -> Endpoint {
    let slices = made(spec, &[pod]);
    assert_eq!(slices.len(), 1, "{slices:?}");
    slices[0].content.endpoints[0].clone()
}

#[test]
fn services_get_what_api_servers_default() {
    let spec = |spec: &str| {
        let folder = Folder::new(&[("east/web.yaml", &exported("web", spec, ""))]);
        service(&cluster(&folder, "east"), "web")
    };
    let plain = spec(PORTS);
    assert_eq!(plain.traffic.session_affinity.as_deref(), Some("None"));
    assert_eq!(plain.traffic.internal_policy.as_deref(), Some("Cluster"));
    assert_eq!((plain.families.as_slice(), plain.ips.len()), (&[Family::V4][..], 1));
    let sticky = spec(&format!("{PORTS}\nsessionAffinity: ClientIP"));
    assert_eq!(sticky.traffic.session_timeout, Some(10_800));
    let dual = spec(&format!("{PORTS}\nipFamilyPolicy: PreferDualStack"));
    assert_eq!(dual.families, [Family::V4, Family::V6]);
    assert_eq!(dual.ips.iter().map(|ip| Family::of(*ip)).collect::<Vec<_>>(), dual.families);
    let six = spec(&format!("{PORTS}\nipFamilies: [IPv6]"));
    assert!(six.ips[0].is_ipv6() && six.ips.len() == 1);
    let headless = spec(&format!("{PORTS}\nclusterIP: None"));
    assert!(headless.headless && headless.ips.is_empty() && headless.families == [Family::V4]);
    let given = spec(&format!("{PORTS}\nclusterIP: 10.0.0.9"));
    assert_eq!(given.ips, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
}

#[test]
fn addresses_are_the_same_at_every_reading_and_unlike_in_every_cluster() {
    let files: Vec<_> = (0..50).map(|n| exported(&format!("s{n}"), PORTS, "")).collect();
    let text = files.join("---\n");
    let folder = Folder::new(&[("east/all.yaml", &text), ("west/all.yaml", &text)]);
    let ips = |id: &str| {
        let cluster = cluster(&folder, id);
        (0..50).map(|n| service(&cluster, &format!("s{n}")).ips[0]).collect::<Vec<_>>()
    };
    let (east, west) = (ips("east"), ips("west"));
    assert_eq!(east, ips("east"));
    assert_eq!(east.iter().collect::<BTreeSet<_>>().len(), 50);
    assert!(east.iter().zip(&west).all(|(a, b)| a != b));
    // Others that come and go change nothing.
    folder.write("east/more.yaml", &exported("more", PORTS, ""));
    assert_eq!(ips("east"), east);
}

#[test]
fn a_service_cidr_says_where_addresses_come_from() {
    let cidr = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/30]}\n---\n";
    let both = exported("a", PORTS, "") + "---\n" + &exported("b", PORTS, "");
    let folder = Folder::new(&[("east/all.yaml", &format!("{cidr}{both}"))]);
    let east = cluster(&folder, "east");
    let ips: BTreeSet<_> = ["a", "b"].map(|name| service(&east, name).ips[0].to_string()).into();
    assert_eq!(ips, BTreeSet::from(["10.96.0.1".to_owned(), "10.96.0.2".to_owned()]));
    assert_eq!(east.features().families, Some(vec![Family::V4]));
    folder.write("east/more.yaml", &exported("c", PORTS, ""));
    let full = read(folder.path()).unwrap_err().to_string();
    assert!(full.ends_with("Service shop/c: this cluster has no IPv4 address left for it"), "{full}");
}

#[test]
fn an_export_without_a_time_is_younger_than_all_that_have_one() {
    let dated = exported("web", PORTS, "")
        .replace("Export\nmetadata:\n", "Export\nmetadata:\n  creationTimestamp: 2026-01-02T03:04:05Z\n");
    let folder = Folder::new(&[("east/web.yaml", &exported("web", PORTS, "")), ("west/web.yaml", &dated)]);
    let (east, west) = (export(&cluster(&folder, "east"), "web"), export(&cluster(&folder, "west"), "web"));
    assert_eq!(west.created, Time(1_767_323_045));
    assert!(east.created > west.created);
    assert_eq!(east.meta.generation, 1);
    assert_eq!(east.meta.id.uid.len(), 36, "{}", east.meta.id.uid);
    assert_ne!(east.meta.id.uid, west.meta.id.uid);
}

#[test]
fn a_namespace_is_there_when_anything_is_in_it() {
    let folder = Folder::new(&[("east/web.yaml", &exported("web", PORTS, "")), ("west/empty.yaml", "")]);
    get(&cluster(&folder, "east"), Kind::Namespaces, "", "shop");
    let west = cluster(&folder, "west");
    let namespaces: Vec<_> = west.objects.keys().map(|id| (&*id.namespace, &*id.name)).collect();
    assert_eq!(namespaces, [("", "default")], "every cluster has it");
}

#[test]
fn an_empty_folder_is_a_cluster() {
    let folder = Folder::new(&[("east/web.yaml", "")]);
    std::fs::create_dir(folder.path().join("west")).unwrap();
    assert_eq!(read(folder.path()).unwrap().0.len(), 2);
}

#[test]
fn pods_are_ready_unless_they_say_otherwise() {
    let pod = pod("web", "w", "10.1.0.1");
    let says = |status: &str| pod.replace("status:", &format!("status:\n  {status}"));
    let state = |spec: &str, pod: String| {
        let endpoint = only(spec, pod);
        (endpoint.ready, endpoint.serving, endpoint.terminating)
    };
    assert_eq!(state(PORTS, pod.clone()), (true, true, false));
    assert_eq!(state(PORTS, says("conditions: [{type: Ready, status: \"True\"}]")), (true, true, false));
    let unready = says("conditions: [{type: Ready, status: \"False\"}]");
    assert_eq!(state(PORTS, unready.clone()), (false, false, false));
    assert_eq!(state(PORTS, says("phase: Pending")), (false, false, false));
    let publishes = format!("{PORTS}\npublishNotReadyAddresses: true");
    assert_eq!(state(&publishes, unready), (true, false, false));
    let ends = pod.replace("metadata:", "metadata:\n  deletionTimestamp: 2026-01-01T00:00:00Z");
    assert_eq!(state(PORTS, ends.clone()), (false, true, true));
    assert_eq!(state(&publishes, ends), (true, true, true));
    for over in ["Succeeded", "Failed"] {
        assert_eq!(made(PORTS, &[says(&format!("phase: {over}"))]), []);
    }
}

#[test]
fn only_pods_that_the_selector_fits_are_endpoints() {
    assert_eq!(made(PORTS, &[pod("other", "o", "10.1.0.1")]), []);
    let elsewhere = pod("web", "w", "10.1.0.1").replace("namespace: shop", "namespace: else");
    assert_eq!(made(PORTS, &[elsewhere]), []);
    let external =
        Folder::new(&[("east/web.yaml", &(exported("web", "type: ExternalName", "") + &pod("web", "w", "10.1.0.1")))]);
    assert_eq!(slices(&cluster(&external, "east")), []);
}

#[test]
fn an_endpoint_has_its_pods_name_node_and_zone() {
    let pod =
        pod("web", "w", "10.1.0.1").replace("status:", "spec: {nodeName: n1, hostname: w-0, subdomain: web}\nstatus:");
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/zone: z1}}\n";
    let endpoint = only(PORTS, pod.clone() + node);
    assert_eq!(endpoint.hostname.as_deref(), Some("w-0"));
    assert_eq!((endpoint.node.as_deref(), endpoint.zone.as_deref()), (Some("n1"), Some("z1")));
    assert_eq!(&*endpoint.pod.unwrap().name, "w");
    let other = only(PORTS, pod.replace("subdomain: web", "subdomain: other"));
    assert_eq!(other.hostname, None, "a hostname counts below its own Service alone");
}

#[test]
fn target_ports_are_resolved_pod_by_pod() {
    let spec = "ports: [{name: http, port: 80, targetPort: web}, {name: admin, port: 90, targetPort: 9000}, {name: same, port: 70}]";
    let with = |name: &str, ip: &str, port: u16| {
        let containers = format!("spec: {{containers: [{{ports: [{{name: web, containerPort: {port}}}]}}]}}\nstatus:");
        pod("web", name, ip).replace("status:", &containers)
    };
    let slices = made(spec, &[with("a", "10.1.0.1", 8080), with("b", "10.1.0.2", 8081), pod("web", "c", "10.1.0.3")]);
    let mut ports: Vec<Vec<(String, u16)>> = slices
        .iter()
        .map(|slice| slice.content.ports.iter().map(|port| (port.name.to_string(), port.port)).collect())
        .collect();
    ports.sort();
    let port = |name: &str, number| (name.to_owned(), number);
    assert_eq!(
        ports,
        [
            vec![port("admin", 9000), port("same", 70)],
            vec![port("http", 8080), port("admin", 9000), port("same", 70)],
            vec![port("http", 8081), port("admin", 9000), port("same", 70)],
        ]
    );
}

#[test]
fn a_slice_holds_a_hundred_endpoints_and_one_family() {
    let pods: Vec<_> =
        (0..250).map(|n| pod("web", &format!("w{n}"), &format!("10.1.{}.{}", n / 200, n % 200 + 1))).collect();
    let sizes: Vec<_> = made(PORTS, &pods).iter().map(|slice| slice.content.endpoints.len()).collect();
    assert_eq!((sizes.iter().sum::<usize>(), sizes.len(), sizes.iter().max()), (250, 3, Some(&100)));
    let without_address =
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: shop, labels: {app: web}}\n".to_owned();
    let families: BTreeSet<_> = made(&format!("{PORTS}\nipFamilyPolicy: PreferDualStack"), &[without_address])
        .iter()
        .map(|slice| slice.content.family)
        .collect();
    assert_eq!(families, BTreeSet::from([Family::V4, Family::V6]));
}

#[test]
fn slices_that_are_written_stand_for_the_pods() {
    let slice = "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-abc, namespace: shop, labels: {kubernetes.io/service-name: web}}\n\
                 addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.7.0.1]}]\n";
    let slices = made(PORTS, &[pod("web", "w", "10.1.0.1"), slice.to_owned()]);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].content.endpoints[0].addresses, ["10.7.0.1".parse::<IpAddr>().unwrap()]);
}

#[test]
fn workloads_have_the_pods_that_their_controllers_would_make() {
    let workload = |kind: &str, more: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web, namespace: shop}}\nspec:\n  {more}\n  template:\n    \
             metadata: {{labels: {{app: web}}}}\n"
        )
    };
    let names = |slices: &[Slice]| {
        let endpoints = slices.iter().flat_map(|slice| &slice.content.endpoints);
        let mut names: Vec<_> = endpoints
            .map(|e| format!("{} {}", e.pod.as_ref().unwrap().name, e.hostname.as_deref().unwrap_or("-")))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&made(PORTS, &[workload("Deployment", "replicas: 2")])), ["web-0 -", "web-1 -"]);
    assert_eq!(names(&made(PORTS, &[workload("DaemonSet", "")])), ["web-0 -"]);
    let stateful = workload("StatefulSet", "replicas: 2\n  serviceName: web");
    assert_eq!(names(&made(PORTS, &[stateful])), ["web-0 web-0", "web-1 web-1"]);
    // Where some are written, as in a copy of a cluster, these are all.
    let copied = made(PORTS, &[workload("Deployment", "replicas: 2"), pod("web", "web-7f9c", "10.1.0.1")]);
    assert_eq!(names(&copied), ["web-7f9c -"]);
}

#[tokio::test]
async fn a_look_tells_what_is_new_and_a_broken_file_until_it_is_mended() {
    let folder = Folder::new(&[("east/web.yaml", &exported("web", PORTS, ""))]);
    let mut watched = Watched::new(folder.path());
    let first = watched.look().await.unwrap().expect("a first state");
    assert_eq!(watched.look().await.unwrap(), None);
    folder.write("east/web.yaml", "a: [");
    let broken = loop {
        match watched.look().await {
            Err(error) => break error,
            Ok(state) => assert_eq!(state, None),
        }
    };
    assert_eq!(watched.look().await.unwrap_err(), broken);
    folder.write("east/web.yaml", &exported("web", PORTS, ""));
    assert_eq!(watched.look().await.unwrap(), Some(first), "healed, though nothing is different");
    assert_eq!(watched.look().await.unwrap(), None);
    folder.remove("");
    assert!(watched.look().await.unwrap_err().to_string().ends_with("or name another one"));
}
