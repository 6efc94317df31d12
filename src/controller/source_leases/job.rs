//! The work in one member: request by request, until one fails.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::ledger::{Outcome, Work};
use crate::api;
use crate::controller::lease::{LEASES, collection, micro, path};
use crate::controller::settings::SourceLeases;
use crate::controller::status::Status;
use crate::metrics::ControllerMetrics;
use crate::model::ClusterId;
use crate::source::kube::{Connection, Failure, Write, WriteError};

/// What their names begin with.
const PREFIX: &str = "namesake-source-";

/// Work in one member.
pub(super) struct Job {
    pub(super) id: ClusterId,
    pub(super) connection: Connection,
    pub(super) settings: SourceLeases,
    pub(super) status: Arc<Status>,
    pub(super) metrics: Arc<ControllerMetrics>,
}

/// A Lease that is there.
struct There {
    source: ClusterId,
    uid: Value,
}

/// Where it was done, when it was begun, and what came of it; with the trouble, if there was any.
pub(super) type Ended = (ClusterId, Instant, Result<Outcome, (Outcome, String)>);

impl Job {
    /// Does the work.
    pub(super) async fn run(self, work: Work) -> Ended {
        let (began, mut outcome) = (Instant::now(), Outcome::default());
        let result = self.all(&work, &mut outcome).await;
        self.ended(began, outcome, result)
    }

    /// Removes all of them.
    pub(super) async fn clear(self) -> Ended {
        let (began, mut outcome) = (Instant::now(), Outcome::default());
        let result = match self.list().await {
            Ok(there) => self.remove(&there, |_| true, &mut outcome).await,
            Err(trouble) => Err(trouble),
        };
        self.ended(began, outcome, result)
    }

    fn ended(self, began: Instant, outcome: Outcome, result: Result<(), String>) -> Ended {
        let result = match result {
            Ok(()) => Ok(outcome),
            Err(trouble) => Err((Outcome { failed: true, ..outcome }, trouble)),
        };
        (self.id, began, result)
    }

    async fn all(&self, work: &Work, outcome: &mut Outcome) -> Result<(), String> {
        // First what is waited for.
        for source in &work.renew {
            self.renew(source).await?;
            outcome.renewed.push(source.clone());
        }
        if work.list || !work.remove.is_empty() {
            let there = self.list().await?;
            outcome.listed = Some(there.iter().map(|lease| lease.source.clone()).collect());
            self.remove(&there, |source| work.remove.contains(source), outcome).await?;
            // Somebody else has removed it already.
            let gone = |source: &&ClusterId| !there.iter().any(|lease| lease.source == **source);
            outcome.removed.extend(work.remove.iter().filter(gone).cloned());
        }
        Ok(())
    }

    /// Ours, by their labels.
    async fn list(&self) -> Result<Vec<There>, String> {
        let (ours, source) = (api::LABEL_MANAGED_BY.replace('/', "%2F"), api::LABEL_SOURCE_CLUSTER.replace('/', "%2F"));
        let uri =
            format!("{}?labelSelector={ours}%3D{}%2C{source}", collection(&self.settings.namespace), api::MANAGED_BY);
        let text = self.connection.get(&uri).await.map_err(|failure| match failure {
            Failure::Forbidden(said) => {
                format!("{said}; grant list of leases in this namespace, as `namesake join --grant source-leases` does")
            }
            failure => failure.to_string(),
        })?;
        let list: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let there = |item: &Value| {
            let source = ClusterId::new(item["metadata"]["labels"][api::LABEL_SOURCE_CLUSTER].as_str()?)?;
            let named = item["metadata"]["name"] == name(&source);
            named.then(|| There { source, uid: item["metadata"]["uid"].clone() })
        };
        Ok(items.iter().filter_map(there).collect())
    }

    /// Says that `source` is heard.
    async fn renew(&self, source: &ClusterId) -> Result<(), String> {
        let (namespace, name) = (&self.settings.namespace, name(source));
        let lease = json!({
            "apiVersion": LEASES, "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace, "labels": {
                api::LABEL_MANAGED_BY: api::MANAGED_BY, api::LABEL_SOURCE_CLUSTER: source.as_str(),
            }},
            "spec": {
                "holderIdentity": source.as_str(),
                "leaseDurationSeconds": self.settings.duration.as_secs().max(1),
                "renewTime": micro(Timestamp::now()),
            },
        });
        self.write(Write {
            method: "PATCH",
            verb: "apply",
            uri: format!("{}?fieldManager={}&force=true", path(namespace, &name), api::MANAGED_BY),
            content: "application/apply-patch+yaml",
            body: lease.to_string(),
        })
        .await
    }

    async fn remove(
        &self,
        there: &[There],
        which: impl Fn(&ClusterId) -> bool,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        for lease in there.iter().filter(|lease| which(&lease.source)) {
            let options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": lease.uid},
            });
            self.write(Write {
                method: "DELETE",
                verb: "delete",
                uri: path(&self.settings.namespace, &name(&lease.source)),
                content: "application/json",
                body: options.to_string(),
            })
            .await?;
            outcome.removed.push(lease.source.clone());
        }
        Ok(())
    }

    async fn write(&self, write: Write) -> Result<(), String> {
        if !self.status.lock().may_write() {
            return Err("another controller writes now".to_owned());
        }
        let (verb, begin) = (write.verb, Instant::now());
        let answer = match self.connection.write(write).await {
            Err(WriteError::Refused(refusal)) if verb == "delete" && refusal.code == 404 => Ok(()),
            answer => answer.map(drop),
        };
        let outcome = match &answer {
            Ok(()) => "ok",
            Err(WriteError::Refused(refusal)) if refusal.kind == "namespaces" => "namespace_gone",
            Err(WriteError::Refused(_)) => "refused",
            Err(WriteError::Unauthorized(_) | WriteError::Unreachable(_)) => "unreachable",
        };
        self.metrics.write(self.id.as_str(), "leases", verb, outcome, begin.elapsed().as_secs_f64());
        answer.map_err(|error| self.trouble(&error))
    }

    fn trouble(&self, error: &WriteError) -> String {
        let namespace = &self.settings.namespace;
        let remedy = match error {
            WriteError::Refused(refusal) if refusal.code == 403 => {
                "grant create, patch and delete of leases in this namespace, as `namesake join --grant source-leases` does"
            }
            WriteError::Refused(refusal) if refusal.kind == "namespaces" => "create it, as `namesake join` does",
            _ => "it is tried again",
        };
        format!("namespace {namespace}: {error}; {remedy}")
    }
}

fn name(source: &ClusterId) -> String {
    format!("{PREFIX}{source}")
}
