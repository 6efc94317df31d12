//! Everything that is not the common shape, through hickory-proto: odd opcodes, classes, types and sections, unknown
//! EDNS versions, CHAOS, NSID, and what can't be read at all (`dns.md` 1.1).

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsOption, NSIDPayload};
use hickory_proto::rr::{DNSClass, Name, RData, Record, rdata};
use hickory_proto::serialize::binary::{BinDecodable, BinEncodable};

use super::respond::{DropReason, Outcome};
use super::scan::Scan;
use crate::answers::{
    self, Ede, Options, QueryName, Rdata, Reply, Store, Transport, UDP_PLAIN, Verdict, is_transfer, lookup, rcode,
    rrtype,
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
    let Ok(request) = decode(message, &scan) else { return bare(out, rcode::FORMERR) };
    let Some(query) = request.queries.first() else { return bare(out, rcode::FORMERR) };
    let mut draft = Draft::new(&request, query, store.options());
    let zone = if scan.opts > 1 || scan.named_opt {
        draft.refuse(rcode::FORMERR, None) // T9, T10
    } else if request.edns.as_ref().is_some_and(|edns| edns.version() != 0) {
        draft.refuse(rcode::BADVERS, None) // T11
    } else {
        draft.fill(store, query, rng)
    };
    let stated = request.edns.as_ref().map(Edns::max_payload);
    let limit = usize::from(answers::limit(transport, stated, store.options().bufsize)).min(out.len());
    let qtype = query.query_type().into();
    let dnssec_ok = request.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok);
    match draft.encode(limit, transport) {
        Some((bytes, fitted)) if bytes.len() <= limit => {
            out[..bytes.len()].copy_from_slice(&bytes);
            let (truncated, cut) = (fitted == Fitted::Truncated, fitted == Fitted::Cut);
            Outcome::Reply(Reply { len: bytes.len(), rcode: draft.rcode, qtype, zone, dnssec_ok, truncated, cut })
        }
        _ => bare(out, rcode::SERVFAIL),
    }
}

/// A reply of a header alone: id, opcode and RD as asked.
fn header_only(header: &[u8; 12], rcode: u16, out: &mut [u8]) -> Outcome {
    let reply = [header[0], header[1], 0x80 | header[2] & 0x79, rcode as u8, 0, 0, 0, 0, 0, 0, 0, 0];
    out[..reply.len()].copy_from_slice(&reply);
    let facts = Reply { len: reply.len(), rcode, qtype: 0, zone: None, dnssec_ok: false, truncated: false, cut: false };
    Outcome::Reply(facts)
}

/// Reads the message. hickory refuses a second OPT; we want to say FORMERR with the question and an OPT, so of such
/// a message the question alone is read.
fn decode(message: &[u8], scan: &Scan) -> Result<Message, hickory_proto::serialize::binary::DecodeError> {
    if scan.opts < 2 {
        return Message::from_vec(message);
    }
    let mut question = message.get(..scan.question_end).unwrap_or_default().to_vec();
    if let Some(counts) = question.get_mut(6..12) {
        counts.fill(0);
    }
    let mut request = Message::from_vec(&question)?;
    request.edns = Some(Edns::new());
    Ok(request)
}

/// How a reply was made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fitted {
    Whole,
    /// Answers are missing, and TC says so.
    Truncated,
    /// Whole endpoints are missing, since there is nothing larger than TCP.
    Cut,
}

/// A reply in the making.
struct Draft<'a> {
    reply: Message,
    rcode: u16,
    options: &'a Options,
    ede: Option<Ede>,
    nsid: bool,
}

impl<'a> Draft<'a> {
    fn new(request: &Message, query: &Query, options: &'a Options) -> Self {
        let mut reply = Message::new(request.metadata.id, MessageType::Response, OpCode::Query);
        reply.metadata.recursion_desired = request.metadata.recursion_desired;
        reply.metadata.checking_disabled = request.metadata.checking_disabled;
        reply.queries.push(query.clone());
        let nsid = hickory_proto::rr::rdata::opt::EdnsCode::NSID;
        let nsid = request.edns.as_ref().is_some_and(|edns| edns.option(nsid).is_some());
        reply.edns = request.edns.as_ref().map(|asked| {
            let mut edns = Edns::new();
            edns.set_max_payload(options.bufsize).set_version(0).set_dnssec_ok(asked.flags().dnssec_ok);
            edns
        });
        Self { reply, rcode: rcode::NOERROR, options, ede: None, nsid }
    }

