//! SRV records, and the addresses of their targets.

use super::{Context, FIXED, QUESTION, Writer, Written, head, pointer};
use crate::answers::lookup::Scope;
use crate::answers::rrtype;
use crate::answers::service::{Endpoints, Family, PortFilter, ServiceAnswers};

/// Octets of an SRV record in front of its target, where its owner is a pointer: with priority, weight and port.
const BEFORE_TARGET: usize = FIXED + 6;

impl Writer<'_> {
    /// An SRV record whose owner is the question; its target is written out (RFC 2782: no compression).
    #[inline]
    fn srv(&mut self, ttl: u32, weight: u16, port: u16, target: &[&[u8]]) -> bool {
        let len = target.iter().map(|part| part.len()).sum::<usize>();
        if self.len + BEFORE_TARGET + len > self.limit {
            return false;
        }
        let ([weight_hi, weight_lo], [port_hi, port_lo]) = (weight.to_be_bytes(), port.to_be_bytes());
        let mut before = [0; BEFORE_TARGET];
        before[..FIXED].copy_from_slice(&head(QUESTION, rrtype::SRV, ttl, BEFORE_TARGET - FIXED + len));
        before[FIXED..].copy_from_slice(&[0, 0, weight_hi, weight_lo, port_hi, port_lo]);
        self.put(&before) && target.iter().all(|part| self.put(part))
    }

    /// The SRV records of a ClusterSetIP import: one a port, all with the service name as target.
    pub(super) fn service_srv(
        &mut self,
        service: &ServiceAnswers,
        filter: &PortFilter<'_>,
        target: &[u8],
        weight: u16,
        context: &Context<'_>,
    ) -> Written {
        let ttl = context.store.options().ttl;
        let first_target = self.len + BEFORE_TARGET;
        let mut written = Written::default();
        let whole = service.own_ports(filter, |port| {
            let fits = self.srv(ttl, weight, port, &[target]);
            written.answers += u16::from(fits);
            fits
        });
        if !whole {
            written.truncated = !context.tcp;
            written.cut = context.tcp;
            return written;
        }
        let owner = pointer(first_target as u16);
        // Whole RRsets only, and no TC for them (RFC 2181 §9).
        let fits = |writer: &Self, count: usize, len: usize| writer.len + count * (FIXED + len) <= writer.limit;
        if !fits(self, service.a.len(), Family::V4.address_len()) {
            return written;
        }
        for address in &service.a {
            written.additional += u16::from(self.address(owner, Family::V4, ttl, address));
        }
        if !fits(self, service.aaaa.len(), Family::V6.address_len()) {
            return written;
        }
        for address in &service.aaaa {
            written.additional += u16::from(self.address(owner, Family::V6, ttl, address));
        }
        written
    }

    /// The SRV records of endpoints: one a host and port, from a random host on; then the hosts' addresses, as far
    /// as whole RRsets fit.
    pub(super) fn endpoint_srv(
        &mut self,
        service: &ServiceAnswers,
        (scope, filter): (&Scope, &PortFilter<'_>),
        (target, weight): (&[u8], u16),
        context: &Context<'_>,
        rng: &mut fastrand::Rng,
    ) -> Written {
        let Some((endpoints, part)) = service.part(scope) else { return Written::default() };
        let options = context.store.options();
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
                let fits = self.srv(options.ttl, weight, port, &name);
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
            let (target_at, mut ports) = (at + BEFORE_TARGET, 0);
            endpoints.host_ports(run.clone(), filter, |_| {
                ports += 1;
                true
            });
            at += ports * (BEFORE_TARGET + name.iter().map(|part| part.len()).sum::<usize>());
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
        let head = head([0, 0], family.rrtype(), ttl, address.len());
        let len = name.iter().map(|part| part.len()).sum::<usize>() + FIXED - 2 + address.len();
        self.len + len <= self.limit
            && name.iter().all(|part| self.put(part))
            && self.put(&head[2..])
            && self.put(address)
    }
}
