//! SRV records (RFC 2782; KEP-1645 DNS specification §2.3.2, §2.4.2): which there are, and in what order.

use std::ops::Range;

use super::lookup::Scope;
use super::service::{Endpoints, PortFilter, ServiceAnswers};

impl ServiceAnswers {
    /// The weight of each record, or `None` where there is no record.
    ///
    /// CoreDNS's rule: `floor(100/n)`, at least 1, where `n` counts address × port before duplicates are dropped
    /// (`dns.md` V4). At the bare name an endpoint without ports counts as one, as it does there.
    #[must_use]
    pub fn srv_weight(&self, scope: &Scope, filter: &PortFilter<'_>) -> Option<u16> {
        let matching = |ports: &[crate::model::Port]| ports.iter().filter(|p| filter.takes(p)).count();
        let portless = |ports: &[crate::model::Port]| usize::from(ports.is_empty() && *filter == PortFilter::Any);
        let (mut records, mut silent) = (0, 0);
        match (scope, self.endpoints.as_deref()) {
            (Scope::All, _) if !self.headless => records = matching(&self.ports) * usize::from(self.listed),
            (Scope::All, Some(endpoints)) => {
                for set in &endpoints.sets {
                    records += matching(&set.ports) * set.endpoints as usize;
                    silent += portless(&set.ports) * set.endpoints as usize;
                }
            }
            (Scope::Part(part), Some(endpoints)) => {
                for endpoint in endpoints.packed.get(part.clone()).unwrap_or_default() {
                    records += matching(endpoints.ports(endpoint));
                    silent += portless(endpoints.ports(endpoint));
                }
            }
            (_, None) => {}
        }
        (records > 0).then(|| (100 / (records + silent)).max(1) as u16)
    }

    /// The distinct port numbers of a ClusterSetIP import, in its order; ends early when `each` says `false`.
    pub(super) fn own_ports(&self, filter: &PortFilter<'_>, mut each: impl FnMut(u16) -> bool) -> bool {
        for (i, port) in self.ports.iter().enumerate().filter(|(_, p)| filter.takes(p)) {
            let again = self.ports[..i].iter().any(|p| p.number == port.number && filter.takes(p));
            if !again && !each(port.number) {
                return false;
            }
        }
        true
    }

    /// The endpoints that a scope is about.
    pub(super) fn part(&self, scope: &Scope) -> Option<(&Endpoints, Range<usize>)> {
        let endpoints = self.endpoints.as_deref()?;
        let part = match scope {
            Scope::All => 0..endpoints.packed.len(),
            Scope::Part(part) => part.clone(),
        };
        Some((endpoints, part))
    }
}

impl Endpoints {
    /// The hosts of `part`, each a run of endpoints, from the host of `start` on and round to it again.
    pub(super) fn hosts(&self, part: Range<usize>, start: usize) -> impl Iterator<Item = Range<usize>> {
        let first = self.run_start(start, part.start);
        let (mut at, mut turned) = (first, false);
        std::iter::from_fn(move || {
            if at >= part.end {
                (at, turned) = (part.start, true);
            }
            if (turned && at >= first) || part.is_empty() {
                return None;
            }
            let run = self.run(at);
            at = run.end;
            Some(run)
        })
    }

    /// The distinct port numbers of a host, in its slices' order; ends early when `each` says `false`.
    pub(super) fn host_ports(
        &self,
        run: Range<usize>,
        filter: &PortFilter<'_>,
        mut each: impl FnMut(u16) -> bool,
    ) -> bool {
        let members = self.packed.get(run).unwrap_or_default();
        for (i, endpoint) in members.iter().enumerate() {
            let ports = self.ports(endpoint);
            // Most often a host's endpoints share one set of ports.
            if i > 0 && std::ptr::eq(self.ports(&members[i - 1]), ports) {
                continue;
            }
            for (j, port) in ports.iter().enumerate().filter(|(_, p)| filter.takes(p)) {
                let mut before = members[..i].iter().flat_map(|e| self.ports(e)).chain(&ports[..j]);
                if !before.any(|p| p.number == port.number && filter.takes(p)) && !each(port.number) {
                    return false;
                }
            }
        }
        true
    }
}
