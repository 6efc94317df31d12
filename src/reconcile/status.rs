//! Conditions: what users read of a service's state (controller.md 2.8, 2.9, 2.16).

use std::borrow::{Borrow, Cow};

use super::conflicts::{Conflict, messages, reasons, shortened};
use super::desired::{There, refused_fields};
use super::exports::Verdict;
use super::families;
use super::merge::Merged;
use super::objects::{Condition, Family, ImportStatus, Status, Time};
use super::observed::{Export, Import, Refusable};
use super::plan::Importing;
use super::settings::Settings;
use super::wanted::WantedStatus;
use crate::api;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// The most clusters whose errors one message names.
const MOST_ERRORS: usize = 3;

/// Condition types of a ServiceExport that are ours.
pub const EXPORT_CONDITIONS: [&str; 4] =
    [api::CONDITION_VALID, api::CONDITION_READY, api::CONDITION_CONFLICT, api::CONDITION_INVALID_SERVICE];

/// The condition of that type.
pub(super) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| *condition.kind == *kind)
}

/// What a condition shall say.
struct Says<'a> {
    kind: &'a str,
    status: Status,
    reason: Cow<'a, str>,
    message: Cow<'a, str>,
}

fn says(
    kind: &'static str,
    status: Status,
    reason: &'static str,
    message: impl Into<Cow<'static, str>>,
) -> Says<'static> {
    Says { kind, status, reason: reason.into(), message: message.into() }
}

/// A condition, with the time of its last flip (R73); borrowed where that is what is said already.
fn condition<'a>(says: &Says<'_>, before: &'a [Condition], generation: i64, now: Time) -> Cow<'a, Condition> {
    let before = find(before, says.kind).filter(|before| before.status == says.status);
    match before {
        Some(before)
            if *before.reason == *says.reason
                && *before.message == *says.message
                && before.generation == generation =>
        {
            Cow::Borrowed(before)
        }
        _ => Cow::Owned(Condition {
            kind: says.kind.into(),
            status: says.status,
            reason: says.reason.as_ref().into(),
            message: says.message.as_ref().into(),
            generation,
            since: before.map_or(now, |before| before.since),
        }),
    }
}

/// The status of an import.
pub(super) fn import<'a>(
    import: &'a Import,
    merged: &'a Merged,
    families: &[Family],
    derived: &Label,
    wants_derived: bool,
    there: &There<'_>,
    now: Time,
) -> WantedStatus<'a> {
    let ready = import_ready(import, merged, families, derived, wants_derived, there);
    WantedStatus {
        clusters: &merged.clusters,
        slices_present: there.member.features.endpoint_slice_objects,
        ready: condition(&ready, &import.status.conditions, import.meta.generation, now),
    }
}

fn import_ready(
    import: &Import,
    merged: &Merged,
    families: &[Family],
    derived: &Label,
    wants_derived: bool,
    there: &There<'_>,
) -> Says<'static> {
    let says =
        |status, reason: &'static str, message: Cow<'static, str>| says(api::CONDITION_READY, status, reason, message);
    if families.is_empty() {
        let supported = there.member.features.families.clone().unwrap_or_default();
        let given = there.our_derived.map(|service| service.spec.families.clone()).unwrap_or_default();
        let supported = if supported.is_empty() { given } else { supported };
        return says(
            Status::False,
            "IPFamilyNotSupported",
            format!(
                "The service has {}, this cluster has {}.",
                families::describe(&merged.families),
                families::describe(&supported)
            )
            .into(),
        );
    }
    if wants_derived && there.derived_is_foreign {
        return says(Status::False, "Pending", foreign_derived(derived).into());
    }
    let has_ips = merged.kind == ImportKind::Headless || import.spec.ips.len() == families.len();
    if (wants_derived && there.our_derived.is_none()) || !has_ips {
        return says(Status::False, "Pending", WAITING.into());
    }
    let mut message = Cow::Borrowed(USABLE);
    for (field, value) in refused_fields(merged, there) {
        let field = match field {
            Refusable::TrafficDistribution => "trafficDistribution",
            Refusable::InternalTrafficPolicy => "internalTrafficPolicy",
            Refusable::SessionAffinity => "sessionAffinity",
            Refusable::ClusterIps => continue,
        };
        message.to_mut().push_str(&format!(
            " This cluster's API server refuses {field} \"{}\": the derived Service goes without.",
            shortened(value)
        ));
    }
    says(Status::True, "Ready", message)
}

/// What is said of an import that has no address yet.
const WAITING: &str = "Waiting for the clusterset IP of the derived Service.";

/// What is said of an import that is as it should be.
const USABLE: &str = "The service can be used.";

/// Whether users of an import are told of its condition by an event: that it waits for its address, or that it can be
/// used for the first time, is no news.
pub(super) fn is_news(before: Option<&Condition>, ready: &Condition) -> bool {
    match before {
        Some(before) => before.status != ready.status || before.message != ready.message,
        None => *ready.message != *USABLE && *ready.message != *WAITING,
    }
}

