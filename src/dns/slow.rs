//! Everything that is not the common shape: odd opcodes, classes, types and sections, unknown EDNS versions, CHAOS,
//! NSID, and what can't be read at all (`dns.md` 1.1).
//!
//! hickory-proto reads the message, and writes the replies that carry no data of a zone. What remains is a lookup
//! like any other in unusual clothes (a compressed name, a signature behind it, options): it is asked again in the
//! common shape, so that there is one answer to a question, however it is put.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{DNSClass, RData, Record};
use hickory_proto::serialize::binary::BinEncodable;

use super::respond::{DropReason, Outcome};
use super::scan::Scan;
use crate::answers::{
    Answered, Ede, MIN_OUT, Options, Reply, Store, Transport, UDP_PLAIN, answer, is_transfer, limit, rcode, rrtype,
};

/// Answers any message; [`respond`](super::respond) comes here with what the fast path leaves.
#[must_use]
pub fn respond_slow(
    store: &Store,
    message: &[u8],
    transport: Transport,
    out: &mut [u8],
    rng: &mut fastrand::Rng,
) -> Outcome {
    let Some(header) = message.first_chunk::<12>() else { return Outcome::Drop(DropReason::Short) };
    if header[2] & 0x80 != 0 {
        return Outcome::Drop(DropReason::Response);
    }
    if out.len() < usize::from(UDP_PLAIN) {
        return Outcome::Drop(DropReason::Short);
    }
    let bare = |out: &mut [u8], rcode| header_only(header, rcode, out);
    if header[2] & 0x78 != 0 {
        return bare(out, rcode::NOTIMP); // T3, T4
    }
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if count(4) != 1 || count(6) > 1 || count(8) > 1 || count(10) > 2 {
        return bare(out, rcode::FORMERR); // T5, T6
    }
    if message.len() == header.len() {
        return bare(out, rcode::SERVFAIL); // T7: a bare header
    }
    let Some(scan) = Scan::of(message) else { return bare(out, rcode::FORMERR) };
    let Ok(request) = Message::from_vec(&scan.readable(message)) else { return bare(out, rcode::FORMERR) };
    let Some(query) = request.queries.first() else { return bare(out, rcode::FORMERR) };
    match verdict(store, &request, query, &scan) {
        Said::Lookup => lookup(store, &request, query, &scan, transport, out, rng),
        Said::Reply(draft) => draft.send(&request, query, transport, store.options(), out),
    }
    .unwrap_or_else(|| bare(out, rcode::SERVFAIL))
}

/// A reply of a header alone: id, opcode and RD as asked.
fn header_only(header: &[u8; 12], rcode: u16, out: &mut [u8]) -> Outcome {
    let reply = [header[0], header[1], 0x80 | header[2] & 0x79, rcode as u8, 0, 0, 0, 0, 0, 0, 0, 0];
    out[..reply.len()].copy_from_slice(&reply);
    let facts = Reply { len: reply.len(), rcode, qtype: 0, zone: None, dnssec_ok: false, truncated: false, cut: false };
    Outcome::Reply(facts)
}

/// What a message that can be read is told.
enum Said {
    /// What the zone says.
    Lookup,
    /// Something else.
    Reply(Draft),
}

fn verdict(store: &Store, request: &Message, query: &Query, scan: &Scan) -> Said {
    let refuse = |rcode, ede, zone| Said::Reply(Draft { rcode, ede, zone, text: None });
    if scan.opts > 1 || scan.named_opt {
        return refuse(rcode::FORMERR, None, None); // T9, T10
    }
    if request.edns.as_ref().is_some_and(|edns| edns.version() != 0) {
        return refuse(rcode::BADVERS, None, None); // T11
    }
    let qtype = u16::from(query.query_type());
    match query.query_class() {
        DNSClass::IN => {}
        DNSClass::CH => {
            return match chaos(query, store.options()) {
                Some(text) => Said::Reply(Draft { rcode: rcode::NOERROR, ede: None, zone: None, text: Some(text) }),
                None => refuse(rcode::REFUSED, None, None),
            };
        }
        _ => return refuse(rcode::REFUSED, None, None), // T16
    }
    match qtype {
        0 | rrtype::OPT | rrtype::TKEY | rrtype::TSIG => refuse(rcode::FORMERR, None, None), // O10
        rrtype::MAILB | rrtype::MAILA => refuse(rcode::NOTIMP, None, None),
        // X1 to X3; X12: below the apex there is no zone to transfer.
        _ if is_transfer(qtype) => {
            let name = query.name().to_lowercase().to_bytes().unwrap_or_default();
            let zone = store.zones().iter().find(|zone| zone.wire() == name).map(|zone| zone.index);
            let ede = if zone.is_some() { Ede::Prohibited } else { Ede::NotAuthoritative };
            refuse(rcode::REFUSED, Some(ede), zone)
        }
        _ => Said::Lookup,
    }
}

