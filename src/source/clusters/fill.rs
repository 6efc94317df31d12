//! What API servers and controllers would add to the manifests of a cluster: namespaces, uids, addresses, defaults,
//! pods, slices.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use super::endpoints::{self, CONTROLLER, RunningPod};
use super::made::{NOT_YET, Ranges, uid};
use super::manifests::Manifests;
use super::{Cluster, ObjectId};
use crate::api;
use crate::model::{ClusterId, Label, ServiceKey};
use crate::reconcile::objects::{Family, Map, Meta, ServiceSpec, ServiceType, Time};
use crate::reconcile::observed::Namespace;
use crate::reconcile::world::Kind;
use crate::source::folder::{FileError, FileProblem};
use crate::source::member::{Observed, kind_name};

/// The cluster that these manifests would become.
pub(super) fn cluster(id: &ClusterId, mut manifests: Manifests) -> Result<Cluster, FileError> {
    let ranges = Ranges::new(id, manifests.ranges.take());
    namespaces(&mut manifests);
    for (object, (_, observed)) in &mut manifests.objects {
        fill(id, object, observed);
    }
    services(&ranges, &mut manifests.objects)?;
    let mut hints = Vec::new();
    let slices = slices(id, &ranges, &manifests, &mut hints);
    let mut objects: BTreeMap<_, _> = manifests.objects.into_iter().map(|(id, (_, object))| (id, object)).collect();
    for slice in slices {
        objects.entry(ObjectId::of(&slice)).or_insert(slice);
    }
    Ok(Cluster { objects, ranges, hints })
}

/// A namespace is there when it, or anything in it, is; `default` always is.
fn namespaces(manifests: &mut Manifests) {
    let of_objects = manifests.objects.keys().map(|id| id.namespace.to_string());
    let of_pods = manifests.pods.keys().map(|(namespace, _)| namespace.clone());
    let of_workloads = manifests.workloads.iter().map(|workload| workload.namespace.clone());
    let names: BTreeSet<String> = of_objects.chain(of_pods).chain(of_workloads).chain(["default".to_owned()]).collect();
    for name in names {
        let Some(label) = Label::new(&name) else { continue };
        let id = ObjectId { kind: Kind::Namespaces, namespace: "".into(), name: name.as_str().into() };
        let made = || (String::new(), Observed::Namespace(label, Some(Namespace::default())));
        manifests.objects.entry(id).or_insert_with(made);
    }
}

/// What every object gets.
fn fill(cluster: &ClusterId, id: &ObjectId, object: &mut Observed) {
    let meta: Option<&mut Meta> = match object {
        Observed::Namespace(_, Some(namespace)) => Some(&mut namespace.meta),
        Observed::Service(_, Some(service)) => Some(&mut service.meta),
        Observed::Import(_, Some(import)) => Some(&mut import.meta),
        Observed::Slice(_, Some(slice)) => Some(&mut slice.meta),
        Observed::Export(_, Some(export)) => {
            if export.created == Time::default() {
                export.created = NOT_YET;
            }
            Some(&mut export.meta)
        }
        _ => None,
    };
    let Some(meta) = meta else { return };
    if meta.id.uid.is_empty() {
        meta.id.uid = uid(&[cluster.as_str(), kind_name(id.kind), &id.namespace, &id.name]);
    }
    meta.generation = meta.generation.max(1);
    // Nobody writes managed fields by hand: what is ours was written by us.
    if meta.is_ours() {
        meta.owned_labels.extend(meta.labels.keys().cloned());
        meta.owned_annotations.extend(meta.annotations.keys().cloned());
    }
}

type Objects = BTreeMap<ObjectId, (String, Observed)>;

/// Defaults and addresses of Services: first those that say what they have, then the others.
fn services(ranges: &Ranges, objects: &mut Objects) -> Result<(), FileError> {
    let mut taken: HashSet<IpAddr> = HashSet::new();
    for (id, (place, object)) in &mut *objects {
        let Observed::Service(_, Some(service)) = object else { continue };
        defaults(&mut service.spec);
        let families = families(&service.spec, &ranges.families());
        service.spec.families = families.map_err(|what| refused(place, id, what))?;
        for ip in &service.spec.ips {
            if !taken.insert(*ip) {
                return Err(refused(place, id, format!("spec.clusterIPs: {ip} is another Service's already")));
            }
        }
    }
    for (id, (place, object)) in &mut *objects {
        let Observed::Service(_, Some(service)) = object else { continue };
        let spec = &mut service.spec;
        if spec.headless || spec.kind == ServiceType::ExternalName {
            continue;
        }
        for family in spec.families.clone() {
            if spec.ips.iter().any(|ip| Family::of(*ip) == family) {
                continue;
            }
            match ranges.service(family, &id.namespace, &id.name, &taken) {
                Some(ip) => {
                    taken.insert(ip);
                    spec.ips.push(ip);
                }
                None => return Err(refused(place, id, format!("this cluster has no {family} address left for it"))),
            }
        }
    }
    Ok(())
}

fn refused(place: &str, id: &ObjectId, what: String) -> FileError {
    let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
    let object = format!("{} {}/{}", kind_name(id.kind), id.namespace, id.name);
    // The line of an item in a list stands before the item.
    let line = line.split(' ').next().and_then(|line| line.parse().ok()).unwrap_or(0);
    FileError::new(file, line, FileProblem::Refused { object, what })
}

