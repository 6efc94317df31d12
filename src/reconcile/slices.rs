//! The mirrored slices of one importing cluster: of every exporting cluster, itself included, one or more
//! (controller.md 2.7).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::merge::{Merged, prefers_zones};
use super::naming;
use super::objects::{Endpoint, Family, SliceContent, SlicePort, Time};
use super::observed::{Local, Slice};
use super::packing::{Carry, Groups, Packed, Placed, nothing_wanted, pack, want};
use super::settings::{DerivedSelector, Settings};
use super::standing::{Standing, earlier, standing};
use super::world::{Member, World};
use crate::model::{ClusterId, ImportKind, Label, ServiceKey, SliceKey};

/// What the mirrored slices of one importing cluster depend on.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub world: &'a World,
    pub settings: &'a Settings,
    pub now: Time,
    pub key: &'a ServiceKey,
    pub derived: &'a Label,
    pub cluster: &'a ClusterId,
    pub member: &'a Member,
}

/// A slice that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    /// Its name.
    pub name: Box<str>,
    /// The cluster its endpoints run in.
    pub source: ClusterId,
    /// What it carries; borrowed where that is what is there.
    pub content: Cow<'a, SliceContent>,
    /// Since when it is being drained.
    pub draining: Option<Time>,
}

/// The slices of one importing cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slices<'a> {
    /// Those that shall be there, by name.
    pub wanted: BTreeMap<Box<str>, Wanted<'a>>,
    /// Those that are there and shall not be, with the reason.
    pub unwanted: BTreeMap<Box<str>, String>,
    /// When to look again.
    pub again: Option<Time>,
}

/// Our slices of `key` in a member, with their source clusters.
fn mirrored<'a>(member: &'a Member, key: &ServiceKey) -> BTreeMap<ClusterId, BTreeMap<&'a str, &'a Slice>> {
    let mut by_source: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (name, slice) in member.local(key).into_iter().flat_map(|local| &local.mirrored) {
        if let Some(source) = slice.source() {
            by_source.entry(source).or_default().insert(&**name, slice);
        }
    }
    by_source
}

/// Our slices without a readable source cluster: nobody can say whose endpoints they hold.
fn stray<'a>(member: &'a Member, key: &ServiceKey) -> impl Iterator<Item = Box<str>> + use<'a> {
    let slices = member.local(key).into_iter().flat_map(|local| &local.mirrored);
    slices.filter(|(_, slice)| slice.source().is_none()).map(|(name, _)| name.clone())
}

/// What shall be mirrored into `scope`'s cluster. `families` are those of the import there; without `merged` nobody
/// exports the service any more.
pub(super) fn slices<'a>(scope: Scope<'a>, merged: Option<(&Merged, &[Family])>) -> Slices<'a> {
    let mut there = mirrored(scope.member, scope.key);
    let mut out = Slices::default();
    for name in stray(scope.member, scope.key) {
        out.unwanted.insert(name, "without a source cluster".to_owned());
    }
    let exporters = merged.map(|(merged, _)| &merged.clusters[..]).unwrap_or_default();
    let sources: BTreeSet<ClusterId> = exporters.iter().chain(there.keys()).cloned().collect();
    let mut expired = Vec::new();
    for source in &sources {
        let slices = there.remove(source).unwrap_or_default();
        let standing = standing(scope.world, scope.settings, source);
        let exported = merged.filter(|(merged, _)| merged.clusters.contains(source));
        out.again = earlier(out.again, standing.expiry(scope.now));
        let keeps = !standing.is_expired(scope.now) || !scope.settings.unreachable.remove;
        match (exported, standing) {
            (_, Standing::Unheard { .. }) if keeps => hold(&mut out, source, &slices),
            (Some((merged, families)), Standing::Live | Standing::Unreachable { .. }) if keeps => {
                mirror(scope, merged, families, source, &slices, &mut out);
            }
            (Some(_), _) => expired.push((source, slices)),
            (None, Standing::Unheard { .. }) => expired.push((source, slices)),
            (None, _) => withdraw(scope, source, &slices, &mut out),
        }
    }
    expire(scope, merged, expired, &mut out);
    if let Some((merged, _)) = merged {
        hint(&mut out, merged, scope.settings);
    }
    out
}