    /// An answer without data. Returns no zone, for it is not about one.
    fn refuse(&mut self, rcode: u16, ede: Option<Ede>) -> Option<u8> {
        (self.rcode, self.ede) = (rcode, ede);
        None
    }

    /// Looks the question up and fills in the sections; returns the zone.
    fn fill(&mut self, store: &Store, query: &Query, rng: &mut fastrand::Rng) -> Option<u8> {
        let name = query.name().to_bytes().ok().and_then(|wire| QueryName::read(&wire).map(|name| (name, wire)));
        let Some((name, asked)) = name else { return self.refuse(rcode::FORMERR, None) };
        if query.query_class() != DNSClass::IN {
            return self.chaos(query);
        }
        let qtype = u16::from(query.query_type());
        match qtype {
            0 | rrtype::OPT | rrtype::TKEY | rrtype::TSIG => return self.refuse(rcode::FORMERR, None), // O10
            rrtype::MAILB | rrtype::MAILA => return self.refuse(rcode::NOTIMP, None),
            // X1 to X3; X12: below the apex there is no zone to transfer.
            _ if is_transfer(qtype) => {
                let zone = store.zones().iter().find(|zone| zone.wire() == name.wire());
                let ede = if zone.is_some() { Ede::Prohibited } else { Ede::NotAuthoritative };
                self.refuse(rcode::REFUSED, Some(ede));
                return zone.map(|zone| zone.index);
            }
            _ => {}
        }
        let stale = store.state().stale().then_some(Ede::StaleAnswer);
        lookup(store, &name, qtype, |verdict| {
            let (zone, rcode) = match &verdict {
                Verdict::Refused => return self.refuse(rcode::REFUSED, Some(Ede::NotAuthoritative)),
                Verdict::ServFail(zone, ede) => {
                    self.refuse(rcode::SERVFAIL, Some(*ede));
                    return Some(*zone);
                }
                Verdict::NxDomain(zone) => (*zone, rcode::NXDOMAIN),
                Verdict::NoData(zone) | Verdict::Data(zone, _) => (*zone, rcode::NOERROR),
            };
            (self.rcode, self.ede) = (rcode, stale);
            self.reply.metadata.authoritative = true;
            if let Verdict::Data(_, data) = &verdict {
                let found = answers::records(store, zone, &asked, data, rng);
                self.reply.answers = found.answers.iter().filter_map(record).collect();
                self.reply.additionals = found.additional.iter().filter_map(record).collect();
            } else {
                self.reply.authorities = record(&answers::negative_soa(store, zone, &asked)).into_iter().collect();
            }
            Some(zone.index)
        })
    }

    /// Class CHAOS, where the operator wants it answered; every other class is refused (T16).
    fn chaos(&mut self, query: &Query) -> Option<u8> {
        let text = self.options.chaos.as_ref().filter(|_| query.query_class() == DNSClass::CH).and_then(|chaos| {
            match query.name().to_lowercase().to_ascii().as_str() {
                "version.bind." | "version.server." => Some(&chaos.version),
                "id.server." | "hostname.bind." => Some(&chaos.hostname),
                _ => None,
            }
        });
        let Some(text) = text else { return self.refuse(rcode::REFUSED, None) };
        self.reply.metadata.authoritative = true;
        if matches!(u16::from(query.query_type()), rrtype::TXT | rrtype::ANY) {
            let data = RData::TXT(rdata::TXT::new(vec![text.clone()]));
            let mut txt = Record::from_rdata(query.name().clone(), 0, data);
            txt.dns_class = DNSClass::CH;
            self.reply.answers.push(txt);
        }
        None
    }

