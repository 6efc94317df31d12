//! Writing records straight into the reply, without allocating.
//!
//! Owner names and the names of SOA and NS are compressed against the question, which is written first and
//! uncompressed; SRV targets never are (RFC 2782).

use std::net::IpAddr;

use super::build::record_head;
use super::lookup::{Data, Scope};
use super::rrtype;
use super::service::{Endpoints, Family, PortFilter, ServiceAnswers};
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

    /// The fields between owner and data: type, class IN, TTL, length.
    fn put_fixed(&mut self, rrtype: u16, ttl: u32, len: usize) -> bool {
        let [type_hi, type_lo] = rrtype.to_be_bytes();
        let [t0, t1, t2, t3] = ttl.to_be_bytes();
        let [len_hi, len_lo] = (len as u16).to_be_bytes();
        self.put(&[type_hi, type_lo, 0, 1, t0, t1, t2, t3, len_hi, len_lo])
    }

    /// The SOA of a negative answer: its TTL and MINIMUM are the negative TTL (RFC 2308 §3).
    pub(super) fn negative_soa(&mut self, context: &Context<'_>) -> bool {
        self.put(&pointer(context.zone_at)) && self.soa(context, context.store.options().negttl)
    }

    /// An SOA without its owner. Its names are `ns.dns.<zone>` and `hostmaster.<zone>`, the zone a pointer.
    fn soa(&mut self, context: &Context<'_>, ttl: u32) -> bool {
        let options = context.store.options();
        let zone = pointer(context.zone_at);
        let numbers = [context.store.serial().get(), 7200, 1800, 86400, options.negttl];
        let mut data = [0; 42];
        data[..7].copy_from_slice(b"\x02ns\x03dns");
        data[7..9].copy_from_slice(&zone);
        data[9..20].copy_from_slice(b"\x0ahostmaster");
        data[20..22].copy_from_slice(&zone);
        for (place, number) in data[22..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        self.put_fixed(rrtype::SOA, ttl, data.len()) && self.put(&data)
    }

    /// The answer section, and the additional records that belong to it.
    #[inline]
    pub(super) fn data(&mut self, data: &Data<'_>, context: &Context<'_>, rng: &mut fastrand::Rng) -> Written {
        let options = context.store.options();
        match data {
            Data::Addresses { service, scope: Scope::All, family } => self.blocks(service, *family, context, rng),
            Data::Addresses { service, scope, family } => match service.part(scope) {
                Some((endpoints, part)) => self.endpoint_addresses(endpoints, part, *family, context, rng),
                None => Written::default(),
            },
            Data::Srv { service, scope, filter, target } if *scope == Scope::All && !service.headless => {
                self.service_srv(service, filter, target, context)
            }
            Data::Srv { service, scope, filter, target } => {
                self.endpoint_srv(service, scope, filter, target, context, rng)
            }
            Data::Soa => {
                let whole = self.put(&QUESTION) && self.soa(context, options.ttl.min(300));
                one(whole)
            }
            Data::Ns => {
                let zone = pointer(context.zone_at);
                let at = self.len as u16 + 12;
                let whole = self.put(&QUESTION)
                    && self.put_fixed(rrtype::NS, options.ttl, 9)
                    && self.put(b"\x02ns\x03dns")
                    && self.put(&zone);
                let mut additional = 0;
                for family in [Family::V4, Family::V6] {
                    additional += self.nameserver(family, pointer(at), context);
                }
                Written { additional, ..one(whole) }
            }
            Data::NsAddresses(family) => {
                Written { answers: self.nameserver(*family, QUESTION, context), ..Written::default() }
            }
            Data::Version => {
                let text = options.dns_version.as_bytes();
                let text = text.get(..text.len().min(255)).unwrap_or_default();
                let whole = self.put(&QUESTION)
                    && self.put_fixed(rrtype::TXT, 28800, text.len() + 1)
                    && self.put(&[text.len() as u8])
                    && self.put(text);
                one(whole)
            }
            Data::Hinfo => {
                let data = b"\x07RFC8482\x00";
                let whole =
                    self.put(&QUESTION) && self.put_fixed(rrtype::HINFO, options.ttl, data.len()) && self.put(data);
                one(whole)
            }
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
    fn address(&mut self, owner: [u8; 2], family: Family, ttl: u32, address: &[u8]) -> bool {
        let mut head = record_head(family, ttl);
        head[..2].copy_from_slice(&owner);
        if self.len + head.len() + address.len() > self.limit {
            return false;
        }
        self.put(&head) && self.put(address)
    }

    /// The RRset of a service name, shuffled; or a random part of it, where it is larger than the reply or than
    /// `max_endpoints`.
    ///
    /// Over UDP what does not fit is missing and TC is set. Over TCP, where there is nothing to fall back to, the
    /// set is cut to what fits in both families, so that A and AAAA name as many endpoints (§2.4.1 of the
    /// specification allows a subset).
    fn blocks(
        &mut self,
        service: &ServiceAnswers,
        family: Family,
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        let (blocks, size) = (service.addresses(family), family.record_len());
        let all = blocks.len() / size;
        let room = self.limit.saturating_sub(self.len);
        let most = if service.headless { context.store.options().max_endpoints.unwrap_or(all).min(all) } else { all };
        let mut fit = most.min(room / size);
        let mut written = Written::default();
        if fit < most {
            written.truncated = !context.tcp;
            written.cut = context.tcp;
            if context.tcp && !service.addresses(Family::V4).is_empty() && !service.addresses(Family::V6).is_empty() {
                fit = fit.min(room / Family::V6.record_len());
            }
        }
        let Some(place) = self.out.get_mut(self.len..self.len + fit * size) else { return written };
        match family {
            Family::V4 => shuffle::<{ Family::V4.record_len() }>(blocks, place, fit, all, rng),
            Family::V6 => shuffle::<{ Family::V6.record_len() }>(blocks, place, fit, all, rng),
        }
        self.len += fit * size;
        written.answers = fit as u16;
        written
    }

    /// The addresses of an endpoint name or a cluster name, from a random one on.
    fn endpoint_addresses(
        &mut self,
        endpoints: &Endpoints,
        part: std::ops::Range<usize>,
        family: Family,
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        let members = endpoints.packed.get(part.clone()).unwrap_or_default();
        let several_hosts = endpoints.run(part.start).end < part.end;
        let mut seen = std::collections::HashSet::new(); // allocates for cluster names alone, which are opt-in
        let start = if members.len() > 1 { rng.usize(0..members.len()) } else { 0 };
        let mut written = Written::default();
        for i in (start..members.len()).chain(0..start) {
            let endpoint = &members[i];
            if endpoint.family() != family {
                continue;
            }
            let mut v4 = [0; 4];
            let address = endpoints.address(endpoint, &mut v4);
            let again = if several_hosts {
                !seen.insert(address.to_vec())
            } else {
                // A host's endpoints are sorted by address.
                i > 0 && {
                    let mut v4 = [0; 4];
                    members[i - 1].family() == family && endpoints.address(&members[i - 1], &mut v4) == address
                }
            };
            if again {
                continue;
            }
            if !self.address(QUESTION, family, context.store.options().ttl, address) {
                written.truncated = !context.tcp;
                written.cut = context.tcp;
                break;
            }
            written.answers += 1;
        }
        written
    }

    /// An SRV record whose owner is the question; its target is written out (RFC 2782: no compression).
    fn srv(&mut self, ttl: u32, weight: u16, port: u16, target: [&[u8]; 3]) -> bool {
        let len = 6 + target.iter().map(|part| part.len()).sum::<usize>();
        if self.len + 12 + len > self.limit {
            return false;
        }
        let ([weight_hi, weight_lo], [port_hi, port_lo]) = (weight.to_be_bytes(), port.to_be_bytes());
        self.put(&QUESTION)
            && self.put_fixed(rrtype::SRV, ttl, len)
            && self.put(&[0, 0, weight_hi, weight_lo, port_hi, port_lo])
            && target.iter().all(|part| self.put(part))
    }

    /// The SRV records of a ClusterSetIP import: one a port, all with the service name as target.
    fn service_srv(
        &mut self,
        service: &ServiceAnswers,
        filter: &PortFilter<'_>,
        target: &[u8],
        context: &Context<'_>,
    ) -> Written {
        let ttl = context.store.options().ttl;
        let weight = service.srv_weight(&Scope::All, filter).unwrap_or(1);
        // owner 2, fixed fields 10, priority, weight and port 6
        let first_target = self.len + 18;
        let mut written = Written::default();
        let whole = service.own_ports(filter, |port| {
            let fits = self.srv(ttl, weight, port, [&[], &[], target]);
            written.answers += u16::from(fits);
            fits
        });
        if !whole {
            written.truncated = !context.tcp;
            written.cut = context.tcp;
            return written;
        }
        let owner = pointer(first_target as u16);
        for family in [Family::V4, Family::V6] {
            let (blocks, size) = (service.addresses(family), family.record_len());
            if self.len + blocks.len() > self.limit {
                break; // whole RRsets only, and no TC for them (RFC 2181 §9)
            }
            for record in blocks.chunks_exact(size) {
                self.put(&owner);
                self.put(&record[2..]);
                written.additional += 1;
            }
        }
        written
    }

    /// The SRV records of endpoints: one a host and port, from a random host on; then the hosts' addresses, as far
    /// as whole RRsets fit.
    fn endpoint_srv(
        &mut self,
        service: &ServiceAnswers,
        scope: &Scope,
        filter: &PortFilter<'_>,
        target: &[u8],
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        let Some((endpoints, part)) = service.part(scope) else { return Written::default() };
        let options = context.store.options();
        let weight = service.srv_weight(scope, filter).unwrap_or(1);
        let most = options.max_endpoints.unwrap_or(usize::MAX);
        let start = if part.len() > 1 { rng.usize(part.clone()) } else { part.start };
        let first = self.len;
        let mut written = Written::default();
        let (mut hosts, mut served) = (0, 0);
        for run in endpoints.hosts(part.clone(), start) {
            if served == most {
                break;
            }
            let Some(member) = endpoints.packed.get(run.start) else { break };
            let name = [endpoints.host(member), endpoints.cluster(member), target];
            let (before, answers) = (self.len, written.answers);
            let whole = endpoints.host_ports(run, filter, |port| {
                let fits = self.srv(options.ttl, weight, port, name);
                written.answers += u16::from(fits);
                fits
            });
            if !whole {
                written.truncated = !context.tcp;
                written.cut = context.tcp;
                if context.tcp {
                    (self.len, written.answers) = (before, answers); // by whole endpoints
                }
                return written;
            }
            hosts += 1;
            served += usize::from(written.answers > answers); // one without such a port is no endpoint of this answer
        }
        // The same walk again: each host's first target stands where its first record was written.
        let mut at = first;
        for run in endpoints.hosts(part, start).take(hosts) {
            let Some(member) = endpoints.packed.get(run.start) else { break };
            let name = [endpoints.host(member), endpoints.cluster(member), target];
            let (target_at, mut ports) = (at + 18, 0);
            endpoints.host_ports(run.clone(), filter, |_| {
                ports += 1;
                true
            });
            at += ports * (18 + name.iter().map(|part| part.len()).sum::<usize>());
            if ports > 0 {
                let (records, whole) = self.glue(endpoints, run, target_at, name, options.ttl);
                written.additional += records;
                if !whole {
                    break;
                }
            }
        }
        written
    }

    /// The addresses of one host, whole RRsets only: how many records, and whether all fitted.
    fn glue(
        &mut self,
        endpoints: &Endpoints,
        run: std::ops::Range<usize>,
        target_at: usize,
        name: [&[u8]; 3],
        ttl: u32,
    ) -> (u16, bool) {
        let members = endpoints.packed.get(run).unwrap_or_default();
        let mut count = 0;
        for family in [Family::V4, Family::V6] {
            let before = self.len;
            let mut records = 0;
            for (i, endpoint) in members.iter().enumerate().filter(|(_, e)| e.family() == family) {
                let (mut v4, mut previous) = ([0; 4], [0; 4]);
                let address = endpoints.address(endpoint, &mut v4);
                if i > 0
                    && members[i - 1].family() == family
                    && endpoints.address(&members[i - 1], &mut previous) == address
                {
                    continue;
                }
                if !self.glue_record(target_at, name, family, ttl, address) {
                    self.len = before;
                    return (count, false);
                }
                records += 1;
            }
            count += records;
        }
        (count, true)
    }

    /// One address whose owner is an SRV target: a pointer to it, or written out where it lies too far back for one
    /// (RFC 1035 §4.1.4: 14 bits).
    fn glue_record(&mut self, target_at: usize, name: [&[u8]; 3], family: Family, ttl: u32, address: &[u8]) -> bool {
        if target_at < 0x4000 {
            return self.address(pointer(target_at as u16), family, ttl, address);
        }
        let head = record_head(family, ttl);
        let len = name.iter().map(|part| part.len()).sum::<usize>() + head.len() - 2 + address.len();
        self.len + len <= self.limit
            && name.iter().all(|part| self.put(part))
            && self.put(&head[2..])
            && self.put(address)
    }
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

/// Writes `count` of the `all` records of `blocks` into `place` in random order, taken from a random one on where
/// they are not all wanted.
///
/// Fisher and Yates' shuffle, inside out: the `i`th record goes to a random place among the first `i + 1`, and what
/// stood there moves to the end.
#[inline]
fn shuffle<const SIZE: usize>(blocks: &[u8], place: &mut [u8], count: usize, all: usize, rng: &mut fastrand::Rng) {
    let (blocks, _) = blocks.as_chunks::<SIZE>();
    let (place, _) = place.as_chunks_mut::<SIZE>();
    let start = if count < all { rng.usize(0..all) } else { 0 };
    let source = blocks.iter().cycle().skip(start);
    for (i, record) in source.take(count.min(place.len())).enumerate() {
        let j = if i == 0 { 0 } else { rng.usize(0..=i) };
        place[i] = place[j];
        place[j] = *record;
    }
}
