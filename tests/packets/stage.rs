//! What every scenario begins with: a namespace in all clusters, the Service `hello` in the first, a pod in each from which
//! to ask, the export.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::Cluster;

use crate::clusterset::place::{condition, text};
use crate::clusterset::running::stays;
use crate::clusterset::{PATIENCE, Place, until};
use crate::objects::{self, HELLO, REQUEST};

/// The suite's wait for what should not happen.
pub const STAYS: Duration = Duration::from_secs(5);

/// The suite's wait for pods and what comes of them: endpoints, slices.
pub const PODS: Duration = Duration::from_secs(60);

/// Exports are ordered by their seconds.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// The stage of one scenario: a namespace of its own in all clusters.
pub struct Stage {
    /// The namespace, cluster by cluster.
    pub places: Vec<Place>,
    /// What the pods that ask have as their DNS server, cluster by cluster; nothing is the cluster's own.
    nameservers: Vec<Option<IpAddr>>,
}

impl Stage {
    /// A stage with nothing on it, not even the namespace.
    pub fn new(clusters: &[Cluster], nameservers: Vec<Option<IpAddr>>) -> Self {
        let namespace = format!("mcs-conformance-{}", fastrand::u32(..));
        let places = clusters.iter().map(|cluster| Place::new(cluster, &namespace)).collect();
        Self { places, nameservers }
    }

    pub fn first(&self) -> &Place {
        &self.places[0]
    }

    pub fn second(&self) -> &Place {
        &self.places[1]
    }

    /// The Service's name in the clusterset, as absolute as can be: without the dot at the end.
    pub fn name(&self) -> String {
        format!("{HELLO}.{}.svc.clusterset.local", self.first().namespace)
    }

    /// With the Service and its Deployment in the first cluster; it is not exported. `change` is what a scenario changes of
    /// the Service.
    pub async fn hello(&self, change: impl FnOnce(&mut Value)) {
        self.hello_of(1, change).await;
    }

    /// The same, with more pods behind it, or without a Deployment.
    pub async fn hello_of(&self, replicas: u32, change: impl FnOnce(&mut Value)) {
        for place in &self.places {
            place.create_namespace().await;
        }
        deploy(self.first(), replicas, change).await;
        for (place, nameserver) in self.places.iter().zip(&self.nameservers) {
            // Without its ServiceAccount a namespace admits no pod.
            until(&format!("{}: the namespace has its account", place.id()), PATIENCE, async || {
                place.get("serviceaccounts", "default").await.map(drop).ok_or_else(|| "it has not".to_owned())
            })
            .await;
            place.apply_values(vec![objects::request_pod(&place.namespace, *nameserver)]).await;
        }
        for place in &self.places {
            until(&format!("{}: the pod `{REQUEST}` runs", place.id()), PODS, async || {
                let pod = place.get("pods", REQUEST).await.unwrap_or_default();
                if pod["status"]["phase"] == "Running" { Ok(()) } else { Err(pod["status"].to_string()) }
            })
            .await;
        }
    }

    /// With the Service, exported from the first cluster.
    pub async fn exported(&self, change: impl FnOnce(&mut Value)) {
        self.hello(change).await;
        export(self.first(), json!({})).await;
    }

    /// With another Service, exported from the second cluster at least a second after the first one was imported.
    pub async fn two(&self, first: impl FnOnce(&mut Value), second: impl FnOnce(&mut Value)) {
        self.two_with(first, json!({}), second, json!({})).await;
    }

    /// The same, with specs of the exports.
    pub async fn two_with(
        &self,
        first: impl FnOnce(&mut Value),
        first_export: Value,
        second: impl FnOnce(&mut Value),
        second_export: Value,
    ) {
        self.hello(first).await;
        export(self.first(), first_export).await;
        self.first().until_import().await;
        tokio::time::sleep(NEXT_SECOND).await;
        deploy(self.second(), 1, second).await;
        export(self.second(), second_export).await;
    }

    /// The families of the Service in the first cluster, as the API server made them up.
    pub async fn families(&self) -> Vec<String> {
        let service = self.first().get("services", HELLO).await.unwrap_or_default();
        let families = strings(&service["spec"]["ipFamilies"]);
        assert!(!families.is_empty(), "the Service has no families: {service}");
        families
    }