/// Keeps what is there: what its source cluster has now is not known.
fn hold<'a>(out: &mut Slices<'a>, source: &ClusterId, slices: &BTreeMap<&'a str, &'a Slice>) {
    for (name, slice) in slices {
        let wanted = Wanted {
            name: (*name).into(),
            source: source.clone(),
            content: Cow::Borrowed(&slice.content),
            draining: slice.draining_since(),
        };
        out.wanted.insert((*name).into(), wanted);
    }
}

/// Removes the endpoints of clusters that have been away for too long, unless none would be left (R84).
fn expire<'a>(
    scope: Scope<'a>,
    merged: Option<(&Merged, &[Family])>,
    expired: Vec<(&ClusterId, BTreeMap<&'a str, &'a Slice>)>,
    out: &mut Slices<'a>,
) {
    let usable = out.wanted.values().any(|w| w.content.endpoints.iter().any(|endpoint| endpoint.ready));
    let keep = scope.settings.unreachable.keep_last_endpoints && !usable && merged.is_some();
    for (source, slices) in expired {
        match (keep, standing(scope.world, scope.settings, source), merged) {
            (true, Standing::Unreachable { .. }, Some((merged, families))) => {
                mirror(scope, merged, families, source, &slices, out);
            }
            (true, _, _) => hold(out, source, &slices),
            (false, ..) => remove(out, &slices, &format!("{source} has been unreachable for too long")),
        }
    }
}

fn remove(out: &mut Slices<'_>, slices: &BTreeMap<&str, &Slice>, reason: &str) {
    out.unwanted.extend(slices.keys().map(|name| (Box::from(*name), reason.to_owned())));
}

/// The slices of a cluster that does not export the service any more: they go at once, or are drained first (R79).
fn withdraw(scope: Scope<'_>, source: &ClusterId, slices: &BTreeMap<&str, &Slice>, out: &mut Slices<'_>) {
    let reason = format!("{source} does not export it any more");
    for (name, slice) in slices {
        let since = slice.draining_since().unwrap_or(scope.now);
        let ends = since + scope.settings.drain;
        if scope.now >= ends {
            out.unwanted.insert((*name).into(), reason.clone());
            continue;
        }
        let mut content = slice.content.clone();
        for endpoint in &mut content.endpoints {
            (endpoint.ready, endpoint.terminating) = (false, true);
            endpoint.hint_zones.clear();
        }
        out.again = earlier(out.again, Some(ends));
        let wanted = Wanted {
            name: (*name).into(),
            source: source.clone(),
            content: Cow::Owned(content),
            draining: Some(since),
        };
        out.wanted.insert((*name).into(), wanted);
    }
}

/// Mirrors the slices of one exporting cluster.
fn mirror<'a>(
    scope: Scope<'a>,
    merged: &Merged,
    families: &[Family],
    source: &ClusterId,
    there: &BTreeMap<&'a str, &'a Slice>,
    out: &mut Slices<'a>,
) {
    let local = scope.cluster == source;
    if local && scope.settings.derived_selector == DerivedSelector::LocalExport {
        remove(out, there, "the derived Service selects this cluster's own pods");
        return;
    }
    let exported = scope.world.members().get(source).and_then(|member| member.local(scope.key));
    let carry = Carry { node: local || scope.settings.remote_node_names, pod: local };
    let mut kept = BTreeSet::new();
    for (rank, family) in families.iter().enumerate() {
        let placed: Vec<_> = there
            .iter()
            .filter(|(_, slice)| slice.content.family == *family)
            .map(|(name, slice)| {
                let mut ports = slice.content.ports.clone();
                ports.sort();
                Placed { name, ports, endpoints: &slice.content.endpoints }
            })
            .collect();
        let groups = exported.map(|exported| groups(scope, merged, exported, *family)).unwrap_or_default();
        for packed in pack(groups, &placed, scope.settings.endpoints_per_slice, carry) {
            let second = (rank > 0).then_some(*family);
            let (name, content) = match packed {
                Packed::Same(name) => {
                    let Some(slice) = there.get(name) else { continue };
                    (Box::from(name), Cow::Borrowed(&slice.content))
                }
                Packed::Changed(name, ports, endpoints) => {
                    let name = name.map(Box::from).or_else(|| free_name(scope, source, second, out));
                    let Some(name) = name else { continue };
                    (name, Cow::Owned(SliceContent { family: *family, ports, endpoints }))
                }
            };
            kept.insert(name.clone());
            out.wanted.insert(name.clone(), Wanted { name, source: source.clone(), content, draining: None });
        }
    }
    let gone = there.iter().filter(|(name, _)| !kept.contains(**name));
    let reason = format!("nothing of it is left in {source}");
    out.unwanted.extend(gone.map(|(name, _)| (Box::from(*name), reason.clone())));
}

