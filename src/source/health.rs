//! How each watch is doing: written by sources, read by readiness, metrics and the staleness clock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::Resource;

/// Why a watch is not live. `Display` says what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The API server does not know the resource (`dns.md` L7, L17).
    CrdMissing {
        /// The CRD's name.
        crd: &'static str,
    },
    /// The API server refuses a verb (`dns.md` L8).
    Forbidden {
        /// `list` or `watch`.
        verb: &'static str,
        /// `<plural>.<group>`.
        resource: String,
        /// What the API server said.
        message: String,
    },
    /// Our credentials are not accepted.
    Unauthorized {
        /// What the API server said.
        message: String,
    },
    /// No usable answer from the API server.
    Unreachable {
        /// The error.
        message: String,
    },
    /// A folder whose newest state can't be read; the last good one is served.
    BrokenFile {
        /// File, line and remedy.
        message: String,
    },
}

impl Trouble {
    /// A short word: the value of the label `reason` of `namesake_watch_errors_total`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::CrdMissing { .. } => "crd_missing",
            Self::Forbidden { .. } => "forbidden",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Unreachable { .. } => "unreachable",
            Self::BrokenFile { .. } => "broken_file",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CrdMissing { crd } => {
                let whose = if crd.starts_with("service") { "the CRDs of mcs-api" } else { "it" };
                write!(f, "the CRD {crd} is not installed; install {whose}, it is picked up by itself")
            }
            Self::Forbidden { verb, resource, message } => {
                write!(
                    f,
                    "not allowed to {verb} {resource}; grant it in the ClusterRole, it is tried again ({message})"
                )
            }
            Self::Unauthorized { message } => {
                write!(f, "the API server does not accept our credentials; renew the token or kubeconfig ({message})")
            }
            Self::Unreachable { message } => write!(f, "the API server can't be reached: {message}"),
            Self::BrokenFile { message } => f.write_str(message),
        }
    }
}

/// What a watch does at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchPhase {
    /// Connecting, or reading its first list.
    Starting,
    /// Delivering changes.
    Live,
    /// Not delivering, and why.
    Down(Trouble),
}

/// One watch, as seen now.
#[derive(Debug, Clone)]
pub struct WatchStatus {
    /// What it does.
    pub phase: WatchPhase,
    /// Whether its list was complete once.
    pub synced: bool,
    /// How long ago the API server last proved that we are up to date: an event, a bookmark, a new watch or a
    /// complete list. `None` before the first.
    pub quiet_for: Option<Duration>,
    /// How often it was in trouble, by [`Trouble::reason`].
    pub troubles: BTreeMap<&'static str, u64>,
}

impl WatchStatus {
    /// How often it was in trouble.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.troubles.values().sum()
    }
}

#[derive(Debug)]
struct Watch {
    needed: bool,
    phase: WatchPhase,
    synced: bool,
    proved: Option<Instant>,
    troubles: BTreeMap<&'static str, u64>,
}

impl Watch {
    fn new(needed: bool) -> Self {
        Self { needed, phase: WatchPhase::Starting, synced: false, proved: None, troubles: BTreeMap::new() }
    }
}

/// The health of every watch of a source; `R` is what is watched.
#[derive(Debug)]
pub struct Health<R: Copy + Ord = Resource> {
    watches: Mutex<BTreeMap<R, Watch>>,
}

impl Health {
    /// Both watches starting; `slices` says whether slices are needed at all (not with `no_endpoints`).
    #[must_use]
    pub fn new(slices: bool) -> Self {
        let watches = Resource::ALL.map(|resource| (resource, Watch::new(slices || resource == Resource::Imports)));
        Self { watches: Mutex::new(watches.into()) }
    }
}

impl<R: Copy + Ord> Health<R> {
    /// Watches of all of these, starting.
    #[must_use]
    pub fn of(needed: &[R]) -> Self {
        Self { watches: Mutex::new(needed.iter().map(|resource| (*resource, Watch::new(true))).collect()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<R, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, resource: R, f: impl FnOnce(&mut Watch) -> T) -> T {
        f(self.lock().entry(resource).or_insert_with(|| Watch::new(false)))
    }

    /// An event, a bookmark, a new watch or a complete list: as of now we are up to date.
    pub fn alive(&self, resource: R) {
        self.with(resource, |w| {
            w.phase = WatchPhase::Live;
            w.proved = Some(Instant::now());
        });
    }

    /// The watch is in trouble. What it delivered before stays.
    pub fn down(&self, resource: R, trouble: Trouble) {
        self.with(resource, |w| {
            *w.troubles.entry(trouble.reason()).or_default() += 1;
            w.phase = WatchPhase::Down(trouble);
        });
    }

    /// A complete list has been taken in.
    pub fn mark_synced(&self, resource: R) {
        self.with(resource, |w| w.synced = true);
    }

    /// How one watch is doing.
    #[must_use]
    pub fn status(&self, resource: R) -> WatchStatus {
        self.with(resource, |w| WatchStatus {
            phase: w.phase.clone(),
            synced: w.synced,
            quiet_for: w.proved.map(|at| at.elapsed()),
            troubles: w.troubles.clone(),
        })
    }

    /// The resources that are watched.
    #[must_use]
    pub fn needed(&self) -> Vec<R> {
        self.lock().iter().filter(|(_, w)| w.needed).map(|(resource, _)| *resource).collect()
    }

    /// Whether every needed list was complete once.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.lock().values().all(|w| w.synced || !w.needed)
    }

    /// How old the data may be: the longest time that a needed watch has been without proof of being up to date.
    /// Zero before the first list.
    #[must_use]
    pub fn staleness(&self) -> Duration {
        let watches = self.lock();
        watches.values().filter(|w| w.needed).filter_map(|w| w.proved).map(|at| at.elapsed()).max().unwrap_or_default()
    }
}