/// As the API server defaults them.
fn defaults(spec: &mut ServiceSpec) {
    let external = spec.kind == ServiceType::ExternalName;
    let affinity = spec.traffic.session_affinity.get_or_insert_with(|| "None".into());
    if **affinity == *"ClientIP" {
        spec.traffic.session_timeout.get_or_insert(10_800);
    }
    if !external {
        spec.traffic.internal_policy.get_or_insert_with(|| "Cluster".into());
    }
    if spec.families.len() > 1 || spec.ips.len() > 1 {
        spec.dual_stack = true;
    }
}

/// The families of a Service in a cluster that has these.
fn families(spec: &ServiceSpec, cluster: &[Family]) -> Result<Vec<Family>, String> {
    if spec.kind == ServiceType::ExternalName {
        return Ok(Vec::new());
    }
    let mut families = spec.families.clone();
    if families.is_empty() {
        families = spec.ips.iter().map(|ip| Family::of(*ip)).collect();
    }
    if families.is_empty() {
        families.extend(cluster.first());
    }
    if spec.dual_stack {
        let more: Vec<_> = cluster.iter().filter(|family| !families.contains(family)).copied().collect();
        families.extend(more);
    }
    match families.iter().find(|family| !cluster.contains(family)) {
        // Nobody gives a headless Service addresses, so it may have any family.
        Some(family) if !spec.headless => {
            Err(format!("spec.ipFamilies: this cluster has no {family}: its ServiceCIDR has no range of it"))
        }
        _ => Ok(families),
    }
}

/// The slices that the EndpointSlice controller would make.
fn slices(cluster: &ClusterId, ranges: &Ranges, manifests: &Manifests, hints: &mut Vec<String>) -> Vec<Observed> {
    let pods = running(cluster, ranges, manifests);
    let mut written: BTreeSet<ServiceKey> = BTreeSet::new();
    for (_, object) in manifests.objects.values() {
        let Observed::Slice(key, Some(slice)) = object else { continue };
        let by = slice.meta.labels.get(api::LABEL_SLICE_MANAGED_BY);
        let of = slice.meta.labels.get(api::LABEL_KUBERNETES_SERVICE_NAME);
        // A copy of what the controller made, or of what stood in for it.
        if by.is_none_or(|by| **by == *CONTROLLER) {
            written.extend(of.and_then(|name| ServiceKey::new(key.namespace.as_str(), name)));
        }
    }
    let mut made = Vec::new();
    for (id, (place, object)) in &manifests.objects {
        let Observed::Service(key, Some(service)) = object else { continue };
        let spec = &service.spec;
        if spec.selector.is_empty() || spec.kind == ServiceType::ExternalName || written.contains(key) {
            continue;
        }
        let of_namespace = pods.get(&*id.namespace).map(Vec::as_slice).unwrap_or_default();
        let selected: Vec<_> =
            of_namespace.iter().filter(|pod| selects(&spec.selector, &pod.pod.metadata.labels)).collect();
        if selected.is_empty()
            && manifests.objects.keys().any(|other| other.kind == Kind::Exports && other.same_name(id))
        {
            hints.push(format!("{place}: no pod of this folder has the labels that Service {key} selects"));
        }
        made.extend(
            endpoints::slices(key, spec, &selected).into_iter().map(|(key, slice)| Observed::Slice(key, Some(slice))),
        );
    }
    made
}

impl ObjectId {
    fn same_name(&self, other: &Self) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }
}

fn selects(selector: &Map, labels: &BTreeMap<Box<str>, Box<str>>) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// All pods by namespace: those that are written, and those of workloads that have none written.
fn running(cluster: &ClusterId, ranges: &Ranges, manifests: &Manifests) -> BTreeMap<String, Vec<RunningPod>> {
    let mut pods = manifests.pods.clone();
    for workload in &manifests.workloads {
        let mut written = manifests.pods.iter().filter(|((namespace, _), _)| *namespace == workload.namespace);
        if written.any(|(_, pod)| workload.owns(pod)) {
            continue;
        }
        for (name, pod) in workload.pods() {
            pods.entry((workload.namespace.clone(), name)).or_insert(pod);
        }
    }
    let mut taken: HashSet<IpAddr> = pods.values().flat_map(|pod| pod.addresses()).collect();
    let mut running: BTreeMap<String, Vec<RunningPod>> = BTreeMap::new();
    for ((namespace, name), pod) in pods {
        if pod.is_over() {
            continue;
        }
        let mut addresses = pod.addresses();
        if addresses.is_empty() {
            for family in ranges.families() {
                if let Some(ip) = ranges.pod(family, &namespace, &name, &taken) {
                    taken.insert(ip);
                    addresses.push(ip);
                }
            }
        }
        let node = pod.spec.node_name.as_deref().and_then(|node| manifests.nodes.get(node));
        let zone = node.and_then(|node| node.zone()).map(Box::from);
        let own_uid = pod.metadata.uid.clone();
        let uid = own_uid.unwrap_or_else(|| uid(&[cluster.as_str(), "Pod", &namespace, &name]));
        running.entry(namespace).or_default().push(RunningPod { name, uid, addresses, zone, pod });
    }
    running
}
