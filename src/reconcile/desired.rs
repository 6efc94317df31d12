//! What one importing cluster should hold of a service: the import and its derived Service (controller.md 2.5, 2.6).

use std::borrow::Cow;
use std::net::IpAddr;

use super::merge::Merged;
use super::metadata::{import_annotations, import_labels, service_labels};
use super::objects::{Family, Map, Owner, OwnerKind, ServicePort, ServiceSpec, Traffic};
use super::observed::{Import, Local, Refusable, Service};
use super::settings::{DerivedSelector, Settings};
use super::wanted::{WantedImport, WantedService};
use super::world::Member;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// What is there, as far as it bears on the import and its derived Service.
#[derive(Clone, Copy)]
pub(super) struct There<'a> {
    /// The cluster.
    pub cluster: &'a ClusterId,
    /// What it can do.
    pub member: &'a Member,
    /// What it holds under the service's name.
    pub local: Option<&'a Local>,
    /// Our import.
    pub import: Option<&'a Import>,
    /// The derived Service, if it is ours.
    pub our_derived: Option<&'a Service>,
    /// Whether an object that is not ours has the derived name (1.7).
    pub derived_is_foreign: bool,
}

impl<'a> There<'a> {
    /// What a member holds, of the import only what `import` is.
    pub(super) fn new(
        cluster: &'a ClusterId,
        member: &'a Member,
        local: Option<&'a Local>,
        import: Option<&'a Import>,
        derived: Option<&'a Service>,
    ) -> Self {
        let our_derived = derived.filter(|service| service.meta.is_made_by_us());
        let derived_is_foreign = derived.is_some() && our_derived.is_none();
        Self { cluster, member, local, import, our_derived, derived_is_foreign }
    }

    /// An owner reference to the import (R69).
    pub(super) fn import_owner(&self, key: &ServiceKey) -> Owner {
        let uid = self.import.map(|import| import.meta.id.uid.clone());
        Owner { kind: OwnerKind::Import, name: key.name.as_str().into(), uid }
    }

    fn refused(&self, field: Refusable, value: &str) -> bool {
        self.local.and_then(|local| local.refused.get(&field)).is_some_and(|refused| **refused == *value)
    }
}

/// The families of the import in this cluster: the merged ones that the cluster has (R48): what it gave the derived
/// Service, or else what its API server was found to have. A cluster that another controller writes to we only read, so it
/// is what that one has found out that counts.
pub(super) fn local_families(merged: &Merged, there: &There<'_>, settings: &Settings) -> Vec<Family> {
    let those =
        |supported: &dyn Fn(&Family) -> bool| merged.families.iter().filter(|f| supported(f)).copied().collect();
    if let Some(derived) = there.our_derived.filter(|service| !service.spec.headless && !service.spec.ips.is_empty()) {
        return those(&|family| derived.spec.ips.iter().any(|ip| Family::of(*ip) == *family));
    }
    let theirs = || {
        let only = settings.write_only_to.as_ref()?;
        there.import.filter(|_| only != there.cluster).map(|import| &import.spec.families)
    };
    match there.member.features.families.as_ref().or_else(theirs) {
        Some(supported) => those(&|family| supported.contains(family)),
        None => merged.families.clone(),
    }
}

/// Whether this cluster shall have a derived Service for these families.
pub(super) fn wants_derived(merged: &Merged, families: &[Family], there: &There<'_>, settings: &Settings) -> bool {
    // Where the families of the cluster are not known, the derived Service is what shows them: then it stays.
    let possible = !families.is_empty() || there.member.features.families.is_none();
    possible && (merged.kind == ImportKind::ClusterSetIp || settings.headless_derived_service)
}

/// Whether the derived Service that is there can't become the wanted one: whether it is headless, and a headless one's
/// first family, can't be changed (R52: the only planned recreation).
pub(super) fn must_recreate(derived: &Service, wanted: &WantedService<'_>) -> bool {
    derived.spec.headless != wanted.headless
        || (wanted.headless && derived.spec.families.first() != wanted.families.first())
}

/// The clusterset IPs: what the derived Service was given, in the order of the families; one that is being made anew
/// asks for the same (R52). None until there is one for each family.
fn ips(merged: &Merged, families: &[Family], there: &There<'_>) -> Vec<IpAddr> {
    if merged.kind == ImportKind::Headless || there.derived_is_foreign {
        return Vec::new();
    }
    let given: &[IpAddr] = match (there.our_derived, there.import) {
        (Some(derived), _) if derived.spec.headless => &[],
        (Some(derived), _) => &derived.spec.ips,
        (None, Some(import)) => &import.spec.ips,
        (None, None) => &[],
    };
    let of = |family: &Family| given.iter().copied().find(|ip| Family::of(*ip) == *family);
    families.iter().map(of).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The labels and annotations that what belongs to one service has in every importing cluster.
pub(super) struct Heads {
    import_labels: Map,
    /// Those of an import with a derived Service.
    import_annotations: Map,
    service_labels: Map,
    service_annotations: Map,
}

impl Heads {
    /// Those of a service.
    pub(super) fn new(key: &ServiceKey, derived: &Label, merged: &Merged, settings: &Settings) -> Self {
        let exported = &merged.annotations.kept;
        Self {
            import_labels: import_labels(&merged.labels.kept),
            import_annotations: import_annotations(exported, derived),
            service_labels: service_labels(key, &merged.labels.kept, settings),
            service_annotations: if settings.derived_annotations { exported.clone() } else { Map::new() },
        }
    }
}

/// The import.
pub(super) fn import<'a>(
    merged: &'a Merged,
    heads: &'a Heads,
    families: &'a [Family],
    wants_derived: bool,
    there: &There<'_>,
) -> WantedImport<'a> {
    WantedImport {
        labels: &heads.import_labels,
        annotations: if wants_derived { &heads.import_annotations } else { &merged.annotations.kept },
        kind: merged.kind,
        ports: &merged.ports.list,
        ips: Cow::Owned(ips(merged, families, there)),
        // Never empty (R46): where none is supported, those that are offered say what is missing.
        families: if families.is_empty() { &merged.families } else { families },
        traffic: &merged.traffic,
    }
}