    /// The message, in at most `limit` bytes: additional records go first and silently, then answers.
    fn encode(&mut self, limit: usize, transport: Transport) -> Option<(Vec<u8>, Fitted)> {
        self.finish();
        // No record is shorter than this, so more can't fit: bounds the work for a set of any size.
        let most = limit / 16 + 1;
        let mut fitted = Fitted::Whole;
        if self.reply.answers.len() > most {
            self.reply.answers.truncate(most);
            self.reply.additionals.clear();
        }
        let mut bytes = self.reply.to_vec().ok()?;
        while bytes.len() > limit && !self.reply.additionals.is_empty() {
            self.drop_additional();
            bytes = self.reply.to_vec().ok()?;
        }
        if bytes.len() > limit {
            fitted = if transport == Transport::Tcp { Fitted::Cut } else { Fitted::Truncated };
            self.reply.metadata.truncation = fitted == Fitted::Truncated;
            let all = std::mem::take(&mut self.reply.answers);
            let (mut low, mut high) = (0, all.len());
            while low < high {
                let middle = (low + high).div_ceil(2);
                self.reply.answers = all.get(..middle)?.to_vec();
                if self.reply.to_vec().ok()?.len() <= limit { low = middle } else { high = middle - 1 }
            }
            if fitted == Fitted::Cut {
                low = whole_targets(&all, low);
            }
            self.reply.answers = all.get(..low)?.to_vec();
            bytes = self.reply.to_vec().ok()?;
        }
        Some((bytes, fitted))
    }

    /// Drops the last RRset of the additional section.
    fn drop_additional(&mut self) {
        let Some(last) = self.reply.additionals.pop() else { return };
        let of_last = |r: &Record| r.name == last.name && r.record_type() == last.record_type();
        while self.reply.additionals.last().is_some_and(of_last) {
            self.reply.additionals.pop();
        }
    }

    /// Puts rcode and OPT in.
    fn finish(&mut self) {
        self.reply.metadata.response_code = ResponseCode::from(0, (self.rcode & 0x0F) as u8);
        let Some(edns) = &mut self.reply.edns else { return };
        edns.set_rcode_high((self.rcode >> 4) as u8);
        if let Some(ede) = self.ede {
            const EXTENDED_ERROR: u16 = 15;
            edns.options_mut().insert(EdnsOption::Unknown(EXTENDED_ERROR, ede.code().to_be_bytes().to_vec()));
        }
        if let (true, Some(id)) = (self.nsid, &self.options.nsid)
            && let Ok(payload) = NSIDPayload::new(id.clone())
        {
            edns.options_mut().insert(EdnsOption::NSID(payload));
        }
    }
}

/// The most of the first `count` records that end with a whole target: its records stand side by side.
fn whole_targets(all: &[Record], count: usize) -> usize {
    let target = |i: usize| match all.get(i).map(|r| &r.data) {
        Some(RData::SRV(srv)) => Some(&srv.target),
        _ => None,
    };
    let mut count = count;
    while count > 0 && target(count).is_some() && target(count) == target(count - 1) {
        count -= 1;
    }
    count
}

/// Our plain record as hickory's.
fn record(plain: &answers::Record) -> Option<Record> {
    let name = |wire: &[u8]| Name::from_bytes(wire).ok();
    let data = match &plain.rdata {
        Rdata::Address(std::net::IpAddr::V4(ip)) => RData::A((*ip).into()),
        Rdata::Address(std::net::IpAddr::V6(ip)) => RData::AAAA((*ip).into()),
        Rdata::Srv { weight, port, target } => RData::SRV(rdata::SRV::new(0, *weight, *port, name(target)?)),
        Rdata::Ns(target) => RData::NS(rdata::NS(name(target)?)),
        Rdata::Soa { mname, rname, serial, minimum } => {
            RData::SOA(rdata::SOA::new(name(mname)?, name(rname)?, *serial, 7200, 1800, 86400, *minimum))
        }
        Rdata::Txt(text) => RData::TXT(rdata::TXT::new(vec![text.clone()])),
        Rdata::Hinfo => RData::HINFO(rdata::HINFO::new("RFC8482".to_owned(), String::new())),
    };
    Some(Record::from_rdata(name(&plain.owner)?, plain.ttl, data))
}
