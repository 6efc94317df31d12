//! One namespace of one cluster, or of all of them: what is put there, and what is found there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube::Client;
use namesake::model::{ClusterId, ServiceKey};
use namesake::reconcile::naming;
use serde_json::{Value, json};
use testbed::Cluster;

use super::running::until;
use super::{Clusterset, PATIENCE};

/// A namespace of a cluster, as its administrator sees it.
#[derive(Clone)]
pub struct Place {
    pub cluster: Cluster,
    pub namespace: String,
    client: Client,
    /// The version of the Multi-Cluster Services API that is spoken.
    version: &'static str,
}

/// The same namespace in all clusters of a set: the stage of one test.
pub struct Story {
    pub places: Vec<Place>,
    pub namespace: String,
}

impl Story {
    /// A namespace of its own in all clusters.
    pub async fn new(set: &Clusterset, name: &str) -> Self {
        let story = Self::without_namespace(set, name);
        for place in &story.places {
            place.create_namespace().await;
        }
        story
    }

    /// A namespace that is not made anywhere yet.
    pub fn without_namespace(set: &Clusterset, name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        Self::named(set, &format!("{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// A namespace that may be there already.
    pub fn named(set: &Clusterset, namespace: &str) -> Self {
        let places = set.clusters.iter().map(|cluster| Place::new(cluster, namespace)).collect();
        Self { places, namespace: namespace.to_owned() }
    }

    /// The place in a cluster, by its number.
    pub fn at(&self, cluster: usize) -> &Place {
        &self.places[cluster]
    }

    /// Waits until the service is imported in each of these clusters, and can be used.
    pub async fn until_imported(&self, clusters: impl IntoIterator<Item = usize>, name: &str) {
        for cluster in clusters {
            self.at(cluster).until_ready(name).await;
        }
    }

    /// Waits until nothing of ours is left of a service in any cluster.
    pub async fn until_gone(&self, name: &str) {
        for place in &self.places {
            place.until_gone(name).await;
        }
    }

    /// Waits until these clusters all see exactly these addresses behind a service.
    pub async fn until_addresses(&self, name: &str, addresses: &[&str]) {
        for place in &self.places {
            place.until_addresses(name, addresses).await;
        }
    }

    /// Deletes the namespace everywhere. Does not wait.
    pub async fn remove(&self) {
        for place in &self.places {
            place.delete_namespace().await;
        }
    }
}

impl Place {
    pub fn new(cluster: &Cluster, namespace: &str) -> Self {
        Self { cluster: cluster.clone(), namespace: namespace.to_owned(), client: cluster.admin(), version: "v1beta1" }
    }

    /// The same cluster, another namespace.
    pub fn beside(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The same place, spoken to in another version than the conformance suite's.
    pub fn speaking(&self, version: &'static str) -> Self {
        Self { version, ..self.clone() }
    }

    /// The cluster's id.
    pub fn id(&self) -> &str {
        self.cluster.name()
    }

    pub async fn create_namespace(&self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.cluster.apply_values(vec![namespace]).await.unwrap();
    }

    pub async fn delete_namespace(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.send("DELETE", &path, None).await.ok();
    }

    /// Applies YAML documents; those without a namespace go here.
    pub async fn apply(&self, yaml: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
        self.apply_values(documents).await;
    }

    /// Applies objects; those without a namespace go here.
    pub async fn apply_values(&self, mut objects: Vec<Value>) {
        for object in &mut objects {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.entry("namespace").or_insert_with(|| json!(self.namespace));
        }
        self.cluster.apply_values(objects).await.unwrap();
    }

    /// The path of a kind in this namespace.
    pub fn path(&self, plural: &str) -> String {
        let root = match plural {
            "serviceexports" | "serviceimports" => format!("/apis/multicluster.x-k8s.io/{}", self.version),
            "endpointslices" => "/apis/discovery.k8s.io/v1".to_owned(),
            "deployments" | "statefulsets" => "/apis/apps/v1".to_owned(),
            _ => "/api/v1".to_owned(),
        };
        format!("{root}/namespaces/{}/{plural}", self.namespace)
    }

    /// A request; the answer or the code of the refusal and what it says.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, (u16, String)> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map_or_else(Vec::new, |body| serde_json::to_vec(body).unwrap());
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(body).unwrap();
        match tokio::time::timeout(Duration::from_secs(30), self.client.request_text(request)).await {
            Ok(Ok(text)) => Ok(serde_json::from_str(&text).unwrap()),
            Ok(Err(kube::Error::Api(status))) => Err((status.code, status.message)),
            Ok(Err(e)) => panic!("{}: {method} {path}: {e}", self.id()),
            Err(_) => panic!("{}: {method} {path}: no answer within 30 s", self.id()),
        }
    }

    pub async fn get(&self, plural: &str, name: &str) -> Option<Value> {
        match self.send("GET", &format!("{}/{name}", self.path(plural)), None).await {
            Ok(object) => Some(object),
            Err((404, _)) => None,
            Err((code, why)) => panic!("{}: {plural} {name}: {code} {why}", self.id()),
        }
    }

    pub async fn list(&self, plural: &str, selector: &str) -> Vec<Value> {
        let selector = selector.replace('=', "%3D").replace(',', "%2C").replace('/', "%2F");
        let path = format!("{}?labelSelector={selector}", self.path(plural));
        let mut list = self.send("GET", &path, None).await.unwrap();
        let mut items: Vec<_> = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        items.sort_by_key(|item| item["metadata"]["name"].to_string());
        items
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, plural: &str, name: &str, patch: Value) {
        let path = format!("{}/{name}", self.path(plural));
        self.send("PATCH", &path, Some(&patch)).await.unwrap();
    }

    /// Deletes an object; what is not there is no error.
    pub async fn delete(&self, plural: &str, name: &str) {
        match self.send("DELETE", &format!("{}/{name}", self.path(plural)), None).await {
            Ok(_) | Err((404, _)) => {}
            Err((code, why)) => panic!("{}: delete {plural} {name}: {code} {why}", self.id()),
        }
    }

    /// Deletes an object of another namespace.
    pub async fn delete_in(&self, namespace: &str, plural: &str, name: &str) {
        self.beside(namespace).delete(plural, name).await;
    }

    pub async fn import(&self, name: &str) -> Option<Value> {
        self.get("serviceimports", name).await
    }

    /// The name of a service's derived Service.
    pub fn derived_name(&self, name: &str) -> String {
        naming::derived(&ServiceKey::new(&self.namespace, name).unwrap()).to_string()
    }

    pub async fn derived(&self, name: &str) -> Option<Value> {
        self.get("services", &self.derived_name(name)).await
    }

    /// The mirrored slices of a service.
    pub async fn slices(&self, name: &str) -> Vec<Value> {
        let selector =
            format!("multicluster.kubernetes.io/service-name={name},multicluster.kubernetes.io/source-cluster");
        self.list("endpointslices", &selector).await
    }

    /// The mirrored slices of one source.
    pub async fn slices_of(&self, name: &str, source: &str) -> Vec<Value> {
        ClusterId::new(source).unwrap();
        let all = self.slices(name).await.into_iter();
        all.filter(|slice| slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"] == source).collect()
    }

    /// The addresses behind a service whose endpoints are ready.
    pub async fn addresses(&self, name: &str) -> BTreeSet<String> {
        let slices = self.slices(name).await;
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
        ready.flat_map(|e| e["addresses"].as_array().into_iter().flatten()).map(|a| text(a).to_owned()).collect()
    }

    pub async fn until_addresses(&self, name: &str, addresses: &[&str]) {
        let wanted: BTreeSet<_> = addresses.iter().map(ToString::to_string).collect();
        until(&format!("{}: {name} is behind {addresses:?}", self.id()), PATIENCE, async || {
            let found = self.addresses(name).await;
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// `status.clusters` of an import.
    pub async fn exporters(&self, name: &str) -> Vec<String> {
        let import = self.import(name).await.unwrap_or_default();
        let clusters = import["status"]["clusters"].as_array().cloned().unwrap_or_default();
        clusters.iter().map(|cluster| text(&cluster["cluster"]).to_owned()).collect()
    }

    pub async fn until_exporters(&self, name: &str, wanted: &[&str]) {
        until(&format!("{}: {name} is exported by {wanted:?}", self.id()), PATIENCE, async || {
            let found = self.exporters(name).await;
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// A condition of an object as `Status/Reason`, or `none`.
    pub async fn says(&self, plural: &str, name: &str, kind: &str) -> String {
        let object = self.get(plural, name).await.unwrap_or_default();
        condition(&object, kind)
            .map_or_else(|| "none".to_owned(), |c| format!("{}/{}", text(&c["status"]), text(&c["reason"])))
    }

    /// The message of a condition.
    pub async fn message(&self, plural: &str, name: &str, kind: &str) -> String {
        let object = self.get(plural, name).await.unwrap_or_default();
        condition(&object, kind).map_or_else(String::new, |c| text(&c["message"]).to_owned())
    }

    /// Waits until a condition of a ServiceExport is `Status/Reason`, or `none`.
    pub async fn until_export_says(&self, name: &str, kind: &str, wanted: &str) {
        self.until_says("serviceexports", name, kind, wanted).await;
    }

    /// Waits until a condition of an object is `Status/Reason`, or `none`.
    pub async fn until_says(&self, plural: &str, name: &str, kind: &str, wanted: &str) {
        until(&format!("{}: {plural} {name} says {kind}={wanted}", self.id()), PATIENCE, async || {
            let found = self.get(plural, name).await.ok_or("it is not there")?;
            let is = self.says(plural, name, kind).await;
            if is == wanted { Ok(()) } else { Err(format!("{}", found["status"])) }
        })
        .await;
    }

    /// Waits until an import is there and can be used.
    pub async fn until_ready(&self, name: &str) -> Value {
        until(&format!("{}: {name} is imported", self.id()), PATIENCE, async || {
            let import = self.import(name).await.ok_or("there is no import")?;
            let ready = condition(&import, "Ready").is_some_and(|c| c["status"] == "True");
            if ready { Ok(import) } else { Err(import["status"].to_string()) }
        })
        .await
    }

    /// Waits until nothing of ours is left of a service.
    pub async fn until_gone(&self, name: &str) {
        until(&format!("{}: nothing is left of {name}", self.id()), PATIENCE, async || {
            let (import, derived) = (self.import(name).await, self.derived(name).await);
            let slices = self.slices(name).await;
            if import.is_none() && derived.is_none() && slices.is_empty() {
                return Ok(());
            }
            Err(format!("{import:?} {derived:?} {slices:?}"))
        })
        .await;
    }

    /// What of ours there is of a service, in a few words.
    pub async fn parts(&self, name: &str) -> (bool, bool, usize) {
        (self.import(name).await.is_some(), self.derived(name).await.is_some(), self.slices(name).await.len())
    }

    /// `Type reason: message` of the events of an object.
    pub async fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let events = self.list("events", "").await.into_iter();
        let events = events.filter(|e| e["involvedObject"]["kind"] == kind && e["involvedObject"]["name"] == name);
        events.map(|e| format!("{} {}: {}", text(&e["type"]), text(&e["reason"]), text(&e["message"]))).collect()
    }
}

/// The condition of this type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
