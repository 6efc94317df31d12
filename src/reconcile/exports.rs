//! Who exports a service, in precedence order (controller.md 2.1 and 2.2).

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::metadata::is_reserved;
use super::naming;
use super::objects::{Family, Map, ServicePort, ServiceType, Time, Traffic};
use super::observed::{Export, Import, Local, Service};
use super::settings::{NamespaceConsent, Settings};
use super::standing::{Standing, standing};
use super::world::{Member, World};
use crate::api;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// What one cluster brings to the merge.
#[derive(Debug, Clone)]
pub struct Contribution<'a> {
    /// The exporting cluster.
    pub cluster: Cow<'a, ClusterId>,
    /// When its ServiceExport was made: its precedence (R14).
    pub created: Time,
    /// Headless or not (R20).
    pub kind: ImportKind,
    /// Its Service's ports.
    pub ports: Cow<'a, [ServicePort]>,
    /// Its Service's families.
    pub families: Cow<'a, [Family]>,
    /// Its Service's sessions and traffic.
    pub traffic: Cow<'a, Traffic>,
    /// `spec.exportedLabels` of its ServiceExport.
    pub labels: Cow<'a, Map>,
    /// `spec.exportedAnnotations` of its ServiceExport.
    pub annotations: Cow<'a, Map>,
    /// Its Service's selector.
    pub selector: Cow<'a, Map>,
    /// Its Service's `publishNotReadyAddresses`.
    pub publish_not_ready: bool,
    /// The cluster was not heard in this run. What is known of its export is what it left in the imports: its place in
    /// the precedence, and the merged values.
    pub remembered: bool,
}

/// What can be said of one ServiceExport by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It takes part.
    Valid,
    /// Its Service does not exist (R11).
    NoService,
    /// Its Service can't be exported (R10): its type.
    InvalidType(Box<str>),
    /// Its Service stands for an import itself (R12).
    Imported,
    /// The operator's rules exclude its namespace (R13): which.
    Denied(&'static str),
}

/// The verdict on the export of `key` in `member`.
#[must_use]
pub(super) fn verdict(member: &Member, key: &ServiceKey, service: Option<&Service>, settings: &Settings) -> Verdict {
    let Some(service) = service else { return Verdict::NoService };
    if is_imported(key, service) {
        return Verdict::Imported;
    }
    match &service.spec.kind {
        ServiceType::ExternalName => return Verdict::InvalidType("ExternalName".into()),
        ServiceType::Other(kind) => return Verdict::InvalidType(kind.clone()),
        ServiceType::ClusterIp | ServiceType::NodePort | ServiceType::LoadBalancer => {}
    }
    if !settings.export_namespaces.allows(&key.namespace) {
        return Verdict::Denied("the controller's settings allow no exports from this namespace");
    }
    if !consents(member, &key.namespace, settings) {
        return Verdict::Denied("the namespace does not take part (annotation namesake/enabled)");
    }
    Verdict::Valid
}

/// Whether a Service stands for an import: exported again, it would go round in circles.
fn is_imported(key: &ServiceKey, service: &Service) -> bool {
    service.meta.labels.contains_key(api::LABEL_SERVICE_IMPORTED)
        || (key.name.as_str().starts_with(naming::DERIVED_PREFIX) && service.meta.is_made_by_us())
}

/// Whether a namespace agrees to take part, where it is asked.
pub(super) fn consents(member: &Member, namespace: &Label, settings: &Settings) -> bool {
    let says = || {
        let namespace = member.namespace(namespace)?;
        namespace.meta.annotations.get(api::ANNOTATION_NAMESPACE).map(|value| &**value)
    };
    match settings.namespace_consent {
        NamespaceConsent::Ignored => true,
        NamespaceConsent::OptOut => says() != Some("false"),
        NamespaceConsent::OptIn => says() == Some("true"),
    }
}

/// The export of `key` in a member whose exports are known and count.
pub(super) fn export_in<'a>(member: &'a Member, key: &ServiceKey) -> Option<(&'a Local, &'a Export)> {
    if member.leaving || !member.is_heard() {
        return None;
    }
    let local = member.local(key)?;
    Some((local, local.export.as_ref().filter(|export| !export.deleting)?))
}

/// All valid exports of `key`, in precedence order: the oldest ServiceExport first, then the cluster ids (R14 to R16).
/// Clusters that were not heard in this run take the place that the imports remember for them (R82, R84).
pub(super) fn contributions<'a>(
    world: &'a World,
    key: &'a ServiceKey,
    settings: &Settings,
    now: Time,
) -> Vec<Contribution<'a>> {
    let mut known: Vec<_> = world
        .members()
        .iter()
        .filter_map(|(id, member)| {
            let (local, export) = export_in(member, key)?;
            let service = local.service.as_ref()?;
            (verdict(member, key, Some(service), settings) == Verdict::Valid).then(|| contribution(id, export, service))
        })
        .collect();
    known.sort_by(|a, b| (a.created, &a.cluster).cmp(&(b.created, &b.cluster)));
    for (cluster, before) in remembered(world, key, settings, now, !known.is_empty()) {
        let at = known.iter().rposition(|c| before.contains(&*c.cluster)).map_or(0, |at| at + 1);
        if let Some(contribution) = from_imports(world, key, &cluster) {
            known.insert(at, contribution);
        }
    }
    known
}

