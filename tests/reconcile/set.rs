//! A clusterset in memory that reads like a story: users' objects go in by short calls, `run` applies plans until
//! nothing is left to do, and what the clusters hold then is looked at.

use namesake::api;
use namesake::model::{ClusterId, SliceKey};
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Change, Event, Importing, ServicePlan};
use namesake::reconcile::simulate::Simulation;
use namesake::reconcile::{Settings, World, naming, plan_all, plan_service};

pub use crate::values::*;

/// The time at which stories begin.
pub const START: i64 = 1_000_000;

pub struct Set {
    pub sim: Simulation,
    pub settings: Settings,
    pub now: Time,
    /// Every plan that was applied.
    pub log: Vec<ServicePlan>,
    versions: u64,
}

impl Set {
    /// Live members with the namespaces `default`, `shop` and `kube-system`, which can give IPv4.
    pub fn new<const N: usize>(clusters: [&str; N]) -> Self {
        Self::with(Settings::default(), clusters)
    }

    pub fn with<const N: usize>(settings: Settings, clusters: [&str; N]) -> Self {
        let mut set = Self::unjoined(settings);
        for cluster in clusters {
            set.join(cluster);
        }
        set
    }

    pub fn unjoined(settings: Settings) -> Self {
        let mut world = World::new(settings.auto_export.clone());
        world.set_members_listed(true);
        Self { sim: Simulation::new(world), settings, now: Time(START), log: Vec::new(), versions: 0 }
    }

    pub fn join(&mut self, cluster: &str) {
        self.join_with(cluster, &[Family::V4]);
        for namespace in ["default", "shop", "kube-system"] {
            self.namespace(cluster, namespace);
        }
    }

    /// Without any namespace.
    pub fn join_with(&mut self, cluster: &str, families: &[Family]) {
        self.sim.world.set_reach(&id(cluster), Reach::Live);
        let features = Features { endpoint_slice_objects: true, families: Some(families.to_vec()) };
        self.sim.world.set_features(&id(cluster), features);
    }

    pub fn meta(&mut self) -> Meta {
        self.versions += 1;
        let id = Identity {
            uid: format!("user-{}", self.versions).into(),
            resource_version: format!("u{}", self.versions).into(),
        };
        Meta { id, generation: 1, ..Meta::default() }
    }

    pub fn namespace(&mut self, cluster: &str, name: &str) {
        let meta = self.meta();
        self.sim.world.set_namespace(&id(cluster), &label(name), Some(Namespace { meta, terminating: false }));
    }

    pub fn terminate(&mut self, cluster: &str, name: &str) {
        let meta = self.meta();
        self.sim.world.set_namespace(&id(cluster), &label(name), Some(Namespace { meta, terminating: true }));
    }

    pub fn annotate_namespace(&mut self, cluster: &str, name: &str, value: &str) {
        let mut meta = self.meta();
        meta.annotations = map([(api::ANNOTATION_NAMESPACE, value)]);
        self.sim.world.set_namespace(&id(cluster), &label(name), Some(Namespace { meta, terminating: false }));
    }

    /// A ServiceExport, made `created` seconds after the start.
    pub fn export(&mut self, cluster: &str, name: &str, created: i64) {
        self.export_with(cluster, name, created, Map::new(), Map::new());
    }

    pub fn export_with(&mut self, cluster: &str, name: &str, created: i64, labels: Map, annotations: Map) {
        let before = self.local(cluster, name).and_then(|local| local.export.clone());
        let mut meta = self.meta();
        let mut conditions = Vec::new();
        if let Some(before) = before.filter(|before| before.created == Time(START + created)) {
            (meta.id.uid, meta.generation) = (before.meta.id.uid, before.meta.generation + 1);
            conditions = before.conditions;
        }
        let created = Time(START + created);
        let export = Export { meta, created, labels, annotations, conditions, deleting: false };
        self.sim.world.set_export(&id(cluster), &key(name), Some(export));
    }

    pub fn unexport(&mut self, cluster: &str, name: &str) {
        self.sim.world.set_export(&id(cluster), &key(name), None);
    }

    pub fn service(&mut self, cluster: &str, name: &str, spec: ServiceSpec) {
        self.service_labelled(cluster, name, spec, Map::new());
    }

