//! Generated clustersets: random edits by random users in random clusters, outages among them.

use namesake::model::SliceKey;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::{Settings, naming};
use proptest::prelude::*;

use crate::set::*;

pub const CLUSTERS: [&str; 4] = ["a", "a-2", "b", "c"];
pub const SERVICES: [&str; 2] = ["shop/web", "shop/db"];

/// Something that somebody does.
#[derive(Debug, Clone)]
pub enum Edit {
    Export {
        cluster: usize,
        service: usize,
        created: i64,
        label: Option<u8>,
    },
    Unexport {
        cluster: usize,
        service: usize,
    },
    Service {
        cluster: usize,
        service: usize,
        spec: Spec,
    },
    NoService {
        cluster: usize,
        service: usize,
    },
    Pods {
        cluster: usize,
        service: usize,
        slice: usize,
        from: usize,
        count: usize,
        port: usize,
        unready: usize,
    },
    NoPods {
        cluster: usize,
        service: usize,
        slice: usize,
    },
    Cut {
        cluster: usize,
    },
    Mend {
        cluster: usize,
    },
    Wait {
        seconds: i64,
    },
    NoNamespace {
        cluster: usize,
    },
    Namespace {
        cluster: usize,
    },
    /// Somebody damages one of our objects.
    Damage {
        cluster: usize,
        service: usize,
        what: usize,
    },
}

/// A Service of few values, so that they meet.
#[derive(Debug, Clone)]
pub struct Spec {
    kind: usize,
    ports: Vec<(usize, u16, bool)>,
    families: usize,
    sticky: Option<i32>,
    local: bool,
    distribution: usize,
}

pub const FAMILIES: [&[Family]; 4] =
    [&[Family::V4], &[Family::V4, Family::V6], &[Family::V6, Family::V4], &[Family::V6]];

impl Spec {
    fn build(&self) -> ServiceSpec {
        let names = ["", "http", "web", "tcp-1"];
        let mut list: Vec<ServicePort> = Vec::new();
        for (name, number, udp) in &self.ports {
            let protocol = if *udp { "UDP" } else { "TCP" };
            let port = port(&format!("{} {number}/{protocol}", names[*name]));
            let taken = |p: &ServicePort| p.name == port.name || (p.protocol, p.port) == (port.protocol, port.port);
            if !list.iter().any(taken) {
                list.push(port);
            }
        }
        // An API server lets no Service with several ports have one without a name.
        if list.len() > 1 {
            list.retain(|port| !port.name.is_empty());
        }
        let headless = self.kind == 1;
        if list.is_empty() && !headless {
            list = ports(["http 80"]);
        }
        ServiceSpec {
            kind: if self.kind == 2 { ServiceType::ExternalName } else { ServiceType::ClusterIp },
            headless,
            families: FAMILIES[self.families].to_vec(),
            ports: list,
            traffic: Traffic {
                session_affinity: self.sticky.map(|_| "ClientIP".into()),
                session_timeout: self.sticky,
                internal_policy: self.local.then(|| "Local".into()),
                distribution: [None, Some("PreferClose"), Some("PreferSameZone")][self.distribution].map(Into::into),
            },
            ..ServiceSpec::default()
        }
    }
}

fn spec() -> impl Strategy<Value = Spec> {
    let port = (0..4_usize, 1..4_u16, any::<bool>());
    (
        prop_oneof![5 => Just(0_usize), 3 => Just(1), 1 => Just(2)],
        prop::collection::vec(port, 0..4),
        prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => Just(2), 1 => Just(3)],
        prop::option::weighted(0.2, prop_oneof![Just(10), Just(20)]),
        prop::bool::weighted(0.2),
        prop_oneof![4 => Just(0_usize), 1 => Just(1), 1 => Just(2)],
    )
        .prop_map(|(kind, ports, families, sticky, local, distribution)| Spec {
            kind,
            ports,
            families,
            sticky,
            local,
            distribution,
        })
}

/// An edit of users in living clusters.
pub fn edit() -> impl Strategy<Value = Edit> {
    let place = || (0..CLUSTERS.len(), 0..SERVICES.len());
    let export = (place(), 0..4_i64, prop::option::weighted(0.3, 0..3_u8));
    let pods = (place(), 0..2_usize, 0..6_usize, 0..6_usize, 0..2_usize, 0..8_usize);
    prop_oneof![
        4 => export.prop_map(|((cluster, service), created, label)| Edit::Export { cluster, service, created, label }),
        2 => place().prop_map(|(cluster, service)| Edit::Unexport { cluster, service }),
        4 => (place(), spec()).prop_map(|((cluster, service), spec)| Edit::Service { cluster, service, spec }),
        1 => place().prop_map(|(cluster, service)| Edit::NoService { cluster, service }),
        5 => pods.prop_map(|((cluster, service), slice, from, count, port, unready)| Edit::Pods {
            cluster, service, slice, from, count, port, unready
        }),
        1 => (place(), 0..2_usize).prop_map(|((cluster, service), slice)| Edit::NoPods { cluster, service, slice }),
        1 => (place(), 0..6_usize).prop_map(|((cluster, service), what)| Edit::Damage { cluster, service, what }),
        1 => (0..CLUSTERS.len()).prop_map(|cluster| Edit::NoNamespace { cluster }),
        2 => (0..CLUSTERS.len()).prop_map(|cluster| Edit::Namespace { cluster }),
    ]
}

