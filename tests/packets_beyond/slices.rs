//! What the EndpointSlices of a service said of each address, and since when: the clock that failures are held against.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};

use crate::clusterset::Place;
use crate::world::until;

/// What is said of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// New connections go there.
    Ready,
    /// It is listed, and gets no new connections as long as others are ready.
    NotReady,
    /// No slice names it.
    Gone,
}

type Timelines = BTreeMap<IpAddr, Vec<(Instant, Said)>>;

/// Follows the slices of one service in one cluster. Dropped, it ends.
pub struct Slices {
    timelines: Arc<Mutex<Timelines>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Slices {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Slices {
    /// The slices that the cluster's own controllers make for the Service.
    pub fn of_service(place: &Place, name: &str) -> Self {
        Self::matching(place, format!("kubernetes.io/service-name={name}"))
    }

    /// The slices that mirror those of a source cluster.
    pub fn mirrored(place: &Place, name: &str, source: &str) -> Self {
        let (service, cluster) =
            ("multicluster.kubernetes.io/service-name", "multicluster.kubernetes.io/source-cluster");
        Self::matching(place, format!("{service}={name},{cluster}={source}"))
    }

    fn matching(place: &Place, selector: String) -> Self {
        let timelines = Arc::new(Mutex::new(Timelines::new()));
        let slices = Api::<EndpointSlice>::namespaced(place.cluster.admin(), &place.namespace);
        let task = tokio::spawn({
            let timelines = timelines.clone();
            async move {
                loop {
                    // A watch from version 0 tells first what is there. When it ends it is begun anew; what it tells a
                    // second time changes nothing.
                    let mut seen = BTreeMap::new();
                    let Ok(events) = slices.watch(&WatchParams::default().labels(&selector), "0").await else {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let mut events = std::pin::pin!(events);
                    while let Ok(Some(event)) = events.try_next().await {
                        let now = Instant::now();
                        match event {
                            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => {
                                seen.insert(slice.metadata.name.clone(), slice);
                            }
                            WatchEvent::Deleted(slice) => drop(seen.remove(&slice.metadata.name)),
                            WatchEvent::Bookmark(_) => continue,
                            WatchEvent::Error(_) => break,
                        }
                        let mut timelines = timelines.lock().unwrap_or_else(PoisonError::into_inner);
                        note(&mut timelines, now, seen.values());
                    }
                }
            }
        });
        Self { timelines, task }
    }

    /// Waits until exactly so many addresses are ready, and returns them.
    pub async fn until_ready(&self, count: usize, within: Duration) -> Vec<IpAddr> {
        until(&format!("{count} addresses are ready in the slices"), within, async || {
            let ready = self.ready();
            if ready.len() == count { Ok(ready) } else { Err(format!("{ready:?}")) }
        })
        .await
    }

    /// The addresses that are ready now.
    pub fn ready(&self) -> Vec<IpAddr> {
        let timelines = self.lock();
        let ready = timelines.iter().filter(|(_, line)| line.last().is_some_and(|(_, said)| *said == Said::Ready));
        ready.map(|(address, _)| *address).collect()
    }

    /// All addresses that were ever named, with what was said of them and since when.
    pub fn all(&self) -> BTreeMap<IpAddr, Vec<(Instant, Said)>> {
        self.lock().clone()
    }

    /// What was said of an address at a time, and since when; nothing before it was named first.
    pub fn at(&self, address: IpAddr, time: Instant) -> Option<(Instant, Said)> {
        let timelines = self.lock();
        timelines.get(&address)?.iter().rev().find(|(since, _)| *since <= time).copied()
    }

    /// When an address became so for the first time.
    pub fn became(&self, address: IpAddr, is_so: impl Fn(Said) -> bool) -> Option<Instant> {
        let timelines = self.lock();
        timelines.get(&address)?.iter().find(|(_, said)| is_so(*said)).map(|(since, _)| *since)
    }

    /// When an address that was ready stopped being it.
    pub fn ended(&self, address: IpAddr) -> Option<Instant> {
        let timelines = self.lock();
        let mut line = timelines.get(&address)?.iter().skip_while(|(_, said)| *said != Said::Ready);
        line.find(|(_, said)| *said != Said::Ready).map(|(since, _)| *since)
    }

    fn lock(&self) -> MutexGuard<'_, Timelines> {
        self.timelines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note<'a>(timelines: &mut Timelines, now: Instant, slices: impl Iterator<Item = &'a EndpointSlice>) {
    let mut said = BTreeMap::new();
    for endpoint in slices.flat_map(|slice| slice.endpoints.iter()) {
        let ready = endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false));
        let state = if ready { Said::Ready } else { Said::NotReady };
        for address in endpoint.addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok()) {
            said.insert(address, state);
        }
    }
    for address in timelines.keys() {
        said.entry(*address).or_insert(Said::Gone);
    }
    for (address, state) in said {
        let line = timelines.entry(address).or_default();
        if line.last().map(|(_, last)| *last) != Some(state) {
            line.push((now, state));
        }
    }
}
