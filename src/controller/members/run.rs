//! The loop: what is seen and found → the registry → what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use super::hub::{self, Key, Seen, Watch, What};
use super::probe::{Finding, Found, Route, probe};
use super::profiles::Profiles;
use super::registry::{Judged, Registry};
use super::secrets::Candidate;
use super::{Inventory, Member, MemberChange, MemberSettings, Origin, Refusal, own};
use crate::source::Health;
use crate::source::kube::{Access, Connection, Observer};

/// How much may wait to be judged.
const QUEUE: usize = 256;

/// Makes observers: each member's requests are counted as that member's.
pub type Observers = dyn Fn(&Origin) -> Arc<dyn Observer> + Send + Sync;

/// The members, as they come and go.
pub struct Members {
    settings: MemberSettings,
    hub: Option<Connection>,
    observers: Arc<Observers>,
    health: Arc<Health<Watch>>,
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Members").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Members {
    /// Members by these settings. `hub` is needed where there are inventories.
    #[must_use]
    pub fn new(settings: MemberSettings, hub: Option<Connection>, observers: Arc<Observers>) -> Self {
        let mut watches = Vec::new();
        watches.extend(settings.folder.is_some().then_some(Watch::Folder));
        for (inventory, _) in &settings.inventories {
            match inventory {
                Inventory::Secrets(convention) => watches.push(Watch::Secrets(*convention)),
                Inventory::Profiles => watches.extend([Watch::Profiles, Watch::ProfileSecrets]),
            }
        }
        let health = Arc::new(Health::of(&watches));
        Self { settings, hub, observers, health }
    }

    /// How the watches of the hub and the folder are doing.
    #[must_use]
    pub fn health(&self) -> Arc<Health<Watch>> {
        self.health.clone()
    }

    /// Tells every change until nobody takes them.
    pub async fn run(self, changes: mpsc::Sender<MemberChange>) {
        let (seen_sender, mut seen) = mpsc::channel(QUEUE);
        let (found_sender, mut found) = mpsc::channel(QUEUE);
        let mut sources = JoinSet::new();
        let watches = self.start(&mut sources, &seen_sender);
        drop(seen_sender);
        let mut state = State {
            registry: Registry::new(self.settings.rules.clone()),
            profiles: Profiles::new(self.settings.inventory_names),
            objects: BTreeMap::new(),
            running: BTreeMap::new(),
            early: BTreeMap::new(),
            listed: BTreeSet::new(),
            watches,
            probes: BTreeMap::new(),
            tasks: JoinSet::new(),
            serial: 0,
            observers: self.observers,
            found: found_sender,
        };
        // With nothing to look at there is nobody.
        let mut judge = state.watches.is_empty();
        loop {
            if judge && !state.tell(&changes).await {
                return;
            }
            judge = tokio::select! {
                () = changes.closed() => return,
                Some(Seen { watch, what }) = seen.recv() => {
                    if matches!(what, What::End) {
                        self.health.mark_synced(watch);
                    }
                    state.see(watch, what)
                }
                Some(found) = found.recv() => state.find(found),
                Some(_) = state.tasks.join_next() => false,
            };
        }
    }

    /// Starts everything that looks for candidates; what that is.
    fn start(&self, tasks: &mut JoinSet<()>, seen: &mpsc::Sender<Seen>) -> BTreeSet<Watch> {
        let mut watches = BTreeSet::new();
        if !self.settings.contexts.is_empty() {
            watches.insert(Watch::Contexts);
            tasks.spawn(own::contexts(self.settings.contexts.clone(), seen.clone()));
        }
        if let Some(folder) = &self.settings.folder {
            watches.insert(Watch::Folder);
            tasks.spawn(own::folder(folder.clone(), self.health.clone(), seen.clone()));
        }
        for (inventory, namespace) in &self.settings.inventories {
            let both = match inventory {
                Inventory::Secrets(convention) => vec![Watch::Secrets(*convention)],
                Inventory::Profiles => vec![Watch::Profiles, Watch::ProfileSecrets],
            };
            for watch in both {
                // Without a hub it is never listed, and so nobody is taken for having left.
                watches.insert(watch);
                if let Some(hub) = &self.hub {
                    let names = self.settings.inventory_names;
                    tasks.spawn(hub::follow(
                        hub,
                        watch,
                        namespace.as_deref(),
                        names,
                        self.health.clone(),
                        seen.clone(),
                    ));
                }
            }
        }
        watches
    }
}

