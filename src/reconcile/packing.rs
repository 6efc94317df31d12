//! Which endpoint goes into which slice (controller.md R62): those that are placed stay where they are, so that one
//! pod's change rewrites one slice, as kube-controller-manager does it. What stays as it is is not even copied.

use std::collections::BTreeMap;
use std::net::IpAddr;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::objects::{Endpoint, SlicePort};

/// What of an endpoint an importing cluster gets (R63 to R65). What names objects of its own cluster stays there: a
/// node or a pod of the same name in another cluster would be taken for it. Hints are made anew.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carry {
    /// With its node's name.
    pub node: bool,
    /// With its pod.
    pub pod: bool,
}

impl Carry {
    /// The endpoint as it is written.
    fn endpoint(self, source: &Endpoint) -> Endpoint {
        Endpoint {
            addresses: source.addresses.clone(),
            ready: source.ready,
            serving: source.serving,
            terminating: source.terminating,
            hostname: source.hostname.clone(),
            zone: source.zone.clone(),
            node: source.node.as_ref().filter(|_| self.node).cloned(),
            pod: source.pod.as_ref().filter(|_| self.pod).cloned(),
            hint_zones: Vec::new(),
        }
    }

    /// Whether it is written already. Hints are looked at later.
    fn is_written(self, there: &Endpoint, source: &Endpoint) -> bool {
        there.addresses == source.addresses
            && (there.ready, there.serving, there.terminating) == (source.ready, source.serving, source.terminating)
            && there.hostname == source.hostname
            && there.zone == source.zone
            && there.node.as_ref() == source.node.as_ref().filter(|_| self.node)
            && there.pod.as_ref() == source.pod.as_ref().filter(|_| self.pod)
    }
}

/// A slice that is there, as far as packing needs it.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ports, sorted.
    pub ports: Vec<SlicePort>,
    /// Its endpoints.
    pub endpoints: &'a [Endpoint],
}

/// A slice as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packed<'a> {
    /// One that is there, and stays as it is.
    Same(&'a str),
    /// One to be written, under the name that it has already, if any.
    Changed(Option<&'a str>, Vec<SlicePort>, Vec<Endpoint>),
}

/// Endpoints of a source cluster, by their addresses.
pub(super) type Wanted<'a> = HashMap<&'a [IpAddr], &'a Endpoint>;

/// The endpoints wanted, by the ports that they listen on.
pub(super) type Groups<'a> = BTreeMap<Vec<SlicePort>, Wanted<'a>>;

/// Packs the endpoints of one source cluster and family. Slices that are there and not among the result are to go.
pub(super) fn pack<'a>(groups: Groups<'a>, there: &[Placed<'a>], limit: usize, carry: Carry) -> Vec<Packed<'a>> {
    let limit = limit.clamp(1, 1000);
    let mut assigned = assign(&groups, there);
    let mut packed = Vec::new();
    for (ports, wanted) in groups {
        let slices = assigned.remove(&ports).unwrap_or_default();
        packed.extend(pack_group(&ports, wanted, &slices, limit, carry));
    }
    packed
}

/// Which set of ports each slice serves: its own, or, where nothing has these ports any more, those that took over its
/// endpoints. So a change of ports rewrites slices instead of replacing them.
fn assign<'a, 's>(groups: &Groups<'_>, there: &'s [Placed<'a>]) -> BTreeMap<Vec<SlicePort>, Vec<&'s Placed<'a>>> {
    let mut assigned: BTreeMap<Vec<SlicePort>, Vec<&Placed<'_>>> = BTreeMap::new();
    let mut rest = Vec::new();
    for slice in there {
        if groups.contains_key(&slice.ports) {
            assigned.entry(slice.ports.clone()).or_default().push(slice);
        } else {
            rest.push(slice);
        }
    }
    let orphaned: Vec<_> = groups.iter().filter(|(ports, _)| !assigned.contains_key(*ports)).collect();
    let mut leftover = Vec::new();
    for slice in rest {
        let overlap = |wanted: &Wanted<'_>| {
            slice.endpoints.iter().filter(|endpoint| wanted.contains_key(&*endpoint.addresses)).count()
        };
        let best = orphaned.iter().map(|(ports, wanted)| (overlap(wanted), ports)).rev().max_by_key(|(n, _)| *n);
        match best {
            Some((1.., ports)) => assigned.entry((*ports).clone()).or_default().push(slice),
            _ => leftover.push(slice),
        }
    }
    let mut leftover = leftover.into_iter();
    for (ports, _) in orphaned {
        if !assigned.contains_key(ports)
            && let Some(slice) = leftover.next()
        {
            assigned.insert(ports.clone(), vec![slice]);
        }
    }
    assigned
}

/// A slice while it is being filled.
struct Filling<'a> {
    name: Option<&'a str>,
    endpoints: Vec<&'a Endpoint>,
    changed: bool,
}

fn pack_group<'a>(
    ports: &[SlicePort],
    mut wanted: Wanted<'a>,
    there: &[&Placed<'a>],
    limit: usize,
    carry: Carry,
) -> Vec<Packed<'a>> {
    let mut slices: Vec<Filling<'_>> =
        there.iter().map(|slice| keep(slice, ports, &mut wanted, limit, carry)).collect();
    let mut rest: Vec<_> = wanted.into_values().collect();
    rest.sort_unstable_by(|a, b| a.addresses.cmp(&b.addresses));
    // First into slices that are to be written anyway.
    for slice in slices.iter_mut().filter(|slice| slice.changed) {
        let free = limit.saturating_sub(slice.endpoints.len()).min(rest.len());
        slice.endpoints.extend(rest.drain(..free));
    }
    merge_changed(&mut slices, limit);
    // Then into the fullest other one that has room for all, so that as few as possible are written.
    while !rest.is_empty() {
        let room = |slice: &&mut Filling<'_>| {
            !slice.changed && !slice.endpoints.is_empty() && slice.endpoints.len() + rest.len() <= limit
        };
        let fullest = slices.iter_mut().filter(room).rev().max_by_key(|slice| slice.endpoints.len());
        if let Some(slice) = fullest {
            slice.endpoints.append(&mut rest);
            slice.changed = true;
        } else {
            let endpoints = rest.drain(..limit.min(rest.len())).collect();
            slices.push(Filling { name: None, endpoints, changed: true });
        }
    }
    let filled = slices.into_iter().filter(|slice| !slice.endpoints.is_empty());
    filled
        .map(|slice| match slice.name {
            Some(name) if !slice.changed => Packed::Same(name),
            name => {
                let endpoints = slice.endpoints.into_iter().map(|source| carry.endpoint(source)).collect();
                Packed::Changed(name, ports.to_vec(), endpoints)
            }
        })
        .collect()
}

