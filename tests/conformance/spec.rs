//! What every scenario begins with: a namespace in all clusters, the Service `hello` in the first, pods, the export.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::ClusterOptions;
use tokio::sync::OnceCell;

use crate::clusterset::kubelet::{pod, run_pods};
use crate::clusterset::running::stays;
use crate::clusterset::{Clusterset, Controller, PATIENCE, Place, Story, until};

/// The suite's wait for what should not happen.
pub const STAYS: Duration = Duration::from_secs(5);

/// The suite's wait for slices.
pub const SLICES: Duration = Duration::from_secs(60);

/// Exports are ordered by their seconds.
pub const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// The name of the Service, as in the suite.
pub const HELLO: &str = "hello";

/// Two clusters with both IP families, and the controller.
async fn clusters() -> &'static (Clusterset, Controller) {
    static CLUSTERS: OnceCell<(Clusterset, Controller)> = OnceCell::const_new();
    CLUSTERS
        .get_or_init(async || {
            let both = ClusterOptions { dual_stack: true, ..ClusterOptions::default() };
            let set = Clusterset::start(vec![("cluster-1", both.clone()), ("cluster-2", both)]).await;
            let controller = Controller::start(&set.bed, set.as_members()).await;
            (set, controller)
        })
        .await
}

/// A scenario's stage.
pub struct Spec {
    pub story: Story,
}

impl Spec {
    /// Namespaces, and the request pod in each cluster; nothing is exported.
    pub async fn bare() -> Self {
        let story = Story::new(&clusters().await.0, "mcs-conformance").await;
        for (i, place) in story.places.iter().enumerate() {
            pod(place, "request", &json!({"app": "request"}), &format!("10.249.{i}.1")).await;
        }
        Self { story }
    }

    /// With the Service in the first cluster; it is not exported.
    pub async fn hello(change: impl FnOnce(&mut Value)) -> Self {
        let spec = Self::bare().await;
        deploy(spec.first(), change).await;
        spec
    }

    /// With the Service, exported from the first cluster.
    pub async fn exported(change: impl FnOnce(&mut Value)) -> Self {
        let spec = Self::hello(change).await;
        export(spec.first(), json!({})).await;
        spec
    }

    /// With another Service, exported from the second cluster at least a second after the first one was imported.
    pub async fn two(first: impl FnOnce(&mut Value), second: impl FnOnce(&mut Value)) -> Self {
        Self::two_with(first, json!({}), second, json!({})).await
    }

    /// The same, with specs of the exports.
    pub async fn two_with(
        first: impl FnOnce(&mut Value),
        first_export: Value,
        second: impl FnOnce(&mut Value),
        second_export: Value,
    ) -> Self {
        let spec = Self::hello(first).await;
        export(spec.first(), first_export).await;
        spec.first().until_import().await;
        tokio::time::sleep(NEXT_SECOND).await;
        deploy(spec.second(), second).await;
        export(spec.second(), second_export).await;
        spec
    }

    pub fn first(&self) -> &Place {
        self.story.at(0)
    }

    pub fn second(&self) -> &Place {
        self.story.at(1)
    }

    /// Waits until each cluster has an import of which this holds.
    pub async fn until_each(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        for place in &self.story.places {
            until(&format!("{}: {what}", place.id()), PATIENCE, async || {
                let import = place.import(HELLO).await.ok_or("there is no ServiceImport")?;
                if holds(&import) { Ok(()) } else { Err(import.to_string()) }
            })
            .await;
        }
    }

    /// Waits until no cluster has an import.
    pub async fn until_none(&self) {
        for place in &self.story.places {
            until(&format!("{}: the import is deleted", place.id()), PATIENCE, async || {
                place.import(HELLO).await.map_or(Ok(()), |import| Err(import.to_string()))
            })
            .await;
        }
    }

    /// No cluster has an import, for a while.
    pub async fn stays_without(&self) {
        stays("there is no import", STAYS, async || {
            for place in &self.story.places {
                if let Some(import) = place.import(HELLO).await {
                    return Err(import.to_string());
                }
            }
            Ok(())
        })
        .await;
    }

    /// Waits until both exports have a condition.
    pub async fn until_both_say(&self, kind: &str, status: &str) {
        for place in &self.story.places {
            place.until_export_status(kind, status).await;
        }
    }
}

impl Place {
    /// Waits for the import.
    pub async fn until_import(&self) -> Value {
        until(&format!("{}: there is an import", self.id()), PATIENCE, async || {
            self.import(HELLO).await.ok_or_else(|| "there is none".to_owned())
        })
        .await
    }

    /// Waits until the export has a condition of this status.
    pub async fn until_export_status(&self, kind: &str, status: &str) {
        until(&format!("{}: the export says {kind}={status}", self.id()), PATIENCE, async || {
            let says = self.says("serviceexports", HELLO, kind).await;
            if says.split('/').next() == Some(status) { Ok(()) } else { Err(says) }
        })
        .await;
    }
}

/// The suite's Deployment and Service; `change` is what a scenario changes of the Service.
async fn deploy(place: &Place, change: impl FnOnce(&mut Value)) {
    let labels = json!({"app": HELLO});
    let containers = json!([{"name": "hello-tcp", "image": "alpine/socat:1.7.4.4"},
                            {"name": "hello-udp", "image": "alpine/socat:1.7.4.4"}]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": HELLO},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}},
    });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": HELLO, "labels": {"dummy-svc": "dummy"}, "annotations": {"dummy-svc": "dummy"}},
        "spec": {"selector": labels, "ipFamilyPolicy": "PreferDualStack", "sessionAffinity": "ClientIP",
                 "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
                 "ports": [{"name": "tcp", "port": 42, "protocol": "TCP"},
                           {"name": "udp", "port": 42, "protocol": "UDP"}]},
    });
    change(&mut service);
    place.apply_values(vec![deployment, service]).await;
    run_pods(place, "app=hello", 1).await;
}

/// The suite's export.
pub async fn export(place: &Place, spec: Value) {
    let dummies = json!({"dummy-svcexport": "dummy"});
    let export = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": HELLO, "labels": dummies, "annotations": dummies}, "spec": spec,
    });
    place.apply_values(vec![export]).await;
}

/// Nothing is changed.
pub fn as_it_is(_: &mut Value) {}
