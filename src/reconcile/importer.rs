//! One importing cluster: what of a service it should hold, compared with what it holds.

use std::collections::BTreeSet;

use super::desired::{self, Heads, There};
use super::exports::consents;
use super::merge::Merged;
use super::mirrored::write_slices;
use super::naming;
use super::objects::{Family, ImportSpec, Status, Time};
use super::observed::{Import, Reach};
use super::offers::Offer;
use super::plan::{Action, Change, Event, Importing, Subject};
use super::settings::{CreateNamespaces, Settings};
use super::slices::{Scope, slices};
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
    /// Metadata of what is merged; none where nothing is.
    pub heads: Option<&'a Heads>,
    /// What its exporters offer.
    pub offers: &'a [Offer<'a>],
}

impl<'a> Context<'a> {
    /// What the slices in one cluster depend on.
    fn scope(self, there: &There<'a>) -> Scope<'a> {
        let Self { world, settings, now, key, derived, offers, .. } = self;
        let There { cluster, member, local, .. } = *there;
        Scope { world, settings, now, key, derived, cluster, member, local, offers }
    }
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
pub(super) struct Changes<'a> {
    cluster: &'a ClusterId,
    list: Vec<Change>,
}

impl Changes<'_> {
    pub(super) fn push(&mut self, action: Action, reason: impl Into<Box<str>>) {
        self.list.push(Change { cluster: self.cluster.clone(), action, reason: reason.into() });
    }
}

/// The outcome for one member.
pub(super) fn evaluate<'a>(context: Context<'a>, cluster: &'a ClusterId, member: &'a Member) -> Outcome {
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
    let there = There::new(cluster, member, local, ours, derived);
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
    let Some((merged, heads)) = context.merged.zip(context.heads) else {
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
    Importer { context, there, merged, heads, changes, events: Vec::new() }.evaluate()
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
    if let Some(service) = there.our_derived.filter(|service| service.meta.is_ours()) {
        changes.push(Action::DeleteService(context.derived_key.clone(), service.meta.id.clone()), reason);
    }
}

/// Nobody exports the service any more: everything goes, the import (and with it the name) first, unless a cluster that
/// was not heard may still hold it up (R82) or endpoints are being drained (R79).
fn withdraw<'a>(context: Context<'a>, there: &There<'a>, changes: &mut Changes<'_>) -> Option<Time> {
    let Context { world, settings, now, key, .. } = context;
    let slices = slices(context.scope(there), None);
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

/// A member that imports the service.
struct Importer<'a> {
    context: Context<'a>,
    there: There<'a>,
    merged: &'a Merged,
    heads: &'a Heads,
    changes: Changes<'a>,
    events: Vec<Event>,
}

impl Importer<'_> {
    fn evaluate(mut self) -> Outcome {
        let Context { settings, .. } = self.context;
        let (merged, there) = (self.merged, self.there);
        let families = desired::local_families(merged, &there, settings);
        let wants_derived = desired::wants_derived(merged, &families, &there, settings);
        let settled = self.import(&families, wants_derived);
        if !there.derived_is_foreign {
            self.derived(&families, wants_derived);
        }
        // Slices of a Service that is somebody else's would send his clients to our endpoints.
        let usable: &[Family] = if wants_derived && there.derived_is_foreign { &[] } else { &families };
        let slices = slices(self.context.scope(&there), Some((merged, usable)));
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
    fn import(&mut self, families: &[Family], wants_derived: bool) -> bool {
        let existing = self.there.import;
        let wanted = desired::import(self.merged, self.heads, families, wants_derived, &self.there);
        let reason = match existing {
            None => format!("exported in {}", names(&self.merged.clusters)),
            Some(import) => match wanted.differs(import) {
                Some(difference) => difference.to_owned(),
                None => return true,
            },
        };
        let object = wanted.into_object(self.context.key, existing);
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
        let Context { settings, key, derived_key, .. } = self.context;
        let there = self.there;
        if !wanted {
            let reason = if families.is_empty() { "no IP family is supported" } else { "not wanted for headless" };
            delete_derived(self.context, &there, &mut self.changes, reason);
            return;
        }
        let owners = [there.import_owner(key)];
        let wanted = desired::service(self.merged, self.heads, &owners, families, &there, settings);
        let object = |existing| Action::ApplyService(wanted.to_object(key, &derived_key.name, existing));
        match there.our_derived {
            None => self.changes.push(object(None), "the import needs it"),
            Some(service) if desired::must_recreate(service, &wanted) => {
                let id = service.meta.id.clone();
                let reason = "its type or first IP family cannot be changed";
                self.changes.push(Action::DeleteService(derived_key.clone(), id), reason);
                self.changes.push(object(None), reason);
            }
            Some(service) => {
                if let Some(difference) = wanted.differs(service) {
                    self.changes.push(object(Some(service.meta.id.clone())), difference);
                }
            }
        }
    }

    /// The import's status. Returns whether it can be used.
    fn status(&mut self, import: &Import, families: &[Family], wants_derived: bool) -> bool {
        let Context { key, derived, now, .. } = self.context;
        let wanted = status::import(import, self.merged, families, derived, wants_derived, &self.there, now);
        let ready = wanted.ready.status == Status::True;
        if wanted.differs(&import.status) {
            let before = status::find(&import.status.conditions, api::CONDITION_READY);
            if status::is_news(before, &wanted.ready) {
                self.event(!ready, &wanted.ready.reason, wanted.ready.message.to_string());
            }
            self.changes.push(Action::ApplyImportStatus(key.clone(), wanted.into_status()), "status differs");
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
        if wants_derived && self.there.derived_is_foreign {
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
