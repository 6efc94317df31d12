//! A query's bytes in, a reply's bytes out: no I/O.

use super::slow::respond_slow;
use crate::answers::{Answered, Reply, Store, Transport, answer};

/// Why there is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Shorter than a header (`dns.md` T1), or no room for a reply.
    Short,
    /// A response, not a query (`dns.md` T2).
    Response,
}

/// What came of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `out` holds a reply.
    Reply(Reply),
    /// Nothing is to be sent.
    Drop(DropReason),
}

/// Answers `query`, writing the reply to the start of `out`.
///
/// `out` should hold 65535 bytes for TCP and `bufsize` for UDP; a shorter one is a smaller limit, and with less than
/// 512 nothing is answered. Never panics, whatever the bytes. `rng` decides orders and subsets.
///
/// Queries of the common shape take the path that does not allocate ([`answer`]); all others go through
/// hickory-proto, over the same lookup.
#[must_use]
#[inline]
pub fn respond(store: &Store, query: &[u8], transport: Transport, out: &mut [u8], rng: &mut fastrand::Rng) -> Outcome {
    match answer(store, query, transport, out, rng) {
        Answered::Reply(reply) => Outcome::Reply(reply),
        Answered::NotMine => respond_slow(store, query, transport, out, rng),
    }
}
