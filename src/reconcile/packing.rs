//! Which endpoint goes into which slice (controller.md R62): those that are placed stay where they are, so that one
//! pod's change rewrites one slice, as kube-controller-manager does it. What stays as it is is not even copied.

use std::borrow::Cow;
use std::net::IpAddr;

use foldhash::HashSet;

use super::objects::{Endpoint, SliceContent, SlicePort};

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

    /// Whether an endpoint with these addresses is written already. Hints are looked at later.
    fn is_written(self, there: &Endpoint, source: &Endpoint) -> bool {
        (there.ready, there.serving, there.terminating) == (source.ready, source.serving, source.terminating)
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
    pub ports: Cow<'a, [SlicePort]>,
    /// What it carries.
    pub content: &'a SliceContent,
}

impl<'a> Placed<'a> {
    /// A slice of that name.
    pub(super) fn new(name: &'a str, content: &'a SliceContent) -> Self {
        let mut ports = Cow::Borrowed(&content.ports[..]);
        if !ports.is_sorted() {
            ports.to_mut().sort();
        }
        Self { name, ports, content }
    }
}

/// A slice as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packed<'a> {
    /// One that is there, and stays as it is.
    Same(&'a str, &'a SliceContent),
    /// One to be written, under the name that it has already, if any.
    Changed(Option<&'a str>, Vec<SlicePort>, Vec<Endpoint>),
}

/// Endpoints of a source cluster that listen on the same ports.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    ports: Vec<SlicePort>,
    /// In the order of their addresses, each once.
    endpoints: Vec<&'a Endpoint>,
}

/// The endpoints of a source cluster and family, by the ports that they listen on. The same for every importing cluster,
/// and gathered once.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups<'a>(Vec<Group<'a>>);

impl<'a> Groups<'a> {
    /// Adds endpoints that listen on these ports, which are sorted.
    pub(super) fn add(&mut self, ports: Vec<SlicePort>, endpoints: &'a [Endpoint]) {
        match self.0.iter_mut().find(|group| group.ports == ports) {
            Some(group) => group.endpoints.extend(endpoints),
            None => self.0.push(Group { ports, endpoints: endpoints.iter().collect() }),
        }
    }

    /// Puts them in order. While an endpoint moves from one source slice to another it may stand in both: the better one
    /// counts.
    pub(super) fn sort(&mut self) {
        self.0.retain(|group| !group.endpoints.is_empty());
        self.0.sort_by(|a, b| a.ports.cmp(&b.ports));
        for Group { endpoints, .. } in &mut self.0 {
            let worse = |endpoint: &Endpoint| (!endpoint.ready, !endpoint.serving);
            endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses).then_with(|| worse(a).cmp(&worse(b))));
            endpoints.dedup_by(|a, b| a.addresses == b.addresses);
        }
    }
}

impl<'a> Group<'a> {
    /// Where the endpoint with these addresses stands. What was written in one go has the order of the addresses, so that
    /// it is most often the one after the last that was found.
    fn find(&self, addresses: &[IpAddr], expected: usize) -> Option<usize> {
        if self.endpoints.get(expected).is_some_and(|endpoint| endpoint.addresses == addresses) {
            return Some(expected);
        }
        self.endpoints.binary_search_by(|endpoint| (*endpoint.addresses).cmp(addresses)).ok()
    }

    /// Whether a slice holds just these endpoints, each as it shall be and all in their order.
    fn is_held_by(&self, slice: &Placed<'_>, carry: Carry) -> bool {
        let there = &slice.content.endpoints;
        let same = |(there, source): (&Endpoint, &&Endpoint)| {
            there.addresses == source.addresses && carry.is_written(there, source)
        };
        *slice.ports == *self.ports
            && there.len() == self.endpoints.len()
            && there.iter().zip(&self.endpoints).all(same)
    }

    /// How many of these endpoints are among them.
    fn overlap(&self, endpoints: &[Endpoint]) -> usize {
        endpoints.iter().filter(|endpoint| self.find(&endpoint.addresses, 0).is_some()).count()
    }
}

