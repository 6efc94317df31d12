//! What an apply can't do: take away what another manager has put beside ours. A merge patch of the whole fields does.

use serde_json::{Map, Value, json};

use crate::controller::objects;
use crate::reconcile::plan::Action;
use crate::reconcile::{EXPORT_CONDITIONS, compare};
use crate::source::member::Observed;

/// Fields of a Service's spec that we answer for.
const SERVICE: [&str; 8] = [
    "type",
    "ports",
    "selector",
    "sessionAffinity",
    "sessionAffinityConfig",
    "internalTrafficPolicy",
    "trafficDistribution",
    "publishNotReadyAddresses",
];

/// How the object that came back from an apply still differs from what was applied.
pub(super) fn difference(action: &Action, answer: &Observed) -> Option<&'static str> {
    match (action, answer) {
        (Action::ApplyImport(object), Observed::Import(_, Some(is))) => compare::import(is, object),
        (Action::ApplyService(object), Observed::Service(_, Some(is))) => compare::service(is, object),
        (Action::ApplySlice(object), Observed::Slice(_, Some(is))) => compare::slice(is, object),
        (Action::ApplyImportStatus(_, status), Observed::Import(_, Some(is))) => {
            compare::import_status(is, status).then_some("status differs")
        }
        (Action::ApplyExportStatus(_, conditions), Observed::Export(_, Some(is))) => {
            compare::export_status(is, conditions).then_some("status differs")
        }
        _ => None,
    }
}

/// The merge patch that brings `answer`, the object as it is, to what `action` wants.
pub(super) fn patch(action: &Action, answer: &str, version: &str) -> Option<Value> {
    let is: Value = serde_json::from_str(answer).ok()?;
    let head = json!({"resourceVersion": is["metadata"]["resourceVersion"]});
    let shall = match action {
        Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..) => objects::status(action, version)?,
        _ => objects::object(action, version)?,
    };
    let shall = serde_json::to_value(shall).ok()?;
    let mut patch = json!({"metadata": head});
    match action {
        Action::ApplyImport(_) => patch["spec"] = whole(&is["spec"], &shall["spec"]),
        Action::ApplyService(_) => {
            let fields = |of: &Value| -> Value {
                let of = of.as_object().cloned().unwrap_or_default();
                of.into_iter().filter(|(field, _)| SERVICE.contains(&field.as_str())).collect::<Map<_, _>>().into()
            };
            patch["spec"] = whole(&fields(&is["spec"]), &fields(&shall["spec"]));
        }
        Action::ApplySlice(_) => {
            patch["ports"] = shall["ports"].clone();
            patch["endpoints"] = shall["endpoints"].clone();
        }
        Action::ApplyImportStatus(..) => patch["status"] = whole(&is["status"], &shall["status"]),
        Action::ApplyExportStatus(..) => {
            let is_ours =
                |condition: &&Value| condition["type"].as_str().is_some_and(|kind| EXPORT_CONDITIONS.contains(&kind));
            let conditions = |of: &Value| of["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mut all: Vec<_> = conditions(&is).iter().filter(|c| !is_ours(c)).cloned().collect();
            all.extend(conditions(&shall));
            patch["status"] = json!({"conditions": all});
        }
        _ => return None,
    }
    if matches!(action, Action::ApplyService(_) | Action::ApplySlice(_)) {
        patch["metadata"]["ownerReferences"] = owners(&is["metadata"], &shall["metadata"]);
    }
    Some(patch)
}

/// The merge patch from one value to another: what is not wanted is named with null (RFC 7396 §2).
fn whole(is: &Value, shall: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (is, shall) else { return shall.clone() };
    let mut patch: Map<_, _> =
        before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        patch.insert(key.clone(), whole(before.get(key).unwrap_or(&Value::Null), value));
    }
    patch.into()
}

/// Our owners, and others' as they are; but no former one of the same kind and name as ours.
fn owners(is: &Value, shall: &Value) -> Value {
    let list = |of: &Value| of["ownerReferences"].as_array().cloned().unwrap_or_default();
    let ours = list(shall);
    let same = |a: &Value, b: &Value| a["kind"] == b["kind"] && a["name"] == b["name"];
    let mut all: Vec<_> = list(is).into_iter().filter(|owner| !ours.iter().any(|our| same(our, owner))).collect();
    all.extend(ours);
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_any_more_is_named() {
        let is = json!({"selector": {"app": "web", "x": "1"}, "ports": [1, 2], "trafficDistribution": "PreferClose"});
        let shall = json!({"selector": {"app": "web"}, "ports": [1]});
        let patch = whole(&is, &shall);
        assert_eq!(patch, json!({"selector": {"app": "web", "x": null}, "ports": [1], "trafficDistribution": null}));
        assert_eq!(whole(&json!({"selector": {"x": "1"}}), &json!({})), json!({"selector": null}));
    }

    #[test]
    fn former_owners_of_our_name_go_and_others_stay() {
        let owner = |kind: &str, uid: &str| json!({"kind": kind, "name": "web", "uid": uid});
        let is = json!({"ownerReferences": [owner("ServiceImport", "1"), owner("App", "2")]});
        let shall = json!({"ownerReferences": [owner("ServiceImport", "3")]});
        assert_eq!(owners(&is, &shall), json!([owner("App", "2"), owner("ServiceImport", "3")]));
    }
}
