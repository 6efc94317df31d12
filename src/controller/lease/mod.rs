//! Who writes, where several controllers run: the one whose name is in a Lease of the hub.
//!
//! ```text
//!  API server ◄── read, write if unchanged ── Lease ◄─► Candidate (pure) ──► leading: true | false
//! ```
//!
//! The Lease is data that anybody can read: `kubectl get lease -n namesake` says who leads. Losing it ends writing, not
//! reading: whoever stands by follows every member, so that it can go on at once.
//!
//! * The holder renews it at a third of its duration, and stops writing when three quarters have passed without success:
//!   before anybody may take over, and early enough for the last request to arrive.
//! * Others look at it twice a second. They take over when it has not changed for its whole duration, as *they* saw it,
//!   or at once when it was given up.
//! * Every write asks that nothing was written meanwhile, so of two that try at once one fails.

mod api;
mod candidate;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use self::api::{LEASES, collection, micro, path};
use self::api::{Lease, Problem};
use self::candidate::{Candidate, Next};
use super::status::{Status, Writing};
use super::{LeaseSettings, settings::MIN_LEASE};
use crate::source::kube::Connection;

/// How often one who stands by looks, at most.
const LOOK: Duration = Duration::from_millis(500);

/// How long after a failure it is tried again, at most.
const AGAIN: Duration = Duration::from_secs(1);

/// How long one request may take, at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the same trouble is logged.
const SAID: Duration = Duration::from_secs(60);

/// Takes part in the election until `stop`, which is for after the last write: then the Lease is given up, so that
/// another one takes over at once. `leading` says whether this process may write; so does `status`.
pub async fn run(
    connection: Connection,
    settings: LeaseSettings,
    status: Arc<Status>,
    leading: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let settings = LeaseSettings { duration: settings.duration.max(MIN_LEASE), ..settings };
    let elector = Elector {
        candidate: Candidate::new(settings.identity.clone(), settings.duration),
        lease: Lease::new(connection, settings.clone()),
        settings,
        status,
        leading,
        held: None,
        said: None,
    };
    elector.run(stop).await;
}

struct Elector {
    settings: LeaseSettings,
    lease: Lease,
    candidate: Candidate,
    status: Arc<Status>,
    leading: watch::Sender<bool>,
    /// The Lease as we wrote it last: what a renewal is written over.
    held: Option<Value>,
    /// The last trouble that was logged, and when.
    said: Option<(Problem, Instant)>,
}

/// What came of a turn.
enum Turn {
    /// It is ours, by a request sent at that time.
    Held(Instant),
    /// It is that one's, until that time at least.
    Foreign(String, Instant),
}

impl Elector {
    async fn run(mut self, stop: CancellationToken) {
        self.leading.send_replace(false);
        self.status.lock().writing = Writing::Standby(None);
        while !stop.is_cancelled() {
            let next = tokio::select! {
                () = stop.cancelled() => break,
                next = self.turn() => next,
            };
            self.rest(next, &stop).await;
        }
        self.step_down(None);
        self.release().await;
    }

    /// Looks, and writes where that is due; when to do so again.
    async fn turn(&mut self) -> Instant {
        let now = Instant::now();
        let limit = match self.candidate.until(now) {
            Some(until) => (until - now).min(PATIENCE).min(self.settings.duration / 3),
            None => PATIENCE,
        };
        let turn = match timeout(limit, self.look()).await {
            Ok(turn) => turn,
            Err(_) => Err(Problem::Unreachable("no answer in time".to_owned())),
        };
        match turn {
            Ok(Turn::Held(sent)) => {
                self.candidate.written(sent);
                // Not so where the answer was long in coming, or we were halted meanwhile.
                if let Some(until) = self.candidate.until(Instant::now()) {
                    self.lead(until);
                }
                self.candidate.renewal(sent)
            }
            Ok(Turn::Foreign(holder, until)) => {
                self.candidate.lost();
                self.follow(holder);
                // Not in step with the others that stand by.
                let look = LOOK.min(self.settings.duration / 6).mul_f64(0.75 + fastrand::f64() / 4.0);
                (Instant::now() + look).min(until.max(Instant::now()))
            }
            Err(problem) => {
                self.trouble(&problem);
                Instant::now() + AGAIN.min(self.settings.duration / 15)
            }
        }
    }

