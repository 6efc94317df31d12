//! The workload that figures are about: a clusterset, and queries in the shares that clusters ask them in.
//!
//! 60 % A of a ClusterSetIP service, 12 % A of a headless one (20 records), 3 % A of an endpoint, 10 % SRV (one
//! record), 10 % NXDOMAIN, 5 % AAAA without data; names at random.
#![allow(dead_code, unreachable_pub, reason = "each binary uses its part")]

#[path = "kinds.rs"]
mod kinds;

use std::net::IpAddr;

use fastrand::Rng;
pub use kinds::Kind;
use namesake::model::{
    Change, ClusterId, Endpoint, EndpointObjects, Import, ImportKind, Label, Port, Protocol, Readiness, ServiceKey,
    Slice, SliceKey,
};

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// ClusterSetIP imports, one address each.
    pub services: u32,
    /// Headless imports.
    pub headless: u32,
    /// Endpoints of each headless import, in one slice a cluster and 100 endpoints.
    pub endpoints: u32,
    /// Namespaces that they are in.
    pub namespaces: u32,
}

/// 5,000 services and 500 headless ones of 20 endpoints.
pub const SMALL: Size = Size { services: 5_000, headless: 500, endpoints: 20, namespaces: 100 };

/// 100,000 services, of which 10,000 are headless and have 1,000,000 endpoints.
pub const LARGE: Size = Size { services: 90_000, headless: 10_000, endpoints: 100, namespaces: 1_000 };

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::ServiceA,
        Self::HeadlessA,
        Self::EndpointA,
        Self::ServiceSrv,
        Self::NxDomain,
        Self::NoData,
        Self::HeadlessSrv,
    ];

    /// A query of this kind, without EDNS.
    pub fn query(self, size: Size, rng: &mut Rng) -> Vec<u8> {
        let (a, aaaa, srv) = (1, 28, 33);
        let service = rng.u32(0..size.services);
        let headless = rng.u32(0..size.headless);
        let host = rng.u32(0..size.endpoints);
        let (web, db) = (size.namespace(service), size.namespace(headless));
        let (name, qtype) = match self {
            Self::ServiceA => (format!("svc-{service}.{web}"), a),
            Self::HeadlessA => (format!("db-{headless}.{db}"), a),
            Self::EndpointA => (format!("pod-{host}.cluster-{}.db-{headless}.{db}", headless % 5), a),
            Self::ServiceSrv => (format!("_http._tcp.svc-{service}.{web}"), srv),
            Self::NxDomain => (format!("none-{service}.{web}"), a),
            Self::NoData => (format!("svc-{service}.{web}"), aaaa),
            Self::HeadlessSrv => (format!("_http._tcp.db-{headless}.{db}"), srv),
        };
        let mut packet = vec![rng.u8(..), rng.u8(..), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').chain(["svc", "clusterset", "local"]) {
            packet.push(label.len() as u8);
            packet.extend(label.bytes());
        }
        packet.extend([0, 0, qtype, 0, 1]);
        packet
    }
}

/// `query` with an OPT that states 1232 octets.
pub fn with_opt(mut query: Vec<u8>) -> Vec<u8> {
    query[11] = 1;
    query.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    query
}

impl Size {
    /// The endpoints of all services together.
    pub fn all_endpoints(self) -> u32 {
        self.headless * self.endpoints
    }

    fn namespace(self, i: u32) -> String {
        format!("ns-{}", i % self.namespaces)
    }

    /// The imports, one by one; `turn` moves the addresses.
    pub fn imports(self, turn: u8) -> impl Iterator<Item = Change> {
        let services = (0..self.services).map(move |i| {
            let ports = [Port { name: Label::new("http"), protocol: Protocol::Tcp, number: 80 }];
            self.import(i, format!("svc-{i}"), ImportKind::ClusterSetIp, &[address(10 + turn, i)], &ports)
        });
        let headless =
            (0..self.headless).map(move |i| self.import(i, format!("db-{i}"), ImportKind::Headless, &[], &[]));
        services.chain(headless)
    }

    /// The slices, one by one: at most 100 endpoints in each.
    pub fn slices(self, turn: u8) -> impl Iterator<Item = Change> {
        let per_slice = self.endpoints.min(100);
        let each = self.endpoints.div_ceil(per_slice);
        (0..self.headless * each).map(move |n| {
            let (i, part) = (n / each, n % each);
            let endpoint = |host: u32| Endpoint {
                address: address(100 + turn, i * self.endpoints + host),
                hostname: Label::new(&format!("pod-{host}")),
                pod: None,
                readiness: Readiness::Ready,
            };
            let hosts = part * per_slice..self.endpoints.min((part + 1) * per_slice);
            let slice = Slice {
                service: label(&format!("db-{i}")),
                cluster: ClusterId::new(&format!("cluster-{}", i % 5)),
                ports: [Port { name: Label::new("http"), protocol: Protocol::Tcp, number: 8080 }].into(),
                endpoints: hosts.map(endpoint).collect(),
                triggered: None,
                skipped: Box::default(),
            };
            // As Kubernetes names them.
            let name = format!("db-{i}-{part:05x}").into();
            Change::Slice(SliceKey { namespace: label(&self.namespace(i)), name }, Some(slice))
        })
    }

    fn import(self, i: u32, name: String, kind: ImportKind, ips: &[IpAddr], ports: &[Port]) -> Change {
        let import = Import {
            kind,
            ips: ips.into(),
            ports: ports.into(),
            clusters: [ClusterId::new(&format!("cluster-{}", i % 5)).expect("an id")].into(),
            endpoint_objects: EndpointObjects::Unknown,
            skipped: Box::default(),
        };
        Change::Import(ServiceKey::new(&self.namespace(i), &name).expect("a key"), Some(import))
    }
}

fn label(text: &str) -> Label {
    Label::new(text).expect("a label")
}

fn address(first: u8, i: u32) -> IpAddr {
    let [_, a, b, c] = i.to_be_bytes();
    IpAddr::from([first, a, b, c])
}
