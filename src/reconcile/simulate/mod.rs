//! Clusters in memory: applies plans to a [`World`] as API servers would, so that a plan can be looked at after it was
//! carried out. For tests, for `namesake sandbox`, and for `namesake plan` on a folder.
//!
//! What API servers fill in is made up, the same for the same names on every run: uids, versions, cluster IPs.

mod addresses;

use std::collections::{BTreeSet, HashMap};

use addresses::Addresses;

use super::objects::{
    Condition, Family, Identity, ImportStatus, Map, Meta, Owner, OwnerKind, ServiceSpec, ServiceType, Time,
};
use super::observed::{Export, Import, Local, Namespace, Service, Slice};
use super::plan::{Action, Change, ImportObject, Plan, ServiceObject, ServicePlan, SliceObject};
use super::planner::{plan_all, plan_namespace};
use super::settings::Settings;
use super::world::{Member, World};
use super::{naming, status};
use crate::api;
use crate::model::{ClusterId, ServiceKey, SliceKey};

/// How often plans may follow from each other before that counts as a fault of ours. Three suffice for any change:
/// the objects, the addresses that they were given, the statuses.
const MOST_ROUNDS: usize = 12;

/// Members whose API servers are made up.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// What the members hold. Users' objects are told to it directly.
    pub world: World,
    made: u64,
    addresses: Addresses,
}

/// Why a write was refused, as an API server would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such member.
    #[error("no cluster {0}")]
    NoCluster(ClusterId),
    /// The namespace is missing or being deleted.
    #[error("namespace {0} is missing or being deleted")]
    NoNamespace(Box<str>),
    /// The object is not the one that the write was meant for.
    #[error("{0} has changed meanwhile")]
    Conflict(Box<str>),
    /// A field can't be changed.
    #[error("{0}: {1} is immutable")]
    Immutable(Box<str>, &'static str),
    /// An owner reference without a uid.
    #[error("{0}: its owner does not exist")]
    NoOwner(Box<str>),
}

type Result<T = ()> = std::result::Result<T, Refused>;