    async fn look(&mut self) -> Result<Turn, Problem> {
        // Taken out: whatever ends this here or there, the next turn reads it again.
        let mut known = self.held.take();
        let waits = known.is_none() && self.candidate.until(Instant::now()).is_none();
        loop {
            let before = match known.take() {
                Some(held) => Some(held),
                None => {
                    let read = self.lease.read(waits).await?;
                    let record = read.as_ref().map(api::record);
                    match self.candidate.judge(record.as_ref(), Instant::now()) {
                        Next::Take => read,
                        Next::Wait { holder, until } => return Ok(Turn::Foreign(holder, until)),
                    }
                }
            };
            let sent = Instant::now();
            match self.lease.write(before, &self.settings.identity).await {
                Ok(written) => {
                    self.held = Some(written);
                    return Ok(Turn::Held(sent));
                }
                // Read again, this time what is really there.
                Err(Problem::Conflict) if !waits => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Waits until `next`; who leads stops leading in time.
    async fn rest(&mut self, next: Instant, stop: &CancellationToken) {
        let until = self.candidate.until(Instant::now());
        if until.is_none() {
            self.expire();
        }
        let wake = until.map_or(next, |until| until.min(next));
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep_until(wake.into()) => {}
        }
        if self.candidate.until(Instant::now()).is_none() {
            self.expire();
        }
    }

    fn expire(&mut self) {
        if *self.leading.borrow() {
            tracing::warn!(
                "writing is suspended: the Lease {} could not be renewed in time{}",
                self.place(),
                self.said.as_ref().map(|(said, _)| format!(" ({said})")).unwrap_or_default()
            );
            self.step_down(None);
        }
    }

    fn lead(&mut self, until: Instant) {
        self.well();
        {
            let mut view = self.status.lock();
            (view.writing, view.until, view.lease) = (Writing::Leader, Some(until), None);
        }
        if !self.leading.send_replace(true) {
            tracing::info!("leading: the Lease {} is ours, as {}", self.place(), self.settings.identity);
        }
    }

    fn follow(&mut self, holder: String) {
        self.well();
        let known = matches!(&self.status.lock().writing, Writing::Standby(Some(known)) if *known == holder);
        if !known {
            tracing::info!("standing by: the Lease {} is {holder}'s", self.place());
        }
        self.step_down(Some(holder));
        self.status.lock().lease = None;
    }

    /// Ends writing. The first word is that to the writers.
    fn step_down(&mut self, holder: Option<String>) {
        self.leading.send_replace(false);
        let mut view = self.status.lock();
        (view.writing, view.until) = (Writing::Standby(holder), None);
    }

    fn well(&mut self) {
        if self.said.take().is_some() {
            tracing::info!("the Lease {} can be read and written again", self.place());
        }
    }

    fn trouble(&mut self, problem: &Problem) {
        // Two that tried at once: the next look says who was first.
        if *problem == Problem::Conflict {
            return;
        }
        if self.said.as_ref().is_none_or(|(said, at)| !said.is_like(problem) || at.elapsed() > SAID) {
            tracing::warn!("the Lease {}: {problem}", self.place());
            self.said = Some((problem.clone(), Instant::now()));
        }
        self.status.lock().lease = Some(problem.to_string());
    }

    /// Gives the Lease up, so that nobody has to wait for it to expire.
    async fn release(&mut self) {
        let held = match self.held.take() {
            Some(held) => Some(held),
            None => timeout(AGAIN, self.lease.read(false)).await.ok().and_then(Result::ok).flatten(),
        };
        let Some(held) = held.filter(|held| api::record(held).holder == self.settings.identity) else { return };
        let failed = match timeout(AGAIN, self.lease.write(Some(held), "")).await {
            Ok(Ok(_)) => return tracing::info!("gave up the Lease {}", self.place()),
            Ok(Err(problem)) => problem.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!("the Lease {} was not given up, it will expire: {failed}", self.place());
    }

    fn place(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.name)
    }
}
