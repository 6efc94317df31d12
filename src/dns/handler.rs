//! One query, one reply, counted and logged: what UDP and TCP have in common.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{DropReason, Outcome, QueryLog, QueryRecord, Reply, Responder, Transport};
use crate::metrics::{Answered, DnsShard, Drop};

/// Length of a message's header.
pub(super) const HEADER: usize = 12;

/// SERVFAIL (RFC 1035 §4.1.1).
const SERVFAIL: u8 = 2;

/// Answers, counts and logs; a worker or listener has one.
pub(super) struct Handler<R> {
    responder: Arc<R>,
    shard: Arc<DnsShard>,
    log: Option<Arc<dyn QueryLog>>,
    transport: Transport,
}

impl<R: Responder> Handler<R> {
    pub(super) fn new(
        responder: Arc<R>,
        shard: Arc<DnsShard>,
        log: Option<Arc<dyn QueryLog>>,
        transport: Transport,
    ) -> Self {
        Self { responder, shard, log, transport }
    }

    /// Answers `query` into the start of `out`; `None` where nothing is to be sent. A panic below costs this query alone
    /// (`dns.md` T19). What comes of it is to be told to [`Self::answered`].
    #[inline]
    pub(super) fn respond(&self, query: &[u8], out: &mut [u8], rng: &mut fastrand::Rng) -> Option<Reply> {
        // Unwind safety: `out` is overwritten from its start, and any state of `rng` is a good one.
        let guarded = catch_unwind(AssertUnwindSafe(|| self.responder.respond(query, self.transport, out, rng)));
        let outcome = guarded.unwrap_or_else(|_| {
            self.shard.panicked();
            bare_servfail(query, out)
        });
        match outcome {
            Outcome::Reply(reply) => Some(reply),
            Outcome::Drop(why) => {
                self.shard.dropped(match why {
                    DropReason::Short => Drop::Short,
                    DropReason::Response => Drop::Response,
                });
                None
            }
        }
    }

    /// Counts and logs what was answered to `query` from `peer`: `bytes`, finished `duration` after it arrived.
    #[inline]
    pub(super) fn answered(&self, reply: Reply, query: &[u8], peer: SocketAddr, bytes: &[u8], duration: Duration) {
        self.shard.answered(&Answered {
            zone: reply.zone,
            qtype: reply.qtype,
            rcode: reply.rcode,
            ipv6: peer.is_ipv6(),
            query_len: query.len(),
            reply_len: bytes.len(),
            dnssec_ok: reply.dnssec_ok,
            cut: reply.cut,
            duration,
        });
        if let Some(log) = &self.log {
            log.record(&QueryRecord { peer, transport: self.transport, query, reply: bytes, duration });
        }
    }

    /// Counts what got no reply.
    pub(super) fn dropped(&self, why: Drop) {
        self.shard.dropped(why);
    }
}

/// The header of a SERVFAIL to `query` and nothing else: a forwarder's cache would keep more (`dns.md` F4).
fn bare_servfail(query: &[u8], out: &mut [u8]) -> Outcome {
    let (Some(asked), Some(header)) = (query.first_chunk::<HEADER>(), out.first_chunk_mut::<HEADER>()) else {
        return Outcome::Drop(DropReason::Short);
    };
    let [id_high, id_low, flags, ..] = *asked;
    // QR set; opcode and RD as asked; AA, TC and all counts zero.
    *header = [id_high, id_low, 0x80 | (flags & 0x79), SERVFAIL, 0, 0, 0, 0, 0, 0, 0, 0];
    Outcome::Reply(Reply {
        len: HEADER,
        rcode: u16::from(SERVFAIL),
        qtype: 0,
        zone: None,
        dnssec_ok: false,
        truncated: false,
        cut: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_t19_a_panic_becomes_a_bare_servfail() {
        let query = [0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1];
        let mut out = [0xff; 64];
        let Outcome::Reply(reply) = bare_servfail(&query, &mut out) else {
            panic!("a whole header is answered");
        };
        assert_eq!(reply.len, 12);
        assert_eq!(out[..12], [0x12, 0x34, 0x81, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bare_servfail(&query[..11], &mut out), Outcome::Drop(DropReason::Short));
    }
}
