//! The fast path: bytes in, bytes out, for queries of the common shape.

use super::edns::{self, Ede};
use super::lookup::{Verdict, lookup};
use super::name::Folded;
use super::query::{HEADER, Query, Shape};
use super::rrtype;
use super::store::Store;
use super::wire::{Context, Writer, Written};

/// What carried the query: it decides how large the reply may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// 512 bytes, or what the client's OPT says, up to our `bufsize`.
    Udp,
    /// 65535 bytes.
    Tcp,
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

/// What the fast path made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// `out` holds a reply.
    Reply(Reply),
    /// Not the common shape: see [`dns::respond`](crate::dns::respond).
    NotMine,
}

/// Rcodes (RFC 1035 §4.1.1, RFC 6895).
pub mod rcode {
    /// No error.
    pub const NOERROR: u16 = 0;
    /// The query could not be read.
    pub const FORMERR: u16 = 1;
    /// The data is not there (yet).
    pub const SERVFAIL: u16 = 2;
    /// The name does not exist.
    pub const NXDOMAIN: u16 = 3;
    /// Not done here.
    pub const NOTIMP: u16 = 4;
    /// Not answered for this name, class or client.
    pub const REFUSED: u16 = 5;
    /// EDNS version unknown (RFC 6891 §6.1.3).
    pub const BADVERS: u16 = 16;
}

/// The largest reply over UDP to a client that states no size (RFC 1035 §4.2.1).
pub const UDP_PLAIN: u16 = 512;

/// Room for any reply without records: header, the longest question, a negative SOA, OPT with an extended error.
pub const MIN_OUT: usize = HEADER + 255 + 4 + 54 + 17;

/// Answers a query of the common shape without allocating.
///
/// `out` should hold 65535 bytes for TCP and `bufsize` for UDP; a shorter one is a smaller limit, and one of less
/// than [`MIN_OUT`] is not used at all.
#[must_use]
#[inline]
pub fn answer(
    store: &Store,
    message: &[u8],
    transport: Transport,
    out: &mut [u8],
    rng: &mut fastrand::Rng,
) -> Answered {
    let mut folded = Folded::default();
    let Shape::Common(query) = Shape::of(message, &mut folded) else { return Answered::NotMine };
    let options = store.options();
    let nsid = query.opt.is_some_and(|opt| opt.nsid) && options.nsid.is_some();
    if nsid || out.len() < MIN_OUT {
        return Answered::NotMine;
    }
    let question = HEADER..HEADER + query.name.len() + 4;
    let Some(asked) = message.get(..question.end) else { return Answered::NotMine };
    let limit = usize::from(limit(transport, query.opt.map(|opt| opt.size), options.bufsize)).min(out.len());
    out[..question.end].copy_from_slice(asked);
    let reply = lookup(store, &query.name, query.qtype, |verdict| {
        write(store, &query, verdict, transport, limit, Writer { out, len: question.end, limit: 0 }, rng)
    });
    Answered::Reply(reply)
}

/// How large a reply may be.
#[must_use]
pub fn limit(transport: Transport, stated: Option<u16>, bufsize: u16) -> u16 {
    match (transport, stated) {
        (Transport::Tcp, _) => u16::MAX,
        (Transport::Udp, None) => UDP_PLAIN,
        (Transport::Udp, Some(size)) => size.clamp(UDP_PLAIN, bufsize.max(UDP_PLAIN)),
    }
}

/// Writes everything behind the question, then the header in front of it.
#[inline]
fn write(
    store: &Store,
    query: &Query<'_>,
    verdict: &Verdict<'_>,
    transport: Transport,
    limit: usize,
    mut writer: Writer<'_>,
    rng: &mut fastrand::Rng,
) -> Reply {
    let options = store.options();
    let stale = store.state().stale().then_some(Ede::StaleAnswer);
    let (rcode, zone, ede) = match verdict {
        Verdict::Refused => (rcode::REFUSED, None, Some(Ede::NotAuthoritative)),
        Verdict::ServFail(zone, ede) => (rcode::SERVFAIL, Some(*zone), Some(*ede)),
        Verdict::NxDomain(zone) => (rcode::NXDOMAIN, Some(zone.index), stale),
        Verdict::NoData(zone) | Verdict::Data(zone, _) => (rcode::NOERROR, Some(zone.index), stale),
    };
    let option = if ede.is_some() { edns::EDE_LEN } else { 0 };
    writer.limit = if query.opt.is_some() { limit - edns::OPT_LEN - option } else { limit };
    let (mut written, mut authority, mut authoritative) = (Written::default(), 0, 0);
    if let Verdict::NxDomain(zone) | Verdict::NoData(zone) | Verdict::Data(zone, _) = verdict {
        let zone_at = HEADER + query.name.len() - zone.wire().len();
        let context = Context { store, zone_at: zone_at as u16, tcp: transport == Transport::Tcp };
        authoritative = 0x04;
        match verdict {
            Verdict::Data(_, data) => written = writer.data(data, &context, rng),
            _ => authority = u8::from(writer.negative_soa(&context)),
        }
    }
    if let Some(opt) = query.opt {
        writer.limit = limit;
        written.additional += u16::from(writer.put(&edns::opt(options.bufsize, opt.dnssec_ok, option)));
        if let Some(ede) = ede {
            writer.put(&edns::extended_error(ede));
        }
    }
    let Writer { out, len, .. } = writer;
    if let Some(header) = out.first_chunk_mut::<HEADER>() {
        let truncated = if written.truncated { 0x02 } else { 0 };
        let ([answers_hi, answers_lo], [additional_hi, additional_lo]) =
            (written.answers.to_be_bytes(), written.additional.to_be_bytes());
        // QR; opcode 0; AA; TC; RD as asked. Then RA 0, Z 0, AD 0, CD as asked, rcode (RFC 1035 §4.1.1, RFC 4035
        // §3.2).
        header[2] = 0x80 | authoritative | truncated | (header[2] & 0x01);
        header[3] = (header[3] & 0x10) | rcode as u8;
        let counts = [0, 1, answers_hi, answers_lo, 0, authority, additional_hi, additional_lo];
        header[4..].copy_from_slice(&counts);
    }
    Reply {
        len,
        rcode,
        qtype: query.qtype,
        zone,
        dnssec_ok: query.opt.is_some_and(|opt| opt.dnssec_ok),
        truncated: written.truncated,
        cut: written.cut,
    }
}

/// Whether a query of this type asks for a transfer of the zone (RFC 5936, RFC 1995).
#[must_use]
pub fn is_transfer(qtype: u16) -> bool {
    matches!(qtype, rrtype::AXFR | rrtype::IXFR)
}
