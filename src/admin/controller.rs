//! What the routes of the controller look at.
//!
//! Ready means that this process knows enough to do its work: every place of registration has been read, every member
//! was heard or waited for in vain for 30 seconds, and the Lease was read, whoever holds it. So a rolling update goes on
//! as soon as the new process could take over, and one dead member holds up none. Once ready it stays so until the end:
//! what happens later is no reason to take it out of anything, since no other process could do better; it is said in
//! `/ready?verbose` and in the metrics. One who stands by is as ready as the one who leads.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Half;
use super::ready::{self, AdminState, one_line, span};
use crate::controller::Status;
use crate::controller::members::Watch;
use crate::controller::status::{ClusterView, View, Writing};
use crate::metrics::{ClusterState, ControllerMetrics, ControllerState};
use crate::model::ClusterId;
use crate::reconcile::objects::Time;
use crate::reconcile::observed::Reach;
use crate::reconcile::world::Kind;
use crate::source::{Health, WatchPhase};
use crate::systemd::Notifier;

/// How long members are waited for before the process is ready without them.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the routes of the controller look at.
pub struct ControllerParts {
    status: Arc<Status>,
    state: Arc<AdminState>,
    metrics: Arc<ControllerMetrics>,
    notifier: Notifier,
    /// How long members are waited for.
    patience: Duration,
    began: Instant,
    was_ready: AtomicBool,
}

impl ControllerParts {
    /// Of a controller that begins now. Where there is a lease, `status` says [`Writing::Standby`] already.
    #[must_use]
    pub fn new(
        status: Arc<Status>,
        state: Arc<AdminState>,
        metrics: Arc<ControllerMetrics>,
        notifier: Notifier,
    ) -> Self {
        let (began, was_ready) = (Instant::now(), AtomicBool::new(false));
        Self { status, state, metrics, notifier, patience: PATIENCE, began, was_ready }
    }

    /// Waits so long for members instead of 30 seconds.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// What is waited for, if anything: the body of `/ready`.
    fn lacking(&self, view: &View) -> Option<&'static str> {
        if self.was_ready.load(Ordering::Relaxed) {
            return None;
        }
        let lacking = if view.registries.as_ref().is_none_or(|registries| !registries.synced()) {
            Some("registries")
        } else if self.waits() && (!view.complete || view.clusters.values().any(is_unheard)) {
            Some("members")
        } else if view.writing == Writing::Standby(None) {
            Some("lease")
        } else {
            None
        };
        self.was_ready.store(lacking.is_none(), Ordering::Relaxed);
        lacking
    }

    /// Whether members are still waited for.
    fn waits(&self) -> bool {
        !self.was_ready.load(Ordering::Relaxed) && self.began.elapsed() < self.patience
    }

    fn short(&self, view: &View) -> (bool, &'static str) {
        match (self.state.shutting_down(), self.lacking(view)) {
            (true, _) => (false, "Shutting down"),
            (false, Some(lacking)) => (false, lacking),
            (false, None) => (true, "OK"),
        }
    }
}

/// Whether a member that can be used has not told all yet.
fn is_unheard(cluster: &ClusterView) -> bool {
    cluster.unusable.is_none() && !cluster.leaving && matches!(cluster.reach, Reach::Unheard { .. })
}

impl Half for ControllerParts {
    fn ready(&self) -> (bool, &'static str) {
        self.short(&self.status.lock())
    }

    /// A line for each place of registration, each member, each candidate that is none, and the lease.
    fn verbose(&self) -> (bool, String) {
        let mut text = String::new();
        let view = self.status.lock();
        let (ready, body) = self.short(&view);
        match &view.registries {
            Some(registries) => {
                for watch in registries.needed() {
                    let (mark, words) = ready::watch(&registries.status(watch));
                    let _ = writeln!(text, "{mark} registry {}: {words}", watch.as_str());
                }
            }
            // The log says why.
            None => text.push_str("[-] hub: there is no connection to it yet\n"),
        }
        let (mark, words) = match (view.complete, self.waits()) {
            (true, _) => ("[+]", "all known"),
            (false, waits) => (
                if waits { "[-]" } else { "[!]" },
                "not all known yet, so nothing is deleted for having left; see the registries and what is refused",
            ),
        };
        let _ = writeln!(text, "{mark} members: {}, {words}", view.clusters.len());
        for (id, cluster) in &view.clusters {
            let (mark, words) = of_cluster(cluster, self.waits(), now());
            let _ = writeln!(text, "{mark} cluster {id}: {words}");
        }
        for (origin, why) in &view.refused {
            let _ = writeln!(text, "[!] refused {origin}: {}", one_line(why));
        }
        let (mark, words) = lease(&view, self.was_ready.load(Ordering::Relaxed));
        let _ = writeln!(text, "{mark} lease: {words}");
        let _ = writeln!(text, "[+] planning: {}", services(view.planning, "waits", "wait"));
        drop(view);
        ready::end(&mut text, ready, self.state.shutting_down(), body);
        (ready, text)
    }

    fn unready_line(&self, body: &str) -> String {
        match body {
            "registries" => "not ready: the places where clusters are registered have not all been read".to_owned(),
            "members" => "not ready: not every member was heard yet".to_owned(),
            "lease" => "not ready: the lease could not be read yet".to_owned(),
            body => format!("not ready: {body}"),
        }
    }

    fn metrics(&self) -> Result<String, String> {
        let state = state(&self.status.lock());
        self.metrics.render(state).map_err(|error| error.to_string())
    }

    fn shutting_down(&self) -> bool {
        self.state.shutting_down()
    }

    fn notifier(&self) -> Notifier {
        self.notifier
    }

