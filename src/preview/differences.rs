//! Before and after, in lines for people: one a change, the same change in several clusters told once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::told::{Told, holding};
use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::conflicts::{Conflict, Property};
use crate::reconcile::objects::Time;
use crate::reconcile::{ServicePlan, Settings, World, plan_service};

/// What a line says at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Something is new.
    New,
    /// Something is different.
    Changed,
    /// Something is gone.
    Gone,
    /// Something is wrong, and somebody has to do something about it.
    Wrong,
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "+",
            Self::Changed => "~",
            Self::Gone => "-",
            Self::Wrong => "!",
        })
    }
}

/// One change of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is at a glance.
    pub sign: Sign,
    /// Which service.
    pub service: ServiceKey,
    /// What, where and why.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.sign, self.service, self.text)
    }
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling<'a> {
    /// What has come about: with the clusterset IPs that were given, and the conflicts that came and went.
    Done,
    /// What would come about: without addresses, which nobody has given yet, but with every conflict there is.
    Planned {
        /// The only cluster to tell of, if not all.
        only: Option<&'a ClusterId>,
    },
}

/// What carrying out `plans` made of `before`, in the order of the services.
#[must_use]
pub fn differences(
    before: &World,
    after: &World,
    plans: &[ServicePlan],
    telling: Telling<'_>,
    settings: &Settings,
    now: Time,
) -> Vec<Line> {
    let conflicts = |world: &World, key: &ServiceKey| plan_service(world, key, settings, now).conflicts;
    let mut services: BTreeMap<ServiceKey, Vec<&ServicePlan>> = BTreeMap::new();
    for plan in plans {
        services.entry(plan.key.clone()).or_default().push(plan);
    }
    let (planned, only) = match telling {
        Telling::Done => (false, None),
        Telling::Planned { only } => (true, only),
    };
    if planned {
        for key in after.keys().filter(|key| !conflicts(after, key).is_empty()) {
            services.entry(key).or_default();
        }
    }
    let mut lines = Vec::new();
    for (key, plans) in services {
        // A folder that keeps what was written carries no statuses: that they are written is no news then.
        let kept = planned && before.members().keys().any(|id| holding(before, id, &key).import().is_some());
        let mut told = Told::new(&key, &plans, telling, kept);
        let clusters: BTreeSet<_> = before.members().keys().chain(after.members().keys()).collect();
        for cluster in clusters.into_iter().filter(|id| only.is_none_or(|only| only == *id)) {
            let (was, is) = (holding(before, cluster, &key), holding(after, cluster, &key));
            told.export(cluster, was.export(), is.export());
            // What was in a cluster that is gone is nobody's concern any more.
            if after.members().contains_key(cluster) {
                told.cluster(cluster, was, is);
            }
        }
        let known = if planned { Vec::new() } else { conflicts(before, &key) };
        told.conflicts = self::conflicts(&known, &conflicts(after, &key));
        if !(planned && told.is_idle()) {
            lines.extend(told.lines());
        }
    }
    lines
}

/// Conflicts that came, changed, and went.
fn conflicts(before: &[Conflict], after: &[Conflict]) -> Vec<(Sign, String)> {
    let of = |list: &[Conflict], property: Property| list.iter().find(|c| c.property == property).cloned();
    let told = Property::ALL.into_iter().filter_map(|property| {
        let reason = property.reason();
        match (of(before, property), of(after, property)) {
            (was, Some(is)) if was.as_ref() != Some(&is) => Some((Sign::Wrong, format!("{reason}: {}", is.message))),
            (Some(_), None) => Some((Sign::Changed, format!("{reason} is over"))),
            _ => None,
        }
    });
    told.collect()
}
