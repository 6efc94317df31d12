//! One importing cluster: what of a service it should hold, compared with what it holds.

use std::collections::BTreeSet;

use super::compare;
use super::desired::{self, There};
use super::exports::consents;
use super::merge::Merged;
use super::metadata::slice_labels;
use super::naming;
use super::objects::{Family, ImportSpec, Map, Owner, OwnerKind, Status, Time};
use super::observed::{Import, Reach, Slice};
use super::packing::gains;
use super::plan::{Action, Change, Event, Importing, SliceObject, Subject};
use super::settings::{CreateNamespaces, Settings, SliceOwner};
use super::slices::{Scope, Slices, Wanted, slices};
use super::standing::{earlier, held_up};
use super::status;
use super::world::{Member, World};
use crate::api;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// What is computed once for all importing clusters of a service.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub world: &'a World,
    pub settings: &'a Settings,
    pub now: Time,
    pub key: &'a ServiceKey,
    pub derived: &'a Label,
    pub derived_key: &'a ServiceKey,
    pub merged: Option<&'a Merged>,
}

/// What is to be done in one importing cluster.
pub(super) struct Outcome {
    pub changes: Vec<Change>,
    pub events: Vec<Event>,
    /// `None` where the cluster has no part in the service.
    pub importing: Option<Importing>,
    pub again: Option<Time>,
}

impl Outcome {
    fn only(importing: Option<Importing>, again: Option<Time>) -> Self {
        Self { changes: Vec::new(), events: Vec::new(), importing, again }
    }
}

/// Collects changes of one cluster.
struct Changes<'a> {
    cluster: &'a ClusterId,
    list: Vec<Change>,
}

impl Changes<'_> {
    fn push(&mut self, action: Action, reason: impl Into<Box<str>>) {
        self.list.push(Change { cluster: self.cluster.clone(), action, reason: reason.into() });
    }
}

/// The outcome for one member.
pub(super) fn evaluate(context: Context<'_>, cluster: &ClusterId, member: &Member) -> Outcome {
    let Context { settings, now, key, .. } = context;
    match member.reach {
        Reach::Live => {}
        // For a moment its silence means nothing: who was told that all is well is not told otherwise yet.
        Reach::Unreachable { since } | Reach::Unheard { since } => {
            let named = since + settings.unreachable.grace;
            let importing = if now < named { Importing::Pending } else { Importing::Unreachable };
            let part = context.merged.is_some() && !member.leaving;
            return Outcome::only(part.then_some(importing), Some(named).filter(|t| part && *t > now));
        }
    }
    let local = member.local(key);
    let import = local.and_then(|local| local.import.as_ref());
    let ours = import.filter(|import| import.meta.is_made_by_us() || settings.adopt_imports);
    let derived = member.derived(context.derived_key);
    let there = There { cluster, member, local, import: ours, derived };
    let mut namespace = None;
    match member.namespace(&key.namespace) {
        Some(found) if found.terminating => {
            let part = context.merged.is_some() && !member.leaving;
            return Outcome::only(part.then_some(Importing::NamespaceTerminating), None);
        }
        Some(_) => {}
        None => namespace = Some(&key.namespace),
    }
    let allowed = settings.import_namespaces.allows(&key.namespace) && consents(member, &key.namespace, settings);
    let mut changes = Changes { cluster, list: Vec::new() };
    if member.leaving || !allowed {
        clear(context, &there, &mut changes, if member.leaving { "the cluster leaves" } else { "not allowed here" });
        let importing = context.merged.filter(|_| !member.leaving).map(|_| Importing::Denied);
        return Outcome { changes: changes.list, ..Outcome::only(importing, None) };
    }
    let Some(merged) = context.merged else {
        let again = withdraw(context, &there, &mut changes);
        return Outcome { changes: changes.list, ..Outcome::only(None, again) };
    };
    if let Some(name) = namespace {
        if settings.create_namespaces == CreateNamespaces::Never {
            return Outcome::only(Some(Importing::NamespaceMissing), None);
        }
        changes.push(Action::CreateNamespace(name.clone()), "a service is imported into it");
    }
    if ours.is_none() && import.is_some() {
        clear(context, &there, &mut changes, "the ServiceImport is not ours");
        let importing = Importing::Foreign(status::foreign_import(key).into());
        return Outcome { changes: changes.list, ..Outcome::only(Some(importing), None) };
    }
    Importer { context, there, merged, changes, events: Vec::new() }.evaluate()
}

