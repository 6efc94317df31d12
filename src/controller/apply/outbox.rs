//! When which job goes out to a member: the newest plan of each service, a few at a time, at a limited rate; after
//! trouble with a service that service waits, after trouble with the API server all of them (R95).

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::{Job, Target, Trouble};
use crate::controller::settings::WriteLimits;
use crate::model::Label;

/// The pauses of a service whose objects have just been changed by others: the first, the longest.
const CONFLICT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Those of a service that is refused.
const REFUSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Those of a member that does not answer, or is busy.
const AWAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// How long a service in a namespace that is going waits, unless the namespace changes before.
const NAMESPACE: Duration = Duration::from_secs(300);

/// How many jobs are kept ready. Of more, only the targets are: a member that is slow costs no memory.
const KEPT: usize = 256;

/// What a member is to be written.
#[derive(Debug)]
pub(in crate::controller) struct Outbox {
    limits: WriteLimits,
    /// The newest job of each target; `None` where it is to be planned when its turn comes.
    jobs: HashMap<Target, Option<Job>>,
    /// Targets in the order in which they came; those without a job any more are passed over.
    ready: VecDeque<Target>,
    /// Targets with a job that wait for their gate.
    gated: BTreeSet<(Instant, Target)>,
    gates: HashMap<Target, Gate>,
    running: HashSet<Target>,
    /// Nothing goes out until then.
    pause: Option<Instant>,
    outages: u32,
    /// Requests that may go out at once; below 0 after a large job.
    tokens: f64,
    filled: Instant,
}

#[derive(Debug, Clone)]
struct Gate {
    until: Instant,
    times: u32,
    /// It opens when the namespace changes.
    namespace: bool,
}

impl Outbox {
    pub(in crate::controller) fn new(limits: WriteLimits, now: Instant) -> Self {
        Self {
            limits,
            jobs: HashMap::new(),
            ready: VecDeque::new(),
            gated: BTreeSet::new(),
            gates: HashMap::new(),
            running: HashSet::new(),
            pause: None,
            outages: 0,
            tokens: burst(limits),
            filled: now,
        }
    }

    /// This is what is to be written for `target` now: `None` is nothing.
    pub(in crate::controller) fn put(&mut self, target: Target, job: Option<Job>) {
        let Some(job) = job else {
            self.jobs.remove(&target);
            return;
        };
        let kept = self.jobs.len() < KEPT || self.jobs.get(&target).is_some_and(Option::is_some);
        if self.jobs.insert(target.clone(), kept.then_some(job)).is_none() {
            match self.gates.get(&target) {
                Some(gate) => {
                    self.gated.insert((gate.until, target));
                }
                None => self.ready.push_back(target),
            }
        }
    }

    /// Whether a job of `target` is under way: what is planned meanwhile is planned again after it.
    pub(in crate::controller) fn is_running(&self, target: &Target) -> bool {
        self.running.contains(target)
    }

    /// Whether something is to be written for `target`, or is under way.
    pub(in crate::controller) fn holds(&self, target: &Target) -> bool {
        self.jobs.contains_key(target) || self.running.contains(target)
    }

    /// How many targets wait or are under way.
    pub(in crate::controller) fn len(&self) -> usize {
        self.jobs.len() + self.running.len()
    }

    /// The next target whose turn it is, and its job; without one it is to be planned.
    pub(in crate::controller) fn next(&mut self, now: Instant) -> Option<(Target, Option<Job>)> {
        while let Some((until, _)) = self.gated.first().filter(|(until, _)| *until <= now) {
            let until = *until;
            if let Some((_, target)) = self.gated.pop_first().filter(|(at, _)| *at == until) {
                self.ready.push_back(target);
            }
        }
        self.fill(now);
        if self.pause.is_some_and(|pause| pause > now)
            || self.running.len() >= self.limits.concurrent
            || self.tokens < 1.0
        {
            return None;
        }
        for _ in 0..self.ready.len() {
            let target = self.ready.pop_front()?;
            if self.running.contains(&target) {
                self.ready.push_back(target);
                continue;
            }
            if let Some(job) = self.jobs.remove(&target) {
                self.running.insert(target.clone());
                return Some((target, job));
            }
        }
        None
    }

