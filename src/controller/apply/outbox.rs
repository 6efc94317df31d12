//! When which job goes out to a member: the newest plan of each service, a few at a time, at a limited rate; after
//! trouble with a service that service waits, after trouble with the API server all of them (R95).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::gates::{AWAY, Gate, Gates, backoff};
use super::{Fingerprint, Job, Target, Trouble, is_new};
use crate::controller::settings::WriteLimits;
use crate::model::Label;

/// How many jobs are kept ready. Of more, only the targets are: a member that is slow costs no memory.
const KEPT: usize = 256;

/// Of how many turns one goes to a job that only writes statuses, where others wait too: an outage changes the words on
/// every export at once, and pods that come and go must not wait behind them.
const STATUS_TURN: u64 = 8;

/// Errors of the API server for so many services, and no success between them, are trouble of the API server itself.
const BROKEN: usize = 5;

/// What a member is to be written.
#[derive(Debug)]
pub(in crate::controller) struct Outbox {
    limits: WriteLimits,
    waiting: HashMap<Target, Waiting>,
    /// What may go out, in the order in which it came: jobs, and jobs that only write statuses.
    ready: [BTreeMap<u64, Target>; 2],
    /// What waits for its gate.
    gated: BTreeSet<(Instant, Target)>,
    gates: Gates,
    /// What is under way, with the fingerprint of the job.
    running: HashMap<Target, Fingerprint>,
    /// Counts what came, and what went out.
    turns: (u64, u64),
    /// Nothing goes out until then.
    pause: Option<Instant>,
    outages: u32,
    /// Services that the API server answered with an error of its own since the last success.
    broken: HashSet<Target>,
    /// Requests that may go out at once; below 0 after a large job.
    tokens: f64,
    filled: Instant,
}

/// A target with something to be written.
#[derive(Debug)]
struct Waiting {
    /// The newest job; `None` where it is to be planned when its turn comes.
    job: Option<Job>,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Ready(usize, u64),
    Gated(Instant),
}

impl Outbox {
    pub(in crate::controller) fn new(limits: WriteLimits, now: Instant) -> Self {
        Self {
            limits,
            waiting: HashMap::new(),
            ready: [BTreeMap::new(), BTreeMap::new()],
            gated: BTreeSet::new(),
            gates: Gates::default(),
            running: HashMap::new(),
            turns: (0, 0),
            pause: None,
            outages: 0,
            broken: HashSet::new(),
            tokens: burst(limits),
            filled: now,
        }
    }

    /// This is what is to be written for `target` now: `None` is nothing. While a job of it is under way, it is not taken:
    /// after that it has to be planned again anyway.
    pub(in crate::controller) fn put(&mut self, target: Target, job: Option<Job>) {
        if self.is_running(&target) {
            return;
        }
        let before = self.waiting.remove(&target);
        let Some(job) = job else {
            if let Some(before) = before {
                self.take(&target, before.place);
                // There is nothing left to be refused.
                self.gates.remove(&target);
            }
            return;
        };
        let lane = usize::from(job.is_status());
        let place = match before.as_ref().map(|before| before.place) {
            Some(Place::Ready(was, _)) if was > lane => {
                before.iter().for_each(|before| self.take(&target, before.place));
                self.place(&target, lane)
            }
            Some(place) => place,
            None => self.place(&target, lane),
        };
        let kept = self.waiting.len() < KEPT || before.is_some_and(|before| before.job.is_some());
        self.waiting.insert(target, Waiting { job: kept.then_some(job), place });
    }

    /// Finds a place for a target that has none.
    fn place(&mut self, target: &Target, lane: usize) -> Place {
        if let Some(gate) = self.gates.get(target) {
            self.gated.insert((gate.until, target.clone()));
            return Place::Gated(gate.until);
        }
        self.turns.0 += 1;
        self.ready[lane.min(1)].insert(self.turns.0, target.clone());
        Place::Ready(lane.min(1), self.turns.0)
    }

    fn take(&mut self, target: &Target, place: Place) {
        match place {
            Place::Ready(lane, turn) => drop(self.ready[lane].remove(&turn)),
            Place::Gated(until) => drop(self.gated.remove(&(until, target.clone()))),
        }
    }

    /// Whether a job of `target` is under way: what is planned meanwhile is planned again after it.
    pub(in crate::controller) fn is_running(&self, target: &Target) -> bool {
        self.running.contains_key(target)
    }

    /// Whether any job is under way.
    pub(in crate::controller) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether something is to be written for `target`, or is under way.
    pub(in crate::controller) fn holds(&self, target: &Target) -> bool {
        self.waiting.contains_key(target) || self.is_running(target)
    }

