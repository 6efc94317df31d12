//! The API server's audit log: who asked what, and how often.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};

/// One request as the API server saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// The server's id of the request.
    pub id: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` …
    pub verb: String,
    /// Who asked, such as `system:serviceaccount:<namespace>:<name>`.
    pub user: String,
    /// The client's User-Agent.
    pub user_agent: String,
    /// The group of the resource, empty for the core group and for non-resource requests.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The plural of the resource, empty for non-resource requests.
    pub resource: String,
    /// The subresource, such as `status`, or empty.
    pub subresource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The name of the object, or empty.
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// The status code of the answer; 0 while there is none.
    pub code: u16,
    /// When the server received it, RFC 3339 with microseconds.
    pub received: String,
    /// Whether it is over. A watch that still runs is not.
    pub complete: bool,
}

/// The audit log, one entry per request, in the order of their arrival in the log. Its methods narrow it down:
/// `cluster.audit()?.verb("list").resource("endpointslices").user("admin").count()`.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The requests.
    pub entries: Vec<AuditEntry>,
}

impl Audit {
    /// Only requests with this verb.
    pub fn verb(self, verb: &str) -> Audit {
        self.only(|entry| entry.verb == verb)
    }

    /// Only requests that would change something.
    pub fn writes(self) -> Audit {
        self.only(|entry| !matches!(entry.verb.as_str(), "get" | "list" | "watch"))
    }

    /// Only requests for this plural.
    pub fn resource(self, plural: &str) -> Audit {
        self.only(|entry| entry.resource == plural)
    }

    /// Only requests by this user.
    pub fn user(self, user: &str) -> Audit {
        self.only(|entry| entry.user == user)
    }

    /// Only requests by this ServiceAccount.
    pub fn service_account(self, namespace: &str, name: &str) -> Audit {
        self.user(&format!("system:serviceaccount:{namespace}:{name}"))
    }

    /// Only requests that were not in an earlier look at the log.
    pub fn since(self, earlier: &Audit) -> Audit {
        let known: HashSet<_> = earlier.entries.iter().map(|entry| entry.id.clone()).collect();
        self.only(|entry| !known.contains(&entry.id))
    }

    /// Only requests for which this holds.
    pub fn only(mut self, holds: impl Fn(&AuditEntry) -> bool) -> Audit {
        self.entries.retain(holds);
        self
    }

    /// How many requests are left.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Parses the lines of an audit log. A last line without its end is still being written and is left for later.
    fn parse(log: &str) -> Result<Audit> {
        let mut entries: Vec<AuditEntry> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (number, line) in log.split_inclusive('\n').enumerate().filter(|(_, line)| line.ends_with('\n')) {
            let event: Value = serde_json::from_str(line).doing(format!("audit log, line {}", number + 1))?;
            let entry = AuditEntry::of(&event);
            match places.get(&entry.id) {
                // A long request has two lines: when its answer began, and when it ended.
                Some(place) => entries[*place] = entry,
                None => {
                    places.insert(entry.id.clone(), entries.len());
                    entries.push(entry);
                }
            }
        }
        Ok(Audit { entries })
    }
}

impl AuditEntry {
    fn of(event: &Value) -> AuditEntry {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        AuditEntry {
            id: text(&event["auditID"]),
            verb: text(&event["verb"]),
            user: text(&event["user"]["username"]),
            user_agent: text(&event["userAgent"]),
            group: text(&object["apiGroup"]),
            version: text(&object["apiVersion"]),
            resource: text(&object["resource"]),
            subresource: text(&object["subresource"]),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            uri: text(&event["requestURI"]),
            code: event["responseStatus"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            received: text(&event["requestReceivedTimestamp"]),
            complete: event["stage"] == "ResponseComplete" || event["stage"] == "Panic",
        }
    }
}

impl Cluster {
    /// The requests that the API server has answered since the cluster was made, restarts included.
    pub fn audit(&self) -> Result<Audit> {
        let path = self.dir().join("audit.log");
        let bytes = fs::read(&path).map_err(|e| Error::new(format!("{}: {e}", path.display())))?;
        Audit::parse(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_counts_once_and_half_a_line_waits() {
        let line = |id: &str, stage: &str, verb: &str| {
            format!(
                r#"{{"auditID":"{id}","stage":"{stage}","verb":"{verb}","user":{{"username":"u"}},"objectRef":{{"resource":"pods"}},"responseStatus":{{"code":200}}}}"#
            )
        };
        let log = [
            line("1", "ResponseStarted", "watch"),
            line("2", "ResponseComplete", "list"),
            line("1", "ResponseComplete", "watch"),
        ];
        let audit = Audit::parse(&format!("{}\n{{\"auditID\":", log.join("\n"))).unwrap();
        assert_eq!(audit.count(), 2);
        assert!(audit.entries.iter().all(|entry| entry.complete && entry.code == 200));
        assert_eq!(audit.clone().verb("watch").resource("pods").user("u").count(), 1);
        assert_eq!(audit.clone().verb("watch").user("somebody").count(), 0);
        assert_eq!(audit.clone().since(&audit.clone().verb("list")).count(), 1);
        assert_eq!(audit.writes().count(), 0);
    }
}
