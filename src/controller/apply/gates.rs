//! How long each service waits after trouble, or after it was written too often.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{Fingerprint, Target, Trouble};

/// Pauses: the first, and the longest; each is twice the one before.
pub(super) type Pauses = (Duration, Duration);

/// Those of a service whose objects have just been changed by others.
const CONFLICT: Pauses = (Duration::from_millis(100), Duration::from_secs(10));

/// Those of a service that is refused, or that somebody keeps changing back.
const REFUSED: Pauses = (Duration::from_secs(1), Duration::from_secs(60));

/// Those of a member that does not answer, or is busy.
pub(super) const AWAY: Pauses = (Duration::from_millis(500), Duration::from_secs(30));

/// How long a service in a namespace that is going waits, unless the namespace changes before.
const NAMESPACE: Duration = Duration::from_secs(300);

/// How long a namespace that is not empty is left alone.
const KEPT: Duration = Duration::from_secs(3600);

/// So often, within this time, the same may be written: beyond that somebody changes it back.
const DUEL: (u32, Duration) = (5, Duration::from_secs(60));

/// The gates of one member's services.
#[derive(Debug, Default)]
pub(super) struct Gates {
    gates: HashMap<Target, Gate>,
    /// What was written last, statuses and the rest apart: its fingerprint, when that was first so, and how often since.
    last: HashMap<(Target, bool), (u64, Instant, u32)>,
}

/// Why and how long one service waits.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) until: Instant,
    times: u32,
    /// It opens when the namespace changes.
    pub(super) namespace: bool,
    /// It opens when the member answers.
    pub(super) away: bool,
}

impl Gates {
    pub(super) fn get(&self, target: &Target) -> Option<&Gate> {
        self.gates.get(target)
    }

    pub(super) fn remove(&mut self, target: &Target) {
        self.gates.remove(target);
    }

    /// A job was refused, or not answered.
    pub(super) fn failed(&mut self, target: &Target, trouble: &Trouble, now: Instant) {
        let times = self.gates.get(target).map_or(0, |gate| gate.times);
        let pause = match trouble {
            Trouble::NotLeading | Trouble::Field(..) | Trouble::Gone => return,
            Trouble::Conflict(_) => backoff(CONFLICT, times),
            Trouble::Refused(_) => backoff(REFUSED, times),
            Trouble::NamespaceGone(_) => NAMESPACE,
            Trouble::Kept(_) => KEPT,
            Trouble::Busy(..) | Trouble::Broken(_) | Trouble::Unreachable(_) => backoff(AWAY, times),
        };
        let gate = Gate {
            until: now + pause,
            times: times.saturating_add(1),
            namespace: matches!(trouble, Trouble::NamespaceGone(_)),
            away: matches!(trouble, Trouble::Busy(..) | Trouble::Unreachable(_)),
        };
        self.gates.insert(target.clone(), gate);
    }

    /// A job was written. Where that is the same job as so often in the last minute, the next one waits; how often.
    pub(super) fn wrote(&mut self, target: &Target, fingerprint: Fingerprint, now: Instant) -> Option<u32> {
        self.gates.remove(target);
        if self.last.len() > 1000 {
            self.last.retain(|_, (_, at, _)| now.saturating_duration_since(*at) < DUEL.1);
        }
        let Fingerprint { status, hash } = fingerprint;
        let last = self.last.entry((target.clone(), status)).or_insert((hash, now, 0));
        // Who changes it back slowly, because we are slow by now, is still at it.
        let window = DUEL.1 * (1 + last.2.saturating_sub(DUEL.0));
        if last.0 != hash || now.saturating_duration_since(last.1) > window {
            *last = (hash, now, 0);
        }
        last.2 = last.2.saturating_add(1);
        let times = last.2.checked_sub(DUEL.0 + 1)?;
        let until = now + backoff(REFUSED, times);
        self.gates.insert(target.clone(), Gate { until, times: 0, namespace: false, away: false });
        Some(last.2)
    }

    /// Opens some gates; whose they were.
    pub(super) fn open(&mut self, which: impl Fn(&Target, &Gate) -> bool) -> Vec<Target> {
        let opened: Vec<_> =
            self.gates.iter().filter(|(target, gate)| which(target, gate)).map(|(t, _)| t.clone()).collect();
        opened.iter().for_each(|target| self.remove(target));
        opened
    }
}

/// Doubles with every time; a quarter of it is chance, so that many do not come back at once.
pub(super) fn backoff((first, most): Pauses, times: u32) -> Duration {
    let whole = first.saturating_mul(1 << times.min(16)).min(most);
    whole.mul_f64(0.75 + fastrand::f64() * 0.25)
}