fn contribution<'a>(cluster: &'a ClusterId, export: &'a Export, service: &'a Service) -> Contribution<'a> {
    let spec = &service.spec;
    let families = if spec.families.is_empty() {
        // Not filled in by an API server: its addresses tell, and without any it is IPv4.
        let mut families: Vec<_> = spec.ips.iter().map(|ip| Family::of(*ip)).collect();
        families.dedup();
        Cow::Owned(if families.is_empty() { vec![Family::V4] } else { families })
    } else {
        Cow::Borrowed(&spec.families[..])
    };
    Contribution {
        cluster: Cow::Borrowed(cluster),
        created: export.created,
        kind: if spec.headless { ImportKind::Headless } else { ImportKind::ClusterSetIp },
        ports: Cow::Borrowed(&spec.ports),
        families,
        traffic: Cow::Borrowed(&spec.traffic),
        labels: Cow::Borrowed(&export.labels),
        annotations: Cow::Borrowed(&export.annotations),
        selector: Cow::Borrowed(&spec.selector),
        publish_not_ready: spec.publish_not_ready,
        remembered: false,
    }
}

/// The clusters that imports name as exporters but that were not heard, with those that stand before them.
fn remembered(
    world: &World,
    key: &ServiceKey,
    settings: &Settings,
    now: Time,
    others: bool,
) -> Vec<(ClusterId, Vec<ClusterId>)> {
    let mut found: Vec<(ClusterId, Vec<ClusterId>)> = Vec::new();
    if world.members_listed() && world.members().values().all(Member::is_heard) {
        return found;
    }
    for import in our_imports(world, key) {
        let order = &import.status.clusters;
        for (at, cluster) in order.iter().enumerate() {
            let unheard = standing(world, settings, cluster);
            let counts = matches!(unheard, Standing::Unheard { .. })
                && (others
                    || !unheard.is_expired(now)
                    || !settings.unreachable.remove
                    || (settings.unreachable.keep_last_endpoints && has_endpoints(world, key, cluster)));
            if counts && found.iter().all(|(known, _)| known != cluster) {
                found.push((cluster.clone(), order.get(..at).unwrap_or_default().to_vec()));
            }
        }
    }
    found
}

/// Our imports of `key`, in clusters whose objects are known.
fn our_imports<'a>(world: &'a World, key: &'a ServiceKey) -> impl Iterator<Item = &'a Import> {
    let heard = world.members().values().filter(|member| member.is_known() && !member.leaving);
    heard.filter_map(|member| member.local(key)?.import.as_ref()).filter(|import| import.meta.is_made_by_us())
}

/// Whether somewhere a ready endpoint of `cluster` is left.
fn has_endpoints(world: &World, key: &ServiceKey, cluster: &ClusterId) -> bool {
    let heard = world.members().values().filter(|member| member.is_known() && !member.leaving);
    heard.filter_map(|member| member.local(key)).flat_map(|local| local.mirrored.values()).any(|slice| {
        slice.source().as_ref() == Some(cluster) && slice.content.endpoints.iter().any(|endpoint| endpoint.ready)
    })
}

/// What a cluster that was not heard contributes: the merged values, which are its own as far as it was the oldest.
/// Of the families each import holds those of its own cluster, so together they hold all.
fn from_imports<'a>(world: &'a World, key: &'a ServiceKey, cluster: &ClusterId) -> Option<Contribution<'a>> {
    let mut families: Vec<Family> = Vec::new();
    let mut first = None;
    for import in our_imports(world, key) {
        if import.status.clusters.contains(cluster) {
            families.extend(import.spec.families.iter().filter(|f| !families.contains(f)).copied().collect::<Vec<_>>());
            first = first.or(Some(import));
        }
    }
    let import = first?;
    let exported = |map: &Map, owned: &BTreeSet<Box<str>>| -> Map {
        let theirs = map.iter().filter(|(key, _)| owned.contains(*key) && !is_reserved(key));
        theirs.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    Some(Contribution {
        cluster: Cow::Owned(cluster.clone()),
        created: Time::default(),
        kind: import.spec.kind,
        ports: Cow::Borrowed(&import.spec.ports),
        families: Cow::Owned(families),
        traffic: Cow::Borrowed(&import.spec.traffic),
        labels: Cow::Owned(exported(&import.meta.labels, &import.meta.owned_labels)),
        annotations: Cow::Owned(exported(&import.meta.annotations, &import.meta.owned_annotations)),
        selector: Cow::Owned(Map::new()),
        publish_not_ready: false,
        remembered: true,
    })
}
