//! The table of answers: shared by every thread that answers, written by one (the feed).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use dashmap::DashMap;
use foldhash::quality::RandomState;

use super::Options;
use super::edns::Ede;
use super::name::QueryName;
use super::serial::Serial;
use super::service::ServiceAnswers;
use super::zone::Zone;
use crate::model::ServiceKey;

/// What is served.
#[derive(Debug)]
pub struct Store {
    options: Options,
    /// Those with most labels first, so that the longest match is found first.
    zones: Box<[Zone]>,
    /// Keyed by `<svc>.<ns>` on the wire. Names come from the network: the hash has a random seed.
    services: DashMap<Box<[u8]>, Arc<ServiceAnswers>, RandomState>,
    /// How many services exist in a namespace: it is an empty non-terminal while there are any.
    namespaces: DashMap<Box<[u8]>, usize, RandomState>,
    state: AtomicU8,
    serial: Serial,
    endpoints: AtomicUsize,
}

/// How far the data can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(u8);

impl State {
    const SYNCED: u8 = 1;
    const STALE: u8 = 2;
    const EXPIRED: u8 = 4;

    /// Whether every needed list was complete once.
    #[must_use]
    pub fn synced(self) -> bool {
        self.0 & Self::SYNCED != 0
    }

    /// Whether answers should say that they may be old.
    #[must_use]
    pub fn stale(self) -> bool {
        self.0 & Self::STALE != 0
    }

    /// Why data names are not answered, if they are not.
    #[must_use]
    pub fn withheld(self) -> Option<Ede> {
        match (self.synced(), self.0 & Self::EXPIRED != 0) {
            (false, _) => Some(Ede::NotReady),
            (true, true) => Some(Ede::StaleAnswer),
            (true, false) => None,
        }
    }
}

impl Store {
    /// An empty, unsynced table: data names answer SERVFAIL with EDE 14 until [`Store::set_synced`].
    ///
    /// Zones that can't be names are left out; `config` refuses them before.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let numbered = options.zones.iter().zip(0..=u8::MAX);
        let mut zones: Vec<_> = numbered.filter_map(|(name, index)| Zone::new(name, index)).collect();
        zones.sort_by_key(|zone| std::cmp::Reverse(zone.labels()));
        Self {
            options,
            zones: zones.into_boxed_slice(),
            services: DashMap::with_hasher(RandomState::default()),
            namespaces: DashMap::with_hasher(RandomState::default()),
            state: AtomicU8::new(0),
            serial: Serial::new(0), // the feed starts it at the clock
            endpoints: AtomicUsize::new(0),
        }
    }

    /// What the operator chose.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The zones, those with most labels first.
    #[must_use]
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The SOA serial.
    #[must_use]
    pub fn serial(&self) -> &Serial {
        &self.serial
    }

    /// How many services and endpoint names are served.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.services.len(), self.endpoints.load(Ordering::Relaxed))
    }

    /// How far the data can be relied on.
    #[must_use]
    #[inline]
    pub fn state(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    /// Says that every needed list was complete once. There is no way back (`dns.md` L9).
    pub fn set_synced(&self) {
        self.set(State::SYNCED, true);
    }

    /// Says whether the data is known to be old: answers with an OPT then carry EDE 3 (`dns.md` L9).
    pub fn set_stale(&self, stale: bool) {
        self.set(State::STALE, stale);
    }

    /// Says whether the data is older than `max_stale` allows: data names then answer SERVFAIL (`dns.md` L9).
    pub fn set_expired(&self, expired: bool) {
        self.set(State::EXPIRED, expired);
    }

    fn set(&self, bit: u8, on: bool) {
        if on {
            self.state.fetch_or(bit, Ordering::Release);
        } else {
            self.state.fetch_and(!bit, Ordering::Release);
        }
    }

    /// Replaces what is served of a service: readers see the old snapshot or the new one, never a mixture. Says
    /// whether the record set changed.
    pub fn put(&self, key: &ServiceKey, answers: Option<ServiceAnswers>) -> bool {
        let namespace = wire_label(key.namespace.as_str());
        let mut name = wire_label(key.name.as_str());
        name.extend_from_slice(&namespace);
        // Only the feed writes, so nothing changes between this look and the write below.
        let old = self.services.get(name.as_slice()).map(|old| Arc::clone(&old));
        if old.as_deref() == answers.as_ref() {
            return false;
        }
        let (was, is) = (old.is_some(), answers.is_some());
        let count = |answers: Option<&ServiceAnswers>| answers.map_or(0, ServiceAnswers::endpoint_count);
        self.endpoints.fetch_add(count(answers.as_ref()), Ordering::Relaxed);
        self.endpoints.fetch_sub(count(old.as_deref()), Ordering::Relaxed);
        // The namespace comes before its first service and goes after its last: its name never lacks below a name
        // that exists.
        if is && !was {
            *self.namespaces.entry(namespace.clone().into_boxed_slice()).or_insert(0) += 1;
        }
        match answers {
            Some(answers) => drop(self.services.insert(name.into_boxed_slice(), Arc::new(answers))),
            None => drop(self.services.remove(name.as_slice())),
        }
        if was && !is {
            let emptied = self.namespaces.get_mut(namespace.as_slice()).is_some_and(|mut n| {
                *n -= 1;
                *n == 0
            });
            if emptied {
                self.namespaces.remove(namespace.as_slice());
            }
        }
        true
    }

    /// What is served of a service, by its key; for `explain` and tests.
    #[must_use]
    pub fn get(&self, key: &ServiceKey) -> Option<Arc<ServiceAnswers>> {
        let mut name = wire_label(key.name.as_str());
        name.extend(wire_label(key.namespace.as_str()));
        self.service(&name)
    }

    /// The zone of a name with the most labels, and how many labels stand in front of it.
    #[inline]
    pub(super) fn zone_of(&self, name: &QueryName<'_>) -> Option<(&Zone, usize)> {
        self.zones.iter().find_map(|zone| Some((zone, zone.labels_in_front(name)?)))
    }

    /// The snapshot of `<svc>.<ns>`. No guard of the table leaves this function.
    #[inline]
    pub(super) fn service(&self, wire: &[u8]) -> Option<Arc<ServiceAnswers>> {
        self.services.get(wire).map(|found| Arc::clone(&found))
    }

    #[inline]
    pub(super) fn has_namespace(&self, wire: &[u8]) -> bool {
        self.namespaces.contains_key(wire)
    }
}

fn wire_label(label: &str) -> Vec<u8> {
    let mut wire = Vec::with_capacity(label.len() + 1);
    wire.push(label.len() as u8);
    wire.extend_from_slice(label.as_bytes());
    wire
}
