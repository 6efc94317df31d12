//! Metadata, conditions, and the two kinds that are little more than these: Namespaces and ServiceExports.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::object::{Many, entries};
use super::super::time;
use super::object;
use crate::api;
use crate::reconcile::objects::{Condition, Identity, Map, Meta, Owner, OwnerKind, Status, Time};
use crate::reconcile::observed::{Export, Namespace};

/// Which labels and annotations of an object are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    /// All.
    All,
    /// All labels, and of annotations these.
    Annotations(&'static [&'static str]),
    /// Of labels these, and no annotations; of what is ours, all.
    Labels(&'static [&'static str]),
}

pub(super) fn convert(from: object::Meta, keep: Keep) -> Meta {
    let mut meta = Meta {
        id: Identity { uid: from.uid.unwrap_or_default(), resource_version: from.resource_version.unwrap_or_default() },
        generation: from.generation.unwrap_or_default(),
        labels: map(from.labels),
        annotations: map(from.annotations),
        ..Meta::default()
    };
    // Of what nobody claims by a label, our field manager tells whether somebody took ours off.
    let claims = [api::LABEL_MANAGED_BY, api::LABEL_SLICE_MANAGED_BY].map(|label| meta.labels.get(label));
    if claims.iter().flatten().all(|by| ***by == *api::MANAGED_BY) {
        (meta.owned_labels, meta.owned_annotations) = owned(from.managed_fields);
    }
    let written = !meta.owned_labels.is_empty() || !meta.owned_annotations.is_empty();
    if written || claims.iter().flatten().any(|by| ***by == *api::MANAGED_BY) {
        meta.owners = entries(from.owner_references).filter_map(|(_, owner)| self::owner(owner)).collect();
        return meta;
    }
    match keep {
        Keep::All => {}
        Keep::Annotations(keys) => meta.annotations.retain(|key, _| keys.contains(&&**key)),
        Keep::Labels(keys) => {
            meta.labels.retain(|key, _| keys.contains(&&**key));
            meta.annotations.clear();
        }
    }
    meta
}

pub(super) fn map(strings: object::Strings) -> Map {
    strings.into_iter().flatten().map(|(key, value)| (key, value.unwrap_or_default())).collect()
}

/// An owner that we may have set.
fn owner(from: object::OwnerReference) -> Option<Owner> {
    let group = from.api_version.as_deref().unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let kind = match (group, from.kind.as_deref()?) {
        (api::GROUP, "ServiceImport") => OwnerKind::Import,
        ("", "Service") => OwnerKind::Service,
        _ => return None,
    };
    Some(Owner { kind, name: from.name?, uid: from.uid })
}

/// The keys of labels and annotations that our field manager owns.
fn owned(managed: Many<object::ManagedFields>) -> (BTreeSet<Box<str>>, BTreeSet<Box<str>>) {
    let (mut labels, mut annotations) = (BTreeSet::new(), BTreeSet::new());
    for (_, fields) in entries(managed) {
        let ours = fields.manager.as_deref() == Some(api::MANAGED_BY)
            && fields.operation.as_deref() == Some("Apply")
            && fields.subresource.as_deref().unwrap_or_default().is_empty();
        let Some(text) = fields.fields_v1.filter(|_| ours) else { continue };
        let Ok(fields) = serde_json::from_str::<Value>(text.get()) else { continue };
        for (part, keys) in [("f:labels", &mut labels), ("f:annotations", &mut annotations)] {
            let of = fields.get("f:metadata").and_then(|meta| meta.get(part)).and_then(Value::as_object);
            keys.extend(
                of.into_iter().flat_map(|of| of.keys()).filter_map(|key| key.strip_prefix("f:")).map(Box::from),
            );
        }
    }
    (labels, annotations)
}

pub(super) fn conditions(from: Many<object::Condition>) -> Vec<Condition> {
    let convert = |from: object::Condition| {
        Some(Condition {
            kind: from.kind?,
            status: match from.status.as_deref() {
                Some("True") => Status::True,
                Some("False") => Status::False,
                _ => Status::Unknown,
            },
            reason: from.reason.unwrap_or_default(),
            message: from.message.unwrap_or_default(),
            generation: from.observed_generation.unwrap_or_default(),
            since: seconds(from.last_transition_time.as_deref()),
        })
    };
    entries(from).filter_map(|(_, condition)| convert(condition)).collect()
}

fn seconds(text: Option<&str>) -> Time {
    text.and_then(time::seconds).map(Time).unwrap_or_default()
}

pub(super) fn namespace(from: object::Namespace) -> Namespace {
    let terminating = from.metadata.deletion_timestamp.is_some() || from.status.phase.as_deref() == Some("Terminating");
    Namespace { meta: convert(from.metadata, Keep::Annotations(&[api::ANNOTATION_NAMESPACE])), terminating }
}

pub(super) fn export(from: object::ServiceExport) -> Export {
    Export {
        created: seconds(from.metadata.creation_timestamp.as_deref()),
        deleting: from.metadata.deletion_timestamp.is_some(),
        meta: convert(from.metadata, Keep::Annotations(&[])),
        labels: map(from.spec.exported_labels),
        annotations: map(from.spec.exported_annotations),
        conditions: conditions(from.status.conditions),
    }
}