/// The same, with outages among them.
pub fn edit_with_outages() -> impl Strategy<Value = Edit> {
    prop_oneof![
        8 => edit(),
        1 => (0..CLUSTERS.len()).prop_map(|cluster| Edit::Cut { cluster }),
        1 => (0..CLUSTERS.len()).prop_map(|cluster| Edit::Mend { cluster }),
        1 => prop_oneof![Just(5_i64), Just(40), Just(400)].prop_map(|seconds| Edit::Wait { seconds }),
    ]
}

/// The clusters before anybody did anything: the last one has IPv4 alone.
pub fn start(settings: Settings) -> Set {
    let mut set = Set::unjoined(settings);
    for (n, cluster) in CLUSTERS.iter().enumerate() {
        set.join_with(cluster, if n == 3 { &[Family::V4] } else { &[Family::V4, Family::V6] });
        set.namespace(cluster, "shop");
        for name in SERVICES {
            set.service(cluster, name, cluster_ip(["http 80"]));
            set.pods(cluster, name, 0, 0..2, 0, 9);
        }
    }
    set
}

/// Small slices, so that there are several.
pub fn small() -> Settings {
    Settings { endpoints_per_slice: 3, ..Settings::default() }
}

impl Set {
    pub fn is_live(&self, cluster: &str) -> bool {
        self.sim.world.members()[&id(cluster)].reach == Reach::Live
    }

    /// Applies an edit, as far as the cluster can be reached and has the namespace.
    pub fn edit(&mut self, edit: &Edit) {
        match edit {
            Edit::Wait { seconds } => return self.wait(*seconds),
            Edit::Cut { cluster } if self.is_live(CLUSTERS[*cluster]) => return self.cut(CLUSTERS[*cluster]),
            Edit::Mend { cluster } => return self.reach(CLUSTERS[*cluster], Reach::Live),
            Edit::Namespace { cluster } if self.is_live(CLUSTERS[*cluster]) => {
                if self.sim.world.members()[&id(CLUSTERS[*cluster])].namespace(&label("shop")).is_none() {
                    self.namespace(CLUSTERS[*cluster], "shop");
                }
                return;
            }
            Edit::NoNamespace { cluster } if self.is_live(CLUSTERS[*cluster]) => {
                return self.drop_namespace(CLUSTERS[*cluster], "shop");
            }
            Edit::Cut { .. } | Edit::Namespace { .. } | Edit::NoNamespace { .. } => return,
            _ => {}
        }
        let (Edit::Export { cluster, service, .. }
        | Edit::Unexport { cluster, service }
        | Edit::Service { cluster, service, .. }
        | Edit::NoService { cluster, service }
        | Edit::Pods { cluster, service, .. }
        | Edit::NoPods { cluster, service, .. }
        | Edit::Damage { cluster, service, .. }) = edit
        else {
            return;
        };
        let (cluster, name) = (CLUSTERS[*cluster], SERVICES[*service]);
        let member = &self.sim.world.members()[&id(cluster)];
        if member.reach != Reach::Live || member.namespace(&label("shop")).is_none() {
            return;
        }
        match edit {
            Edit::Export { created, label, .. } => {
                let labels = label.map_or(Map::new(), |n| map([("tier", &*n.to_string())]));
                self.export_with(cluster, name, *created, labels, Map::new());
            }
            Edit::Unexport { .. } => self.unexport(cluster, name),
            Edit::Service { spec, .. } => {
                self.service(cluster, name, spec.build());
                self.follow(cluster, name);
            }
            Edit::NoService { .. } => self.no_service(cluster, name),
            Edit::Pods { slice, from, count, port, unready, .. } => {
                self.pods(cluster, name, *slice, *from..*from + *count, *port, *unready);
            }
            Edit::NoPods { slice, .. } => {
                for family in ["4", "6"] {
                    self.no_source(cluster, name, &format!("{slice}-{family}"));
                }
            }
            Edit::Damage { what, .. } => self.damage(cluster, name, *what),
            _ => {}
        }
    }

