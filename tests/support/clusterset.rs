//! Three clusters that export the same services from the same number of pods each, and have imported all of them:
//! what planning is measured on.
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

/// The clusters.
pub const CLUSTERS: [&str; 3] = ["east", "north", "west"];

/// When everything happens.
pub const NOW: Time = Time(1_000_000);

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Services, each exported from every cluster.
    pub services: usize,
    /// Endpoints of each in each cluster.
    pub endpoints: usize,
}

/// A clusterset in which nothing is left to do.
#[derive(Clone)]
pub struct Clusterset {
    pub sim: Simulation,
    pub settings: Settings,
    size: Size,
}

impl Clusterset {
    pub fn new(size: Size) -> Self {
        let mut world = World::new(None);
        world.set_members_listed(true);
        for (n, cluster) in CLUSTERS.into_iter().enumerate() {
            let id = id(cluster);
            world.set_reach(&id, Reach::Live);
            let features = Features { endpoint_slice_objects: true, families: Some(vec![Family::V4]) };
            world.set_features(&id, features);
            for at in 0..size.services {
                let key = key(at);
                let meta = Meta { id: identity("namespace"), ..Meta::default() };
                world.set_namespace(&id, &key.namespace, Some(Namespace { meta, terminating: false }));
                world.set_service(&id, &key, Some(service(n, at)));
                let created = Time(NOW.0 - 1000 + i64::try_from(n).unwrap_or(0));
                let meta = Meta { id: identity("export"), generation: 1, ..Meta::default() };
                world.set_export(&id, &key, Some(Export { meta, created, ..Export::default() }));
            }
        }
        let settings = Settings::default();
        let mut set = Self { sim: Simulation::new(world), settings, size };
        for (n, cluster) in CLUSTERS.into_iter().enumerate() {
            for at in 0..size.services {
                set.pods(n, &id(cluster), at, None);
            }
        }
        set.sim.converge(&set.settings, NOW).expect("every write is accepted");
        set
    }

    /// Tells the slices of one service in one cluster; one pod of them may be unready.
    fn pods(&mut self, n: usize, cluster: &ClusterId, at: usize, unready: Option<usize>) -> Vec<Dirty> {
        let mut dirty = Vec::new();
        for first in (0..self.size.endpoints).step_by(100) {
            let pods = first..self.size.endpoints.min(first + 100);
            let (key, slice) = self.source(n, at, pods, unready);
            dirty.push(self.sim.world.set_slice(cluster, &key, Some(slice)));
        }
        dirty
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

    /// The slice that says of one pod of service `at` in the first cluster whether it is ready.
    pub fn change(&self, at: usize, pod: usize, ready: bool) -> (ClusterId, SliceKey, Slice) {
        let first = pod / 100 * 100;
        let pods = first..self.size.endpoints.min(first + 100);
        let (key, slice) = self.source(0, at, pods, (!ready).then_some(pod));
        (id(CLUSTERS[0]), key, slice)
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
