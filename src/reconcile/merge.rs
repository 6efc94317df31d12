//! One service of all exports: a pure function of their specs, their times and the cluster ids (controller.md 2.3).
//! Every controller that sees the same exports computes the same service, in whatever order it sees them (R19).

use super::conflicts::{Conflict, Property, Used, conflict};
use super::exports::Contribution;
use super::families;
use super::metadata::{Exported, exported_annotations, exported_labels};
use super::objects::{Family, Map, ServicePort, Traffic};
use super::ports::{self, Ports};
use super::settings::{FamilyRule, Settings};
use crate::api;
use crate::model::{ClusterId, ImportKind};

/// What an exported service is for the clusterset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The valid exporters, in precedence order.
    pub clusters: Vec<ClusterId>,
    /// Headless or not.
    pub kind: ImportKind,
    /// The ports.
    pub ports: Ports,
    /// The families, before any importing cluster's limits.
    pub families: Vec<Family>,
    /// Sessions and traffic. Without session affinity where the service is headless.
    pub traffic: Traffic,
    /// The oldest export's labels.
    pub labels: Exported,
    /// The oldest export's annotations.
    pub annotations: Exported,
    /// The oldest export's ports as its Service has them, with their target ports.
    pub oldest_ports: Vec<ServicePort>,
    /// The oldest export's selector.
    pub selector: Map,
    /// The oldest export's `publishNotReadyAddresses`.
    pub publish_not_ready: bool,
    /// What the exporters disagree about, in the order of the API's reasons.
    pub conflicts: Vec<Conflict>,
    /// Some exporter was not heard: whether it agrees is not known.
    pub uncertain: bool,
}

/// The service of these exports, which are in precedence order. `None` of none.
#[must_use]
pub fn merge(exports: &[Contribution<'_>], settings: &Settings) -> Option<Merged> {
    let oldest = exports.first()?;
    let ports = ports::union(exports.iter().map(|export| &*export.ports));
    let lists: Vec<_> = exports.iter().map(|export| &*export.families).collect();
    let (families, _) = families::merge(&lists, settings.families);
    let mut traffic = oldest.traffic.clone().into_owned();
    if oldest.kind == ImportKind::Headless {
        (traffic.session_affinity, traffic.session_timeout) = (None, None);
    }
    let conflicts = conflicts(exports, oldest, &ports, &families, settings);
    Some(Merged {
        clusters: exports.iter().map(|export| (*export.cluster).clone()).collect(),
        kind: oldest.kind,
        ports,
        families,
        traffic,
        labels: exported_labels(&oldest.labels),
        annotations: exported_annotations(&oldest.annotations),
        oldest_ports: oldest.ports.to_vec(),
        selector: oldest.selector.clone().into_owned(),
        publish_not_ready: oldest.publish_not_ready,
        conflicts,
        uncertain: exports.iter().any(|export| export.remembered),
    })
}

fn conflicts(
    exports: &[Contribution<'_>],
    oldest: &Contribution<'_>,
    ports: &Ports,
    families: &[Family],
    settings: &Settings,
) -> Vec<Conflict> {
    let headless = oldest.kind == ImportKind::Headless;
    let traffic = &oldest.traffic;
    let check = |property: Property| -> Option<Conflict> {
        let differs: Box<dyn Fn(&Contribution<'_>) -> bool + '_> = match property {
            Property::Port => Box::new(|other| !ports.agrees(&other.ports)),
            Property::Type => Box::new(|other| other.kind != oldest.kind),
            // Nobody keeps sessions on a headless service: no conflict (R22).
            Property::SessionAffinity | Property::SessionAffinityConfig if headless => return None,
            Property::SessionAffinity => Box::new(|other| affinity(&other.traffic) != affinity(traffic)),
            Property::SessionAffinityConfig => Box::new(|other| timeout(&other.traffic) != timeout(traffic)),
            Property::Annotations => Box::new(|other| other.annotations != oldest.annotations),
            Property::Labels => Box::new(|other| other.labels != oldest.labels),
            Property::InternalTrafficPolicy => Box::new(|other| policy(&other.traffic) != policy(traffic)),
            Property::TrafficDistribution => Box::new(|other| distribution(&other.traffic) != distribution(traffic)),
            Property::IpFamily => Box::new(|other| families::differs(&other.families, families)),
        };
        let disagree = exports.iter().filter(|export| !export.remembered && differs(export)).count();
        if disagree == 0 {
            return None;
        }
        let (value, used) = used(property, exports, oldest, ports, families, settings);
        Some(conflict(property, &value, used, disagree, exports.len()))
    };
    Property::ALL.into_iter().filter_map(check).collect()
}

/// The value that is used for a property, in words, and whose it is.
fn used<'a>(
    property: Property,
    exports: &[Contribution<'_>],
    oldest: &'a Contribution<'_>,
    ports: &Ports,
    families: &[Family],
    settings: &Settings,
) -> (String, Used<'a>) {
    let cluster = &*oldest.cluster;
    let traffic = &oldest.traffic;
    let value = match property {
        Property::Port => {
            let own = oldest.remembered || ports.agrees(&oldest.ports);
            return (ports.describe(), if own { Used::Oldest(cluster) } else { Used::Union(cluster) });
        }
        Property::IpFamily => {
            let common = exports.iter().all(|export| families.iter().all(|f| export.families.contains(f)));
            let used = match settings.families {
                _ if common => Used::Common,
                FamilyRule::Intersection => Used::Oldest(cluster),
                FamilyRule::Union => Used::Union(cluster),
            };
            return (families::describe(families), used);
        }
        Property::Type => match oldest.kind {
            ImportKind::ClusterSetIp => api::TYPE_CLUSTERSET_IP.to_owned(),
            ImportKind::Headless => api::TYPE_HEADLESS.to_owned(),
        },
        Property::SessionAffinity => affinity(traffic).to_owned(),
        Property::SessionAffinityConfig => timeout(traffic).map_or("none".to_owned(), |s| format!("{s}s timeout")),
        Property::Annotations => describe(&oldest.annotations),
        Property::Labels => describe(&oldest.labels),
        Property::InternalTrafficPolicy => policy(traffic).to_owned(),
        Property::TrafficDistribution => traffic.distribution.as_deref().unwrap_or("none").to_owned(),
    };
    (value, Used::Oldest(cluster))
}

fn describe(map: &Map) -> String {
    if map.is_empty() {
        return "none".to_owned();
    }
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// `sessionAffinity`; absent means `None`.
pub(super) fn affinity(traffic: &Traffic) -> &str {
    traffic.session_affinity.as_deref().unwrap_or("None")
}

/// The timeout of sessions; where there are sessions and no timeout, the API's default.
pub(super) fn timeout(traffic: &Traffic) -> Option<i32> {
    const DEFAULT: i32 = 10_800;
    traffic.session_timeout.or((affinity(traffic) == "ClientIP").then_some(DEFAULT))
}

/// `internalTrafficPolicy`; absent means `Cluster` (R24).
pub(super) fn policy(traffic: &Traffic) -> &str {
    traffic.internal_policy.as_deref().unwrap_or("Cluster")
}

/// `trafficDistribution`, of which `PreferClose` is the older name of `PreferSameZone` (R25).
fn distribution(traffic: &Traffic) -> Option<&str> {
    match traffic.distribution.as_deref() {
        Some("PreferClose") => Some("PreferSameZone"),
        other => other,
    }
}

/// Whether clients shall prefer endpoints of their own zone.
pub(super) fn prefers_zones(traffic: &Traffic) -> bool {
    distribution(traffic) == Some("PreferSameZone")
}