    /// Waits until each cluster has an import of which this holds.
    pub async fn until_each(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        for place in &self.places {
            until(&format!("{}: {what}", place.id()), PATIENCE, async || {
                let import = place.import(HELLO).await.ok_or("there is no ServiceImport")?;
                if holds(&import) { Ok(()) } else { Err(import.to_string()) }
            })
            .await;
        }
    }

    /// Waits until no cluster has an import.
    pub async fn until_none(&self) {
        for place in &self.places {
            until(&format!("{}: the import is deleted", place.id()), PATIENCE, async || {
                place.import(HELLO).await.map_or(Ok(()), |import| Err(import.to_string()))
            })
            .await;
        }
    }

    /// Each cluster has an import, for a while.
    pub async fn stays_imported(&self) {
        stays("the import is there", STAYS, async || {
            for place in &self.places {
                place.import(HELLO).await.ok_or_else(|| format!("{}: it is gone", place.id()))?;
            }
            Ok(())
        })
        .await;
    }

    /// No cluster has an import, for a while.
    pub async fn stays_without(&self) {
        stays("there is no import", STAYS, async || {
            for place in &self.places {
                if let Some(import) = place.import(HELLO).await {
                    return Err(format!("{}: {import}", place.id()));
                }
            }
            Ok(())
        })
        .await;
    }

    /// Waits until both exports have a condition.
    pub async fn until_both_say(&self, kind: &str, status: &str) {
        for place in &self.places {
            place.until_export_status(kind, status).await;
        }
    }

    /// What there is, for whoever looks at a failure.
    pub async fn describe(&self) -> String {
        let mut lines = Vec::new();
        for place in &self.places {
            let id = place.id();
            for pod in place.list("pods", "").await {
                let (name, status) = (text(&pod["metadata"]["name"]), &pod["status"]);
                let ready = condition(&pod, "Ready").map_or("-", |c| text(&c["status"]));
                lines.push(format!("{id}: pod {name}: {} ready={ready} {}", text(&status["phase"]), status["podIPs"]));
            }
            for service in place.list("services", "").await {
                let spec = &service["spec"];
                lines.push(format!("{id}: service {}: {spec}", text(&service["metadata"]["name"])));
            }
            for slice in place.list("endpointslices", "").await {
                let addresses: Vec<_> = slice["endpoints"].as_array().into_iter().flatten().collect();
                let addresses: Vec<_> =
                    addresses.iter().map(|e| format!("{} {}", e["addresses"], e["conditions"]["ready"])).collect();
                lines.push(format!("{id}: slice {}: {}", text(&slice["metadata"]["name"]), addresses.join(", ")));
            }
            for (plural, what) in [("serviceexports", "export"), ("serviceimports", "import")] {
                if let Some(object) = place.get(plural, HELLO).await {
                    lines.push(format!("{id}: {what}: {} {}", object["spec"], object["status"]));
                }
            }
        }
        lines.join("\n")
    }

    /// Deletes the namespace everywhere. Does not wait, as the suite does not.
    pub async fn clear(&self) {
        for place in &self.places {
            place.delete_namespace().await;
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

    /// Waits until the import says of which families it is.
    pub async fn until_families(&self) -> Vec<String> {
        until(&format!("{}: the import has IP families", self.id()), PATIENCE, async || {
            let import = self.import(HELLO).await.ok_or("there is no ServiceImport")?;
            let families = strings(&import["spec"]["ipFamilies"]);
            if families.is_empty() { Err(import.to_string()) } else { Ok(families) }
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

/// The Service, with a Deployment of so many pods or none; `change` is what a scenario changes of the Service.
pub async fn deploy(place: &Place, replicas: u32, change: impl FnOnce(&mut Value)) {
    let mut service = objects::service();
    change(&mut service);
    let mut all = vec![service];
    if replicas > 0 {
        all.insert(0, objects::deployment(replicas));
    }
    place.apply_values(all).await;
}

/// The suite's export.
pub async fn export(place: &Place, spec: Value) {
    place.apply_values(vec![objects::export(spec)]).await;
}

/// Nothing is changed.
pub fn as_it_is(_: &mut Value) {}

/// The Service without an address of its own.
pub fn headless(service: &mut Value) {
    service["spec"]["clusterIP"] = json!("None");
}

/// The strings of a list.
pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| text(item).to_owned()).collect()
}
