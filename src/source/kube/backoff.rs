//! How long to wait before the next try, and how often to say why.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);

/// The longest pause while the API server is away: with the list that follows, all is right again within a second of
/// its return.
pub(super) const AWAY: Duration = Duration::from_millis(700);

/// The longest pause while it answers, but not what we want (no CRD, no permission): only a person can change that.
pub(super) const REFUSED: Duration = Duration::from_secs(5);

/// How often the same cause is logged at most.
const SAID: Duration = Duration::from_secs(60);

/// Pauses that double, with jitter, so that many replicas do not come back in step.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next pause, between half and the whole of what is due, and never longer than `most`.
    pub(super) fn pause(&mut self, most: Duration) -> Duration {
        let due = self.next.min(most);
        self.next = (due * 2).min(most.max(FIRST));
        due.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }
}

/// What was said when, by cause.
#[derive(Debug, Default)]
pub(super) struct Said(HashMap<&'static str, Instant>);

impl Said {
    /// Whether it is time to say that `cause` (again).
    pub(super) fn due(&mut self, cause: &'static str) -> bool {
        let now = Instant::now();
        match self.0.get(cause) {
            Some(at) if now.duration_since(*at) < SAID => false,
            _ => {
                self.0.insert(cause, now);
                true
            }
        }
    }

    /// All is well again: the next trouble is news.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most_and_start_over() {
        let mut backoff = Backoff::new();
        for due in [100, 200, 400, 700, 700] {
            let pause = backoff.pause(AWAY);
            let due = Duration::from_millis(due);
            assert!(pause >= due / 2 && pause <= due, "{pause:?} of {due:?}");
        }
        backoff.reset();
        assert!(backoff.pause(AWAY) <= FIRST);
    }

    #[test]
    fn pauses_come_down_when_the_most_does() {
        let mut backoff = Backoff::new();
        for _ in 0..10 {
            backoff.pause(REFUSED);
        }
        assert!(backoff.pause(AWAY) <= AWAY);
    }

    #[test]
    fn a_cause_is_said_once_a_minute_until_all_is_well() {
        let mut said = Said::default();
        assert!(said.due("forbidden") && !said.due("forbidden") && said.due("unreachable"));
        said.clear();
        assert!(said.due("forbidden"));
    }
}
