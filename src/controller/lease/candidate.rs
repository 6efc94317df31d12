//! Who may write, and until when: the decisions, without a clock or an API server of their own.
//!
//! Nobody's wall clock is compared with another's. A holder counts from the moment before it sent the renewal that
//! succeeded; everybody else counts from the moment at which they first saw that renewal, which is later. So a holder
//! that stops after less than the duration has stopped before anybody can take over, whatever their clocks say.

use std::time::{Duration, Instant};

/// The shortest and the longest duration that is believed of a Lease: a holder that writes nonsense must neither be
/// robbed at once nor keep the Lease for ever.
const BELIEVED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// `spec.holderIdentity`; empty where it was given up.
    pub(super) holder: String,
    /// `spec.leaseDurationSeconds`
    pub(super) duration: Option<Duration>,
    /// `spec.renewTime`, as text: it is compared with itself alone.
    pub(super) renewed: String,
    /// `spec.leaseTransitions`
    pub(super) transitions: u64,
}

/// What to do about a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Write ourselves into it: it is ours, free, or given up for lost.
    Take,
    /// Another one holds it.
    Wait {
        /// Who.
        holder: String,
        /// The first moment at which it may count as expired, if nothing changes.
        until: Instant,
    },
}

/// Somebody who would hold the Lease.
#[derive(Debug)]
pub(super) struct Candidate {
    identity: String,
    duration: Duration,
    /// What another one wrote last, and since when we have known that.
    foreign: Option<(Record, Instant)>,
    /// Until when we may write.
    until: Option<Instant>,
}

impl Candidate {
    pub(super) fn new(identity: String, duration: Duration) -> Self {
        Self { identity, duration, foreign: None, until: None }
    }

    /// How long before the end of the duration we stop: what was sent just before has this long to arrive.
    fn margin(&self) -> Duration {
        self.duration / 4
    }

    /// What to do about what was read; `None`: there is no Lease.
    pub(super) fn judge(&mut self, read: Option<&Record>, now: Instant) -> Next {
        let Some(record) = read else {
            // Deleted, by whomever. Its holder does not know yet, and will make it anew: only we must not.
            return match self.foreign.as_ref().map(|(record, since)| (record.holder.clone(), *since + self.of(record)))
            {
                Some((holder, until)) if now < until => Next::Wait { holder, until },
                _ => self.take(),
            };
        };
        if record.holder.is_empty() || record.holder == self.identity {
            return self.take();
        }
        let since = match &self.foreign {
            Some((known, since)) if known == record => *since,
            _ => now,
        };
        self.foreign = Some((record.clone(), since));
        let until = since + self.of(record);
        if now < until { Next::Wait { holder: record.holder.clone(), until } } else { Next::Take }
    }

    fn take(&mut self) -> Next {
        self.foreign = None;
        Next::Take
    }

    /// How long the holder of this record has promised to stay away from it without renewing it.
    fn of(&self, record: &Record) -> Duration {
        record.duration.unwrap_or(self.duration).clamp(BELIEVED.0, BELIEVED.1)
    }

    /// Our name is in the Lease, by a request that was sent at `sent`.
    pub(super) fn written(&mut self, sent: Instant) {
        self.foreign = None;
        self.until = Some(sent + self.duration - self.margin());
    }

    /// Another one holds it, or we have given it up.
    pub(super) fn lost(&mut self) {
        self.until = None;
    }