/// What of a slice stays in it.
fn keep<'a>(
    slice: &Placed<'a>,
    ports: &[SlicePort],
    wanted: &mut Wanted<'a>,
    limit: usize,
    carry: Carry,
) -> Filling<'a> {
    let mut endpoints = Vec::with_capacity(slice.endpoints.len());
    let mut same = slice.ports == ports;
    for there in slice.endpoints {
        // One above a limit that is lower than before finds another place.
        match wanted.get(&*there.addresses).filter(|_| endpoints.len() < limit) {
            Some(source) => {
                same &= carry.is_written(there, source);
                endpoints.push(*source);
                wanted.remove(&*there.addresses);
            }
            None => same = false,
        }
    }
    Filling { name: Some(slice.name), endpoints, changed: !same }
}

/// Empties slices that are to be written into others that are: what shrank does not stay scattered, at no more writes.
fn merge_changed(slices: &mut [Filling<'_>], limit: usize) {
    for last in (1..slices.len()).rev() {
        let (before, from) = slices.split_at_mut(last);
        let Some(from) = from.first_mut().filter(|slice| slice.changed && !slice.endpoints.is_empty()) else {
            continue;
        };
        let into = before.iter_mut().find(|slice| {
            slice.changed && !slice.endpoints.is_empty() && slice.endpoints.len() + from.endpoints.len() <= limit
        });
        if let Some(into) = into {
            into.endpoints.append(&mut from.endpoints);
        }
    }
}

/// Adds a source endpoint to those wanted. While one moves from one source slice to another it may stand in both: the
/// better one counts.
pub(super) fn want<'a>(wanted: &mut Wanted<'a>, endpoint: &'a Endpoint) {
    let better = |other: &&Endpoint| (endpoint.ready, endpoint.serving) > (other.ready, other.serving);
    if wanted.get(&*endpoint.addresses).is_none_or(better) {
        wanted.insert(&endpoint.addresses, endpoint);
    }
}

/// No endpoints yet.
pub(super) fn nothing_wanted<'a>(expected: usize) -> Wanted<'a> {
    Wanted::with_capacity(expected)
}

/// Whether a slice gains endpoints that are elsewhere now: written before those that lose them, nothing is missing in
/// between (HDL-05).
pub(super) fn gains(now: &[Endpoint], wanted: &[Endpoint]) -> bool {
    let present: HashSet<&[IpAddr]> = now.iter().map(|endpoint| &*endpoint.addresses).collect();
    wanted.iter().any(|endpoint| !present.contains(&*endpoint.addresses))
}