/// Removes what is ours at once: the cluster has no part in the service, whoever exports it.
fn clear(context: Context<'_>, there: &There<'_>, changes: &mut Changes<'_>, reason: &str) {
    let Context { key, .. } = context;
    if let Some(import) = there.import.filter(|import| import.meta.is_ours()) {
        changes.push(Action::DeleteImport(key.clone(), import.meta.id.clone()), reason);
    }
    for (name, slice) in there.local.into_iter().flat_map(|local| &local.mirrored) {
        changes.push(Action::DeleteSlice(key.clone(), name.clone(), slice.meta.id.clone()), reason);
    }
    delete_derived(context, there, changes, reason);
}

fn delete_derived(context: Context<'_>, there: &There<'_>, changes: &mut Changes<'_>, reason: &str) {
    if let Some(service) = there.our_derived().filter(|service| service.meta.is_ours()) {
        changes.push(Action::DeleteService(context.derived_key.clone(), service.meta.id.clone()), reason);
    }
}

/// Nobody exports the service any more: everything goes, the import (and with it the name) first, unless a cluster that
/// was not heard may still hold it up (R82) or endpoints are being drained (R79).
fn withdraw(context: Context<'_>, there: &There<'_>, changes: &mut Changes<'_>) -> Option<Time> {
    let Context { world, settings, now, key, derived, .. } = context;
    let scope = Scope { world, settings, now, key, derived, cluster: there.cluster, member: there.member };
    let slices = slices(scope, None);
    let exporters = there.import.map(|import| &import.status.clusters[..]).unwrap_or_default();
    let (held, until) = held_up(world, settings, now, exporters);
    let again = earlier(slices.again, until);
    let all = !held && slices.wanted.is_empty();
    let reason = "no cluster exports it any more";
    if all && let Some(import) = there.import.filter(|import| import.meta.is_ours()) {
        changes.push(Action::DeleteImport(key.clone(), import.meta.id.clone()), reason);
    }
    let kind = there.import.map_or(ImportKind::ClusterSetIp, |import| import.spec.kind);
    write_slices(context, there, slices, kind, changes);
    if all {
        delete_derived(context, there, changes, reason);
    }
    again
}

/// Brings the slices about: those that gain endpoints first, then those that lose some, then those that go (HDL-05).
fn write_slices(context: Context<'_>, there: &There<'_>, slices: Slices, kind: ImportKind, changes: &mut Changes<'_>) {
    let observed = |name: &str| there.local.and_then(|local| local.mirrored.get(name));
    let mut later = Vec::new();
    for wanted in slices.wanted.into_values() {
        let is = observed(&wanted.name);
        let head = SliceHead::new(context, there, &wanted, kind, is);
        let reason = match is {
            None => format!("endpoints of {}", wanted.source),
            Some(is) => {
                let content = compare::slice_content(&is.content, &wanted.content);
                let difference =
                    content.or_else(|| compare::slice_meta(&is.meta, &head.labels, &head.annotations, &head.owners));
                let Some(difference) = difference else { continue };
                format!("{}: {difference}", wanted.source)
            }
        };
        let object = head.with(context.key, wanted, is);
        if is.is_none_or(|is| gains(&is.content.endpoints, &object.content.endpoints)) {
            changes.push(Action::ApplySlice(object), reason);
        } else {
            later.push((object, reason));
        }
    }
    for (object, reason) in later {
        changes.push(Action::ApplySlice(object), reason);
    }
    for (name, reason) in slices.unwanted {
        if let Some(slice) = observed(&name) {
            let action = Action::DeleteSlice(context.key.clone(), name, slice.meta.id.clone());
            changes.push(action, reason);
        }
    }
}

/// A mirrored slice's metadata.
struct SliceHead {
    labels: Map,
    annotations: Map,
    owners: Vec<Owner>,
}

