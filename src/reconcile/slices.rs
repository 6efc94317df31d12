//! The mirrored slices of one importing cluster: of every exporting cluster, itself included, one or more
//! (controller.md 2.7).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::merge::{Merged, prefers_zones};
use super::naming;
use super::objects::{Endpoint, Family, SliceContent, Time};
use super::observed::{Local, Slice};
use super::offers::Offer;
use super::packing::{Carry, Packed, Placed, pack};
use super::settings::{DerivedSelector, Settings};
use super::standing::{Standing, earlier, standing};
use super::world::{Member, World};
use crate::model::{ClusterId, Label, ServiceKey, SliceKey};

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
    /// What the cluster holds under the service's name.
    pub local: Option<&'a Local>,
    /// Of the exporters, in their order of precedence.
    pub offers: &'a [Offer<'a>],
}

/// A slice that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    /// The cluster its endpoints run in.
    pub source: Cow<'a, ClusterId>,
    /// What it carries; borrowed where that is what is there.
    pub content: Cow<'a, SliceContent>,
    /// Since when it is being drained.
    pub draining: Option<Time>,
}

/// The slices of one importing cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slices<'a> {
    /// Those that shall be there, by name.
    pub wanted: BTreeMap<Cow<'a, str>, Wanted<'a>>,
    /// Those that are there and shall not be, with the reason.
    pub unwanted: BTreeMap<&'a str, String>,
    /// When to look again.
    pub again: Option<Time>,
}

/// Slices by name, in the order of their names.
type Named<'a> = Vec<(&'a str, &'a Slice)>;

/// A source cluster.
struct Source<'a> {
    cluster: Cow<'a, ClusterId>,
    /// The slices of it that are there.
    there: Named<'a>,
}

/// The source clusters, those that export and those that slices are there of, with what is there of each. A slice
/// without a readable source cluster is unwanted: nobody can say whose endpoints it holds.
fn sources<'a>(scope: Scope<'a>, out: &mut Slices<'a>) -> impl Iterator<Item = Source<'a>> + use<'a> {
    let exporters = scope.offers.iter().map(|offer| (Cow::Borrowed(offer.cluster), Vec::new()));
    let mut sources: BTreeMap<_, Named<'a>> = exporters.collect();
    for (name, slice) in scope.local.into_iter().flat_map(|local| &local.mirrored) {
        let label = slice.source_label();
        let exporter = scope.offers.iter().map(|offer| offer.cluster).find(|id| label == Some(id.as_str()));
        match exporter.map(Cow::Borrowed).or_else(|| slice.source().map(Cow::Owned)) {
            Some(source) => sources.entry(source).or_default().push((name, slice)),
            None => {
                out.unwanted.insert(name, "without a source cluster".to_owned());
            }
        }
    }
    sources.into_iter().map(|(cluster, there)| Source { cluster, there })
}

/// What shall be mirrored into `scope`'s cluster. `families` are those of the import there; without `merged` nobody
/// exports the service any more.
pub(super) fn slices<'a>(scope: Scope<'a>, merged: Option<(&Merged, &[Family])>) -> Slices<'a> {
    let mut out = Slices::default();
    let mut expired = Vec::new();
    for source in sources(scope, &mut out) {
        let standing = standing(scope.world, scope.settings, &source.cluster);
        let offer = scope.offers.iter().find(|offer| *offer.cluster == *source.cluster);
        let exported = merged.and_then(|(_, families)| Some((offer?, families)));
        out.again = earlier(out.again, standing.expiry(scope.now));
        let keeps = !standing.is_expired(scope.now) || !scope.settings.unreachable.remove;
        match (exported, standing) {
            (_, Standing::Unheard { .. }) if keeps => hold(&mut out, &source),
            (Some((offer, families)), Standing::Live | Standing::Unreachable { .. }) if keeps => {
                mirror(scope, offer, families, &source.there, &mut out);
            }
            (Some(_), _) => expired.push(source),
            (None, Standing::Unheard { .. }) => expired.push(source),
            (None, _) => withdraw(scope, &source, &mut out),
        }
    }
    expire(scope, merged.map(|(_, families)| families), expired, &mut out);
    if let Some((merged, _)) = merged {
        hint(&mut out, merged, scope.settings);
    }
    out
}

