//! What came of a load: how many were asked and answered, how well, and how fast.

use std::time::Duration;

use crate::histogram::Histogram;
use crate::query::{HEADER, Query};

/// Counts of one run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Queries sent.
    pub sent: u64,
    /// Answers to them, right or wrong.
    pub answered: u64,
    /// Queries without an answer within the client's [patience](crate::udp::Options::patience).
    pub lost: u64,
    /// Answers that came after that, or twice.
    pub late: u64,
    /// Answers that are not what the query's answer is: another question, rcode or number of records.
    pub wrong: u64,
    /// Queries that were due and could not be sent: everything was outstanding or the send buffer was full.
    pub unsent: u64,
    /// Answers that were cut short.
    pub truncated: u64,
    /// Answers by rcode; the last is for all from 7 on.
    pub rcodes: [u64; 8],
    /// Octets of all answers.
    pub octets: u64,
    /// TCP connections that the server closed.
    pub closed: u64,
    /// How long was asked: answers that came a little after it count.
    pub elapsed: Duration,
    /// From when a query was due to its answer.
    pub latency: Histogram,
}

impl Tally {
    /// Takes an answer in. `strict` compares what it says with what was asked; an echo says nothing.
    pub fn answer(&mut self, reply: &[u8], query: Query<'_>, strict: bool, nanos: u64) {
        self.answered += 1;
        self.octets += reply.len() as u64;
        self.latency.add(nanos);
        let Some(header) = reply.first_chunk::<HEADER>() else {
            self.wrong += 1;
            return;
        };
        self.rcodes[usize::from(header[3] & 15).min(7)] += 1;
        self.truncated += u64::from(header[2] & 2 != 0);
        let is_response = header[2] & 0x80 != 0;
        let same = reply.get(HEADER..query.question_end) == query.packet.get(HEADER..query.question_end);
        if !is_response || !same || strict && !query.expected.fits(header) {
            self.wrong += 1;
        }
    }

    /// Answers a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// What a person wants to see of it, in one paragraph.
    #[must_use]
    pub fn describe(&self) -> String {
        let us = |share| self.latency.quantile(share).as_secs_f64() * 1e6;
        let rcodes: Vec<String> = (["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "6", "others"]
            .iter())
        .zip(self.rcodes)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
        format!(
            "{} sent, {} answered ({:.0}/s), {} lost, {} late, {} wrong, {} unsent, {} cut short, {} connections closed\n\
             rcodes: {}; {:.0} octets an answer\n\
             latency us: p50 {:.0}, p99 {:.0}, p99.9 {:.0}, longest {:.0}",
            self.sent,
            self.answered,
            self.rate(),
            self.lost,
            self.late,
            self.wrong,
            self.unsent,
            self.truncated,
            self.closed,
            rcodes.join(", "),
            self.octets as f64 / self.answered.max(1) as f64,
            us(0.5),
            us(0.99),
            us(0.999),
            us(1.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Asked, Kind, Mix, Pool};
    use crate::set::Set;

    #[test]
    fn an_echo_is_right_unless_one_is_strict_and_another_question_never_is() {
        let asked = Asked { set: Set::of(100), mix: Mix::Only(Kind::ServiceA), edns: true, skew: false };
        let pool = Pool::new(asked, 2);
        let query = pool.get(0);
        let mut reply = query.packet.to_vec();
        let wrong = |reply: &[u8], strict| {
            let mut tally = Tally::default();
            tally.answer(reply, query, strict, 1);
            tally.wrong
        };
        assert_eq!(wrong(&reply, false), 1, "a query is no answer");
        reply[2] |= 0x80;
        assert_eq!((wrong(&reply, false), wrong(&reply, true)), (0, 1));
        reply[HEADER + 2] ^= 1;
        assert_eq!(wrong(&reply, false), 1, "another name");
    }
}
