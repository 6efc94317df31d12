//! Events: what people see at the end of `kubectl describe`.

use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::api;
use crate::reconcile::plan::{Event, Subject};
use crate::source::kube::Write;

/// Most characters of a message; an API server takes 1,024 bytes.
const LONGEST: usize = 1000;

/// The request that records an event on the object with this uid.
pub(super) fn record(event: &Event, uid: &str, version: &str) -> Write {
    let (kind, key) = match &event.subject {
        Subject::Export(key) => ("ServiceExport", key),
        Subject::Import(key) => ("ServiceImport", key),
    };
    let mut message = event.message.to_string();
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    let now = Timestamp::now().round(k8s_openapi::jiff::Unit::Second).unwrap_or_default().to_string();
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{}.", key.name), "namespace": key.namespace.as_str()},
        "involvedObject": {
            "apiVersion": format!("{}/{version}", api::GROUP), "kind": kind,
            "namespace": key.namespace.as_str(), "name": key.name.as_str(), "uid": uid,
        },
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": &*event.reason, "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": api::MANAGED_BY},
        "reportingComponent": api::MANAGED_BY, "reportingInstance": api::MANAGED_BY,
    });
    Write {
        method: "POST",
        verb: "create",
        uri: format!("/api/v1/namespaces/{}/events", key.namespace),
        content: "application/json",
        body: body.to_string(),
    }
}
