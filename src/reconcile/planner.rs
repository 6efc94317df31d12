//! From the world to plans: one service, one namespace, or all of them.

use std::borrow::Cow;

use super::desired::Heads;
use super::exports::{Verdict, contributions, export_in, verdict};
use super::importer::{Context, derived_key, evaluate};
use super::merge::merge;
use super::objects::{Condition, Status, Time};
use super::observed::Export;
use super::offers::offers;
use super::plan::{Action, Change, Event, Importing, Plan, ServicePlan, Subject};
use super::settings::{CreateNamespaces, Settings};
use super::standing::{earlier, held_up};
use super::status::{self, ExportState};
use super::world::{Member, World};
use crate::api;
use crate::model::{ClusterId, Label, ServiceKey};

/// The plan of one service. Reads that service's entries and nothing else.
#[must_use]
pub fn plan_service(world: &World, key: &ServiceKey, settings: &Settings, now: Time) -> ServicePlan {
    let mut plan = Plan::default();
    if !settings.shard.owns(key) {
        return ServicePlan {
            key: key.clone(),
            plan,
            exporters: Vec::new(),
            conflicts: Vec::new(),
            importers: Vec::new(),
        };
    }
    let contributions = contributions(world, key, settings, now);
    let merged = merge(&contributions, settings);
    let derived_key = derived_key(key);
    let (derived, merged) = (&derived_key.name, merged.as_ref());
    let heads = merged.map(|merged| Heads::new(key, derived, merged, settings));
    let offers = merged.map(|merged| offers(world, key, derived, merged, settings)).unwrap_or_default();
    let (heads, offers) = (heads.as_ref(), &offers[..]);
    let context = Context { world, settings, now, key, derived, derived_key: &derived_key, merged, heads, offers };
    let mut importers = Vec::new();
    for (cluster, member) in world.members() {
        let outcome = evaluate(context, cluster, member);
        importers.extend(outcome.importing.map(|importing| (cluster.clone(), importing)));
        plan.again = earlier(plan.again, outcome.again);
        if writes_to(settings, cluster) {
            plan.changes.extend(outcome.changes);
            plan.events.extend(outcome.events);
        }
    }
    for (cluster, member) in world.members().iter().filter(|(id, member)| writes_to(settings, id) && can_write(member))
    {
        auto_export(&mut plan, cluster, member, key, settings);
        export_status(&mut plan, context, cluster, member, &importers);
    }
    ServicePlan {
        key: key.clone(),
        plan,
        exporters: merged.map(|merged| merged.clusters.clone()).unwrap_or_default(),
        conflicts: merged.map(|merged| merged.conflicts.clone()).unwrap_or_default(),
        importers,
    }
}

/// The plans of all services that need one, in the order of their keys.
pub fn plan_all<'a>(
    world: &'a World,
    settings: &'a Settings,
    now: Time,
) -> impl Iterator<Item = ServicePlan> + use<'a> {
    let keys: Vec<_> = world.keys().collect();
    keys.into_iter().map(move |key| plan_service(world, &key, settings, now))
}

/// The plan of one namespace: one that we made goes when nothing is exported into it any more (R4).
#[must_use]
pub fn plan_namespace(world: &World, namespace: &Label, settings: &Settings, now: Time) -> Plan {
    let mut plan = Plan::default();
    let used = world.keys_in(namespace).next().is_some();
    if used || settings.create_namespaces != CreateNamespaces::CreateAndRemove {
        return plan;
    }
    let (held, again) = held_up(world, settings, now, &[]);
    if held {
        return Plan { again, ..plan };
    }
    for (cluster, member) in world.members().iter().filter(|(id, member)| writes_to(settings, id) && can_write(member))
    {
        if let Some(found) = member.namespace(namespace).filter(|found| found.meta.is_ours() && !found.terminating) {
            plan.changes.push(Change {
                cluster: cluster.clone(),
                action: Action::DeleteNamespace(namespace.clone(), found.meta.id.clone()),
                reason: "made for imports, and nothing is imported into it any more".into(),
            });
        }
    }
    plan
}

fn writes_to(settings: &Settings, cluster: &ClusterId) -> bool {
    settings.write_only_to.as_ref().is_none_or(|only| only == cluster)
}

