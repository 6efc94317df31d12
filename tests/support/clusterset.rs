//! Clusters that export services from some pods each, and have imported all of them: what planning is measured on.
#![allow(dead_code, reason = "the support of several binaries is more than each of them uses")]

use std::net::{IpAddr, Ipv4Addr};

use namesake::api;
use namesake::model::{ClusterId, Label, Protocol, ServiceKey, SliceKey};
use namesake::reconcile::objects::{
    Endpoint, Family, Identity, Map, Meta, PodRef, ServicePort, ServiceSpec, SliceContent, SlicePort, Time,
};
use namesake::reconcile::observed::{Export, Features, Namespace, Reach, Service, Slice};
use namesake::reconcile::simulate::Simulation;
use namesake::reconcile::{Dirty, ServicePlan, Settings, World, plan_service};

/// The clusters, of which a set has the first ones.
pub const CLUSTERS: [&str; 10] =
    ["athens", "berlin", "cairo", "delhi", "essen", "faro", "geneva", "hanoi", "izmir", "jakarta"];

/// When everything happens.
pub const NOW: Time = Time(1_000_000);

/// The most plans of a service until nothing is left to do: its objects, the addresses they were given, the statuses.
const MOST_ROUNDS: usize = 5;

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Clusters, each of which imports every service.
    pub clusters: usize,
    /// How many of them export each service. Which ones goes round from service to service.
    pub exporters: usize,
    /// Services.
    pub services: usize,
    /// Endpoints of each in each cluster that exports it.
    pub endpoints: usize,
}

impl Size {
    /// Three clusters, all of which export every service.
    pub fn everywhere(services: usize, endpoints: usize) -> Self {
        Self { clusters: 3, exporters: 3, services, endpoints }
    }

    /// Each service from two of the clusters, with ten endpoints in each of the two.
    pub fn pairs(clusters: usize, services: usize) -> Self {
        Self { clusters, exporters: 2, services, endpoints: 10 }
    }

    /// The clusters that export a service.
    fn exporting(self, at: usize) -> impl Iterator<Item = usize> {
        (0..self.exporters).map(move |n| (at + n) % self.clusters)
    }
}

/// A clusterset that is planned.
#[derive(Clone)]
pub struct Clusterset {
    pub sim: Simulation,
    pub settings: Settings,
    size: Size,
}

impl Clusterset {
    /// One in which nothing is left to do.
    pub fn new(size: Size) -> Self {
        let mut set = Self::exported(size);
        set.settle();
        set
    }

    /// One in which everything is exported, and nothing imported yet.
    pub fn exported(size: Size) -> Self {
        let mut world = World::new(None);
        world.set_members_listed(true);
        let clusters: Vec<_> = CLUSTERS.into_iter().take(size.clusters).map(id).collect();
        for id in &clusters {
            world.set_reach(id, Reach::Live);
            let features = Features { endpoint_slice_objects: true, families: Some(vec![Family::V4]) };
            world.set_features(id, features);
        }
        let mut set = Self { sim: Simulation::new(world), settings: Settings::default(), size };
        for at in 0..size.services {
            let key = key(at);
            for id in &clusters {
                let meta = Meta { id: identity("namespace"), ..Meta::default() };
                set.sim.world.set_namespace(id, &key.namespace, Some(Namespace { meta, terminating: false }));
            }
            for n in size.exporting(at) {
                let id = &clusters[n];
                set.sim.world.set_service(id, &key, Some(service(n, at)));
                let created = Time(NOW.0 - 1000 + i64::try_from(n).unwrap_or(0));
                let meta = Meta { id: identity("export"), generation: 1, ..Meta::default() };
                set.sim.world.set_export(id, &key, Some(Export { meta, created, ..Export::default() }));
                set.pods(n, id, at, None);
            }
        }
        set
    }

    /// Plans each service and applies that until nothing is left to do.
    pub fn settle(&mut self) {
        for at in 0..self.size.services {
            let key = key(at);
            let idle = (0..MOST_ROUNDS).any(|_| {
                let plan = plan_service(&self.sim.world, &key, &self.settings, NOW).plan;
                self.sim.apply(&plan, NOW).expect("every write is accepted");
                plan.is_empty()
            });
            assert!(idle, "nothing is left to do");
        }
    }

