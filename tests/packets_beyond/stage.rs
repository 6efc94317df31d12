//! The stage of one scenario: a namespace of its own in all clusters, and a pod to ask from in each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clusterset::Place;
use crate::clusterset::place::text;
use crate::objects::{self, Manners};
use crate::pod::ClientPod;
use crate::world::{World, is_ready, until};

/// The suite's wait for pods and what comes of them.
pub const PODS: Duration = Duration::from_secs(60);

pub struct Stage {
    pub places: Vec<Place>,
    /// The pods to ask from, cluster by cluster.
    pub clients: Vec<ClientPod>,
}

impl Stage {
    /// A namespace in all clusters, and a client in each.
    pub async fn new(world: &World, name: &str) -> Self {
        let places: Vec<_> = world.clusters().iter().map(|cluster| Place::new(cluster, name)).collect();
        for place in &places {
            place.create_namespace().await;
            // Without its ServiceAccount a namespace admits no pod.
            until(&format!("{}: the namespace has its account", place.id()), PODS, async || {
                place.get("serviceaccounts", "default").await.map(drop).ok_or_else(|| "it has not".to_owned())
            })
            .await;
            place.apply_values(vec![objects::client("client")]).await;
        }
        let mut clients = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let address = until_pod_runs(place, "client").await;
            clients.push(ClientPod::new(&place.cluster, address, world.nameserver(index)));
        }
        Self { places, clients }
    }

    /// The namespace's place in a cluster.
    pub fn at(&self, cluster: usize) -> &Place {
        &self.places[cluster]
    }

    /// The whole name of a service in the clusterset.
    pub fn name(&self, service: &str) -> String {
        format!("{service}.{}.svc.clusterset.local.", self.places[0].namespace)
    }

    /// Puts a server of the usual two ports into a cluster, with its Service.
    pub async fn serve(&self, cluster: usize, name: &str, replicas: u32, manners: Manners) {
        let place = self.at(cluster);
        place
            .apply_values(vec![
                objects::deployment(place.id(), name, replicas, &[objects::NAME], manners),
                objects::service(name, &objects::ports()),
            ])
            .await;
    }

    /// The same, exported.
    pub async fn serve_and_export(&self, cluster: usize, name: &str, replicas: u32, manners: Manners) {
        self.serve(cluster, name, replicas, manners).await;
        self.at(cluster).apply_values(vec![objects::export(name)]).await;
    }

    /// The ready pods of a server and their addresses, once there are so many.
    pub async fn until_served(&self, cluster: usize, name: &str, count: usize) -> BTreeMap<String, IpAddr> {
        let place = self.at(cluster);
        until(&format!("{}: {count} pods of {name} are ready", place.id()), PODS, async || {
            let pods = ready_pods(place, name).await;
            if pods.len() == count { Ok(pods) } else { Err(format!("{:?}", pods.keys())) }
        })
        .await
    }

    /// Waits until these clusters have so many ready endpoints of a service from all exporters together, and until a pod of
    /// each of them gets answers by the service's name from exactly so many pods of each exporter.
    pub async fn until_reached(&self, importers: &[usize], name: &str, port: u16, exporters: &[(usize, usize)]) {
        let count: usize = exporters.iter().map(|(_, count)| count).sum();
        for importer in importers {
            let place = self.at(*importer);
            until(&format!("{}: {name} has {count} ready endpoints", place.id()), PODS, async || {
                let found = place.addresses(name).await;
                if found.len() == count { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
        }
        for importer in importers {
            let client = &self.clients[*importer];
            let what = format!("{}: {name} is answered by {exporters:?}", client.cluster.name());
            let wanted: BTreeMap<_, _> = exporters.iter().map(|(id, count)| (self.at(*id).id(), *count)).collect();
            until(&what, PODS, async || {
                let said = client.reach_often(&self.name(name), port, 12 * count).await;
                let failed = said.iter().filter(|said| said.is_err()).count();
                let pods: std::collections::BTreeSet<_> = said.into_iter().flatten().collect();
                let mut found = BTreeMap::new();
                for pod in &pods {
                    *found.entry(pod.split('-').next().unwrap_or_default()).or_default() += 1;
                }
                if failed == 0 && found == wanted { Ok(()) } else { Err(format!("{pods:?}, {failed} failed")) }
            })
            .await;
        }
    }

    /// Deletes the namespace everywhere. Does not wait.
    pub async fn remove(self) {
        for place in &self.places {
            place.delete_namespace().await;
        }
    }
}

/// The ready pods with this label `app`, and their addresses.
pub async fn ready_pods(place: &Place, app: &str) -> BTreeMap<String, IpAddr> {
    let pods = place.list("pods", &format!("app={app}")).await;
    let alive = pods.iter().filter(|pod| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null());
    alive.filter_map(|pod| Some((text(&pod["metadata"]["name"]).to_owned(), address(pod)?))).collect()
}

/// Waits until a pod is Ready, and returns its address.
pub async fn until_pod_runs(place: &Place, name: &str) -> IpAddr {
    until(&format!("{}: the pod {name} runs", place.id()), PODS, async || {
        let pod = place.get("pods", name).await.unwrap_or_default();
        match address(&pod) {
            Some(address) if is_ready(&pod) => Ok(address),
            _ => Err(pod["status"].to_string()),
        }
    })
    .await
}

fn address(pod: &Value) -> Option<IpAddr> {
    pod["status"]["podIP"].as_str()?.parse().ok()
}

/// `1.25`: seconds between two moments.
pub fn seconds(from: Instant, to: Instant) -> String {
    format!("{:.2}", to.saturating_duration_since(from).as_secs_f64())
}

/// The pause in which a scenario only lets time go by, since it is about that time.
pub async fn for_a_while(time: Duration) {
    tokio::time::sleep(time).await;
}
