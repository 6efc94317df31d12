//! A and AAAA records: of a service, of an endpoint, of a cluster.

use super::{Context, FIXED, QUESTION, Writer, Written, head, one};
use crate::answers::service::{Endpoints, Family, ServiceAnswers};

impl Writer<'_> {
    /// The RRset of a service name, shuffled; or a random part of it, where it is larger than the reply or than
    /// `max_endpoints`.
    ///
    /// Over UDP what does not fit is missing and TC is set. Over TCP, where there is nothing to fall back to, the
    /// set is cut to what fits in both families, so that A and AAAA name as many endpoints (§2.4.1 of the
    /// specification allows a subset).
    #[inline]
    pub(super) fn all_addresses(
        &mut self,
        service: &ServiceAnswers,
        family: Family,
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        match family {
            Family::V4 => self.set::<4, 16>(&service.a, family, service, context, rng),
            Family::V6 => self.set::<16, 28>(&service.aaaa, family, service, context, rng),
        }
    }

    fn set<const ADDRESS: usize, const RECORD: usize>(
        &mut self,
        addresses: &[[u8; ADDRESS]],
        family: Family,
        service: &ServiceAnswers,
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        let options = context.store.options();
        if let [address] = addresses {
            let whole = self.address(QUESTION, family, options.ttl, address); // the usual case, and nothing to shuffle
            return one(whole);
        }
        let room = self.limit.saturating_sub(self.len);
        let most = match options.max_endpoints {
            Some(most) if service.headless => most.min(addresses.len()),
            _ => addresses.len(),
        };
        let mut fit = most.min(room / RECORD);
        let mut written = Written::default();
        if fit < most {
            written.truncated = !context.tcp;
            written.cut = context.tcp;
            if context.tcp && !service.a.is_empty() && !service.aaaa.is_empty() {
                fit = fit.min(room / (FIXED + Family::V6.address_len()));
            }
        }
        let Some(place) = self.out.get_mut(self.len..self.len + fit * RECORD) else { return written };
        let head = head(QUESTION, family.rrtype(), options.ttl, ADDRESS);
        shuffled::<ADDRESS, RECORD>(head, addresses, place, rng);
        self.len += fit * RECORD;
        written.answers = fit as u16;
        written
    }

    /// The addresses of an endpoint name or a cluster name, from a random one on.
    pub(super) fn endpoint_addresses(
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
}

/// Fills `place` with records of `addresses` in random order, taken from a random one on where not all have room.
///
/// Fisher and Yates' shuffle, inside out: the `i`th record goes to a random place among the first `i + 1`, and what
/// stood there moves to the end.
#[inline(never)] // a loop of its own: in the middle of everything else it would run out of registers
fn shuffled<const ADDRESS: usize, const RECORD: usize>(
    head: [u8; FIXED],
    addresses: &[[u8; ADDRESS]],
    place: &mut [u8],
    rng: &mut fastrand::Rng,
) {
    let (place, _) = place.as_chunks_mut::<RECORD>();
    let mut rest = place.len();
    let start = if rest < addresses.len() { below(rng, addresses.len()) } else { 0 };
    let (before, from) = addresses.split_at(start);
    for part in [from, before] {
        let first = place.len() - rest;
        let part = &part[..part.len().min(rest)];
        for (i, address) in (first..).zip(part) {
            let j = if i == 0 { 0 } else { below(rng, i + 1) };
            place[i] = place[j];
            place[j][..FIXED].copy_from_slice(&head);
            place[j][FIXED..].copy_from_slice(address);
        }
        rest -= part.len();
    }
}

/// A random number below `count`. The bias, of one in four thousand millions, is nobody's load.
#[inline]
fn below(rng: &mut fastrand::Rng, count: usize) -> usize {
    ((u64::from(rng.u32(..)) * count as u64) >> 32) as usize
}
