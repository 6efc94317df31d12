//! The endpoints of one source cluster in one importing cluster, and what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::describe;
use super::differences::Sign;
use crate::reconcile::objects::{Endpoint, SlicePort};
use crate::reconcile::observed::Slice;

/// What the slices of one source cluster hold in one importing cluster.
#[derive(Default)]
pub(super) struct Endpoints<'a> {
    /// The slices.
    pub(super) names: Vec<&'a str>,
    /// By address.
    endpoints: BTreeMap<IpAddr, &'a Endpoint>,
    ports: BTreeSet<&'a SlicePort>,
}

impl<'a> Endpoints<'a> {
    pub(super) fn of(slices: impl Iterator<Item = (&'a str, &'a Slice)>) -> Self {
        let mut all = Self::default();
        for (name, slice) in slices {
            all.names.push(name);
            all.ports.extend(&slice.content.ports);
            for endpoint in &slice.content.endpoints {
                all.endpoints.extend(endpoint.addresses.iter().map(|ip| (*ip, endpoint)));
            }
        }
        all
    }

    /// `2 endpoints`, or `3 endpoints, 1 of them not ready,`.
    pub(super) fn summary(&self) -> String {
        let ready = self.endpoints.values().filter(|endpoint| endpoint.ready).count();
        let all = describe::count(self.endpoints.len(), "endpoint");
        match self.endpoints.len() - ready {
            0 => all,
            unready if ready == 0 && unready == 1 => format!("{all}, not ready,"),
            _ if ready == 0 => format!("{all}, none ready,"),
            unready => format!("{all}, {unready} of them not ready,"),
        }
    }

    pub(super) fn since(&self, before: &Self) -> Vec<(Sign, String)> {
        let mut found = Vec::new();
        for (ip, endpoint) in &self.endpoints {
            match before.endpoints.get(ip) {
                None => found.push((Sign::New, format!("{ip}, {}", describe::readiness(endpoint)))),
                Some(was) => {
                    let (was_ready, is_ready) = (describe::readiness(was), describe::readiness(endpoint));
                    if was_ready != is_ready {
                        found.push((Sign::Changed, format!("{ip} is {is_ready}, was {was_ready}")));
                    } else if was.hostname != endpoint.hostname {
                        let name = endpoint.hostname.as_deref().unwrap_or("nothing");
                        found.push((Sign::Changed, format!("{ip} is called {name}")));
                    }
                }
            }
        }
        let gone = before.endpoints.keys().filter(|ip| !self.endpoints.contains_key(*ip));
        found.extend(gone.map(|ip| (Sign::Gone, ip.to_string())));
        if self.ports != before.ports {
            let [was, is] = [before, self].map(|of| describe::slice_ports(of.ports.iter().copied()));
            found.push((Sign::Changed, format!("ports {was} → {is}")));
        }
        found
    }
}