impl Simulation {
    /// Clusters that hold what `world` says.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world, ..Self::default() }
    }

    /// The addresses of a user's Service are not given to others as long as it has them.
    pub fn reserve(&mut self, cluster: &ClusterId, key: &ServiceKey) {
        let ips = self.local(cluster, key).and_then(|local| local.service.as_ref()).map(|s| s.spec.ips.clone());
        for ip in ips.unwrap_or_default() {
            self.addresses.hold(cluster, key, ip);
        }
    }

    /// Applies plans until nothing is left to do, and returns those that did something, in their order.
    ///
    /// # Errors
    ///
    /// The first write that was refused. More plans than can follow from each other are one as well.
    pub fn converge(&mut self, settings: &Settings, now: Time) -> Result<Vec<ServicePlan>> {
        let mut done = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let plans: Vec<_> = plan_all(&self.world, settings, now).filter(|plan| !plan.plan.is_empty()).collect();
            let idle = plans.is_empty();
            for plan in plans {
                self.apply(&plan.plan, now)?;
                done.push(plan);
            }
            if idle {
                self.namespaces(settings, now)?;
                return Ok(done);
            }
        }
        Err(Refused::Conflict(format!("the world, {MOST_ROUNDS} times over,").into()))
    }

    /// Removes namespaces that were made for imports and are not needed any more.
    fn namespaces(&mut self, settings: &Settings, now: Time) -> Result {
        let names: BTreeSet<_> = self.world.members().values().flat_map(Member::namespaces).cloned().collect();
        for name in names {
            let plan = plan_namespace(&self.world, &name, settings, now);
            self.apply(&plan, now)?;
        }
        Ok(())
    }

    /// Applies one plan: the changes of each cluster in order; what follows a refused one in its cluster is left out.
    ///
    /// # Errors
    ///
    /// The first write that was refused.
    pub fn apply(&mut self, plan: &Plan, now: Time) -> Result {
        let mut failed: HashMap<&ClusterId, Refused> = HashMap::new();
        let mut first = Ok(());
        for change in &plan.changes {
            if failed.contains_key(&change.cluster) {
                continue;
            }
            if let Err(refused) = self.change(change, now) {
                if first.is_ok() {
                    first = Err(refused.clone());
                }
                failed.insert(&change.cluster, refused);
            }
        }
        for change in &plan.changes {
            if let Action::DeleteImport(key, id) = &change.action {
                self.collect(&change.cluster, key, &id.uid);
            }
        }
        first
    }

    /// Applies one change.
    ///
    /// # Errors
    ///
    /// Why it was refused.
    pub fn change(&mut self, change: &Change, now: Time) -> Result {
        let cluster = &change.cluster;
        if !self.world.members().contains_key(cluster) {
            return Err(Refused::NoCluster(cluster.clone()));
        }
        match &change.action {
            Action::CreateNamespace(name) => {
                if self.world.members().get(cluster).is_none_or(|member| member.namespace(name).is_none()) {
                    let meta = Meta { id: self.identity(None), labels: ours(), ..Meta::default() };
                    self.world.set_namespace(cluster, name, Some(Namespace { meta, terminating: false }));
                }
            }
            Action::DeleteNamespace(name, id) => {
                let found = self.world.members().get(cluster).and_then(|member| member.namespace(name));
                same("namespace", found.map(|found| &found.meta), id)?;
                if self.world.members().get(cluster).is_some_and(|member| !member.holds_any(name)) {
                    self.world.set_namespace(cluster, name, None);
                }
            }
            Action::CreateExport(key) => {
                self.writable(cluster, key)?;
                let meta = Meta { id: self.identity(None), labels: ours(), generation: 1, ..Meta::default() };
                self.world.set_export(cluster, key, Some(Export { meta, created: now, ..Export::default() }));
            }
            Action::DeleteExport(key, id) => {
                let found = self.local(cluster, key).and_then(|local| local.export.as_ref());
                same("ServiceExport", found.map(|found| &found.meta), id)?;
                self.world.set_export(cluster, key, None);
            }
            Action::ApplyImport(object) => self.apply_import(cluster, object)?,
            Action::ApplyService(object) => self.apply_service(cluster, object)?,
            Action::ApplySlice(object) => self.apply_slice(cluster, object)?,
            Action::ApplyImportStatus(key, status) => self.import_status(cluster, key, status)?,
            Action::ApplyExportStatus(key, conditions) => self.export_status(cluster, key, conditions)?,
            Action::DeleteImport(key, id) => {
                let found = self.local(cluster, key).and_then(|local| local.import.as_ref());
                same("ServiceImport", found.map(|found| &found.meta), id)?;
                self.world.set_import(cluster, key, None);
            }
            Action::DeleteService(key, id) => {
                let found = self.local(cluster, key).and_then(|local| local.service.as_ref());
                same("Service", found.map(|found| &found.meta), id)?;
                self.world.set_service(cluster, key, None);
            }
            Action::DeleteSlice(key, name, id) => {
                let found = self.local(cluster, key).and_then(|local| local.mirrored.get(name));
                same("EndpointSlice", found.map(|found| &found.meta), id)?;
                self.world.set_slice(cluster, &slice_key(key, name), None);
            }
        }
        Ok(())
    }

    fn local(&self, cluster: &ClusterId, key: &ServiceKey) -> Option<&Local> {
        self.world.members().get(cluster)?.local(key)
    }

    fn writable(&self, cluster: &ClusterId, key: &ServiceKey) -> Result {
        let namespace = self.world.members().get(cluster).and_then(|member| member.namespace(&key.namespace));
        if namespace.is_none_or(|namespace| namespace.terminating) {
            return Err(Refused::NoNamespace(key.namespace.as_str().into()));
        }
        Ok(())
    }

    /// A new version, and a new uid where there is none yet.
    fn identity(&mut self, before: Option<&Identity>) -> Identity {
        self.made += 1;
        let version = self.made.to_string().into_boxed_str();
        let uid = before.map_or_else(|| format!("uid-{version}").into(), |before| before.uid.clone());
        Identity { uid, resource_version: version }
    }

    fn meta(&mut self, before: Option<&Meta>, labels: &Map, annotations: &Map, owners: Vec<Owner>) -> Meta {
        let mut meta = before.cloned().unwrap_or_default();
        meta.id = self.identity(before.map(|meta| &meta.id));
        // A server-side apply removes what its manager owned and does not send any more.
        meta.labels.retain(|key, _| !meta.owned_labels.contains(key));
        meta.annotations.retain(|key, _| !meta.owned_annotations.contains(key));
        meta.labels.extend(labels.clone());
        meta.annotations.extend(annotations.clone());
        meta.owned_labels = labels.keys().cloned().collect();
        meta.owned_annotations = annotations.keys().cloned().collect();
        meta.owners = owners;
        meta
    }

    fn apply_import(&mut self, cluster: &ClusterId, object: &ImportObject) -> Result {
        self.writable(cluster, &object.key)?;
        let before = self.local(cluster, &object.key).and_then(|local| local.import.clone());
        meant("ServiceImport", before.as_ref().map(|import| &import.meta), object.existing.as_ref())?;
        let is = before.as_ref().map(|import| &import.meta);
        let mut meta = self.meta(is, &object.labels, &object.annotations, Vec::new());
        if before.as_ref().is_none_or(|before| before.spec != object.spec) {
            meta.generation += 1;
        }
        let status = before.map(|before| before.status).unwrap_or_default();
        self.world.set_import(cluster, &object.key, Some(Import { meta, spec: object.spec.clone(), status }));
        Ok(())
    }

    fn apply_service(&mut self, cluster: &ClusterId, object: &ServiceObject) -> Result {
        self.writable(cluster, &object.key)?;
        let key = ServiceKey { namespace: object.key.namespace.clone(), name: object.name.clone() };
        let before = self.local(cluster, &key).and_then(|local| local.service.clone());
        meant(key.name.as_str(), before.as_ref().map(|service| &service.meta), object.existing.as_ref())?;
        let immutable = |what| Err(Refused::Immutable(key.name.as_str().into(), what));
        let mut spec = ServiceSpec { kind: ServiceType::ClusterIp, ..object.spec.clone() };
        match &before {
            Some(before) if before.spec.headless != spec.headless => return immutable("clusterIP"),
            Some(before) if spec.headless && before.spec.families.first() != spec.families.first() => {
                return immutable("ipFamilies");
            }
            Some(before) if !spec.headless => {
                (spec.ips, spec.families) = (before.spec.ips.clone(), before.spec.families.clone());
            }
            Some(_) => {}
            None if spec.headless => {}
            None => {
                let families = self.families(cluster);
                let asked = std::mem::take(&mut spec.ips);
                for family in families {
                    let wish = asked.iter().copied().find(|ip| Family::of(*ip) == family);
                    spec.ips.push(self.addresses.give(&self.world, cluster, &key, family, wish));
                }
                spec.families = spec.ips.iter().map(|ip| Family::of(*ip)).collect();
            }
        }
        spec.traffic.session_affinity.get_or_insert_with(|| "None".into());
        spec.traffic.internal_policy.get_or_insert_with(|| "Cluster".into());
        let owners = self.owners(cluster, &object.key, &object.owners, key.name.as_str())?;
        let meta = self.meta(before.as_ref().map(|b| &b.meta), &object.labels, &object.annotations, owners);
        self.world.set_service(cluster, &key, Some(Service { meta, spec }));
        Ok(())
    }

    fn apply_slice(&mut self, cluster: &ClusterId, object: &SliceObject) -> Result {
        self.writable(cluster, &object.key)?;
        let key = slice_key(&object.key, &object.name);
        let before = self.local(cluster, &object.key).and_then(|local| local.mirrored.get(&object.name).cloned());
        meant(&object.name, before.as_ref().map(|slice| &slice.meta), object.existing.as_ref())?;
        if before.is_none() && self.world.members().get(cluster).is_some_and(|member| member.has_slice(&key)) {
            return Err(Refused::Conflict(object.name.clone()));
        }
        if before.as_ref().is_some_and(|before| before.content.family != object.content.family) {
            return Err(Refused::Immutable(object.name.clone(), "addressType"));
        }
        let owners = self.owners(cluster, &object.key, &object.owners, &object.name)?;
        let meta = self.meta(before.as_ref().map(|b| &b.meta), &object.labels, &object.annotations, owners);
        self.world.set_slice(cluster, &key, Some(Slice { meta, content: object.content.clone() }));
        Ok(())
    }

    /// Owners with their uids: those of what the same plan has just made are looked up.
    fn owners(&self, cluster: &ClusterId, key: &ServiceKey, owners: &[Owner], of: &str) -> Result<Vec<Owner>> {
        let uid = |owner: &Owner| {
            let found = match owner.kind {
                OwnerKind::Import => self.local(cluster, key)?.import.as_ref().map(|import| &import.meta),
                OwnerKind::Service => {
                    self.local(cluster, &naming::derived_key(key))?.service.as_ref().map(|service| &service.meta)
                }
            };
            Some(found?.id.uid.clone())
        };
        let owner = |owner: &Owner| {
            let uid = owner.uid.clone().or_else(|| uid(owner)).ok_or_else(|| Refused::NoOwner(of.into()))?;
            Ok(Owner { uid: Some(uid), ..owner.clone() })
        };
        owners.iter().map(owner).collect()
    }

    fn import_status(&mut self, cluster: &ClusterId, key: &ServiceKey, status: &ImportStatus) -> Result {
        let Some(mut import) = self.local(cluster, key).and_then(|local| local.import.clone()) else {
            return Err(Refused::Conflict(key.to_string().into()));
        };
        import.meta.id = self.identity(Some(&import.meta.id));
        import.status.clusters.clone_from(&status.clusters);
        import.status.slices_present = status.slices_present;
        set_conditions(&mut import.status.conditions, &status.conditions, &[api::CONDITION_READY]);
        self.world.set_import(cluster, key, Some(import));
        Ok(())
    }

    fn export_status(&mut self, cluster: &ClusterId, key: &ServiceKey, conditions: &[Condition]) -> Result {
        let Some(mut export) = self.local(cluster, key).and_then(|local| local.export.clone()) else {
            return Err(Refused::Conflict(key.to_string().into()));
        };
        export.meta.id = self.identity(Some(&export.meta.id));
        set_conditions(&mut export.conditions, conditions, &status::EXPORT_CONDITIONS);
        self.world.set_export(cluster, key, Some(export));
        Ok(())
    }

    /// What the garbage collector does after an import is gone.
    fn collect(&mut self, cluster: &ClusterId, key: &ServiceKey, uid: &str) {
        let owned =
            |meta: &Meta| !meta.owners.is_empty() && meta.owners.iter().all(|owner| owner.uid.as_deref() == Some(uid));
        let slices = self.local(cluster, key).into_iter().flat_map(|local| &local.mirrored);
        let slices: Vec<_> = slices.filter(|(_, slice)| owned(&slice.meta)).map(|(name, _)| name.clone()).collect();
        for name in slices {
            self.world.set_slice(cluster, &slice_key(key, &name), None);
        }
        let derived = naming::derived_key(key);
        let service = self.local(cluster, &derived).and_then(|local| local.service.as_ref());
        if service.is_some_and(|service| owned(&service.meta)) {
            self.world.set_service(cluster, &derived, None);
        }
    }

    fn families(&self, cluster: &ClusterId) -> Vec<Family> {
        let known = self.world.members().get(cluster).and_then(|member| member.features.families.clone());
        known.unwrap_or_else(|| vec![Family::V4])
    }
}

fn ours() -> Map {
    Map::from([(api::LABEL_MANAGED_BY.into(), api::MANAGED_BY.into())])
}

fn slice_key(key: &ServiceKey, name: &str) -> SliceKey {
    SliceKey { namespace: key.namespace.clone(), name: name.into() }
}

/// A delete's precondition: still that version of that object.
fn same(what: &str, found: Option<&Meta>, wanted: &Identity) -> Result {
    if found.is_some_and(|found| found.id == *wanted) { Ok(()) } else { Err(Refused::Conflict(what.into())) }
}

/// An apply's: still that object, or still none.
fn meant(what: &str, found: Option<&Meta>, wanted: Option<&Identity>) -> Result {
    if found.map(|found| &found.id.uid) == wanted.map(|wanted| &wanted.uid) {
        Ok(())
    } else {
        Err(Refused::Conflict(what.into()))
    }
}

/// Writes our conditions among others'.
fn set_conditions(conditions: &mut Vec<Condition>, new: &[Condition], ours: &[&str]) {
    conditions.retain(|condition| !ours.contains(&&*condition.kind));
    conditions.extend(new.iter().cloned());
}