/// The text of a CHAOS name, where the operator wants it told and its type is asked for.
fn chaos(query: &Query, options: &Options) -> Option<String> {
    let chaos = options.chaos.as_ref().filter(|_| u16::from(query.query_type()) == rrtype::TXT)?;
    match query.name().to_lowercase().to_ascii().as_str() {
        "version.bind." | "version.server." => Some(chaos.version.clone()),
        "id.server." | "hostname.bind." => Some(chaos.hostname.clone()),
        _ => None,
    }
}

/// Asks again in the common shape, and adds the NSID that the fast path leaves out.
fn lookup(
    store: &Store,
    request: &Message,
    query: &Query,
    scan: &Scan,
    transport: Transport,
    out: &mut [u8],
    rng: &mut fastrand::Rng,
) -> Option<Outcome> {
    let meta = &request.metadata;
    let flags = [u8::from(meta.recursion_desired), u8::from(meta.checking_disabled) << 4];
    let mut common =
        [meta.id.to_be_bytes(), flags, [0, 1], [0, 0], [0, 0], [0, u8::from(request.edns.is_some())]].concat();
    common.extend(query.name().to_bytes().ok()?);
    common.extend(u16::from(query.query_type()).to_be_bytes());
    common.extend([0, 1]);
    if let Some(edns) = &request.edns {
        let [size_hi, size_lo] = edns.max_payload().to_be_bytes();
        let flags = if edns.flags().dnssec_ok { 0x80 } else { 0 };
        common.extend([0, 0, 41, size_hi, size_lo, 0, 0, flags, 0, 0, 0]);
    }
    let options = store.options();
    let nsid = nsid(options.nsid.as_deref().filter(|_| scan.nsid));
    let stated = request.edns.as_ref().map(Edns::max_payload);
    let room = usize::from(limit(transport, stated, options.bufsize)).min(out.len()).checked_sub(nsid.len())?;
    if room < MIN_OUT {
        return None;
    }
    let Answered::Reply(mut reply) = answer(store, &common, transport, out.get_mut(..room)?, rng) else { return None };
    // Our OPT is last: the option goes behind it, and its length grows.
    if !nsid.is_empty() {
        let end = reply.len + nsid.len();
        out.get_mut(reply.len..end)?.copy_from_slice(&nsid);
        let at = Scan::of(out.get(..reply.len)?)?.opt_length?;
        let length = out.get_mut(at..at + 2)?;
        let sum = u16::from_be_bytes([length[0], length[1]]) + nsid.len() as u16;
        length.copy_from_slice(&sum.to_be_bytes());
        reply.len = end;
    }
    Some(Outcome::Reply(reply))
}

/// The NSID option: code 3, length, identifier (RFC 5001 §2.3). An identifier of more than 128 octets is cut: it has
/// to leave room for the answer.
fn nsid(identifier: Option<&[u8]>) -> Vec<u8> {
    let Some(identifier) = identifier else { return Vec::new() };
    let identifier = identifier.get(..128).unwrap_or(identifier);
    [&[0, 3, 0, identifier.len() as u8], identifier].concat()
}

/// A reply that carries no data of a zone.
struct Draft {
    rcode: u16,
    ede: Option<Ede>,
    zone: Option<u8>,
    /// What a CHAOS name says.
    text: Option<String>,
}

impl Draft {
    fn send(
        self,
        request: &Message,
        query: &Query,
        transport: Transport,
        options: &Options,
        out: &mut [u8],
    ) -> Option<Outcome> {
        let mut message = Message::new(request.metadata.id, MessageType::Response, OpCode::Query);
        message.metadata.recursion_desired = request.metadata.recursion_desired;
        message.metadata.checking_disabled = request.metadata.checking_disabled;
        // hickory takes the upper bits, which the OPT carries, from here too.
        message.metadata.response_code = ResponseCode::from((self.rcode >> 4) as u8, (self.rcode & 0x0F) as u8);
        message.queries.push(query.clone());
        if let Some(text) = self.text {
            let mut record = Record::from_rdata(query.name().clone(), 0, RData::TXT(TXT::new(vec![text])));
            record.dns_class = DNSClass::CH;
            message.metadata.authoritative = true;
            message.answers.push(record);
        }
        let asked = request.edns.as_ref();
        let dnssec_ok = asked.is_some_and(|edns| edns.flags().dnssec_ok);
        if asked.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(options.bufsize).set_version(0).set_dnssec_ok(dnssec_ok);
            if let Some(ede) = self.ede {
                const EXTENDED_ERROR: u16 = 15;
                edns.options_mut().insert(EdnsOption::Unknown(EXTENDED_ERROR, ede.code().to_be_bytes().to_vec()));
            }
            message.set_edns(edns);
        }
        let mut bytes = message.to_vec().ok()?;
        let most = usize::from(limit(transport, asked.map(Edns::max_payload), options.bufsize)).min(out.len());
        let truncated = bytes.len() > most;
        if truncated {
            message.answers.clear(); // a CHAOS text that is too long
            message.metadata.truncation = true;
            bytes = message.to_vec().ok()?;
        }
        out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let qtype = query.query_type().into();
        let facts =
            Reply { len: bytes.len(), rcode: self.rcode, qtype, zone: self.zone, dnssec_ok, truncated, cut: false };
        Some(Outcome::Reply(facts))
    }
}