    pub fn service_labelled(&mut self, cluster: &str, name: &str, spec: ServiceSpec, labels: Map) {
        let meta = Meta { labels, ..self.meta() };
        self.sim.world.set_service(&id(cluster), &key(name), Some(Service { meta, spec }));
    }

    pub fn no_service(&mut self, cluster: &str, name: &str) {
        self.sim.world.set_service(&id(cluster), &key(name), None);
    }

    /// A slice of a user's Service, named `<service>-<suffix>`.
    pub fn source<const N: usize>(
        &mut self,
        cluster: &str,
        name: &str,
        suffix: &str,
        ports: [&str; N],
        endpoints: Vec<Endpoint>,
    ) {
        let family = endpoints.first().map_or(Family::V4, |endpoint| Family::of(endpoint.addresses[0]));
        let content = SliceContent { family, ports: ports.into_iter().map(slice_port).collect(), endpoints };
        let key = key(name);
        let labels = map([
            (api::LABEL_KUBERNETES_SERVICE_NAME, key.name.as_str()),
            (api::LABEL_SLICE_MANAGED_BY, "endpointslice-controller.k8s.io"),
            ("team", "theirs"),
        ]);
        let meta = Meta { labels, ..self.meta() };
        let slice = SliceKey { namespace: key.namespace, name: format!("{}-{suffix}", key.name).into() };
        self.sim.world.set_slice(&id(cluster), &slice, Some(Slice { meta, content }));
    }

    pub fn no_source(&mut self, cluster: &str, name: &str, suffix: &str) {
        let key = key(name);
        let slice = SliceKey { namespace: key.namespace, name: format!("{}-{suffix}", key.name).into() };
        self.sim.world.set_slice(&id(cluster), &slice, None);
    }

    /// An exported Service with pods at these addresses, listening on 8080, under the Service's first port.
    pub fn exported<const N: usize>(&mut self, cluster: &str, name: &str, created: i64, addresses: [&str; N]) {
        self.service(cluster, name, cluster_ip(["http 80"]));
        self.source(cluster, name, "abc", ["http 8080"], endpoints(addresses));
        self.export(cluster, name, created);
    }

    pub fn reach(&mut self, cluster: &str, reach: Reach) {
        self.sim.world.set_reach(&id(cluster), reach);
    }

    pub fn cut(&mut self, cluster: &str) {
        let since = self.now;
        self.reach(cluster, Reach::Unreachable { since });
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now.0 += seconds;
    }

    /// Another process with the same clusters: only what the clusters themselves hold is known, and of those in
    /// `unheard` not even that.
    pub fn restart<const N: usize>(&mut self, unheard: [&str; N]) {
        let old = self.sim.world.clone();
        let mut world = World::new(self.settings.auto_export.clone());
        world.set_members_listed(true);
        for (cluster, member) in old.members() {
            if unheard.contains(&cluster.as_str()) {
                world.set_reach(cluster, Reach::Unheard { since: self.now });
                continue;
            }
            world.set_reach(cluster, Reach::Live);
            world.set_features(cluster, member.features.clone());
            copy(cluster, member, &mut world);
        }
        self.sim.world = world;
    }

    /// What a member held comes in, as when its lists complete.
    pub fn hear(&mut self, cluster: &str, from: &World) {
        let cluster = id(cluster);
        let member = &from.members()[&cluster];
        copy(&cluster, member, &mut self.sim.world);
        self.sim.world.set_features(&cluster, member.features.clone());
        self.sim.world.set_reach(&cluster, Reach::Live);
    }

    /// Applies plans until nothing is left to do; returns what was done.
    pub fn run(&mut self) -> Vec<Change> {
        let plans = self.sim.converge(&self.settings, self.now).expect("every write is accepted");
        self.log.extend(plans.clone());
        plans.into_iter().flat_map(|plan| plan.plan.changes).collect()
    }

    /// What was told since the beginning: `cluster reason`.
    pub fn told(&self) -> Vec<String> {
        let events = self.log.iter().flat_map(|plan| &plan.plan.events);
        events.map(|event| format!("{} {}", event.cluster, event.reason)).collect()
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.log.iter().flat_map(|plan| &plan.plan.events)
    }