    /// Tells the slices of one service in one cluster; one pod of them may be unready.
    fn pods(&mut self, n: usize, cluster: &ClusterId, at: usize, unready: Option<usize>) {
        for first in (0..self.size.endpoints).step_by(100) {
            let pods = first..self.size.endpoints.min(first + 100);
            let (key, slice) = self.source(n, at, pods, unready);
            self.sim.world.set_slice(cluster, &key, Some(slice));
        }
    }

    fn source(&self, n: usize, at: usize, pods: std::ops::Range<usize>, unready: Option<usize>) -> (SliceKey, Slice) {
        let key = key(at);
        let labels: Map = [
            (api::LABEL_KUBERNETES_SERVICE_NAME, key.name.as_str()),
            (api::LABEL_SLICE_MANAGED_BY, "endpointslice-controller.k8s.io"),
        ]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
        let name = format!("{}-{}", key.name, pods.start);
        let endpoints = pods.map(|pod| endpoint(n, at, pod, unready != Some(pod))).collect();
        let ports = vec![SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: 8080, app_protocol: None }];
        let content = SliceContent { family: Family::V4, ports, endpoints };
        let meta = Meta { id: identity("slice"), generation: 1, labels, ..Meta::default() };
        (SliceKey { namespace: key.namespace, name: name.into() }, Slice { meta, content })
    }

    /// The slice that says of one pod of service `at`, in the first cluster that exports it, whether it is ready.
    pub fn change(&self, at: usize, pod: usize, ready: bool) -> (ClusterId, SliceKey, Slice) {
        let first = pod / 100 * 100;
        let pods = first..self.size.endpoints.min(first + 100);
        let n = self.size.exporting(at).next().unwrap_or(0);
        let (key, slice) = self.source(n, at, pods, (!ready).then_some(pod));
        (id(CLUSTERS[n]), key, slice)
    }

    /// Takes a change in and plans what it makes dirty, as the controller does it.
    pub fn take(&mut self, (cluster, key, slice): (ClusterId, SliceKey, Slice)) -> Vec<ServicePlan> {
        let Dirty::Services(keys) = self.sim.world.set_slice(&cluster, &key, Some(slice)) else { return Vec::new() };
        keys.iter().map(|key| plan_service(&self.sim.world, key, &self.settings, NOW)).collect()
    }
}

fn id(cluster: &str) -> ClusterId {
    ClusterId::new(cluster).expect("a cluster id")
}

/// A hundred services a namespace.
pub fn key(at: usize) -> ServiceKey {
    ServiceKey::new(&format!("shop-{}", at / 100), &format!("web-{at}")).expect("a key")
}

fn identity(uid: &str) -> Identity {
    Identity { uid: uid.into(), resource_version: "1".into() }
}

fn service(n: usize, at: usize) -> Service {
    let port = ServicePort { name: "http".into(), protocol: Protocol::Tcp, port: 80, app_protocol: None, target: None };
    let spec = ServiceSpec {
        ips: vec![IpAddr::V4(Ipv4Addr::from(0x0a60_0000 + u32::try_from(n * 100_000 + at).unwrap_or(0)))],
        families: vec![Family::V4],
        ports: vec![port],
        ..ServiceSpec::default()
    };
    Service { meta: Meta { id: identity("service"), generation: 1, ..Meta::default() }, spec }
}

fn endpoint(n: usize, at: usize, pod: usize, ready: bool) -> Endpoint {
    let host = u32::try_from((n * 1_000_000) + at * 1000 + pod).unwrap_or(0);
    Endpoint {
        addresses: vec![IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + host))],
        ready,
        serving: ready,
        terminating: false,
        hostname: None,
        zone: Some(["zone-a", "zone-b", "zone-c"][pod % 3].into()),
        node: Some(format!("node-{}", pod % 50).into()),
        pod: Some(PodRef { name: format!("web-{at}-{pod:05}").into(), uid: format!("{host:036}").into() }),
        hint_zones: Vec::new(),
    }
}

/// For callers that name a namespace.
pub fn namespace(at: usize) -> Label {
    key(at).namespace
}
