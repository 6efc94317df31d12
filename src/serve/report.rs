//! What the admin routes are told of the parts below them.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, PoisonError};

use crate::admin::{AdminConfig, Explain};
use crate::answers::{self, Store};
use crate::dns;
use crate::feed::Feed;
use crate::metrics::{Skips, State};
use crate::model::Resource;

/// Counts at a scrape. `listening` is filled in when DNS is served.
pub(super) fn counts(
    feed: &Feed,
    store: &Arc<Store>,
    listening: Arc<OnceLock<Vec<SocketAddr>>>,
) -> Arc<dyn Fn() -> State + Send + Sync> {
    let (index, counts, store) = (feed.index(), feed.counts(), Arc::clone(store));
    Arc::new(move || {
        let tally = index.read().unwrap_or_else(PoisonError::into_inner).tally().clone();
        let skip =
            |(reason, cluster, count): (crate::model::SkipReason, Option<&crate::model::ClusterId>, usize)| Skips {
                reason: reason.as_str(),
                source_cluster: cluster.map(ToString::to_string).unwrap_or_default(),
                count: count as u64,
            };
        let zones = store.options().zones.iter();
        State {
            imports: vec![("ClusterSetIP", tally.clusterset_ip as u64), ("Headless", tally.headless as u64)],
            endpoints: tally.ready as u64,
            skipped: tally.skips().map(skip).collect(),
            soa_serials: zones.map(|zone| (format!("{zone}."), store.serial().get())).collect(),
            updates: Resource::ALL.map(|resource| (resource.plural(), counts.updates(resource))).to_vec(),
            rebuilds: counts.rebuilds(),
            queue_drops: listening.get().map_or(0, |addresses| dns::queue_drops(addresses)),
            ..State::default()
        }
    })
}

/// The route `/explain`.
pub(super) fn explain(feed: &Feed, store: &Arc<Store>) -> Explain {
    let (index, store) = (feed.index(), Arc::clone(store));
    Arc::new(move |name, qtype| {
        let number = answers::type_number(qtype)
            .ok_or_else(|| format!("{qtype:?} is no record type; give A, AAAA, SRV, TXT or TYPE<number>\n"))?;
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        Ok(answers::explain(&index, &store, name, number))
    })
}

/// The admin addresses for the log, each once.
pub(super) fn admin(config: &AdminConfig) -> String {
    let all = [config.explain, config.health, config.ready, config.metrics];
    let mut addresses: Vec<SocketAddr> = all.into_iter().flatten().collect();
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() {
        return "no address".to_owned();
    }
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