/// Packs the endpoints of one source cluster and family. Slices that are there and not among the result are to go.
pub(super) fn pack<'a>(groups: &Groups<'a>, there: &[Placed<'a>], limit: usize, carry: Carry) -> Vec<Packed<'a>> {
    let limit = limit.clamp(1, 1000);
    // Most services have one slice a cluster, in which nothing has changed: that is seen at a glance.
    if let ([group], [slice]) = (&groups.0[..], there)
        && group.endpoints.len() <= limit
        && group.is_held_by(slice, carry)
    {
        return vec![Packed::Same(slice.name, slice.content)];
    }
    let mut packed = Vec::with_capacity(there.len());
    for (group, slices) in groups.0.iter().zip(assign(groups, there)) {
        pack_group(group, &slices, limit, carry, &mut packed);
    }
    packed
}

/// Which slices each group has: those with its ports, or, where nothing has the ports of a slice any more, those that
/// took over its endpoints. So a change of ports rewrites slices instead of replacing them.
fn assign<'a, 's>(groups: &Groups<'_>, there: &'s [Placed<'a>]) -> Vec<Vec<&'s Placed<'a>>> {
    let mut assigned: Vec<Vec<&Placed<'_>>> = vec![Vec::new(); groups.0.len()];
    let mut rest = Vec::new();
    for slice in there {
        let same = groups.0.iter().zip(&mut assigned).find(|(group, _)| *group.ports == *slice.ports);
        same.map_or(&mut rest, |(_, slices)| slices).push(slice);
    }
    let mut orphaned: Vec<_> = groups.0.iter().zip(&mut assigned).filter(|(_, slices)| slices.is_empty()).collect();
    let mut leftover = Vec::new();
    for slice in rest {
        let overlaps = orphaned.iter_mut().map(|(group, slices)| (group.overlap(&slice.content.endpoints), slices));
        match overlaps.rev().max_by_key(|(n, _)| *n) {
            Some((1.., slices)) => slices.push(slice),
            _ => leftover.push(slice),
        }
    }
    let empty = orphaned.into_iter().filter(|(_, slices)| slices.is_empty());
    for ((_, slices), slice) in empty.zip(leftover) {
        slices.push(slice);
    }
    assigned
}

/// A slice while it is being filled.
struct Filling<'a> {
    /// What is there, if anything.
    is: Option<(&'a str, &'a SliceContent)>,
    endpoints: Vec<&'a Endpoint>,
    changed: bool,
}

fn pack_group<'a>(group: &Group<'a>, there: &[&Placed<'a>], limit: usize, carry: Carry, packed: &mut Vec<Packed<'a>>) {
    let mut taken = vec![false; group.endpoints.len()];
    let mut slices: Vec<Filling<'_>> = there.iter().map(|slice| keep(slice, group, &mut taken, limit, carry)).collect();
    let mut rest: Vec<_> = group.endpoints.iter().zip(taken).filter(|(_, taken)| !taken).map(|(e, _)| *e).collect();
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
            slices.push(Filling { is: None, endpoints, changed: true });
        }
    }
    let filled = slices.into_iter().filter(|slice| !slice.endpoints.is_empty());
    packed.extend(filled.map(|slice| match slice.is {
        Some((name, content)) if !slice.changed => Packed::Same(name, content),
        is => {
            let endpoints = slice.endpoints.into_iter().map(|source| carry.endpoint(source)).collect();
            Packed::Changed(is.map(|(name, _)| name), group.ports.clone(), endpoints)
        }
    }));
}

/// What of a slice stays in it.
fn keep<'a>(slice: &Placed<'a>, group: &Group<'a>, taken: &mut [bool], limit: usize, carry: Carry) -> Filling<'a> {
    let there = &slice.content.endpoints;
    let mut endpoints = Vec::with_capacity(there.len().min(group.endpoints.len()));
    let mut same = *slice.ports == *group.ports;
    let mut next = 0;
    for there in there {
        // One above a limit that is lower than before finds another place.
        let at = group.find(&there.addresses, next).filter(|_| endpoints.len() < limit);
        let found =
            at.and_then(|at| Some((at, *group.endpoints.get(at)?, taken.get_mut(at).filter(|taken| !**taken)?)));
        match found {
            Some((at, source, taken)) => {
                same &= carry.is_written(there, source);
                endpoints.push(source);
                *taken = true;
                next = at + 1;
            }
            None => same = false,
        }
    }
    Filling { is: Some((slice.name, slice.content)), endpoints, changed: !same }
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

/// Whether a slice gains endpoints that are elsewhere now: written before those that lose them, nothing is missing in
/// between (HDL-05).
pub(super) fn gains(now: &[Endpoint], wanted: &[Endpoint]) -> bool {
    let present: HashSet<&[IpAddr]> = now.iter().map(|endpoint| &*endpoint.addresses).collect();
    wanted.iter().any(|endpoint| !present.contains(&*endpoint.addresses))
}