    /// The plan of one service, not applied.
    pub fn plan(&self, name: &str) -> ServicePlan {
        plan_service(&self.sim.world, &key(name), &self.settings, self.now)
    }

    /// Everything that would be written now.
    pub fn pending(&self) -> Vec<Change> {
        plan_all(&self.sim.world, &self.settings, self.now).flat_map(|plan| plan.plan.changes).collect()
    }

    pub fn local(&self, cluster: &str, name: &str) -> Option<&Local> {
        self.sim.world.members().get(&id(cluster))?.local(&key(name))
    }

    pub fn import(&self, cluster: &str, name: &str) -> Option<&Import> {
        self.local(cluster, name)?.import.as_ref()
    }

    /// The import, which has to be there.
    pub fn imported(&self, cluster: &str, name: &str) -> &Import {
        self.import(cluster, name).unwrap_or_else(|| panic!("no import {name} in {cluster}"))
    }

    pub fn derived(&self, cluster: &str, name: &str) -> Option<&Service> {
        self.sim.world.members().get(&id(cluster))?.derived(&naming::derived_key(&key(name)))
    }

    /// Our slices, by name.
    pub fn mirrored(&self, cluster: &str, name: &str) -> Vec<(&str, &Slice)> {
        let slices = self.local(cluster, name).into_iter().flat_map(|local| &local.mirrored);
        slices.map(|(name, slice)| (&**name, slice)).collect()
    }

    pub fn slice_names(&self, cluster: &str, name: &str) -> Vec<&str> {
        self.mirrored(cluster, name).into_iter().map(|(name, _)| name).collect()
    }

    /// The addresses in our slices, sorted.
    pub fn addresses(&self, cluster: &str, name: &str) -> Vec<String> {
        let slices = self.mirrored(cluster, name);
        let endpoints = slices.into_iter().flat_map(|(_, slice)| &slice.content.endpoints);
        let mut addresses: Vec<_> = endpoints.map(|endpoint| endpoint.addresses[0].to_string()).collect();
        addresses.sort();
        addresses
    }

    pub fn condition(&self, cluster: &str, name: &str, kind: &str) -> Option<&Condition> {
        let conditions = &self.local(cluster, name)?.export.as_ref()?.conditions;
        conditions.iter().find(|condition| *condition.kind == *kind)
    }

    /// A condition of the export as `Status/Reason`.
    pub fn says(&self, cluster: &str, name: &str, kind: &str) -> String {
        let condition = self.condition(cluster, name, kind);
        condition.map_or("none".into(), |c| format!("{}/{}", c.status.as_str(), c.reason))
    }

    pub fn message(&self, cluster: &str, name: &str, kind: &str) -> &str {
        self.condition(cluster, name, kind).map_or("", |condition| &condition.message)
    }

    /// The import's condition `Ready`.
    pub fn import_says(&self, cluster: &str, name: &str) -> String {
        let condition = self.imported(cluster, name).status.conditions.first();
        condition.map_or("none".into(), |c| format!("{}/{}", c.status.as_str(), c.reason))
    }

    pub fn clusters(&self, cluster: &str, name: &str) -> Vec<&str> {
        self.imported(cluster, name).status.clusters.iter().map(ClusterId::as_str).collect()
    }

    pub fn importing(&self, cluster: &str, name: &str) -> Option<Importing> {
        self.plan(name).importers.into_iter().find(|(id, _)| id.as_str() == cluster).map(|(_, importing)| importing)
    }
}

/// Tells `world` what `member` holds.
fn copy(cluster: &ClusterId, member: &namesake::reconcile::world::Member, world: &mut World) {
    for name in member.namespaces() {
        world.set_namespace(cluster, name, member.namespace(name).cloned());
    }
    for (key, local) in member.locals() {
        world.set_export(cluster, key, local.export.clone());
        world.set_service(cluster, key, local.service.clone());
        world.set_import(cluster, key, local.import.clone());
        for (name, slice) in local.sources.iter().chain(&local.mirrored) {
            let slice_key = SliceKey { namespace: key.namespace.clone(), name: name.clone() };
            world.set_slice(cluster, &slice_key, Some(slice.clone()));
        }
    }
}
