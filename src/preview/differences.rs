//! Before and after, in lines for people: one a change, the same change in several clusters told once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use super::describe;
use crate::api;
use crate::model::{ClusterId, ImportKind, ServiceKey};
use crate::reconcile::conflicts::{Conflict, Property};
use crate::reconcile::objects::{Condition, Endpoint, ImportStatus, SlicePort, Status, Time};
use crate::reconcile::observed::{Export, Import, Local, Service, Slice};
use crate::reconcile::plan::Action;
use crate::reconcile::{ServicePlan, Settings, World, naming, plan_service};

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
        let mut told = Told { key: &key, plans: &plans, telling, kept, facts: Vec::new(), conflicts: Vec::new() };
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

/// What one cluster holds of a service.
#[derive(Default, Clone, Copy)]
struct Holding<'a> {
    local: Option<&'a Local>,
    derived: Option<&'a Service>,
}

fn holding<'a>(world: &'a World, cluster: &ClusterId, key: &ServiceKey) -> Holding<'a> {
    let Some(member) = world.members().get(cluster) else { return Holding::default() };
    let derived = member.derived(&naming::derived_key(key)).filter(|service| service.meta.is_ours());
    Holding { local: member.local(key), derived }
}

impl<'a> Holding<'a> {
    fn import(self) -> Option<&'a Import> {
        self.local?.import.as_ref()
    }

    fn export(self) -> Option<&'a Export> {
        self.local?.export.as_ref()
    }

    fn slices(self) -> impl Iterator<Item = (&'a Box<str>, &'a Slice)> {
        self.local.into_iter().flat_map(|local| &local.mirrored)
    }

    fn sources(self) -> BTreeSet<Option<ClusterId>> {
        self.slices().map(|(_, slice)| slice.source()).collect()
    }

    fn endpoints(self, source: &ClusterId) -> Endpoints<'a> {
        Endpoints::of(self.slices().filter(|(_, slice)| slice.source().as_ref() == Some(source)))
    }
}

/// The last place of lines about exports.
const EXPORTS: u8 = 1;

/// Something that is so in one cluster. Facts that differ in nothing but the cluster are told together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    /// The place among the lines of a service.
    order: u8,
    sign: Sign,
    /// Before the clusters, and behind them.
    text: (String, String),
    cluster: ClusterId,
    /// What is said of this cluster alone.
    note: String,
}

struct Told<'a> {
    key: &'a ServiceKey,
    plans: &'a [&'a ServicePlan],
    telling: Telling<'a>,
    /// Statuses that are not known are taken for what they would be.
    kept: bool,
    facts: Vec<Fact>,
    conflicts: Vec<(Sign, String)>,
}