struct State {
    registry: Registry<Route>,
    profiles: Profiles,
    /// The candidates of each object.
    objects: BTreeMap<(Watch, Key), Vec<Origin>>,
    /// What a running full list has had so far.
    running: BTreeMap<Watch, BTreeSet<Key>>,
    /// What the first list of a watch has had so far. It counts when it is complete: of two candidates with one id the
    /// older might come later.
    early: BTreeMap<(Watch, Key), Vec<Candidate>>,
    /// The watches whose list was complete once.
    listed: BTreeSet<Watch>,
    /// All watches.
    watches: BTreeSet<Watch>,
    probes: BTreeMap<Origin, Probe>,
    tasks: JoinSet<()>,
    serial: u64,
    observers: Arc<Observers>,
    found: mpsc::Sender<Found>,
}

struct Probe {
    serial: u64,
    access: Access,
    task: AbortHandle,
}

impl State {
    /// Takes in what was seen; whether anything may have changed.
    fn see(&mut self, watch: Watch, what: What) -> bool {
        if let What::Candidates(key, _) | What::Profile(key, _) | What::ProfileSecret(key, _) = &what
            && let Some(running) = self.running.get_mut(&watch)
        {
            running.insert(key.clone());
        }
        match what {
            What::Begin => {
                self.early.retain(|(of, _), _| *of != watch);
                self.running.insert(watch, BTreeSet::new());
                return false;
            }
            What::End => self.end(watch),
            What::Candidates(key, candidates) if self.listed.contains(&watch) => {
                self.candidates(watch, key, candidates);
            }
            What::Candidates(key, candidates) => {
                self.early.insert((watch, key), candidates);
                return false;
            }
            What::Profile(key, json) => {
                self.objects.entry((watch, key)).or_default();
                if let Some(profile) = self.profiles.set_profile(&json) {
                    self.profile(&profile);
                }
            }
            What::ProfileSecret(key, secret) => {
                self.objects.entry((watch, key)).or_default();
                for profile in self.profiles.set_secret(&secret) {
                    self.profile(&profile);
                }
            }
            What::Gone(key) => self.gone(watch, key),
        }
        true
    }

    /// A full list is complete: what it did not have is gone.
    fn end(&mut self, watch: Watch) {
        let seen = self.running.remove(&watch).unwrap_or_default();
        let held = self.objects.keys().filter(|(of, key)| *of == watch && !seen.contains(key));
        let unseen: Vec<_> = held.map(|(_, key)| key.clone()).collect();
        for key in unseen {
            self.gone(watch, key);
        }
        self.listed.insert(watch);
        for ((watch, key), candidates) in std::mem::take(&mut self.early) {
            if self.listed.contains(&watch) {
                self.candidates(watch, key, candidates);
            } else {
                self.early.insert((watch, key), candidates);
            }
        }
        if matches!(watch, Watch::Profiles | Watch::ProfileSecrets) {
            for key in self.profiles.keys() {
                self.profile(&key);
            }
        }
    }

    fn gone(&mut self, watch: Watch, key: Key) {
        match watch {
            Watch::Profiles => {
                self.profiles.remove_profile(&key);
                self.profile(&key);
                self.objects.remove(&(watch, key));
            }
            Watch::ProfileSecrets => {
                for profile in self.profiles.remove_secret(&key) {
                    self.profile(&profile);
                }
                self.objects.remove(&(watch, key));
            }
            _ => {
                self.early.remove(&(watch, key.clone()));
                self.candidates(watch, key, Vec::new());
            }
        }
    }

