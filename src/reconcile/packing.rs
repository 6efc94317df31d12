//! Which endpoint goes into which slice (controller.md R62): those that are placed stay where they are, so that one
//! pod's change rewrites one slice, as kube-controller-manager does it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use super::objects::{Endpoint, SlicePort};

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
pub(super) struct Packed {
    /// Its name, if it is there already.
    pub name: Option<Box<str>>,
    /// Its ports.
    pub ports: Vec<SlicePort>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// The endpoints wanted, by the ports that they listen on, and of each set of ports by their addresses.
pub(super) type Groups = BTreeMap<Vec<SlicePort>, BTreeMap<Vec<IpAddr>, Endpoint>>;

/// Packs the endpoints of one source cluster and family. Slices that are there and not among the result are to go.
pub(super) fn pack(groups: Groups, there: &[Placed<'_>], limit: usize) -> Vec<Packed> {
    let limit = limit.clamp(1, 1000);
    let mut assigned = assign(&groups, there);
    let mut packed = Vec::new();
    for (ports, wanted) in groups {
        let slices = assigned.remove(&ports).unwrap_or_default();
        packed.extend(pack_group(&ports, wanted, &slices, limit));
    }
    packed
}

/// Which set of ports each slice serves: its own, or, where nothing has these ports any more, those that took over its
/// endpoints. So a change of ports rewrites slices instead of replacing them.
fn assign<'a>(groups: &Groups, there: &'a [Placed<'a>]) -> HashMap<Vec<SlicePort>, Vec<&'a Placed<'a>>> {
    let mut assigned: HashMap<Vec<SlicePort>, Vec<&Placed<'_>>> = HashMap::new();
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
        let overlap = |wanted: &BTreeMap<Vec<IpAddr>, Endpoint>| {
            slice.endpoints.iter().filter(|endpoint| wanted.contains_key(&endpoint.addresses)).count()
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
struct Filling {
    name: Option<Box<str>>,
    endpoints: Vec<Endpoint>,
    changed: bool,
}

fn pack_group(
    ports: &[SlicePort],
    mut wanted: BTreeMap<Vec<IpAddr>, Endpoint>,
    there: &[&Placed<'_>],
    limit: usize,
) -> Vec<Packed> {
    let mut slices: Vec<Filling> = there
        .iter()
        .map(|slice| {
            let keep = slice.endpoints.iter().filter_map(|endpoint| wanted.remove(&endpoint.addresses));
            let mut endpoints: Vec<_> = keep.collect();
            // A lower limit than before: what is too much finds another place.
            for endpoint in endpoints.drain(limit.min(endpoints.len())..).collect::<Vec<_>>() {
                wanted.insert(endpoint.addresses.clone(), endpoint);
            }
            let changed = slice.ports != ports || endpoints != slice.endpoints;
            Filling { name: Some(slice.name.into()), endpoints, changed }
        })
        .collect();
    let mut rest: Vec<_> = wanted.into_values().collect();
    // First into slices that are to be written anyway.
    for slice in slices.iter_mut().filter(|slice| slice.changed) {
        let free = limit.saturating_sub(slice.endpoints.len()).min(rest.len());
        slice.endpoints.extend(rest.drain(..free));
    }
    merge_changed(&mut slices, limit);
    // Then into the fullest other one that has room for all, so that as few as possible are written.
    while !rest.is_empty() {
        let room = |slice: &&mut Filling| {
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
    let kept = slices.into_iter().filter(|slice| !slice.endpoints.is_empty());
    kept.map(|slice| Packed { name: slice.name, ports: ports.to_vec(), endpoints: slice.endpoints }).collect()
}

/// Empties slices that are to be written into others that are: what shrank does not stay scattered, at no more writes.
fn merge_changed(slices: &mut [Filling], limit: usize) {
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

/// Whether the first slice gains endpoints that are elsewhere now: written before those that lose them, nothing is
/// missing in between (HDL-05).
pub(super) fn gains(now: &[Endpoint], wanted: &[Endpoint]) -> bool {
    let present: HashSet<&[IpAddr]> = now.iter().map(|endpoint| &*endpoint.addresses).collect();
    wanted.iter().any(|endpoint| !present.contains(&*endpoint.addresses))
}