/// Keeps what is there: what its source cluster has now is not known.
fn hold<'a>(out: &mut Slices<'a>, source: &Source<'a>) {
    for (name, slice) in &source.there {
        let wanted = Wanted {
            source: source.cluster.clone(),
            content: Cow::Borrowed(&slice.content),
            draining: slice.draining_since(),
        };
        out.wanted.insert(Cow::Borrowed(name), wanted);
    }
}

/// Removes the endpoints of clusters that have been away for too long, unless none would be left (R84).
fn expire<'a>(scope: Scope<'a>, families: Option<&[Family]>, expired: Vec<Source<'a>>, out: &mut Slices<'a>) {
    let usable = out.wanted.values().any(|w| w.content.endpoints.iter().any(|endpoint| endpoint.ready));
    let keep = scope.settings.unreachable.keep_last_endpoints && !usable && families.is_some();
    for source in expired {
        let offer = scope.offers.iter().find(|offer| *offer.cluster == *source.cluster);
        match (keep, standing(scope.world, scope.settings, &source.cluster), offer.zip(families)) {
            (true, Standing::Unreachable { .. }, Some((offer, families))) => {
                mirror(scope, offer, families, &source.there, out);
            }
            (true, _, _) => hold(out, &source),
            (false, ..) => remove(out, &source.there, &format!("{} has been unreachable for too long", source.cluster)),
        }
    }
}

fn remove<'a>(out: &mut Slices<'a>, slices: &[(&'a str, &'a Slice)], reason: &str) {
    out.unwanted.extend(slices.iter().map(|(name, _)| (*name, reason.to_owned())));
}

/// The slices of a cluster that does not export the service any more: they go at once, or are drained first (R79).
fn withdraw<'a>(scope: Scope<'a>, source: &Source<'a>, out: &mut Slices<'a>) {
    for (name, slice) in &source.there {
        let since = slice.draining_since().unwrap_or(scope.now);
        let ends = since + scope.settings.drain;
        if scope.now >= ends {
            out.unwanted.insert(name, format!("{} does not export it any more", source.cluster));
            continue;
        }
        let mut content = slice.content.clone();
        for endpoint in &mut content.endpoints {
            (endpoint.ready, endpoint.terminating) = (false, true);
            endpoint.hint_zones.clear();
        }
        out.again = earlier(out.again, Some(ends));
        let wanted = Wanted { source: source.cluster.clone(), content: Cow::Owned(content), draining: Some(since) };
        out.wanted.insert(Cow::Borrowed(name), wanted);
    }
}

/// Mirrors the slices of one exporting cluster.
fn mirror<'a>(
    scope: Scope<'a>,
    offer: &'a Offer<'a>,
    families: &[Family],
    there: &[(&'a str, &'a Slice)],
    out: &mut Slices<'a>,
) {
    let source = offer.cluster;
    let local = scope.cluster == source;
    if local && scope.settings.derived_selector == DerivedSelector::LocalExport {
        remove(out, there, "the derived Service selects this cluster's own pods");
        return;
    }
    let carry = Carry { node: local || scope.settings.remote_node_names, pod: local };
    for (rank, family) in families.iter().enumerate() {
        let Some(groups) = offer.groups(*family) else { continue };
        let of_family = there.iter().filter(|(_, slice)| slice.content.family == *family);
        let placed: Vec<_> = of_family.map(|(name, slice)| Placed::new(name, &slice.content)).collect();
        for packed in pack(groups, &placed, scope.settings.endpoints_per_slice, carry) {
            let second = (rank > 0).then_some(*family);
            let (name, content) = match packed {
                Packed::Same(name, content) => (Cow::Borrowed(name), Cow::Borrowed(content)),
                Packed::Changed(name, ports, endpoints) => {
                    let free = || free_name(scope, source, second, out).map(|name| Cow::Owned(name.into()));
                    let Some(name) = name.map(Cow::Borrowed).or_else(free) else { continue };
                    (name, Cow::Owned(SliceContent { family: *family, ports, endpoints }))
                }
            };
            out.wanted.insert(name, Wanted { source: Cow::Borrowed(source), content, draining: None });
        }
    }
    for (name, _) in there {
        if !out.wanted.contains_key(*name) {
            out.unwanted.insert(name, format!("nothing of it is left in {source}"));
        }
    }
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
