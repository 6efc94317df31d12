//! A query's bytes in, a reply's bytes out: no I/O.

use crate::answers::Store;

/// What carried the query: it decides how large the reply may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// 512 bytes, or what the client's OPT says, up to our `bufsize`.
    Udp,
    /// 65535 bytes.
    Tcp,
}

/// Why there is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Shorter than a header (`dns.md` T1).
    Short,
    /// A response, not a query (`dns.md` T2).
    Response,
}

/// What was answered, for metrics and the query log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Length of the message at the start of `out`, in bytes.
    pub len: usize,
    /// The rcode, with the upper bits of the OPT (RFC 6891 §6.1.3).
    pub rcode: u16,
    /// The query's type; 0 where no question could be read.
    pub qtype: u16,
    /// Which of `Options::zones` the name belongs to; `None` where it belongs to none or could not be read.
    pub zone: Option<u8>,
    /// Whether the query asked for DNSSEC records (DO).
    pub dnssec_ok: bool,
    /// Whether TC is set.
    pub truncated: bool,
    /// Whether a set was cut by whole endpoints because not even TCP holds it (`dns.md` Z3, Z4).
    pub cut: bool,
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
/// `out` should hold 65535 bytes for TCP and `bufsize` (at least 512) for UDP; a shorter one is a smaller limit.
/// Never panics, whatever the bytes. `rng` decides orders and subsets.
#[must_use]
pub fn respond(store: &Store, query: &[u8], transport: Transport, out: &mut [u8], rng: &mut fastrand::Rng) -> Outcome {
    let _ = (store, query, transport, out, rng);
    Outcome::Drop(DropReason::Short)
}