/// A name for a new slice that nobody has, and that no other cluster's first slice will want.
fn free_name(scope: Scope<'_>, source: &ClusterId, second: Option<Family>, out: &Slices<'_>) -> Option<Box<str>> {
    let taken = |name: &str| {
        let key = SliceKey { namespace: scope.key.namespace.clone(), name: name.into() };
        let first_of_another =
            scope.world.members().keys().filter(|id| *id != source).any(|id| {
                name.strip_prefix(scope.derived.as_str()).and_then(|n| n.strip_prefix('-')) == Some(id.as_str())
            });
        first_of_another || out.wanted.contains_key(name) || scope.member.has_slice(&key)
    };
    naming::slice_names(scope.derived, source, second).find(|name| !taken(name))
}

/// The endpoints of one exporting cluster and family, by their mirrored ports.
fn groups<'a>(scope: Scope<'a>, merged: &Merged, exported: &'a Local, family: Family) -> Groups<'a> {
    let mut groups = Groups::new();
    let ports: &[_] = exported.service.as_ref().map(|service| &service.spec.ports[..]).unwrap_or_default();
    for slice in exported.sources.values().filter(|slice| slice.content.family == family) {
        let mirrored = merged.ports.of_slice(ports, &slice.content.ports, scope.settings.rename_ports);
        if mirrored.is_empty() && !may_be_portless(merged, &slice.content.ports) {
            continue;
        }
        let endpoints = &slice.content.endpoints;
        let group = groups.entry(mirrored).or_insert_with(|| nothing_wanted(endpoints.len()));
        endpoints.iter().for_each(|endpoint| want(group, endpoint));
    }
    groups.retain(|_, endpoints| !endpoints.is_empty());
    groups
}

/// Whether a slice without any port makes sense: of a headless service whose source slice has none (R44). Where the
/// source has ports and none of them is the union's, there is nothing to reach (R40).
fn may_be_portless(merged: &Merged, source: &[SlicePort]) -> bool {
    merged.kind == ImportKind::Headless && source.is_empty()
}

/// Zone hints, for all endpoints or for none: kube-proxy ignores them where one ready endpoint lacks one (R65).
fn hint(out: &mut Slices<'_>, merged: &Merged, settings: &Settings) {
    let endpoints = || out.wanted.values().filter(|w| w.draining.is_none()).flat_map(|w| &w.content.endpoints);
    let all = settings.zone_hints
        && prefers_zones(&merged.traffic)
        && endpoints().filter(|endpoint| endpoint.ready).all(|endpoint| endpoint.zone.is_some());
    for wanted in out.wanted.values_mut().filter(|w| w.draining.is_none()) {
        if wanted.content.endpoints.iter().all(|endpoint| endpoint.hint_zones.iter().eq(zones(endpoint, all))) {
            continue;
        }
        for endpoint in &mut wanted.content.to_mut().endpoints {
            endpoint.hint_zones = zones(endpoint, all).cloned().collect();
        }
    }
}

/// The zones that an endpoint is hinted for.
fn zones(endpoint: &Endpoint, hinted: bool) -> impl Iterator<Item = &Box<str>> {
    endpoint.zone.iter().filter(move |_| hinted)
}
