//! What became of one service, cluster by cluster.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::describe;
use super::differences::{Line, Sign, Telling};
use super::endpoints::Endpoints;
use crate::api;
use crate::model::{ClusterId, ImportKind, ServiceKey};
use crate::reconcile::objects::{Condition, ImportStatus, Status};
use crate::reconcile::observed::{Export, Import, Local, Service, Slice};
use crate::reconcile::plan::Action;
use crate::reconcile::{ServicePlan, World, naming};

/// What one cluster holds of a service.
#[derive(Default, Clone, Copy)]
pub(super) struct Holding<'a> {
    local: Option<&'a Local>,
    derived: Option<&'a Service>,
}

pub(super) fn holding<'a>(world: &'a World, cluster: &ClusterId, key: &ServiceKey) -> Holding<'a> {
    let Some(member) = world.members().get(cluster) else { return Holding::default() };
    let derived = member.derived(&naming::derived_key(key)).filter(|service| service.meta.is_ours());
    Holding { local: member.local(key), derived }
}

impl<'a> Holding<'a> {
    pub(super) fn import(self) -> Option<&'a Import> {
        self.local?.import.as_ref()
    }

    pub(super) fn export(self) -> Option<&'a Export> {
        self.local?.export.as_ref()
    }

    fn slices(self) -> impl Iterator<Item = (&'a str, &'a Slice)> {
        self.local.into_iter().flat_map(|local| &local.mirrored).map(|(name, slice)| (&**name, slice))
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

pub(super) struct Told<'a> {
    key: &'a ServiceKey,
    plans: &'a [&'a ServicePlan],
    telling: Telling<'a>,
    /// Statuses that are not known are taken for what they would be.
    kept: bool,
    facts: Vec<Fact>,
    pub(super) conflicts: Vec<(Sign, String)>,
}

impl<'a> Told<'a> {
    pub(super) fn new(key: &'a ServiceKey, plans: &'a [&'a ServicePlan], telling: Telling<'a>, kept: bool) -> Self {
        Self { key, plans, telling, kept, facts: Vec::new(), conflicts: Vec::new() }
    }

    pub(super) fn cluster(&mut self, cluster: &ClusterId, before: Holding<'_>, after: Holding<'_>) {
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
    pub(super) fn export(&mut self, cluster: &ClusterId, before: Option<&Export>, after: Option<&Export>) {
        let valid = |export: Option<&Export>| {
            let condition = export.and_then(|export| find(&export.conditions, api::CONDITION_VALID)).cloned();
            condition.filter(|valid| valid.status != Status::Unknown)
        };
        let (was, is) = (valid(before), valid(after));
        let same =
            |a: &Condition, b: &Condition| (a.status, &a.reason, &a.message) == (b.status, &b.reason, &b.message);
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
                let why = self.reason(
                    cluster,
                    |action| matches!(action, Action::DeleteSlice(_, name, _) if was.names.contains(&&**name)),
                );
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
    pub(super) fn is_idle(&self) -> bool {
        let changes = self.plans.iter().flat_map(|plan| &plan.plan.changes);
        let status = |action: &Action| matches!(action, Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..));
        let wrong = self.facts.iter().any(|fact| fact.sign == Sign::Wrong) || !self.conflicts.is_empty();
        changes.into_iter().all(|change| status(&change.action)) && !wrong
    }

    pub(super) fn lines(mut self) -> Vec<Line> {
        self.facts.sort_by_key(|fact| fact.order);
        let mut groups: Vec<(Fact, Vec<String>)> = Vec::new();
        for fact in self.facts {
            let place = format!("{}{}", fact.cluster, fact.note);
            let known = groups
                .iter_mut()
                .find(|(known, _)| (known.order, known.sign, &known.text) == (fact.order, fact.sign, &fact.text));
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