    /// Until when we may write, if we may at all.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    /// When the next renewal is due, after one that was sent at `sent`.
    pub(super) fn renewal(&self, sent: Instant) -> Instant {
        sent + self.duration / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    fn record(holder: &str, renewed: &str) -> Record {
        Record { holder: holder.to_owned(), duration: Some(TEN), renewed: renewed.to_owned(), transitions: 1 }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn mcs_lease_a_free_one_is_taken_and_ours_is_renewed() {
        let now = Instant::now();
        let mut candidate = Candidate::new("a".to_owned(), TEN);
        assert_eq!(candidate.judge(None, now), Next::Take);
        assert_eq!(candidate.judge(Some(&record("", "1")), now), Next::Take);
        assert_eq!(candidate.judge(Some(&record("a", "1")), now), Next::Take, "an earlier life's");
    }

    #[test]
    fn mcs_lease_anothers_counts_from_when_we_saw_it_change_and_not_by_its_clock() {
        let begin = Instant::now();
        let mut candidate = Candidate::new("a".to_owned(), TEN);
        let wait = |until| Next::Wait { holder: "b".to_owned(), until };
        // Written an hour ago or in a year, by its own clock: that says nothing.
        let first = record("b", "1970-01-01T00:00:00Z");
        assert_eq!(candidate.judge(Some(&first), begin), wait(begin + TEN));
        assert_eq!(candidate.judge(Some(&first), begin + seconds(9)), wait(begin + TEN));
        let renewed = record("b", "2999-01-01T00:00:00Z");
        assert_eq!(candidate.judge(Some(&renewed), begin + seconds(9)), wait(begin + seconds(19)));
        assert_eq!(candidate.judge(Some(&renewed), begin + seconds(18)), wait(begin + seconds(19)));
        assert_eq!(candidate.judge(Some(&renewed), begin + seconds(19)), Next::Take);
    }

    #[test]
    fn mcs_lease_a_deleted_one_is_its_holders_until_it_would_have_expired() {
        let begin = Instant::now();
        let mut standby = Candidate::new("a".to_owned(), TEN);
        standby.judge(Some(&record("b", "1")), begin);
        let until = begin + TEN;
        assert_eq!(standby.judge(None, begin + seconds(5)), Next::Wait { holder: "b".to_owned(), until });
        assert_eq!(standby.judge(None, until), Next::Take);
        let mut holder = Candidate::new("b".to_owned(), TEN);
        holder.written(begin);
        assert_eq!(holder.judge(None, begin + seconds(5)), Next::Take, "the holder makes it anew");
    }

    #[test]
    fn mcs_lease_a_holder_stops_before_anybody_can_take_over() {
        let begin = Instant::now();
        let mut holder = Candidate::new("b".to_owned(), TEN);
        assert_eq!(holder.until(begin), None);
        holder.written(begin);
        // The other one sees the renewal a moment later at the earliest.
        let mut other = Candidate::new("a".to_owned(), TEN);
        let seen = begin + Duration::from_millis(1);
        let Next::Wait { until: free, .. } = other.judge(Some(&record("b", "1")), seen) else { panic!("it waits") };
        let until = holder.until(begin).unwrap();
        assert!(until + TEN / 5 < free, "what was sent last has time to arrive");
        assert!(holder.renewal(begin) < until, "a renewal that fails is tried again in time");
        assert_eq!(holder.until(until), None);
        holder.written(begin + seconds(3));
        assert!(holder.until(until).is_some());
        holder.lost();
        assert_eq!(holder.until(until), None);
    }

    #[test]
    fn mcs_lease_a_duration_that_makes_no_sense_is_not_believed() {
        let begin = Instant::now();
        let mut candidate = Candidate::new("a".to_owned(), TEN);
        for (written, believed) in [(0, BELIEVED.0), (86_400 * 365, BELIEVED.1), (30, seconds(30))] {
            let record = Record { duration: Some(seconds(written)), renewed: written.to_string(), ..record("b", "") };
            let until = begin + believed;
            assert_eq!(candidate.judge(Some(&record), begin), Next::Wait { holder: "b".to_owned(), until });
        }
        let silent = Record { duration: None, ..record("b", "") };
        assert_eq!(
            candidate.judge(Some(&silent), begin),
            Next::Wait { holder: "b".to_owned(), until: begin + TEN },
            "ours is as good as any"
        );
    }
}
