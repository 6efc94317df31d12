//! Writing records straight into the reply, without allocating.
//!
//! Owner names and the names of SOA and NS are compressed against the question, which is written first and
//! uncompressed; SRV targets never are (RFC 2782).

mod addresses;
mod targets;

use std::net::IpAddr;

use super::lookup::{Data, Scope};
use super::rrtype;
use super::service::Family;
use super::store::Store;

/// A reply in the making: what is written up to `len`, and may be written up to `limit`.
pub(super) struct Writer<'o> {
    pub(super) out: &'o mut [u8],
    pub(super) len: usize,
    pub(super) limit: usize,
}

/// What became of an answer section.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Written {
    pub(super) answers: u16,
    pub(super) additional: u16,
    /// Records are missing and TC says so.
    pub(super) truncated: bool,
    /// Whole endpoints are missing, since not even TCP holds the set.
    pub(super) cut: bool,
}

/// What a writer needs to know besides the records.
pub(super) struct Context<'a> {
    pub(super) store: &'a Store,
    /// Where the zone's name begins in the question, counted from the start of the message.
    pub(super) zone_at: u16,
    pub(super) tcp: bool,
}

/// The owner that most records have: a pointer to the question's name.
const QUESTION: [u8; 2] = [0xC0, 12];

impl Writer<'_> {
    /// Appends `bytes` if they fit.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> bool {
        let end = self.len + bytes.len();
        if end > self.limit {
            return false;
        }
        match self.out.get_mut(self.len..end) {
            Some(room) => room.copy_from_slice(bytes),
            None => return false,
        }
        self.len = end;
        true
    }

    /// A record with an owner of two octets (a pointer), if all of it fits; `data` in parts.
    #[inline]
    fn record(&mut self, owner: [u8; 2], rrtype: u16, ttl: u32, data: &[&[u8]]) -> bool {
        let len = data.iter().map(|part| part.len()).sum::<usize>();
        if self.len + FIXED + len > self.limit {
            return false;
        }
        self.put(&head(owner, rrtype, ttl, len)) && data.iter().all(|part| self.put(part))
    }

    /// The SOA of a negative answer: its TTL and MINIMUM are the negative TTL (RFC 2308 §3).
    pub(super) fn negative_soa(&mut self, context: &Context<'_>) -> bool {
        self.soa(pointer(context.zone_at), context, context.store.options().negttl)
    }

    /// An SOA. Its names are `ns.dns.<zone>` and `hostmaster.<zone>`, the zone a pointer.
    #[inline]
    fn soa(&mut self, owner: [u8; 2], context: &Context<'_>, ttl: u32) -> bool {
        let [hi, lo] = pointer(context.zone_at);
        let names = *b"\x02ns\x03dns\0\0\x0ahostmaster\0\0";
        let mut data = [0; 42];
        data[..22].copy_from_slice(&names);
        (data[7], data[8], data[20], data[21]) = (hi, lo, hi, lo);
        data[22..26].copy_from_slice(&context.store.serial().get().to_be_bytes());
        data[26..30].copy_from_slice(&7200u32.to_be_bytes());
        data[30..34].copy_from_slice(&1800u32.to_be_bytes());
        data[34..38].copy_from_slice(&86400u32.to_be_bytes());
        data[38..].copy_from_slice(&context.store.options().negttl.to_be_bytes());
        self.record(owner, rrtype::SOA, ttl, &[&data])
    }

    /// The answer section, and the additional records that belong to it.
    #[inline]
    pub(super) fn data(&mut self, data: &Data<'_>, context: &Context<'_>, rng: &mut fastrand::Rng) -> Written {
        match data {
            Data::Addresses { service, scope: Scope::All, family } => {
                self.all_addresses(service, *family, context, rng)
            }
            Data::Addresses { service, scope, family } => match service.part(scope) {
                Some((endpoints, part)) => self.endpoint_addresses(endpoints, part, *family, context, rng),
                None => Written::default(),
            },
            Data::Srv { service, scope: Scope::All, filter, target, weight } if !service.headless => {
                self.service_srv(service, filter, target, *weight, context)
            }
            Data::Srv { service, scope, filter, target, weight } => {
                self.endpoint_srv(service, (scope, filter), (target, *weight), context, rng)
            }
            _ => self.own_data(data, context),
        }
    }

    /// What the zone says of itself.
    #[inline(never)] // asked seldom: kept out of the way of the rest
    fn own_data(&mut self, data: &Data<'_>, context: &Context<'_>) -> Written {
        let options = context.store.options();
        match data {
            Data::Soa => one(self.soa(QUESTION, context, options.ttl.min(300))),
            Data::Ns => {
                let at = self.len + FIXED;
                let target: [&[u8]; 2] = [b"\x02ns\x03dns", &pointer(context.zone_at)];
                let whole = self.record(QUESTION, rrtype::NS, options.ttl, &target);
                let mut additional = 0;
                for family in [Family::V4, Family::V6] {
                    additional += self.nameserver(family, pointer(at as u16), context);
                }
                Written { additional, ..one(whole) }
            }
            Data::NsAddresses(family) => {
                Written { answers: self.nameserver(*family, QUESTION, context), ..Written::default() }
            }
            Data::Version => {
                let text = options.dns_version.as_bytes();
                let text = text.get(..text.len().min(255)).unwrap_or_default();
                one(self.record(QUESTION, rrtype::TXT, 28800, &[&[text.len() as u8], text]))
            }
            Data::Hinfo => one(self.record(QUESTION, rrtype::HINFO, options.ttl, &[b"\x07RFC8482\x00"])),
            Data::Addresses { .. } | Data::Srv { .. } => Written::default(),
        }
    }

    /// The nameserver's addresses of a family; how many.
    fn nameserver(&mut self, family: Family, owner: [u8; 2], context: &Context<'_>) -> u16 {
        let options = context.store.options();
        let mut count = 0;
        for address in &options.nameserver {
            let written = match address {
                IpAddr::V4(ip) if family == Family::V4 => self.address(owner, family, options.ttl, &ip.octets()),
                IpAddr::V6(ip) if family == Family::V6 => self.address(owner, family, options.ttl, &ip.octets()),
                _ => continue,
            };
            count += u16::from(written);
        }
        count
    }

    /// One address record, if it fits whole.
    #[inline]
    fn address(&mut self, owner: [u8; 2], family: Family, ttl: u32, address: &[u8]) -> bool {
        self.record(owner, family.rrtype(), ttl, &[address])
    }
}

/// Octets of a record in front of its data, where its owner is a pointer:
///
/// ```text
///  0..2   owner (RFC 1035 §4.1.4)
///  2..4   type
///  4..6   class 1
///  6..10  TTL
///  10..12 length of the data
/// ```
const FIXED: usize = 12;

#[inline]
fn head(owner: [u8; 2], rrtype: u16, ttl: u32, len: usize) -> [u8; FIXED] {
    let ([type_hi, type_lo], [len_hi, len_lo]) = (rrtype.to_be_bytes(), (len as u16).to_be_bytes());
    let [t0, t1, t2, t3] = ttl.to_be_bytes();
    [owner[0], owner[1], type_hi, type_lo, 0, 1, t0, t1, t2, t3, len_hi, len_lo]
}

/// One record that fits in any reply.
fn one(whole: bool) -> Written {
    Written { answers: u16::from(whole), truncated: !whole, ..Written::default() }
}

/// A compression pointer (RFC 1035 §4.1.4).
#[inline]
fn pointer(at: u16) -> [u8; 2] {
    (0xC000 | at).to_be_bytes()
}
