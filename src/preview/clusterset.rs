//! The clusters of a folder, simulated: told what the folder says, they do what plans say.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::model::ClusterId;
use crate::reconcile::objects::{Family, Time};
use crate::reconcile::observed::{Export, Reach};
use crate::reconcile::plan::{Action, Plan};
use crate::reconcile::simulate::{Refused, Simulation};
use crate::reconcile::world::Kind;
use crate::reconcile::{ServicePlan, Settings, World, naming, plan_all};
use crate::source::clusters::{Cluster, Clusters};
use crate::source::member::Observed;

/// How often plans may follow from each other before that counts as a fault of ours.
const MOST_ROUNDS: usize = 12;

/// Clusters in memory.
#[derive(Debug, Clone)]
pub struct Clusterset {
    simulation: Simulation,
    /// What was told last.
    told: Clusters,
    settings: Settings,
}

/// What was done until nothing was left to do.
#[derive(Debug, Clone, Default)]
pub struct Settled {
    /// The plans that did something, in their order; a service can have several.
    pub plans: Vec<ServicePlan>,
    /// When to settle again although nothing was told.
    pub again: Option<Time>,
}

impl Clusterset {
    /// No clusters yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut world = World::new(settings.auto_export.clone());
        world.set_members_listed(true);
        Self { simulation: Simulation::new(world), told: Clusters::default(), settings }
    }

    /// Clusters that were observed elsewhere.
    #[must_use]
    pub fn of(world: World, settings: Settings) -> Self {
        Self { simulation: Simulation::new(world), told: Clusters::default(), settings }
    }

    /// What the clusters hold.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.simulation.world
    }

    /// What the folder said last.
    #[must_use]
    pub fn told(&self) -> &Clusters {
        &self.told
    }

    /// What the operator decides.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells what is different from the last time.
    pub fn tell(&mut self, clusters: Clusters) {
        let gone = self.told.0.keys().filter(|id| !clusters.0.contains_key(*id));
        for id in gone {
            self.simulation.world.remove_member(id);
        }
        for (id, cluster) in &clusters.0 {
            let world = &mut self.simulation.world;
            world.set_reach(id, Reach::Live);
            world.set_features(id, cluster.features());
            let before = self.told.0.get(id);
            let known = |object| before.is_some_and(|before: &Cluster| before.objects.contains_key(object));
            let same = |object| before.and_then(|before| before.objects.get(object));
            let absent = before.into_iter().flat_map(|before| &before.objects);
            for (_, object) in absent.filter(|(object, _)| !cluster.objects.contains_key(*object)) {
                object.absent().tell(world, id);
            }
            for (object, observed) in cluster.objects.iter().filter(|(id, observed)| same(id) != Some(*observed)) {
                match observed {
                    Observed::Export(key, Some(export)) if known(object) => {
                        let held = world.members().get(id).and_then(|member| member.local(key)?.export.as_ref());
                        let edited = held.map_or_else(|| export.clone(), |held| edited(held, export));
                        world.set_export(id, key, Some(edited));
                    }
                    other => {
                        other.clone().tell(world, id);
                    }
                }
            }
        }
        self.told = clusters;
    }

    /// Plans, and carries the plans out, until nothing is left to do.
    ///
    /// # Errors
    /// Where a simulated API server refuses a write, which is a fault of ours.
    pub fn settle(&mut self, now: Time) -> Result<Settled, Refused> {
        let mut plans = Vec::new();
        let mut taken = self.taken();
        for _ in 0..MOST_ROUNDS {
            let round: Vec<_> = plan_all(self.world(), &self.settings, now).collect();
            let again = round.iter().filter_map(|plan| plan.plan.again).min();
            let round: Vec<_> = round.into_iter().filter(|plan| !plan.plan.is_empty()).collect();
            if round.is_empty() {
                return Ok(Settled { plans, again });
            }
            for mut plan in round {
                self.wish_for_addresses(&mut plan.plan, &mut taken);
                self.simulation.apply(&plan.plan, now)?;
                plans.push(plan);
            }
        }
        Err(Refused::Conflict(format!("the clusterset, {MOST_ROUNDS} times over,").into()))
    }

    /// Has a derived Service that is made ask for an address of its cluster's range.
    fn wish_for_addresses(&self, plan: &mut Plan, taken: &mut HashMap<ClusterId, HashSet<IpAddr>>) {
        for change in &mut plan.changes {
            let Some(cluster) = self.told.0.get(&change.cluster) else { continue };
            let Action::ApplyService(object) = &mut change.action else { continue };
            if object.existing.is_some() || object.spec.headless {
                continue;
            }
            let taken = taken.entry(change.cluster.clone()).or_default();
            for family in cluster.ranges.families() {
                if object.spec.ips.iter().any(|ip| Family::of(*ip) == family) {
                    continue;
                }
                let namespace = object.key.namespace.as_str();
                let ip = cluster.ranges.service(family, namespace, object.name.as_str(), taken);
                taken.extend(ip);
                object.spec.ips.extend(ip);
            }
        }
    }

    /// The addresses of every cluster's Services: those that were told, and those derived.
    fn taken(&self) -> HashMap<ClusterId, HashSet<IpAddr>> {
        let derived: Vec<_> = self.world().keys().map(|key| naming::derived_key(&key)).collect();
        let of_cluster = |(id, cluster): (&ClusterId, &Cluster)| {
            let mut taken = addresses(cluster);
            if let Some(member) = self.world().members().get(id) {
                let services = derived.iter().filter_map(|key| member.derived(key));
                taken.extend(services.flat_map(|service| &service.spec.ips));
            }
            (id.clone(), taken)
        };
        self.told.0.iter().map(of_cluster).collect()
    }

    /// The cluster of that id, or else the first by name.
    #[must_use]
    pub fn cluster(&self, id: Option<&ClusterId>) -> Option<&ClusterId> {
        match id {
            Some(id) => self.world().members().get_key_value(id).map(|(id, _)| id),
            None => self.world().members().keys().next(),
        }
    }
}

/// The addresses of a cluster's Services, as written.
fn addresses(cluster: &Cluster) -> HashSet<IpAddr> {
    let services = cluster.objects.iter().filter(|(id, _)| id.kind == Kind::Services);
    let ips = services.filter_map(|(_, object)| match object {
        Observed::Service(_, Some(service)) => Some(&service.spec.ips),
        _ => None,
    });
    ips.flatten().copied().collect()
}

/// An export after an edit: as in an API server, its status stays, and its generation counts edits of its spec.
fn edited(held: &Export, new: &Export) -> Export {
    let mut edited = new.clone();
    if held.meta.id.uid != new.meta.id.uid {
        return edited;
    }
    let same = (&held.labels, &held.annotations) == (&new.labels, &new.annotations);
    edited.meta.generation = new.meta.generation.max(held.meta.generation + i64::from(!same));
    if edited.conditions.is_empty() {
        edited.conditions.clone_from(&held.conditions);
    }
    edited
}