    fn ready_status(&self) -> &'static str {
        "running"
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Who writes.
fn lease(view: &View, was_ready: bool) -> (&'static str, String) {
    let (mark, mut words) = match &view.writing {
        Writing::Alone => ("[+]", "none, this process writes".to_owned()),
        Writing::Leader => ("[+]", "ours, this process writes".to_owned()),
        Writing::Standby(Some(holder)) => ("[+]", format!("standing by, {holder} writes")),
        Writing::Standby(None) if was_ready => ("[!]", "standing by, nobody is known to write".to_owned()),
        Writing::Standby(None) => ("[-]", "not read yet".to_owned()),
    };
    let Some(trouble) = &view.lease else { return (mark, words) };
    let _ = write!(words, ", {}", one_line(trouble));
    (if mark == "[+]" { "[!]" } else { mark }, words)
}

/// `nothing waits`, `1 service waits`, `2 services wait`.
fn services(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("nothing {one}"),
        1 => format!("1 service {one}"),
        count => format!("{count} services {many}"),
    }
}

/// How a member is doing: its mark, and in words.
fn of_cluster(cluster: &ClusterView, waits: bool, now: Time) -> (&'static str, String) {
    let mut words = Vec::new();
    let mut well = true;
    if cluster.leaving {
        words.push("left the clusterset, what is ours is being removed".to_owned());
    }
    if let Some(why) = &cluster.unusable {
        well = false;
        words.push(format!("can't be used: {}", one_line(why)));
    }
    match cluster.reach {
        Reach::Unheard { since } => {
            well = false;
            words.push(format!("not heard yet, for {}", span(now.since(since))));
        }
        Reach::Live if cluster.unusable.is_some() => {}
        Reach::Live => words.push("live".to_owned()),
        Reach::Unreachable { since } => {
            well = false;
            words.push(format!("unreachable for {}", span(now.since(since))));
        }
    }
    if let Some(health) = &cluster.health {
        let troubles = troubles(health);
        well &= troubles.is_empty();
        words.extend(troubles);
        let oldest = health.needed().into_iter().filter_map(|kind| health.status(kind).quiet_for).max();
        words.extend(oldest.map(|quiet| format!("up to date as of {} ago", span(quiet))));
    }
    words.extend(cluster.version.map(|version| format!("serves {version}")));
    words.push(services(cluster.waiting, "to write", "to write"));
    if cluster.failing > 0 {
        well = false;
        let last = cluster.last_error.as_deref().map(|error| format!(": {}", one_line(error)));
        words.push(format!("{} of them failing{}", cluster.failing, last.unwrap_or_default()));
    }
    let mark = match (well, waits && is_unheard(cluster)) {
        (true, _) => "[+]",
        (false, true) => "[-]",
        (false, false) => "[!]",
    };
    (mark, format!("{} ({})", words.join(", "), cluster.origin))
}

/// What is wrong with its watches, each trouble once.
fn troubles(health: &Health<Kind>) -> Vec<String> {
    let mut by_words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for kind in health.needed() {
        if let WatchPhase::Down(trouble) = health.status(kind).phase {
            by_words.entry(one_line(&trouble.to_string())).or_default().push(plural(kind));
        }
    }
    let all = health.needed().len();
    let told = |(words, kinds): (String, Vec<&str>)| {
        if kinds.len() == all { words } else { format!("{}: {words}", kinds.join(" and ")) }
    };
    by_words.into_iter().map(told).collect()
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Namespaces => "namespaces",
        Kind::Services => "services",
        Kind::Slices => crate::api::ENDPOINT_SLICES,
        Kind::Exports => crate::api::SERVICE_EXPORTS,
        Kind::Imports => crate::api::SERVICE_IMPORTS,
    }
}

/// The numbers of a scrape.
fn state(view: &View) -> ControllerState {
    let by_cluster = |counts: &BTreeMap<ClusterId, u64>| counts.iter().map(|(id, n)| (id.to_string(), *n)).collect();
    let live = |registries: &Health<Watch>, watch| registries.status(watch).phase == WatchPhase::Live;
    ControllerState {
        leader: view.may_write(),
        members_complete: view.complete,
        members_refused: view.refused.len() as u64,
        registries: view
            .registries
            .iter()
            .flat_map(|registries| {
                registries.needed().into_iter().map(|watch| (watch.as_str().to_owned(), live(registries, watch)))
            })
            .collect(),
        planning: view.planning as u64,
        services: view.totals.services,
        exports: by_cluster(&view.totals.exports),
        imports: by_cluster(&view.totals.imports),
        not_imported: view.totals.not_imported.iter().map(|((id, why), n)| (id.to_string(), *why, *n)).collect(),
        conflicts: view.totals.conflicts.iter().map(|(reason, n)| (*reason, *n)).collect(),
        clusters: view.clusters.iter().map(|(id, cluster)| of_member(id, cluster)).collect(),
    }
}

fn of_member(id: &ClusterId, cluster: &ClusterView) -> ClusterState {
    let watch = |health: &Health<Kind>, kind| {
        let status = health.status(kind);
        crate::metrics::Watch {
            resource: plural(kind),
            up: status.phase == WatchPhase::Live,
            age: status.quiet_for,
            errors: status.troubles.into_iter().collect(),
        }
    };
    let watches = cluster.health.iter();
    ClusterState {
        id: id.to_string(),
        up: cluster.reach == Reach::Live && cluster.unusable.is_none(),
        watches: watches.flat_map(|health| health.needed().into_iter().map(|kind| watch(health, kind))).collect(),
        synced: cluster.health.as_ref().is_some_and(|health| health.synced()),
        queue: cluster.waiting as u64,
        failing: cluster.failing as u64,
    }
}