/// For conditions and events: the derived name belongs to somebody else.
pub(super) fn foreign_derived(derived: &Label) -> String {
    format!("Service {derived} exists and is not managed by {}: rename or delete it.", api::MANAGED_BY)
}

/// For conditions: the import's name belongs to somebody else.
pub(super) fn foreign_import(key: &ServiceKey) -> String {
    format!("ServiceImport {} exists and is not managed by {}", key.name, api::MANAGED_BY)
}

/// Whether a status says something else than wanted. `lastTransitionTime` follows from the rest.
pub(super) fn import_differs(is: &ImportStatus, shall: &ImportStatus) -> bool {
    is.clusters != shall.clusters
        || is.slices_present != shall.slices_present
        || shall.conditions.iter().any(|shall| find(&is.conditions, &shall.kind) != Some(shall))
}

/// What the conditions of one ServiceExport depend on.
pub(super) struct ExportState<'a> {
    pub key: &'a ServiceKey,
    pub cluster: &'a ClusterId,
    pub export: &'a Export,
    pub verdict: Verdict,
    pub merged: Option<&'a Merged>,
    pub importers: &'a [(ClusterId, Importing)],
    pub settings: &'a Settings,
    pub now: Time,
}

/// Our conditions of a ServiceExport; borrowed where they are there already.
pub(super) fn export<'a>(state: &ExportState<'a>) -> Vec<Cow<'a, Condition>> {
    let before = &state.export.conditions;
    let generation = state.export.meta.generation;
    let make = |says: &Says<'_>| condition(says, before, generation, state.now);
    let mut conditions = vec![make(&valid(state))];
    match (&state.verdict, state.merged) {
        (Verdict::Valid, Some(merged)) => {
            let standing = find(before, api::CONDITION_READY).filter(|b| b.status == Status::True);
            conditions.push(match ready(state, merged) {
                // A write under way, or a retry, is no news for somebody who was told that it works (R75).
                says if says.status == Status::False && says.reason == "Pending" => {
                    standing.map_or_else(|| make(&says), Cow::Borrowed)
                }
                says => make(&says),
            });
            let standing = find(before, api::CONDITION_CONFLICT).filter(|b| b.status == Status::True);
            conditions.push(match standing {
                // Who disagrees is not known while one of them was not heard: a conflict is not taken back then, but
                // another one is told.
                Some(standing) if merged.uncertain && says_all(standing, &merged.conflicts) => Cow::Borrowed(standing),
                _ => make(&conflict(merged)),
            });
        }
        _ => conditions.push(make(&not_ready(state))),
    }
    if state.settings.legacy_conditions && matches!(state.verdict, Verdict::InvalidType(_)) {
        conditions.push(make(&Says {
            kind: api::CONDITION_INVALID_SERVICE,
            status: Status::True,
            reason: "UnsupportedServiceType".into(),
            message: valid(state).message,
        }));
    }
    conditions
}

