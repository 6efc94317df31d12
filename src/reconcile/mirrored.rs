//! The mirrored slices of one importing cluster, compared with those that are there.

use std::borrow::Cow;

use super::compare;
use super::desired::There;
use super::importer::{Changes, Context};
use super::metadata::slice_labels;
use super::objects::{Map, Owner, OwnerKind};
use super::packing::gains;
use super::plan::{Action, SliceObject};
use super::settings::SliceOwner;
use super::slices::{Slices, Wanted};
use crate::api;
use crate::model::ImportKind;

/// Brings the slices about: those that gain endpoints first, then those that lose some, then those that go (HDL-05).
pub(super) fn write_slices(
    context: Context<'_>,
    there: &There<'_>,
    slices: Slices<'_>,
    kind: ImportKind,
    changes: &mut Changes<'_>,
) {
    let observed = |name: &str| there.local.and_then(|local| local.mirrored.get(name));
    let usual_owners = owners(context, there, kind);
    let mut later = Vec::new();
    for (name, wanted) in slices.wanted {
        let is = observed(&name);
        let labels = labels(context, &wanted, kind);
        let annotations = annotations(&wanted);
        // Nobody exports it any more and the import is gone: what has to wait keeps the owners that it has.
        let orphaned = is.filter(|_| context.merged.is_none() && there.import.is_none());
        let owners = orphaned.map_or(&usual_owners, |is| &is.meta.owners);
        let reason = match is {
            None => format!("endpoints of {}", wanted.source),
            Some(is) => {
                let content = compare::slice_content(&is.content, &wanted.content);
                let difference = content.or_else(|| compare::slice_meta(&is.meta, &labels, &annotations, owners));
                let Some(difference) = difference else { continue };
                format!("{}: {difference}", wanted.source)
            }
        };
        let object = SliceObject {
            key: context.key.clone(),
            name: name.into(),
            existing: is.map(|slice| slice.meta.id.clone()),
            labels: labels.into_owned(),
            annotations,
            owners: owners.clone(),
            content: wanted.content.into_owned(),
        };
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
        if let Some(slice) = observed(name) {
            let action = Action::DeleteSlice(context.key.clone(), name.into(), slice.meta.id.clone());
            changes.push(action, reason);
        }
    }
}

/// A mirrored slice's labels: those that its exporter's slices have everywhere.
fn labels<'a>(context: Context<'a>, wanted: &Wanted<'_>, kind: ImportKind) -> Cow<'a, Map> {
    let Context { settings, key, derived, offers, .. } = context;
    match offers.iter().find(|offer| *offer.cluster == *wanted.source) {
        Some(offer) => Cow::Borrowed(&offer.labels),
        None => Cow::Owned(slice_labels(key, derived, &wanted.source, kind, settings)),
    }
}

/// A mirrored slice's annotations.
fn annotations(wanted: &Wanted<'_>) -> Map {
    let since = wanted.draining.map(|since| (api::ANNOTATION_DRAINING_SINCE.into(), since.0.to_string().into()));
    since.into_iter().collect()
}

/// The owners of slices (R69). A headless import without a derived Service owns them itself.
fn owners(context: Context<'_>, there: &There<'_>, kind: ImportKind) -> Vec<Owner> {
    let Context { settings, derived, .. } = context;
    let has_service = kind == ImportKind::ClusterSetIp || settings.headless_derived_service;
    let service = || {
        // One that is headless where it shall not be (or the other way round) is made anew, with another uid.
        let stays = there.our_derived.filter(|service| service.spec.headless == (kind == ImportKind::Headless));
        let uid = stays.map(|service| service.meta.id.uid.clone());
        Owner { kind: OwnerKind::Service, name: derived.as_str().into(), uid }
    };
    match settings.slice_owner {
        SliceOwner::Service if has_service => vec![service()],
        SliceOwner::Both if has_service => vec![there.import_owner(context.key), service()],
        _ => vec![there.import_owner(context.key)],
    }
}
