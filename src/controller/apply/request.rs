//! Actions → requests.

use serde_json::{Value, json};

use super::place::Place;
use crate::api;
use crate::controller::objects::{self, Object};
use crate::reconcile::objects::Identity;
use crate::reconcile::plan::Action;
use crate::source::kube::Write;

/// The request of an action; `None` where its object can't be written out, which does not happen.
pub(super) fn of(action: &Action, place: &Place, version: &str) -> Option<Write> {
    match action {
        Action::CreateNamespace(_) | Action::CreateExport(_) => {
            let body = serde_json::to_value(objects::object(action, version)?).ok()?;
            Some(Write {
                method: "POST",
                verb: "create",
                uri: format!("{}?fieldManager={}", place.collection(version), api::MANAGED_BY),
                content: "application/json",
                body: body.to_string(),
            })
        }
        Action::ApplyImport(object) => apply(place, version, objects::object(action, version)?, &object.existing),
        Action::ApplyService(object) => apply(place, version, objects::object(action, version)?, &object.existing),
        Action::ApplySlice(object) => apply(place, version, objects::object(action, version)?, &object.existing),
        Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..) => {
            let body = serde_json::to_value(objects::status(action, version)?).ok()?;
            Some(applied(&format!("{}/status", place.path(version)), &body))
        }
        Action::DeleteNamespace(_, id)
        | Action::DeleteExport(_, id)
        | Action::DeleteImport(_, id)
        | Action::DeleteService(_, id)
        | Action::DeleteSlice(_, _, id) => Some(delete(place, version, id)),
    }
}

/// A server-side apply. With the uid of the object that it is meant for, it is refused for any other one, and where
/// there is none.
fn apply(place: &Place, version: &str, object: Object<'_>, existing: &Option<Identity>) -> Option<Write> {
    let mut body = serde_json::to_value(object).ok()?;
    if let Some(existing) = existing {
        body["metadata"]["uid"] = json!(existing.uid);
    }
    Some(applied(&place.path(version), &body))
}

fn applied(path: &str, body: &Value) -> Write {
    Write {
        method: "PATCH",
        verb: "apply",
        uri: format!("{path}?fieldManager={}&force=true", api::MANAGED_BY),
        // JSON is YAML, and every API server that can apply takes this type.
        content: "application/apply-patch+yaml",
        body: body.to_string(),
    }
}

/// A delete of this version of this object (R94).
fn delete(place: &Place, version: &str, id: &Identity) -> Write {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": {"uid": id.uid, "resourceVersion": id.resource_version},
    });
    Write {
        method: "DELETE",
        verb: "delete",
        uri: place.path(version),
        content: "application/json",
        body: options.to_string(),
    }
}

/// A merge patch that makes of the object, which must still be of that version, what an apply could not.
pub(super) fn replace(place: &Place, version: &str, status: bool, patch: &Value) -> Write {
    let status = if status { "/status" } else { "" };
    Write {
        method: "PATCH",
        verb: "replace",
        uri: format!("{}{status}?fieldManager={}", place.path(version), api::MANAGED_BY),
        content: "application/merge-patch+json",
        body: patch.to_string(),
    }
}
