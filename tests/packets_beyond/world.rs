//! What all scenarios share: the bed, and the table in which their figures stand in the end.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{Arrangement, Cluster, PacketBed};

use crate::clusterset::Place;

/// The namespace and the name of the controller's Deployment, as `deploy/kustomize/controller` has them.
const CONTROLLER: (&str, &str) = ("namesake", "namesake-controller");

/// The bed, and what was counted.
pub struct World {
    bed: PacketBed,
    table: Mutex<Vec<Row>>,
}

/// A line of the table.
struct Row {
    scenario: &'static str,
    counted: String,
    figures: String,
}

impl World {
    pub fn new(bed: PacketBed) -> Self {
        Self { bed, table: Mutex::default() }
    }

    /// The clusters: the first one is the hub, and all are members.
    pub fn clusters(&self) -> &[Cluster] {
        &self.bed.clusters
    }

    /// The DNS server that the pods of a cluster have.
    pub fn nameserver(&self, cluster: usize) -> IpAddr {
        self.bed.nameserver(cluster, Arrangement::Forward)
    }

    /// Puts figures into the table, and shows them at once.
    pub fn note(&self, scenario: &'static str, counted: impl Into<String>, figures: impl Into<String>) {
        let row = Row { scenario, counted: counted.into(), figures: figures.into() };
        eprintln!("{scenario}: {}: {}", row.counted, row.figures);
        self.table.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    /// The table, in the order of `scenarios`.
    pub fn table(&self, scenarios: &[&str]) -> String {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let ordered = || scenarios.iter().flat_map(|name| table.iter().filter(move |row| row.scenario == *name));
        let width = |of: fn(&Row) -> usize| ordered().map(of).max().unwrap_or(0);
        let (first, second) = (width(|row| row.scenario.len()), width(|row| row.counted.len()));
        let mut text = String::new();
        let mut last = "";
        for row in ordered() {
            let scenario = if row.scenario == last { "" } else { row.scenario };
            last = row.scenario;
            text += &format!("{scenario:first$}  {:second$}  {}\n", row.counted, row.figures);
        }
        text
    }

    /// Gives the controller these flags besides those of its manifest, and waits until only pods with them are left, one
    /// of which leads.
    pub async fn set_controller_flags(&self, flags: &[&str]) {
        let hub = Place::new(&self.clusters()[0], CONTROLLER.0);
        let deployment = hub.get("deployments", CONTROLLER.1).await.expect("the controller's Deployment in the hub");
        let mut container = deployment["spec"]["template"]["spec"]["containers"][0].clone();
        let args = container["args"].as_array_mut().expect("the controller's arguments");
        for flag in flags {
            let name = flag.split('=').next().unwrap_or(flag);
            args.retain(|arg| arg.as_str().is_none_or(|arg| arg.split('=').next() != Some(name)));
            args.push(json!(flag));
        }
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        hub.patch("deployments", CONTROLLER.1, patch).await;
        let wanted: Vec<Value> = flags.iter().map(|flag| json!(flag)).collect();
        until(&format!("the controller runs with {flags:?}"), Duration::from_secs(90), async || {
            let pods = hub.list("pods", "app.kubernetes.io/component=controller").await;
            let has_flags = |pod: &Value| {
                let args = pod["spec"]["containers"][0]["args"].as_array().cloned().unwrap_or_default();
                wanted.iter().all(|flag| args.contains(flag))
            };
            let (new, old): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| has_flags(pod));
            let names: Vec<_> = new.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
            let ready = new.iter().all(|pod| is_ready(pod));
            let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", CONTROLLER.0, CONTROLLER.1);
            let lease = hub.cluster.request("GET", &lease, None).await.unwrap_or_default();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let leads = names.iter().any(|name| holder.starts_with(name));
            let seen = format!("new {names:?} (all ready: {ready}), old {}, the lease is {holder:?}'s", old.len());
            if old.is_empty() && ready && leads { Ok(()) } else { Err(seen) }
        })
        .await;
    }
}

/// Whether a pod is Ready.
pub fn is_ready(pod: &Value) -> bool {
    crate::clusterset::place::condition(pod, "Ready").is_some_and(|condition| condition["status"] == "True")
}

/// Looks until it is so, and fails with the last look. Many scenarios look side by side, on a machine that has packets to
/// carry meanwhile: not more than some times a second.
pub async fn until<T>(what: &str, within: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + within;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < end, "not within {within:?}: {what}; instead: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}