impl SliceHead {
    fn new(context: Context<'_>, there: &There<'_>, wanted: &Wanted<'_>, kind: ImportKind, is: Option<&Slice>) -> Self {
        let Context { settings, key, derived, .. } = context;
        // Nobody exports it any more and the import is gone: what has to wait keeps the owners that it has.
        let orphaned = is.filter(|_| context.merged.is_none() && there.import.is_none());
        let owners = orphaned.map_or_else(|| slice_owners(context, there, kind), |is| is.meta.owners.clone());
        let mut annotations = Map::new();
        if let Some(since) = wanted.draining {
            annotations.insert(api::ANNOTATION_DRAINING_SINCE.into(), since.0.to_string().into());
        }
        Self { labels: slice_labels(key, derived, &wanted.source, kind, settings), annotations, owners }
    }

    fn with(self, key: &ServiceKey, wanted: Wanted<'_>, is: Option<&Slice>) -> SliceObject {
        SliceObject {
            key: key.clone(),
            name: wanted.name,
            existing: is.map(|slice| slice.meta.id.clone()),
            labels: self.labels,
            annotations: self.annotations,
            owners: self.owners,
            content: wanted.content.into_owned(),
        }
    }
}

/// The owners of slices (R69). A headless import without a derived Service owns them itself.
fn slice_owners(context: Context<'_>, there: &There<'_>, kind: ImportKind) -> Vec<Owner> {
    let Context { settings, key, derived, .. } = context;
    let import = desired::import_owner(key, there.import.map(|import| &import.meta.id));
    let has_service = kind == ImportKind::ClusterSetIp || settings.headless_derived_service;
    // One that is headless where it shall not be (or the other way round) is made anew, with another uid.
    let stays = there.our_derived().filter(|service| service.spec.headless == (kind == ImportKind::Headless));
    let uid = stays.map(|service| service.meta.id.uid.clone());
    let service = Owner { kind: OwnerKind::Service, name: derived.as_str().into(), uid };
    match settings.slice_owner {
        SliceOwner::Service if has_service => vec![service],
        SliceOwner::Both if has_service => vec![import, service],
        _ => vec![import],
    }
}

/// A member that imports the service.
struct Importer<'a> {
    context: Context<'a>,
    there: There<'a>,
    merged: &'a Merged,
    changes: Changes<'a>,
    events: Vec<Event>,
}