    /// A profile or its Secret changed. Before both are listed, either may just not have been seen yet.
    fn profile(&mut self, key: &Key) {
        if !(self.listed.contains(&Watch::Profiles) && self.listed.contains(&Watch::ProfileSecrets)) {
            return;
        }
        let candidates = self.profiles.candidate(key).into_iter().collect();
        self.candidates(Watch::Profiles, key.clone(), candidates);
    }

    /// These are the candidates of an object now.
    fn candidates(&mut self, watch: Watch, key: Key, candidates: Vec<Candidate>) {
        let origins: Vec<_> = candidates.iter().map(|candidate| candidate.origin.clone()).collect();
        let before = if origins.is_empty() {
            self.objects.remove(&(watch, key))
        } else {
            self.objects.insert((watch, key), origins.clone())
        };
        for origin in before.into_iter().flatten().filter(|origin| !origins.contains(origin)) {
            self.registry.remove(&origin);
            self.unprobe(&origin);
        }
        for candidate in candidates {
            self.candidate(candidate);
        }
    }

    fn candidate(&mut self, candidate: Candidate) {
        let Candidate { origin, created, claim, access } = candidate;
        let way = match access {
            Ok(access) if self.probes.get(&origin).is_some_and(|probe| probe.access == access) => {
                // Its way is what its probe says.
                self.registry.set_claim(&origin, created, claim);
                return;
            }
            Ok(access) => {
                self.unprobe(&origin);
                self.serial += 1;
                let serial = self.serial;
                let observer = (self.observers)(&origin);
                let task =
                    self.tasks.spawn(probe(origin.clone(), serial, access.clone(), observer, self.found.clone()));
                self.probes.insert(origin.clone(), Probe { serial, access, task });
                Err(Refusal::Connecting)
            }
            Err(refusal) => {
                self.unprobe(&origin);
                Err(refusal)
            }
        };
        self.registry.set(origin, created, claim, way);
    }

    fn unprobe(&mut self, origin: &Origin) {
        if let Some(probe) = self.probes.remove(origin) {
            probe.task.abort();
        }
    }

    /// Takes in what a probe found; whether anything may have changed.
    fn find(&mut self, found: Found) -> bool {
        let Found { origin, serial, what } = found;
        if self.probes.get(&origin).is_none_or(|probe| probe.serial != serial) {
            return false;
        }
        match what {
            Finding::Connected(route) => self.registry.set_way(&origin, route.map_err(Refusal::NoClient)),
            Finding::Properties(properties) => self.registry.set_properties(&origin, properties),
            Finding::Unheard(why) => self.registry.set_unheard(&origin, why),
        }
        true
    }

    /// Tells what changed; whether anybody took it.
    async fn tell(&mut self, changes: &mpsc::Sender<MemberChange>) -> bool {
        let listed = self.watches.is_subset(&self.listed);
        for judged in self.registry.judge(listed) {
            let change = change(judged);
            if changes.send(change).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// The change, which is logged too.
fn change(judged: Judged<Route>) -> MemberChange {
    match judged {
        Judged::Present(id, origin, route) => {
            info!("cluster {id} is a member ({origin})");
            MemberChange::Present(Member { id, origin, connection: route.connection })
        }
        Judged::Unusable(id, origin, refusal) => {
            if !refusal.is_passing() {
                warn!("cluster {id} can't be used ({origin}): {refusal}");
            }
            MemberChange::Unusable { id, origin, refusal }
        }
        Judged::Left(id) => {
            info!("cluster {id} is no member any more");
            MemberChange::Left(id)
        }
        Judged::Refused(origin, refusal) => {
            if let Some(refusal) = refusal.as_ref().filter(|refusal| **refusal != Refusal::Connecting) {
                warn!("{origin} gives no member: {refusal}");
            }
            MemberChange::Refused { origin, refusal }
        }
        Judged::Complete(complete) => MemberChange::Complete(complete),
    }
}