    /// How many targets wait or are under way.
    pub(in crate::controller) fn len(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// The next target whose turn it is, and its job; without one it is to be planned.
    pub(in crate::controller) fn next(&mut self, now: Instant) -> Option<(Target, Option<Job>)> {
        while self.gated.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, target)) = self.gated.pop_first() else { break };
            if let Some(waiting) = self.waiting.get_mut(&target) {
                let lane = usize::from(waiting.job.as_ref().is_some_and(Job::is_status));
                self.turns.0 += 1;
                waiting.place = Place::Ready(lane, self.turns.0);
                self.ready[lane].insert(self.turns.0, target);
            }
        }
        self.fill(now);
        let paused = self.pause.is_some_and(|pause| pause > now);
        if paused || self.running.len() >= self.limits.concurrent || self.tokens < 1.0 {
            return None;
        }
        self.turns.1 += 1;
        let first = usize::from(self.turns.1.is_multiple_of(STATUS_TURN));
        let [jobs, statuses] = &mut self.ready;
        let lanes = if first == 0 { [jobs, statuses] } else { [statuses, jobs] };
        let (_, target) = lanes.into_iter().find_map(BTreeMap::pop_first)?;
        let job = self.waiting.remove(&target)?.job;
        self.running.insert(target.clone(), Fingerprint::default());
        Some((target, job))
    }

    /// This job goes out.
    pub(in crate::controller) fn started(&mut self, job: &Job) {
        // A check that nothing is there for each object that is made, and the write itself.
        self.tokens -= job.changes.iter().map(|change| if is_new(&change.action) { 2.0 } else { 1.0 }).sum::<f64>();
        self.running.insert(job.target.clone(), job.fingerprint());
    }

    /// There was nothing to be written after all.
    pub(in crate::controller) fn dropped(&mut self, target: &Target) {
        self.running.remove(target);
    }

    /// When the next job may go out, if one waits for a time.
    pub(in crate::controller) fn wake(&self, now: Instant) -> Option<Instant> {
        let first = if self.ready.iter().any(|lane| !lane.is_empty()) {
            (self.running.len() < self.limits.concurrent).then(|| {
                let lack = (1.0 - self.tokens).max(0.0) / f64::from(self.limits.per_second.max(1));
                now + Duration::from_secs_f64(lack)
            })
        } else {
            self.gated.first().map(|(until, _)| *until)
        };
        first.map(|first| self.pause.map_or(first, |pause| pause.max(first)))
    }

    /// A job has ended; `wrote` is whether anything was written. Returns how often the same has been written in a short
    /// time, where that is too often: somebody changes it back.
    pub(in crate::controller) fn done(
        &mut self,
        target: &Target,
        trouble: Option<&Trouble>,
        wrote: bool,
        now: Instant,
    ) -> Option<u32> {
        let fingerprint = self.running.remove(target)?;
        let Some(trouble) = trouble else {
            self.works();
            let again = wrote.then(|| self.gates.wrote(target, fingerprint, now)).flatten();
            self.replace(target);
            return again;
        };
        match trouble {
            Trouble::Unreachable(_) => self.pause(now, Duration::ZERO),
            Trouble::Busy(_, retry) => self.pause(now, retry.unwrap_or_default()),
            Trouble::Broken(_) => {
                self.broken.insert(target.clone());
                if self.broken.len() >= BROKEN {
                    self.pause(now, Duration::ZERO);
                }
            }
            Trouble::Refused(_) | Trouble::Conflict(_) | Trouble::Field(..) => self.works(),
            Trouble::NamespaceGone(_) | Trouble::Kept(_) | Trouble::NotLeading | Trouble::Gone => {}
        }
        self.gates.failed(target, trouble, now);
        self.replace(target);
        None
    }

    fn pause(&mut self, now: Instant, least: Duration) {
        let pause = backoff(AWAY, self.outages).max(least.min(AWAY.1));
        self.outages = self.outages.saturating_add(1);
        self.pause = Some(now + pause);
    }

    /// The API server answers: what waits because it did not may be tried.
    fn works(&mut self) {
        self.broken.clear();
        if self.outages > 0 {
            self.reached();
        }
    }

    /// Puts a target where its gate, as it is now, wants it.
    fn replace(&mut self, target: &Target) {
        if let Some(waiting) = self.waiting.remove(target) {
            self.take(target, waiting.place);
            self.put(target.clone(), waiting.job);
        }
    }

    /// A namespace has changed: what waits for it may be tried at once.
    pub(in crate::controller) fn namespace_changed(&mut self, namespace: &Label) {
        self.open(|target, gate| gate.namespace && target.namespace() == namespace);
    }

    /// The member answers again: what waits because it did not may be tried at once.
    pub(in crate::controller) fn reached(&mut self) {
        self.pause = None;
        self.outages = 0;
        self.open(|_, gate| gate.away);
    }

    fn open(&mut self, which: impl Fn(&Target, &Gate) -> bool) {
        for target in self.gates.open(which) {
            self.replace(&target);
        }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * f64::from(self.limits.per_second)).min(burst(self.limits));
    }
}

/// What may go out at once after a quiet time: two seconds' worth.
fn burst(limits: WriteLimits) -> f64 {
    f64::from(limits.per_second.max(1)) * 2.0
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