impl Importer<'_> {
    fn evaluate(mut self) -> Outcome {
        let Context { world, settings, now, key, derived, .. } = self.context;
        let (merged, there) = (self.merged, self.there);
        let families = desired::local_families(merged, &there, settings);
        let wants_derived = desired::wants_derived(merged, &families, &there, settings);
        let settled = self.import(&families);
        if !there.derived_is_foreign() {
            self.derived(&families, wants_derived);
        }
        // Slices of a Service that is somebody else's would send his clients to our endpoints.
        let usable: &[Family] = if wants_derived && there.derived_is_foreign() { &[] } else { &families };
        let scope = Scope { world, settings, now, key, derived, cluster: there.cluster, member: there.member };
        let slices = slices(scope, Some((merged, usable)));
        let again = slices.again;
        write_slices(self.context, &there, slices, merged.kind, &mut self.changes);
        let written = self.changes.list.is_empty();
        let mut ready = false;
        if let Some(import) = there.import.filter(|_| settled) {
            ready = self.status(import, &families, wants_derived);
        }
        let (importing, late) = self.importing(written && ready, &families, wants_derived);
        let again = earlier(again, late);
        Outcome { changes: self.changes.list, events: self.events, importing: Some(importing), again }
    }

    /// The import itself. Returns whether it is as it shall be.
    fn import(&mut self, families: &[Family]) -> bool {
        let Context { settings, key, derived, .. } = self.context;
        let existing = self.there.import;
        let object = desired::import(key, derived, self.merged, families, &self.there, existing, settings);
        let reason = match existing {
            None => format!("exported in {}", names(&self.merged.clusters)),
            Some(import) => match compare::import(import, &object) {
                Some(difference) => difference.to_owned(),
                None => return true,
            },
        };
        if let Some(import) = existing.filter(|import| import.meta.is_made_by_us()) {
            self.tell_about(import, &object.spec);
        }
        self.changes.push(Action::ApplyImport(object), reason);
        false
    }

    /// Events for what users of the import have to know (R77).
    fn tell_about(&mut self, import: &Import, wanted: &ImportSpec) {
        let (is, key) = (&import.spec, self.context.key);
        if is.kind != wanted.kind {
            let kind = match wanted.kind {
                ImportKind::ClusterSetIp => api::TYPE_CLUSTERSET_IP,
                ImportKind::Headless => api::TYPE_HEADLESS,
            };
            self.event(true, "TypeChanged", format!("ServiceImport {key} is of type {kind} now."));
        } else if !is.ips.is_empty() && !wanted.ips.is_empty() && is.ips != wanted.ips {
            let ips = desired::describe_ips(&wanted.ips);
            self.event(true, "IPChanged", format!("ServiceImport {key} has the clusterset IPs {ips} now."));
        }
    }

    fn event(&mut self, warning: bool, reason: &str, message: String) {
        let subject = Subject::Import(self.context.key.clone());
        let cluster = self.there.cluster.clone();
        self.events.push(Event { cluster, subject, warning, reason: reason.into(), message: message.into() });
    }

    /// The derived Service.
    fn derived(&mut self, families: &[Family], wanted: bool) {
        let Context { settings, key, derived, derived_key, .. } = self.context;
        let there = self.there;
        if !wanted {
            let reason = if families.is_empty() { "no IP family is supported" } else { "not wanted for headless" };
            delete_derived(self.context, &there, &mut self.changes, reason);
            return;
        }
        let mut object = desired::service(key, derived, self.merged, families, &there, settings);
        match there.our_derived() {
            None => self.changes.push(Action::ApplyService(object), "the import needs it"),
            Some(service) if desired::must_recreate(service, &object) => {
                let id = service.meta.id.clone();
                let reason = "its type or first IP family cannot be changed";
                self.changes.push(Action::DeleteService(derived_key.clone(), id), reason);
                object.existing = None;
                self.changes.push(Action::ApplyService(object), reason);
            }
            Some(service) => {
                if let Some(difference) = compare::service(service, &object) {
                    self.changes.push(Action::ApplyService(object), difference);
                }
            }
        }
    }

    /// The import's status. Returns whether it can be used.
    fn status(&mut self, import: &Import, families: &[Family], wants_derived: bool) -> bool {
        let Context { key, derived, now, .. } = self.context;
        let status = status::import(import, self.merged, families, derived, wants_derived, &self.there, now);
        let ready = status.conditions.iter().any(|c| c.status == Status::True);
        if status::import_differs(&import.status, &status) {
            let before = status::find(&import.status.conditions, api::CONDITION_READY);
            if let Some(ready) = status.conditions.first()
                && status::is_news(before, ready)
            {
                self.event(ready.status != Status::True, &ready.reason, ready.message.to_string());
            }
            self.changes.push(Action::ApplyImportStatus(key.clone(), status), "status differs");
        }
        ready
    }

    /// What the exporters are told about this cluster, and when that may become worse by itself.
    fn importing(&self, done: bool, families: &[Family], wants_derived: bool) -> (Importing, Option<Time>) {
        let Context { settings, now, derived, .. } = self.context;
        let failure = self.there.local.and_then(|local| local.failure.as_ref()).filter(|_| !done);
        let mut again = None;
        if let Some(failure) = failure {
            let late = failure.since + settings.failure_grace;
            if now >= late {
                return (Importing::Failed(failure.message.clone()), None);
            }
            again = Some(late);
        }
        if wants_derived && self.there.derived_is_foreign() {
            return (Importing::Foreign(status::foreign_derived(derived).into()), again);
        }
        if families.is_empty() {
            return (Importing::FamilyNotSupported, again);
        }
        (if done { Importing::Done } else { Importing::Pending }, again)
    }
}

/// A few clusters in a reason.
fn names(clusters: &[ClusterId]) -> String {
    clusters.iter().collect::<BTreeSet<_>>().into_iter().map(ClusterId::as_str).collect::<Vec<_>>().join(", ")
}

/// The derived name's place, computed once a plan.
pub(super) fn derived_key(key: &ServiceKey) -> ServiceKey {
    naming::derived_key(key)
}