/// The derived Service. Its owner is the import (R69).
pub(super) fn service<'a>(
    merged: &'a Merged,
    heads: &'a Heads,
    owners: &'a [Owner],
    families: &'a [Family],
    there: &There<'a>,
    settings: &Settings,
) -> WantedService<'a> {
    let headless = merged.kind == ImportKind::Headless;
    let asked = if there.our_derived.is_none() && !there.derived_is_foreign && !headless {
        asked_ips(there)
    } else {
        Vec::new()
    };
    let selector = selector(merged, there, settings);
    let mut ports = Cow::Borrowed(&merged.ports.list[..]);
    if !selector.is_empty() {
        target(ports.to_mut(), merged, there, settings);
    }
    WantedService {
        labels: &heads.service_labels,
        annotations: &heads.service_annotations,
        owners,
        headless,
        families: if headless { Cow::Borrowed(families) } else { asked.iter().map(|ip| Family::of(*ip)).collect() },
        ips: Cow::Owned(asked),
        // A selectorless headless Service gets both families unless it says otherwise; any other takes what it can
        // get, so that no change of families needs a new one (R50).
        dual_stack: !headless || families.len() > 1,
        ports,
        traffic: if headless { Cow::Owned(Traffic::default()) } else { derived_traffic(merged, there) },
        publish_not_ready: !selector.is_empty() && merged.publish_not_ready,
        selector,
    }
}

/// The addresses that the import had, for a derived Service that somebody deleted.
fn asked_ips(there: &There<'_>) -> Vec<IpAddr> {
    let ips = there.import.map(|import| import.spec.ips.clone()).unwrap_or_default();
    if there.refused(Refusable::ClusterIps, &describe_ips(&ips)) { Vec::new() } else { ips }
}

/// The value of a field of a derived Service, as [`World::set_refused`](super::World::set_refused) takes it.
#[must_use]
pub fn desired_value(spec: &ServiceSpec, field: Refusable) -> Option<Box<str>> {
    match field {
        Refusable::TrafficDistribution => spec.traffic.distribution.clone(),
        Refusable::InternalTrafficPolicy => spec.traffic.internal_policy.clone(),
        Refusable::SessionAffinity => spec.traffic.session_affinity.clone(),
        Refusable::ClusterIps => Some(describe_ips(&spec.ips).into()).filter(|_| !spec.ips.is_empty()),
    }
}

/// Addresses as the value of [`Refusable::ClusterIps`]: joined by commas.
#[must_use]
pub fn describe_ips(ips: &[IpAddr]) -> String {
    ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Sessions and traffic of a derived Service, without what this API server refused (R33, R34).
fn derived_traffic<'a>(merged: &'a Merged, there: &There<'_>) -> Cow<'a, Traffic> {
    let mut traffic = Cow::Borrowed(&merged.traffic);
    for (field, _) in refused_fields(merged, there) {
        let traffic = traffic.to_mut();
        match field {
            Refusable::TrafficDistribution => traffic.distribution = None,
            Refusable::InternalTrafficPolicy => traffic.internal_policy = None,
            Refusable::SessionAffinity => (traffic.session_affinity, traffic.session_timeout) = (None, None),
            Refusable::ClusterIps => {}
        }
    }
    traffic
}

/// The fields that the API server refused with the values that are wanted now.
pub(super) fn refused_fields<'a>(merged: &'a Merged, there: &There<'_>) -> Vec<(Refusable, &'a str)> {
    let traffic = &merged.traffic;
    let fields = [
        (Refusable::TrafficDistribution, &traffic.distribution),
        (Refusable::InternalTrafficPolicy, &traffic.internal_policy),
        (Refusable::SessionAffinity, &traffic.session_affinity),
    ];
    let wanted = fields.into_iter().filter_map(|(field, value)| Some((field, value.as_deref()?)));
    wanted.filter(|(field, value)| there.refused(*field, value)).collect()
}

/// The pods that a derived Service selects itself: none, unless an option says so (D2).
fn selector<'a>(merged: &'a Merged, there: &There<'a>, settings: &Settings) -> Cow<'a, Map> {
    match settings.derived_selector {
        DerivedSelector::None => Cow::default(),
        DerivedSelector::Always => Cow::Borrowed(&merged.selector),
        DerivedSelector::LocalExport if merged.clusters.contains(there.cluster) => {
            local_service(there).map(|service| Cow::Borrowed(&service.spec.selector)).unwrap_or_default()
        }
        DerivedSelector::LocalExport => Cow::default(),
    }
}

fn local_service<'a>(there: &There<'a>) -> Option<&'a Service> {
    there.local.and_then(|local| local.service.as_ref())
}

/// With a selector, ports need the target ports of the Service whose selector it is.
fn target(ports: &mut [ServicePort], merged: &Merged, there: &There<'_>, settings: &Settings) {
    let own = match settings.derived_selector {
        DerivedSelector::LocalExport => local_service(there).map(|service| &service.spec.ports[..]).unwrap_or_default(),
        DerivedSelector::None | DerivedSelector::Always => &merged.oldest_ports,
    };
    for port in ports {
        let serves = |own: &&ServicePort| merged.ports.serves(own, settings.rename_ports) == Some(&*port.name);
        port.target = own.iter().find(serves).and_then(|own| own.target.clone());
    }
}
