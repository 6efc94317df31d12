//! The files of one cluster → its manifests as written, each with its place, and what an API server would refuse.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ObjectId;
use super::made::{Range, hash, is_dns_label};
use super::pods::{Node, Pod, Workload};
use crate::api;
use crate::model::ClusterId;
use crate::reconcile::objects::{ServicePort, ServiceSpec, ServiceType};
use crate::reconcile::world::Kind;
use crate::source::folder::documents::{ApiKind, Place, each_object, text};
use crate::source::folder::{FileError, FileProblem};
use crate::source::member::{self, Observed, Read};

/// What the files of one cluster hold.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    /// The cluster's id: what its folder is called.
    id: String,
    /// What a world is made of, each with its place: `east/web.yaml:3`.
    pub(super) objects: BTreeMap<ObjectId, (String, Observed)>,
    /// Pods by namespace and name.
    pub(super) pods: BTreeMap<(String, String), Pod>,
    /// Nodes by name.
    pub(super) nodes: BTreeMap<String, Node>,
    /// Deployments and the like.
    pub(super) workloads: Vec<Workload>,
    /// The ranges of the ServiceCIDR `kubernetes`.
    pub(super) ranges: Option<Vec<Range>>,
    /// The clusterset that the cluster says it is in, and where it says so.
    pub(super) set: Option<(String, String)>,
    /// All of them as written: `Pod shop/web-0` and a hash.
    pub(super) written: BTreeMap<String, u64>,
    /// The place of each.
    seen: BTreeMap<String, String>,
}

/// The kinds that matter.
fn known(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "Namespace" | "Service" | "Pod" | "Node")
            | (_, "ServiceExport" | "ServiceImport")
            | (api::DISCOVERY_GROUP, "EndpointSlice")
            | (api::ABOUT_GROUP, "ClusterProperty")
            | ("networking.k8s.io", "ServiceCIDR")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet")
    )
}

impl Manifests {
    /// None yet.
    pub(super) fn of(id: &ClusterId) -> Self {
        Self { id: id.to_string(), ..Self::default() }
    }

    /// Takes in everything that `text` holds.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        each_object(file, text, &known, &mut |place, kind, object| self.object(place, kind, object)).map(|_| ())
    }

    fn object(&mut self, place: Place<'_>, kind: &ApiKind, mut object: Map<String, Value>) -> Result<(), FileError> {
        let meta = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let meta = meta.as_object_mut();
        let (name, namespace) = match &meta {
            Some(meta) => (self::text(meta, "name"), self::text(meta, "namespace")),
            None => (None, None),
        };
        let Some(name) = name.map(str::to_owned) else {
            return Err(place.error(FileProblem::NoName(static_name(&kind.kind))));
        };
        let namespaced = !matches!(kind.kind.as_str(), "Namespace" | "Node" | "ServiceCIDR" | "ClusterProperty");
        let namespace = if namespaced { namespace.unwrap_or("default").to_owned() } else { String::new() };
        let whole = if namespaced { format!("{namespace}/{name}") } else { name.clone() };
        let shown = format!("{} {whole}", kind.kind);
        let refuse =
            |what: &str| Err(place.error(FileProblem::Refused { object: shown.clone(), what: what.to_owned() }));

        match check_kind(kind) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(what) => return refuse(&what),
        }
        match self.seen.entry(shown.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(place.to_string());
                let text = serde_json::to_string(&object).unwrap_or_default();
                self.written.insert(shown.clone(), hash(&[&text]));
            }
            Entry::Occupied(entry) => {
                return Err(place.error(FileProblem::Duplicate { object: shown, first: entry.get().clone() }));
            }
        }
        if namespaced && !is_dns_label(&namespace) {
            return refuse("metadata.namespace: use lower-case letters, digits and dashes, at most 63");
        }
        let of_world = match kind.kind.as_str() {
            "Namespace" => Some(Kind::Namespaces),
            "ServiceExport" => Some(Kind::Exports),
            "Service" => Some(Kind::Services),
            "ServiceImport" => Some(Kind::Imports),
            "EndpointSlice" => Some(Kind::Slices),
            _ => None,
        };
        if matches!(of_world, Some(Kind::Namespaces | Kind::Exports | Kind::Services | Kind::Imports))
            && !is_dns_label(&name)
        {
            return refuse("metadata.name: use lower-case letters, digits and dashes, at most 63");
        }
        if let Some(kind) = of_world {
            if let Err(what) = check_fields(kind, &object) {
                return refuse(&what);
            }
            let read = match member::observed(kind, &Value::Object(object).to_string()) {
                Ok(read) => read,
                Err(skipped) => return refuse(&format!("{}; correct it there", skipped.what)),
            };
            return match check(&read) {
                Ok(()) => {
                    self.objects.insert(ObjectId::of(&read.object), (place.to_string(), read.object));
                    Ok(())
                }
                Err(what) => refuse(&what),
            };
        }
        let value = Value::Object(object);
        let done = match kind.kind.as_str() {
            "Pod" => decode::<Pod>(value).and_then(Pod::checked).map(|pod| {
                self.pods.insert((namespace, name), pod);
            }),
            "Node" => decode(value).map(|node| {
                self.nodes.insert(name, node);
            }),
            "ServiceCIDR" => self.ranges(&name, &value),
            "ClusterProperty" => self.property(&name, &value, place.to_string()),
            _ => decode(value).map(|mut workload: Workload| {
                workload.kind = static_name(&kind.kind);
                (workload.namespace, workload.name) = (namespace, name);
                self.workloads.push(workload);
            }),
        };
        done.or_else(|what| refuse(&what))
    }

    fn ranges(&mut self, name: &str, value: &Value) -> Result<(), String> {
        // The others only add to what this one has.
        if name != "kubernetes" {
            return Ok(());
        }
        let cidrs = value.pointer("/spec/cidrs").and_then(Value::as_array);
        let texts = cidrs.into_iter().flatten().map(|cidr| cidr.as_str().unwrap_or_default());
        let ranges: Option<Vec<Range>> = texts.map(Range::new).collect();
        let families: Option<Vec<_>> = ranges.as_ref().map(|all| all.iter().map(|range| range.family()).collect());
        match families.as_deref() {
            Some([_]) => {}
            Some([a, b]) if a != b => {}
            _ => return Err("spec.cidrs: give one range, or one of each family: [10.96.0.0/16, fd00:96::/112]".into()),
        }
        self.ranges = ranges;
        Ok(())
    }
}