fn valid(state: &ExportState<'_>) -> Says<'static> {
    let ExportState { key, cluster, .. } = state;
    let says = |status, reason: &'static str, message| says(api::CONDITION_VALID, status, reason, message);
    match &state.verdict {
        Verdict::Valid | Verdict::Denied(_) => {
            says(Status::True, "Valid", "The ServiceExport and its Service are exportable.".to_owned())
        }
        Verdict::NoService => {
            says(Status::False, "NoService", format!("Service {key} does not exist in cluster \"{cluster}\"."))
        }
        Verdict::InvalidType(kind) => says(
            Status::False,
            "InvalidServiceType",
            format!("{kind} services cannot be exported: Service {key} in cluster \"{cluster}\" is one."),
        ),
        Verdict::Imported => says(
            Status::False,
            "ImportedService",
            format!("Service {key} in cluster \"{cluster}\" stands for an import and cannot be exported again."),
        ),
    }
}

/// `Ready` of an export that takes no part.
fn not_ready(state: &ExportState<'_>) -> Says<'static> {
    let says = |reason: &'static str, message| says(api::CONDITION_READY, Status::False, reason, message);
    match &state.verdict {
        Verdict::Denied(why) => says("Failed", format!("Not exported: {why}.")),
        _ => says("Pending", "Not exported until the condition Valid is True.".to_owned()),
    }
}

/// What is said of clusters without the namespace.
const MISSING: &str = "Not imported where the namespace is missing";

/// The clusters that a message of `Ready` names as those without the namespace.
pub(super) fn named_missing(message: &str) -> Vec<&str> {
    let Some((_, rest)) = message.split_once(MISSING) else { return Vec::new() };
    let sentence = rest.split_once(". ").map_or(rest, |(sentence, _)| sentence);
    let names = sentence.trim_start_matches(": ").trim_end_matches('.');
    names.split(" and ").next().into_iter().flat_map(|names| names.split(", ")).collect()
}

/// A question about what a member does with a service.
type Is = fn(&Importing) -> bool;

/// `Ready` of an export that takes part (R75).
fn ready(state: &ExportState<'_>, merged: &Merged) -> Says<'static> {
    let says = |status, reason: &'static str, message| says(api::CONDITION_READY, status, reason, message);
    let named = |wanted: Is| -> Vec<&ClusterId> {
        state.importers.iter().filter(|(_, importing)| wanted(importing)).map(|(id, _)| id).collect()
    };
    let oldest = merged.clusters.first() == Some(state.cluster);
    let invalid: Vec<_> = merged.labels.invalid.iter().chain(&merged.annotations.invalid).collect();
    if oldest && !invalid.is_empty() {
        let keys = list(invalid.into_iter().map(|key| format!("\"{}\"", shortened(key))));
        let message = format!("Exported labels or annotations that no cluster accepts are left out: {keys}.");
        return says(Status::False, "Failed", message);
    }
    let errors: Vec<_> = state
        .importers
        .iter()
        .filter_map(|(id, importing)| match importing {
            Importing::Failed(error) | Importing::Foreign(error) => {
                Some(format!("{id}: {}", shortened(error.trim_end_matches('.'))))
            }
            _ => None,
        })
        .collect();
    if !errors.is_empty() {
        let more = errors.len().saturating_sub(MOST_ERRORS);
        let more = if more > 0 { format!("; and {more} more clusters") } else { String::new() };
        let errors = errors.into_iter().take(MOST_ERRORS).collect::<Vec<_>>().join("; ");
        return says(Status::False, "Failed", format!("Not written everywhere: {errors}{more}."));
    }
    let pending = named(|i| matches!(i, Importing::Pending));
    if !pending.is_empty() {
        return says(Status::False, "Pending", format!("Being written to {}.", list(pending)));
    }
    let done = named(|i| matches!(i, Importing::Done)).len();
    let mut message = format!("The service has been exported to {done} cluster{}.", if done == 1 { "" } else { "s" });
    let skipped: [(Is, &str); 5] = [
        (|i| matches!(i, Importing::NamespaceMissing), MISSING),
        (|i| matches!(i, Importing::NamespaceTerminating), "Not imported where the namespace is being deleted"),
        (|i| matches!(i, Importing::Denied), "Not imported where that is not allowed"),
        (|i| matches!(i, Importing::FamilyNotSupported), "Not usable for want of its IP families"),
        (|i| matches!(i, Importing::Unreachable), "Unreachable"),
    ];
    for (wanted, what) in skipped {
        let clusters = named(wanted);
        if !clusters.is_empty() {
            message.push_str(&format!(" {what}: {}.", list(clusters)));
        }
    }
    let reserved: Vec<_> = merged.labels.reserved.iter().chain(&merged.annotations.reserved).collect();
    if oldest && !reserved.is_empty() {
        let keys = list(reserved.into_iter().map(|key| format!("\"{}\"", shortened(key))));
        message.push_str(&format!(" Reserved keys are not exported: {keys}."));
    }
    says(Status::True, "Exported", message)
}

/// Whether a condition names the reasons of all these conflicts.
fn says_all(condition: &Condition, conflicts: &[Conflict]) -> bool {
    conflicts.iter().all(|conflict| condition.reason.split(',').any(|reason| reason == conflict.property.reason()))
}

fn conflict(merged: &Merged) -> Says<'static> {
    if merged.conflicts.is_empty() {
        return Says {
            kind: api::CONDITION_CONFLICT,
            status: Status::False,
            reason: "NoConflicts".into(),
            message: "All exporting clusters agree.".into(),
        };
    }
    Says {
        kind: api::CONDITION_CONFLICT,
        status: Status::True,
        reason: reasons(&merged.conflicts).into(),
        message: messages(&merged.conflicts).into(),
    }
}

/// A few names in a sentence.
fn list(names: impl IntoIterator<Item = impl ToString>) -> String {
    const MOST: usize = 10;
    let names: Vec<_> = names.into_iter().map(|name| name.to_string()).collect();
    let more = names.len().saturating_sub(MOST);
    let shown = names.into_iter().take(MOST).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Whether the conditions of a ServiceExport have to be written: one of ours says something else, or is there and
/// shall not be.
pub(super) fn export_differs(is: &[Condition], shall: &[impl Borrow<Condition>]) -> bool {
    let shall = || shall.iter().map(Borrow::borrow);
    shall().any(|shall| find(is, &shall.kind) != Some(shall))
        || is.iter().any(|is| EXPORT_CONDITIONS.contains(&&*is.kind) && shall().all(|shall| shall.kind != is.kind))
}