fn can_write(member: &Member) -> bool {
    member.reach == super::observed::Reach::Live
}

/// ServiceExports that a label asks for, and those that it does not ask for any more. Users' own are never touched.
fn auto_export(plan: &mut Plan, cluster: &ClusterId, member: &Member, key: &ServiceKey, settings: &Settings) {
    let Some(local) = member.local(key) else { return };
    if member.namespace(&key.namespace).is_none_or(|namespace| namespace.terminating) {
        return;
    }
    let service = local.service.as_ref();
    let fits = |rule: &super::settings::LabelRule| service.is_some_and(|service| rule.fits(&service.meta.labels));
    let wanted = settings.auto_export.as_ref().is_some_and(fits)
        && !member.leaving
        && verdict(member, key, service, settings) == Verdict::Valid;
    let change = |action, reason: &str| Change { cluster: cluster.clone(), action, reason: reason.into() };
    match &local.export {
        None if wanted => {
            plan.changes.push(change(Action::CreateExport(key.clone()), "the Service's label asks for it"));
        }
        Some(export) if !wanted && export.meta.is_ours() && !export.deleting => {
            let id = export.meta.id.clone();
            plan.changes.push(change(Action::DeleteExport(key.clone(), id), "the Service's label asks for it no more"));
        }
        _ => {}
    }
}

/// The conditions of the export in one member.
fn export_status(
    plan: &mut Plan,
    context: Context<'_>,
    cluster: &ClusterId,
    member: &Member,
    importers: &[(ClusterId, Importing)],
) {
    let Context { settings, now, key, merged, .. } = context;
    if member.namespace(&key.namespace).is_some_and(|namespace| namespace.terminating) {
        return;
    }
    let (export, conditions) = match export_in(member, key) {
        Some((local, export)) => {
            let verdict = verdict(member, key, local.service.as_ref(), settings);
            let state = ExportState { key, cluster, export, verdict, merged, importers, settings, now };
            (export, status::export(&state))
        }
        // A cluster that leaves keeps its users' exports, without our words on them.
        None => match member.local(key).and_then(|local| local.export.as_ref()) {
            Some(export) if member.leaving && !export.deleting => (export, Vec::new()),
            _ => return,
        },
    };
    if status::export_differs(&export.conditions, &conditions) {
        let conditions: Vec<_> = conditions.into_iter().map(Cow::into_owned).collect();
        plan.events.extend(events(key, cluster, export, &conditions));
        plan.changes.push(Change {
            cluster: cluster.clone(),
            action: Action::ApplyExportStatus(key.clone(), conditions),
            reason: "status differs".into(),
        });
    }
}

/// Events for conditions that flip or change their reason (R77), and for namespaces found missing.
fn events(key: &ServiceKey, cluster: &ClusterId, export: &Export, conditions: &[Condition]) -> Vec<Event> {
    let event = |warning, reason: &str, message: &str| Event {
        cluster: cluster.clone(),
        subject: Subject::Export(key.clone()),
        warning,
        reason: reason.into(),
        message: message.into(),
    };
    let mut events = Vec::new();
    for condition in conditions {
        let before = status::find(&export.conditions, &condition.kind);
        let same = before.is_some_and(|b| b.status == condition.status && b.reason == condition.reason);
        let bad = match &*condition.kind {
            api::CONDITION_CONFLICT | api::CONDITION_INVALID_SERVICE => condition.status == Status::True,
            _ => condition.status == Status::False && *condition.reason != *"Pending",
        };
        // What a new export is expected to say goes without saying, as does work under way.
        let expected = before.is_none() && !bad && *condition.kind != *api::CONDITION_READY;
        if !same && !expected && *condition.reason != *"Pending" {
            events.push(event(bad, &condition.reason, &condition.message));
        }
        let ready = *condition.kind == *api::CONDITION_READY && condition.status == Status::True;
        if ready {
            let told = before.map(|before| status::named_missing(&before.message)).unwrap_or_default();
            for importer in status::named_missing(&condition.message).into_iter().filter(|id| !told.contains(id)) {
                let message = format!("Not imported in {importer}: namespace {} is missing.", key.namespace);
                events.push(event(true, "NamespaceMissing", &message));
            }
        }
    }
    events
}
