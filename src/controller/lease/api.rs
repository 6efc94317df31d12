//! The Lease as an object: read, written where nobody wrote it meanwhile.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::candidate::Record;
use crate::api;
use crate::controller::LeaseSettings;
use crate::source::kube::{Connection, Failure, Write, WriteError};

/// The group and version of Leases.
pub(in crate::controller) const LEASES: &str = "coordination.k8s.io/v1";

/// Why it could not be read or written. `Display` says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// Somebody else wrote it, or made it, or removed it, since it was read.
    #[error("somebody wrote it meanwhile")]
    Conflict,
    /// The API server refuses.
    #[error("{what} answers {code}: {message}; {}", remedy(*code))]
    Refused { what: String, code: u16, message: String },
    /// No usable answer.
    #[error("the hub can't be reached: {0}")]
    Unreachable(String),
}

impl Problem {
    /// Whether it is the same trouble, whatever its words.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused { code, .. }, Self::Refused { code: other, .. }) => code == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

fn remedy(code: u16) -> &'static str {
    match code {
        401 => "renew the credentials of the hub; it is tried again",
        403 => "grant get, create and update of leases in this namespace; it is tried again",
        404 => "create the namespace, or name another one with --namespace; it is tried again",
        _ => "it is tried again",
    }
}

/// The path of a Lease.
pub(in crate::controller) fn path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(namespace))
}

/// The path of all Leases of a namespace.
pub(in crate::controller) fn collection(namespace: &str) -> String {
    format!("/apis/{LEASES}/namespaces/{namespace}/leases")
}

/// A Lease in the hub.
pub(super) struct Lease {
    connection: Connection,
    settings: LeaseSettings,
}

impl Lease {
    pub(super) fn new(connection: Connection, settings: LeaseSettings) -> Self {
        Self { connection, settings }
    }

    /// The Lease, where there is one. `recent` asks for what is in the API server's memory already, which may be a
    /// little old: enough for whoever only waits, since a write on its ground would be refused, and no load on etcd.
    pub(super) async fn read(&self, recent: bool) -> Result<Option<Value>, Problem> {
        let path = path(&self.settings.namespace, &self.settings.name);
        let uri = if recent { format!("{path}?resourceVersion=0") } else { path.clone() };
        let refused = |code, message| Problem::Refused { what: format!("GET {path}"), code, message };
        match self.connection.get(&uri).await {
            Ok(text) => decode(&text).map(Some),
            Err(Failure::NotFound) => Ok(None),
            Err(Failure::Forbidden(message)) => Err(refused(403, message)),
            Err(Failure::Unauthorized(message)) => Err(refused(401, message)),
            Err(failure @ (Failure::Gone | Failure::Unreachable(_))) => Err(Problem::Unreachable(failure.to_string())),
        }
    }

    /// Writes `holder` into it, or makes it. `before` is what was read: written is only if it is still that.
    pub(super) async fn write(&self, before: Option<Value>, holder: &str) -> Result<Value, Problem> {
        let LeaseSettings { namespace, name, duration, .. } = &self.settings;
        let created = before.is_none();
        let mut object = before.unwrap_or_else(|| {
            json!({
                "apiVersion": LEASES, "kind": "Lease",
                "metadata": {"name": name, "namespace": namespace,
                             "labels": {api::LABEL_MANAGED_BY: api::MANAGED_BY}},
            })
        });
        fill(&mut object, holder, *duration, Timestamp::now());
        let (method, verb, uri) =
            if created { ("POST", "create", collection(namespace)) } else { ("PUT", "update", path(namespace, name)) };
        let what = format!("{method} {uri}");
        let write = Write { method, verb, uri, content: "application/json", body: object.to_string() };
        match self.connection.write(write).await {
            Ok(text) => decode(&text),
            Err(WriteError::Refused(refusal)) => Err(match refusal.code {
                409 => Problem::Conflict,
                // It was deleted since it was read. On a POST it is the namespace that is missing.
                404 if !created => Problem::Conflict,
                code => Problem::Refused { what, code, message: refusal.message },
            }),
            Err(WriteError::Unauthorized(message)) => Err(Problem::Refused { what, code: 401, message }),
            Err(WriteError::Unreachable(message)) => Err(Problem::Unreachable(message)),
        }
    }
}

fn decode(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::Unreachable(format!("its answer makes no sense: {error}")))
}

/// What the object says.
pub(super) fn record(object: &Value) -> Record {
    let spec = &object["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    Record {
        holder: text("holderIdentity"),
        duration: spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs),
        renewed: text("renewTime"),
        transitions: spec["leaseTransitions"].as_u64().unwrap_or(0),
    }
}

/// Writes a renewal by `holder`, or with an empty one the end of it, into the object. What else is in it stays.
fn fill(object: &mut Value, holder: &str, duration: Duration, now: Timestamp) {
    let before = record(object);
    // The API has no empty spec and takes no duration of zero.
    let seconds = duration.as_secs_f64().ceil().max(1.0) as u64;
    let now = micro(now);
    let spec = &mut object["spec"];
    spec["leaseDurationSeconds"] = json!(seconds);
    spec["renewTime"] = json!(now);
    spec["holderIdentity"] = json!(holder);
    if !holder.is_empty() && holder != before.holder {
        spec["acquireTime"] = json!(now);
        // Counts changes of hands; the first one is none.
        let first = before.renewed.is_empty() && before.holder.is_empty();
        spec["leaseTransitions"] = json!(if first { 0 } else { before.transitions + 1 });
    }
}

/// The API's MicroTime: six digits, always.
pub(in crate::controller) fn micro(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_keeps_what_others_wrote_and_counts_changes_of_hands() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut lease = json!({"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}});
        fill(&mut lease, "a", Duration::from_millis(1_500), at("2026-11-29T23:00:00Z"));
        assert_eq!(lease["metadata"], json!({"resourceVersion": "7", "annotations": {"a": "b"}}));
        assert_eq!(
            lease["spec"],
            json!({"holderIdentity": "a", "leaseDurationSeconds": 2, "leaseTransitions": 0,
                   "acquireTime": "2026-11-29T23:00:00.000000Z", "renewTime": "2026-11-29T23:00:00.000000Z"})
        );
        fill(&mut lease, "a", Duration::from_secs(2), at("2026-11-29T23:00:01.25Z"));
        assert_eq!(lease["spec"]["renewTime"], "2026-11-29T23:00:01.250000Z");
        assert_eq!(lease["spec"]["acquireTime"], "2026-11-29T23:00:00.000000Z");
        fill(&mut lease, "", Duration::from_secs(2), at("2026-11-29T23:00:02Z"));
        assert_eq!(record(&lease).holder, "");
        assert_eq!(record(&lease).transitions, 0);
        fill(&mut lease, "b", Duration::from_secs(2), at("2026-11-29T23:00:03Z"));
        assert_eq!(record(&lease).transitions, 1);
        assert_eq!(lease["spec"]["acquireTime"], "2026-11-29T23:00:03.000000Z");
    }
}
