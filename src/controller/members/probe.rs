//! One task per candidate: connects to it, and listens to what it says it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;

use super::Origin;
use super::identity::Properties;
use super::registry::Way;
use crate::api;
use crate::source::Trouble;
use crate::source::kube::{Access, Collection, Connection, Encoded, Observer, Presence, Subject};

/// How long to wait before the next try to make a client: at first, and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A way to a cluster.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) access: Access,
    pub(super) connection: Connection,
}

impl Way for Route {
    fn same(&self, other: &Self) -> bool {
        self.access == other.access
    }
}

/// What a probe found.
pub(super) struct Found {
    pub(super) origin: Origin,
    /// Which probe it is: what an old one found is not heard any more.
    pub(super) serial: u64,
    pub(super) what: Finding,
}

/// What a probe found.
pub(super) enum Finding {
    /// There is a client now, or there is none and why.
    Connected(Result<Route, String>),
    /// What its ClusterProperties say.
    Properties(Properties),
    /// It can't be asked.
    Unheard(String),
}

/// Connects by `access`, tries again until that is done, and listens from then on.
pub(super) async fn probe(
    origin: Origin,
    serial: u64,
    access: Access,
    observer: Arc<dyn Observer>,
    found: mpsc::Sender<Found>,
) {
    let tell = |what| found.send(Found { origin: origin.clone(), serial, what });
    let mut pause = RETRY.0;
    let connection = loop {
        match Connection::new(access.clone(), observer.clone()).await {
            Ok(connection) => break connection,
            Err(error) => {
                if tell(Finding::Connected(Err(error.to_string()))).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY.1);
            }
        }
    };
    let route = Route { access, connection: connection.clone() };
    if tell(Finding::Connected(Ok(route))).await.is_err() {
        return;
    }
    let (items, mut heard) = mpsc::channel(16);
    let subject = ClusterProperties { collection: collection(), found: found.clone(), origin: origin.clone(), serial };
    let listen = async {
        let (mut values, mut complete) = (BTreeMap::new(), false);
        while let Some(item) = heard.recv().await {
            match item {
                Item::Begin => {
                    values.clear();
                    complete = false;
                }
                Item::End => complete = true,
                Item::Value(name, Some(value)) => {
                    values.insert(name, value);
                }
                Item::Value(name, None) => {
                    values.remove(&name);
                }
            }
            let value = |name: &str| values.get(name).cloned();
            let properties = Properties { cluster: value(api::PROPERTY_CLUSTER), set: value(api::PROPERTY_CLUSTERSET) };
            if complete && tell(Finding::Properties(properties)).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(connection.follow(subject, items), listen);
}

fn collection() -> Collection {
    Collection {
        group: api::ABOUT_GROUP,
        versions: &["v1beta1", "v1alpha1"],
        plural: "clusterproperties",
        presence: Presence::OptionalCrd(api::CLUSTER_PROPERTY_CRD),
        namespace: None,
        labels: None,
        page: 100,
        protobuf: false,
    }
}

enum Item {
    Begin,
    End,
    Value(String, Option<String>),
}

struct ClusterProperties {
    collection: Collection,
    found: mpsc::Sender<Found>,
    origin: Origin,
    serial: u64,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    value: Option<String>,
}

impl Subject for ClusterProperties {
    type Item = Item;

    fn collection(&self) -> &Collection {
        &self.collection
    }

    fn present(&self, object: &Encoded<'_>) -> Option<Item> {
        let object: Object = serde_json::from_str(object.json()?).ok()?;
        let value = object.spec.and_then(|spec| spec.value).filter(|value| !value.is_empty());
        Some(Item::Value(object.metadata.name, value))
    }

    fn absent(&self, object: &Encoded<'_>) -> Option<Item> {
        let object: Object = serde_json::from_str(object.json()?).ok()?;
        Some(Item::Value(object.metadata.name, None))
    }

    fn begin(&self) -> Item {
        Item::Begin
    }

    fn end(&self) -> Item {
        Item::End
    }

    fn alive(&self) {}

    fn down(&self, trouble: Trouble) {
        let what = Finding::Unheard(trouble.to_string());
        // Full only while others wait to be heard; it will be said again.
        let _ = self.found.try_send(Found { origin: self.origin.clone(), serial: self.serial, what });
    }
}