impl Told<'_> {
    fn cluster(&mut self, cluster: &ClusterId, before: Holding<'_>, after: Holding<'_>) {
        self.import(cluster, before.import(), after.import());
        self.derived(cluster, before.derived, after.derived);
        for source in before.sources().union(&after.sources()).flatten() {
            self.slices(cluster, source, before, after);
        }
        self.conditions(cluster, before, after);
    }

    fn fact(&mut self, order: u8, sign: Sign, text: (String, String), cluster: &ClusterId, note: String) {
        self.facts.push(Fact { order, sign, text, cluster: cluster.clone(), note });
    }

    /// The first reason that a plan gives for a change in `cluster` that `fits`.
    fn reason(&self, cluster: &ClusterId, fits: impl Fn(&Action) -> bool) -> String {
        let changes = self.plans.iter().flat_map(|plan| &plan.plan.changes);
        let mut ours = changes.filter(|change| change.cluster == *cluster && fits(&change.action));
        ours.next().map(|change| format!(" ({})", change.reason)).unwrap_or_default()
    }

    /// Whether an export counts, and if not, why.
    fn export(&mut self, cluster: &ClusterId, before: Option<&Export>, after: Option<&Export>) {
        let valid = |export: Option<&Export>| {
            let condition = export.and_then(|export| find(&export.conditions, api::CONDITION_VALID)).cloned();
            condition.filter(|valid| valid.status != Status::Unknown)
        };
        let (was, is) = (valid(before), valid(after));
        let same = |a: &Condition, b: &Condition| (a.status, &a.reason, &a.message) == (b.status, &b.reason, &b.message);
        match (was, is) {
            (Some(was), Some(is)) if same(&was, &is) => {}
            (None, Some(is)) if self.kept && before.is_some() && is.status == Status::True => {}
            (_, Some(is)) if is.status == Status::True => {
                self.fact(0, Sign::New, ("exported by ".to_owned(), String::new()), cluster, String::new());
            }
            (_, Some(is)) => {
                let why = format!(" does not count: {}: {}", is.reason, is.message);
                self.fact(1, Sign::Wrong, ("the ServiceExport in ".to_owned(), why), cluster, String::new());
            }
            (Some(_), None) if after.is_none() => {
                self.fact(0, Sign::Gone, ("no longer exported by ".to_owned(), String::new()), cluster, String::new());
            }
            _ => {}
        }
    }

    fn import(&mut self, cluster: &ClusterId, before: Option<&Import>, after: Option<&Import>) {
        let told = self.telling == Telling::Done;
        let note = |import: &Import| if told { describe_ips(&import.spec.ips) } else { String::new() };
        match (before, after) {
            (None, Some(import)) => {
                let what = format!("{}, {}", describe::kind(import.spec.kind), describe::ports(&import.spec.ports));
                let why = self.reason(cluster, |action| matches!(action, Action::ApplyImport(_)));
                let text = ("ServiceImport in ".to_owned(), format!(": {what}{why}"));
                self.fact(3, Sign::New, text, cluster, note(import));
            }
            (Some(_), None) => {
                let why = self.reason(cluster, |action| matches!(action, Action::DeleteImport(..)));
                self.fact(3, Sign::Gone, ("ServiceImport in ".to_owned(), why), cluster, String::new());
            }
            (Some(before), Some(after)) => {
                for difference in import_differences(before, after) {
                    let text = ("ServiceImport in ".to_owned(), format!(": {difference}"));
                    self.fact(3, Sign::Changed, text, cluster, String::new());
                }
                if told && before.spec.ips != after.spec.ips && before.spec.kind == after.spec.kind {
                    let (was, is) = (describe_ips(&before.spec.ips), describe_ips(&after.spec.ips));
                    let text = ("clusterset IP in ".to_owned(), String::new());
                    self.fact(3, Sign::Changed, text, cluster, format!(" {} →{}", was.trim_start(), is));
                }
            }
            (None, None) => {}
        }
    }

    fn derived(&mut self, cluster: &ClusterId, before: Option<&Service>, after: Option<&Service>) {
        let name = naming::derived(self.key);
        let apply = |action: &Action| matches!(action, Action::ApplyService(_));
        let text = |end: String| (format!("Service {name} in "), end);
        match (before, after) {
            (None, Some(_)) => {
                let why = self.reason(cluster, apply);
                self.fact(4, Sign::New, text(why), cluster, String::new());
            }
            (Some(_), None) => {
                let why = self.reason(cluster, |action| matches!(action, Action::DeleteService(..)));
                self.fact(4, Sign::Gone, text(why), cluster, String::new());
            }
            (Some(before), Some(after)) if before.meta.id.uid != after.meta.id.uid => {
                let why = self.reason(cluster, |action| matches!(action, Action::DeleteService(..)));
                self.fact(4, Sign::Changed, text(format!(": made anew{why}")), cluster, String::new());
            }
            (Some(before), Some(after)) if (&before.spec, &before.meta) != (&after.spec, &after.meta) => {
                let why = self.reason(cluster, apply);
                if !why.is_empty() {
                    self.fact(4, Sign::Changed, text(format!(": written{why}")), cluster, String::new());
                }
            }
            _ => {}
        }
    }

    /// The endpoints of one source cluster, over all its slices.
    fn slices(&mut self, cluster: &ClusterId, source: &ClusterId, before: Holding<'_>, after: Holding<'_>) {
        let (was, is) = (before.endpoints(source), after.endpoints(source));
        let in_clusters = |end| ("EndpointSlices in ".to_owned(), end);
        match (was.names.is_empty(), is.names.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let text = in_clusters(format!(": {} of {source}", is.summary()));
                self.fact(5, Sign::New, text, cluster, String::new());
            }
            (false, true) => {
                let why = self.reason(cluster, |action| {
                    matches!(action, Action::DeleteSlice(_, name, _) if was.names.contains(&name))
                });
                let text = in_clusters(format!(": no endpoints of {source} any more{why}"));
                self.fact(5, Sign::Gone, text, cluster, String::new());
            }
            (false, false) => {
                for (sign, difference) in is.since(&was) {
                    let text = in_clusters(format!(": {source}: {difference}"));
                    self.fact(5, sign, text, cluster, String::new());
                }
            }
        }
    }

    /// The condition Ready of the export, and of an import that can't be used.
    fn conditions(&mut self, cluster: &ClusterId, before: Holding<'_>, after: Holding<'_>) {
        let ready = |conditions: Option<&Vec<Condition>>| find(conditions?, api::CONDITION_READY).cloned();
        let says = |c: &Option<Condition>| c.as_ref().map(|c| (c.status, c.reason.clone(), c.message.clone()));

        let was = ready(before.export().map(|export| &export.conditions));
        let is = ready(after.export().map(|export| &export.conditions));
        let invalid = after.export().is_some_and(|export| {
            find(&export.conditions, api::CONDITION_VALID).is_some_and(|valid| valid.status != Status::True)
        });
        let known = was.is_some() || before.export().is_none() || !self.kept;
        let news = says(&was) != says(&is) && !invalid;
        if let Some(is) = is.clone().filter(|is| news && (known || is.status != Status::True)) {
            let sign = if is.status == Status::True { Sign::Changed } else { Sign::Wrong };
            let end = format!(" is {}: {}", is.reason, is.message);
            self.fact(6, sign, ("the ServiceExport in ".to_owned(), end), cluster, String::new());
        }

        let was = ready(before.import().map(|import| &import.status.conditions));
        let is = ready(after.import().map(|import| &import.status.conditions));
        let wrong = |c: &Option<Condition>| c.as_ref().is_some_and(|c| c.status != Status::True);
        match is.clone() {
            Some(is) if wrong(&Some(is.clone())) && says(&was) != says(&Some(is.clone())) => {
                let end = format!(" can't be used: {}: {}", is.reason, is.message);
                self.fact(7, Sign::Wrong, ("the ServiceImport in ".to_owned(), end), cluster, String::new());
            }
            Some(is) if wrong(&was) && is.status == Status::True => {
                let end = " can be used".to_owned();
                self.fact(7, Sign::Changed, ("the ServiceImport in ".to_owned(), end), cluster, String::new());
            }
            _ => {}
        }
    }

    /// Whether no object changes and nothing is wrong: statuses that a folder does not carry are no news.
    fn is_idle(&self) -> bool {
        let changes = self.plans.iter().flat_map(|plan| &plan.plan.changes);
        let status =
            |action: &Action| matches!(action, Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..));
        let wrong = self.facts.iter().any(|fact| fact.sign == Sign::Wrong) || !self.conflicts.is_empty();
        changes.into_iter().all(|change| status(&change.action)) && !wrong
    }

    fn lines(mut self) -> Vec<Line> {
        self.facts.sort_by_key(|fact| fact.order);
        let mut groups: Vec<(Fact, Vec<String>)> = Vec::new();
        for fact in self.facts {
            let place = format!("{}{}", fact.cluster, fact.note);
            let known = groups.iter_mut().find(|(known, _)| {
                (known.order, known.sign, &known.text) == (fact.order, fact.sign, &fact.text)
            });
            match known {
                Some((_, places)) => places.push(place),
                None => groups.push((fact, vec![place])),
            }
        }
        let line = |sign, text| Line { sign, service: self.key.clone(), text };
        let told = |(fact, places): &(Fact, Vec<String>)| {
            line(fact.sign, format!("{}{}{}", fact.text.0, places.join(", "), fact.text.1))
        };
        // Who exports, what they disagree about, what comes of it.
        let (exports, rest): (Vec<_>, Vec<_>) = groups.iter().partition(|(fact, _)| fact.order <= EXPORTS);
        let mut lines: Vec<Line> = exports.into_iter().map(told).collect();
        lines.extend(self.conflicts.iter().map(|(sign, text)| line(*sign, text.clone())));
        lines.extend(rest.into_iter().map(told));
        lines
    }
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| *condition.kind == *kind)
}