    /// Pods in a slice for each family, whose ports are those of the Service as it is, resolved to `8000 + n` or
    /// `9000 + n`.
    fn pods(
        &mut self,
        cluster: &str,
        name: &str,
        slice: usize,
        pods: std::ops::Range<usize>,
        port: usize,
        unready: usize,
    ) {
        let n = CLUSTERS.iter().position(|c| *c == cluster).unwrap_or(0);
        for family in ["4", "6"] {
            let address = |pod: usize| match family {
                "4" => format!("10.{n}.0.{}", pod + 1),
                _ => format!("fd00:{n}::{:x}", pod + 1),
            };
            let mut list: Vec<_> = pods.clone().map(|pod| endpoint(&address(pod))).collect();
            if let Some(pod) = list.get_mut(unready) {
                (pod.ready, pod.serving) = (false, false);
            }
            let suffix = format!("{slice}-{family}");
            self.source(cluster, name, &suffix, [], list);
            let slice_key = self.source_key(name, &suffix);
            let mut slice = self.local(cluster, name).expect("filed").sources[&slice_key.name].clone();
            slice.content.family = if family == "4" { Family::V4 } else { Family::V6 };
            // How far from the Service's numbers these pods listen.
            slice.content.ports = vec![slice_port(&format!("{}", 8000 + 1000 * port))];
            self.sim.world.set_slice(&id(cluster), &slice_key, Some(slice));
        }
        self.follow(cluster, name);
    }

    fn source_key(&self, name: &str, suffix: &str) -> SliceKey {
        SliceKey { namespace: label("shop"), name: format!("{}-{suffix}", key(name).name).into() }
    }

    /// The slices get the ports of the Service as it is, as kube-controller-manager would do it.
    fn follow(&mut self, cluster: &str, name: &str) {
        let Some(local) = self.local(cluster, name) else { return };
        let own = local.service.as_ref().map(|service| service.spec.ports.clone()).unwrap_or_default();
        for (slice_name, mut slice) in local.sources.clone() {
            let far = slice.content.ports.first().map_or(8000, |port| port.port / 1000 * 1000);
            slice.content.ports = own
                .iter()
                .map(|p| SlicePort {
                    name: p.name.clone(),
                    protocol: p.protocol,
                    port: far + p.port,
                    app_protocol: None,
                })
                .collect();
            let slice_key = SliceKey { namespace: label("shop"), name: slice_name };
            self.sim.world.set_slice(&id(cluster), &slice_key, Some(slice));
        }
    }

    /// The namespace is gone, with all that was in it.
    pub fn drop_namespace(&mut self, cluster: &str, name: &str) {
        let cluster = id(cluster);
        let member = &self.sim.world.members()[&cluster];
        let keys: Vec<_> =
            member.locals().map(|(key, _)| key.clone()).filter(|k| k.namespace.as_str() == name).collect();
        let slices: Vec<_> = member.slice_keys().filter(|k| k.namespace.as_str() == name).cloned().collect();
        for key in keys {
            self.sim.world.set_export(&cluster, &key, None);
            self.sim.world.set_service(&cluster, &key, None);
            self.sim.world.set_import(&cluster, &key, None);
        }
        for slice in slices {
            self.sim.world.set_slice(&cluster, &slice, None);
        }
        self.sim.world.set_namespace(&cluster, &label(name), None);
    }

    /// Somebody takes away or changes something of ours.
    fn damage(&mut self, cluster: &str, name: &str, what: usize) {
        let cluster_id = id(cluster);
        let derived = naming::derived_key(&key(name));
        let slice = self.mirrored(cluster, name).first().map(|(name, slice)| ((*name).to_owned(), (*slice).clone()));
        match what {
            0 => drop(self.sim.world.set_import(&cluster_id, &key(name), None)),
            1 => drop(self.sim.world.set_service(&cluster_id, &derived, None)),
            2 => {
                if let Some((name, _)) = slice {
                    let slice_key = SliceKey { namespace: label("shop"), name: name.into() };
                    self.sim.world.set_slice(&cluster_id, &slice_key, None);
                }
            }
            3 => {
                if let Some((name, mut slice)) = slice {
                    slice.content.endpoints = endpoints(["10.66.6.6"]);
                    let slice_key = SliceKey { namespace: label("shop"), name: name.into() };
                    self.sim.world.set_slice(&cluster_id, &slice_key, Some(slice));
                }
            }
            4 => {
                if let Some(mut import) = self.import(cluster, name).cloned() {
                    import.spec.ports = ports(["hacked 6"]);
                    import.meta.labels.insert("theirs".into(), "x".into());
                    self.sim.world.set_import(&cluster_id, &key(name), Some(import));
                }
            }
            _ => {
                if let Some(mut service) = self.derived(cluster, name).cloned() {
                    service.spec.ports = ports(["hacked 6"]);
                    self.sim.world.set_service(&cluster_id, &derived, Some(service));
                }
            }
        }
    }
}