impl Manifests {
    /// What a ClusterProperty says: the cluster's id, which is its folder's name too (R90), or its clusterset's name.
    fn property(&mut self, name: &str, value: &Value, place: String) -> Result<(), String> {
        let Some(text) = value.pointer("/spec/value").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
            return Err("spec.value: give a text that is not empty".to_owned());
        };
        match name {
            api::PROPERTY_CLUSTER if text != self.id => Err(format!(
                "spec.value: the cluster's id is {text:?} by this and {:?} by the name of its folder; change one of them",
                self.id
            )),
            api::PROPERTY_CLUSTERSET => {
                self.set = Some((text.to_owned(), place));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("does not decode: {error}; correct it"))
}

fn static_name(kind: &str) -> &'static str {
    const NAMES: [&str; 12] = [
        "Namespace",
        "Service",
        "ServiceExport",
        "ServiceImport",
        "EndpointSlice",
        "Pod",
        "Node",
        "ServiceCIDR",
        "ClusterProperty",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
    ];
    NAMES.into_iter().find(|name| *name == kind).unwrap_or("object")
}

/// Whether this kind is ours to read. ServiceExport and ServiceImport are so often written with a group or version
/// that does not exist that this is worth an error of its own.
fn check_kind(kind: &ApiKind) -> Result<bool, String> {
    if !matches!(kind.kind.as_str(), "ServiceExport" | "ServiceImport") {
        return Ok(true);
    }
    let right = format!("{}/{}", api::GROUP, api::VERSIONS[0]);
    match kind.group.as_str() {
        api::GROUP if api::VERSIONS.contains(&kind.version.as_str()) => Ok(true),
        api::GROUP => Err(format!("there is no version {}; write apiVersion: {right}", kind.version)),
        "multicluster.k8s.io" => Err(format!("there is no group multicluster.k8s.io; write apiVersion: {right}")),
        // GKE and others have kinds of the same name.
        _ => Ok(false),
    }
}

/// Fields of a ServiceExport that do not exist: it has so few that a slip is likely, and its effect is silence.
fn check_fields(kind: Kind, object: &Map<String, Value>) -> Result<(), String> {
    if kind != Kind::Exports {
        return Ok(());
    }
    let top = ["apiVersion", "kind", "metadata", "spec", "status"];
    let spec = ["exportedLabels", "exportedAnnotations"];
    if let Some(field) = object.keys().find(|key| !top.contains(&key.as_str())) {
        return Err(format!("{field}: a ServiceExport has no such field; it has metadata and spec"));
    }
    let fields = object.get("spec").and_then(Value::as_object);
    match fields.into_iter().flat_map(|fields| fields.keys()).find(|key| !spec.contains(&key.as_str())) {
        Some(field) => Err(format!(
            "spec.{field}: a ServiceExport has no such field; it has exportedLabels and exportedAnnotations, and \
             exports the Service of its own name"
        )),
        None => Ok(()),
    }
}

/// What an API server would refuse of an object that decodes.
fn check(read: &Read) -> Result<(), String> {
    if let Some(skipped) = read.skipped.first() {
        return Err(skipped.what.to_string());
    }
    match &read.object {
        Observed::Service(_, Some(service)) => check_service(&service.spec),
        _ => Ok(()),
    }
}

fn check_service(spec: &ServiceSpec) -> Result<(), String> {
    if let ServiceType::Other(kind) = &spec.kind {
        return Err(format!("spec.type: {kind:?} is none of ClusterIP, NodePort, LoadBalancer and ExternalName"));
    }
    let external = spec.kind == ServiceType::ExternalName;
    if spec.ports.is_empty() && !spec.headless && !external {
        return Err("spec.ports: there are none; a Service that is not headless needs one".to_owned());
    }
    let named = |port: &&ServicePort| !port.name.is_empty();
    if spec.ports.len() > 1 && !spec.ports.iter().all(|port| named(&port)) {
        return Err("spec.ports: with more than one port, each needs a name".to_owned());
    }
    for (i, port) in spec.ports.iter().enumerate() {
        let before = spec.ports.iter().take(i);
        if before.clone().any(|other| other.name == port.name && named(&port)) {
            return Err(format!("spec.ports[{i}].name: {:?} is there twice", port.name));
        }
        if before.clone().any(|other| (other.protocol, other.port) == (port.protocol, port.port)) {
            let protocol = port.protocol.label().trim_start_matches('_').to_ascii_uppercase();
            return Err(format!("spec.ports[{i}]: {}/{protocol} is there twice", port.port));
        }
    }
    Ok(())
}
