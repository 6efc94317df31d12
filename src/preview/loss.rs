//! What would be lost if one cluster died: which names would have no endpoints left, and which fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use super::describe;
use crate::model::{ClusterId, Protocol, ServiceKey};
use crate::reconcile::World;
use crate::reconcile::observed::{Import, Slice};

/// What would be lost, the worst first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The cluster that would die.
    pub cluster: ClusterId,
    /// Services that no other cluster has a ready endpoint of, and how many there are in this one.
    pub gone: Vec<(ServiceKey, usize)>,
    /// Services that keep endpoints, but not on this port.
    pub ports: Vec<(ServiceKey, String)>,
    /// Services that keep some: how many of how many, by cluster.
    pub fewer: Vec<(ServiceKey, usize, usize, BTreeMap<ClusterId, usize>)>,
}

/// What `cluster` holds up in the others, in a settled world.
#[must_use]
pub fn loss(world: &World, cluster: &ClusterId) -> Loss {
    let mut loss = Loss { cluster: cluster.clone(), gone: Vec::new(), ports: Vec::new(), fewer: Vec::new() };
    for key in world.keys() {
        let ready = Ready::of(world, &key, cluster);
        let lost = ready.endpoints.get(cluster).map_or(0, BTreeSet::len);
        if lost == 0 {
            continue;
        }
        let others = ready.endpoints.iter().filter(|(id, ips)| *id != cluster && !ips.is_empty());
        let others: BTreeMap<_, _> = others.map(|(id, ips)| (id.clone(), ips.len())).collect();
        if others.is_empty() {
            loss.gone.push((key, lost));
            continue;
        }
        let left: usize = others.values().sum();
        for (port, clusters) in &ready.ports {
            if clusters.len() == 1 && clusters.contains(cluster) {
                loss.ports.push((key.clone(), port.clone()));
            }
        }
        loss.fewer.push((key, left, left + lost, others));
    }
    loss
}

/// Ready endpoints of one service as the other clusters know them.
#[derive(Default)]
struct Ready {
    endpoints: BTreeMap<ClusterId, BTreeSet<IpAddr>>,
    /// Which clusters have one on each port of the import.
    ports: BTreeMap<String, BTreeSet<ClusterId>>,
}

impl Ready {
    fn of(world: &World, key: &ServiceKey, dead: &ClusterId) -> Self {
        let mut ready = Self::default();
        let others = world.members().iter().filter(|(id, _)| *id != dead);
        for local in others.filter_map(|(_, member)| member.local(key)) {
            let Some(import) = &local.import else { continue };
            for slice in local.mirrored.values() {
                ready.slice(slice, import);
            }
        }
        ready
    }

    fn slice(&mut self, slice: &Slice, import: &Import) {
        let Some(source) = slice.source() else { return };
        let endpoints = slice.content.endpoints.iter().filter(|endpoint| endpoint.ready);
        let ips: Vec<IpAddr> = endpoints.flat_map(|endpoint| &endpoint.addresses).copied().collect();
        if ips.is_empty() {
            return;
        }
        self.endpoints.entry(source.clone()).or_default().extend(ips);
        let carries = |name: &str, protocol: Protocol| {
            slice.content.ports.iter().any(|port| (&*port.name, port.protocol) == (name, protocol))
        };
        for port in import.spec.ports.iter().filter(|port| carries(&port.name, port.protocol)) {
            let shown = describe::port(&port.name, port.port, port.protocol);
            self.ports.entry(shown).or_default().insert(source.clone());
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = &self.cluster;
        if self.gone.is_empty() && self.fewer.is_empty() {
            return writeln!(f, "If {cluster} died, no other cluster would lose an endpoint.");
        }
        writeln!(f, "If {cluster} died:")?;
        for (key, lost) in &self.gone {
            let all = match lost {
                1 => "its only ready endpoint is".to_owned(),
                2 => "both ready endpoints are".to_owned(),
                n => format!("all {n} ready endpoints are"),
            };
            writeln!(f, "- {key}: left without endpoints: {all} in {cluster}")?;
        }
        for (key, port) in &self.ports {
            writeln!(f, "- {key}: port {port} left without endpoints: only {cluster} has it")?;
        }
        for (key, left, of, others) in &self.fewer {
            let others = describe::list(others.iter().map(|(id, n)| format!("{n} in {id}")));
            writeln!(f, "~ {key}: {left} of {of} ready endpoints left: {others}")?;
        }
        Ok(())
    }
}