fn describe_ips(ips: &[IpAddr]) -> String {
    ips.iter().map(|ip| format!(" {ip}")).collect()
}

fn import_differences(before: &Import, after: &Import) -> Vec<String> {
    let (was, is) = (&before.spec, &after.spec);
    let mut found = Vec::new();
    let mut differs = |what: &str, was: String, is: String| {
        if was != is {
            found.push(format!("{what} {was} → {is}"));
        }
    };
    let kind = |kind: ImportKind| describe::kind(kind).to_owned();
    differs("type", kind(was.kind), kind(is.kind));
    differs("ports", describe::ports(&was.ports), describe::ports(&is.ports));
    differs("IP families", describe::families(&was.families), describe::families(&is.families));
    differs("", describe::traffic(&was.traffic), describe::traffic(&is.traffic));
    differs("labels", describe::map(&before.meta.labels), describe::map(&after.meta.labels));
    differs("annotations", describe::map(&before.meta.annotations), describe::map(&after.meta.annotations));
    if before.status != ImportStatus::default() {
        let clusters = |import: &Import| describe::list(&import.status.clusters);
        differs("exported by", clusters(before), clusters(after));
    }
    found.iter().map(|text| text.trim_start().to_owned()).collect()
}

/// What the slices of one source cluster hold in one importing cluster.
#[derive(Default)]
struct Endpoints<'a> {
    /// The slices.
    names: Vec<&'a Box<str>>,
    /// By address.
    endpoints: BTreeMap<IpAddr, &'a Endpoint>,
    ports: BTreeSet<&'a SlicePort>,
}

impl<'a> Endpoints<'a> {
    fn of(slices: impl Iterator<Item = (&'a Box<str>, &'a Slice)>) -> Self {
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
    fn summary(&self) -> String {
        let ready = self.endpoints.values().filter(|endpoint| endpoint.ready).count();
        let all = describe::count(self.endpoints.len(), "endpoint");
        match self.endpoints.len() - ready {
            0 => all,
            unready if ready == 0 && unready == 1 => format!("{all}, not ready,"),
            _ if ready == 0 => format!("{all}, none ready,"),
            unready => format!("{all}, {unready} of them not ready,"),
        }
    }

    fn since(&self, before: &Self) -> Vec<(Sign, String)> {
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