    /// A job with so many requests goes out.
    pub(in crate::controller) fn spend(&mut self, requests: usize) {
        self.tokens -= requests as f64;
    }

    /// When the next job may go out, if one waits for a time.
    pub(in crate::controller) fn wake(&self, now: Instant) -> Option<Instant> {
        let first = if self.ready.iter().any(|it| self.jobs.contains_key(it) && !self.running.contains(it)) {
            (self.running.len() < self.limits.concurrent).then(|| {
                let lack = (1.0 - self.tokens).max(0.0) / f64::from(self.limits.per_second.max(1));
                now + Duration::from_secs_f64(lack)
            })
        } else {
            self.gated.first().map(|(until, _)| *until)
        };
        first.map(|first| self.pause.map_or(first, |pause| pause.max(first)))
    }

    /// A job has ended.
    pub(in crate::controller) fn done(&mut self, target: &Target, trouble: Option<&Trouble>, now: Instant) {
        self.running.remove(target);
        let times = self.gates.get(target).map_or(0, |gate| gate.times);
        let gate = match trouble {
            None => {
                self.gates.remove(target);
                (self.pause, self.outages) = (None, 0);
                return;
            }
            Some(Trouble::NotLeading | Trouble::Field(..) | Trouble::Gone) => return,
            Some(Trouble::Conflict(_)) => backoff(CONFLICT, times),
            Some(Trouble::Refused(_)) => backoff(REFUSED, times),
            Some(Trouble::NamespaceGone(_)) => NAMESPACE,
            Some(Trouble::Busy(_, retry)) => {
                let pause = backoff(AWAY, self.outages).max(retry.unwrap_or_default().min(AWAY.1));
                self.outages = self.outages.saturating_add(1);
                self.pause = Some(now + pause);
                backoff(AWAY, times)
            }
            Some(Trouble::Unreachable(_)) => {
                let pause = backoff(AWAY, self.outages);
                self.outages = self.outages.saturating_add(1);
                self.pause = Some(now + pause);
                pause
            }
        };
        let namespace = matches!(trouble, Some(Trouble::NamespaceGone(_)));
        let gate = Gate { until: now + gate, times: times.saturating_add(1), namespace };
        if self.jobs.contains_key(target) {
            self.gated.insert((gate.until, target.clone()));
            self.ready.retain(|ready| ready != target);
        }
        self.gates.insert(target.clone(), gate);
    }

    /// A namespace has changed: what waits for it may be tried at once.
    pub(in crate::controller) fn namespace_changed(&mut self, namespace: &Label) {
        self.open(|target, gate| gate.namespace && target.namespace() == namespace);
    }

    /// The member answers again: what waits because it did not may be tried at once.
    pub(in crate::controller) fn reached(&mut self) {
        self.pause = None;
        self.outages = 0;
    }

    fn open(&mut self, which: impl Fn(&Target, &Gate) -> bool) {
        let opened: Vec<_> =
            self.gates.iter().filter(|(target, gate)| which(target, gate)).map(|(target, _)| target.clone()).collect();
        for target in opened {
            if let Some(gate) = self.gates.remove(&target)
                && self.gated.remove(&(gate.until, target.clone()))
            {
                self.ready.push_back(target);
            }
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

/// Doubles with every time; a quarter of it is chance, so that many do not come back at once.
fn backoff((first, most): (Duration, Duration), times: u32) -> Duration {
    let whole = first.saturating_mul(1 << times.min(16)).min(most);
    whole.mul_f64(0.75 + fastrand::f64() * 0.25)
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
