//! Which Leases are due where: the decisions, without a clock or an API server of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::model::ClusterId;

/// The first and the longest pause of a member in which Leases can't be written.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// What is known of the clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clusters {
    /// All members.
    pub(super) members: BTreeSet<ClusterId>,
    /// Those that are heard: everything in them is listed and followed.
    pub(super) live: BTreeSet<ClusterId>,
    /// Whether who is not among the members is none.
    pub(super) complete: bool,
}

/// What is to be done in one importing member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Look which Leases are there, from before.
    pub(super) list: bool,
    /// Say of these that they are heard.
    pub(super) renew: Vec<ClusterId>,
    /// Remove the Leases of these: they are no members any more.
    pub(super) remove: Vec<ClusterId>,
}

impl Work {
    fn is_empty(&self) -> bool {
        !self.list && self.renew.is_empty() && self.remove.is_empty()
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The sources whose Leases are there.
    pub(super) listed: Option<Vec<ClusterId>>,
    pub(super) renewed: Vec<ClusterId>,
    pub(super) removed: Vec<ClusterId>,
    /// Something could not be done.
    pub(super) failed: bool,
}

/// What was done where, and when.
#[derive(Debug)]
pub(super) struct Ledger {
    /// How often a Lease is renewed.
    every: Duration,
    importers: BTreeMap<ClusterId, Importer>,
}

#[derive(Debug, Default)]
struct Importer {
    busy: bool,
    listed: bool,
    failures: u32,
    pause: Option<Instant>,
    /// When each was renewed by us; `None`: it is there from before.
    leases: BTreeMap<ClusterId, Option<Instant>>,
}

impl Ledger {
    /// Of Leases that last so long. Each is renewed twice before it would expire.
    pub(super) fn new(duration: Duration) -> Self {
        Self { every: duration / 3, importers: BTreeMap::new() }
    }

    /// What is to be done now, where nothing is under way already; until [`done`](Self::done) it is.
    ///
    /// A cluster has no Lease of itself: it is never cut off from itself, and its own endpoints there are not to go when
    /// the hub does.
    pub(super) fn due(
        &mut self,
        clusters: &Clusters,
        only: Option<&ClusterId>,
        now: Instant,
    ) -> Vec<(ClusterId, Work)> {
        self.importers.retain(|id, _| clusters.members.contains(id) || !clusters.complete);
        let mut due = Vec::new();
        for id in clusters.live.iter().filter(|id| only.is_none_or(|only| only == *id)) {
            let importer = self.importers.entry(id.clone()).or_default();
            if importer.busy || importer.pause.is_some_and(|until| now < until) {
                continue;
            }
            let is_due = |source: &&ClusterId| {
                *source != id
                    && importer
                        .leases
                        .get(*source)
                        .is_none_or(|renewed| renewed.is_none_or(|at| now.saturating_duration_since(at) >= self.every))
            };
            let gone = |source: &&ClusterId| *source == id || clusters.complete && !clusters.members.contains(*source);
            let work = Work {
                list: !importer.listed,
                renew: clusters.live.iter().filter(is_due).cloned().collect(),
                remove: importer.leases.keys().filter(gone).cloned().collect(),
            };
            if !work.is_empty() {
                importer.busy = true;
                due.push((id.clone(), work));
            }
        }
        due
    }

    /// What came of the work in `id` that was begun at `began`.
    pub(super) fn done(&mut self, id: &ClusterId, outcome: &Outcome, began: Instant, now: Instant) {
        let Some(importer) = self.importers.get_mut(id) else { return };
        importer.busy = false;
        if let Some(listed) = &outcome.listed {
            importer.listed = true;
            for source in listed {
                importer.leases.entry(source.clone()).or_insert(None);
            }
        }
        for source in &outcome.renewed {
            importer.leases.insert(source.clone(), Some(began));
        }
        for source in &outcome.removed {
            importer.leases.remove(source);
        }
        if outcome.failed {
            let pause = PAUSE.0.saturating_mul(1 << importer.failures.min(8)).min(PAUSE.1).min(self.every);
            importer.failures = importer.failures.saturating_add(1);
            importer.pause = Some(now + pause);
        } else {
            (importer.failures, importer.pause) = (0, None);
        }
    }

    /// A member is gone, or is reached in another way: it is looked at anew.
    pub(super) fn forget(&mut self, id: &ClusterId) {
        self.importers.remove(id);
    }

    /// Another one may have written meanwhile: everything is looked at anew.
    pub(super) fn clear(&mut self) {
        self.importers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(300);

    fn ids(names: &[&str]) -> BTreeSet<ClusterId> {
        names.iter().map(|name| ClusterId::new(name).unwrap()).collect()
    }

    fn list(names: &[&str]) -> Vec<ClusterId> {
        ids(names).into_iter().collect()
    }

    fn clusters(members: &[&str], live: &[&str]) -> Clusters {
        Clusters { members: ids(members), live: ids(live), complete: true }
    }

    /// Everything that is due is done.
    fn carry_out(ledger: &mut Ledger, clusters: &Clusters, now: Instant) -> Vec<(String, Work)> {
        let due = ledger.due(clusters, None, now);
        assert!(ledger.due(clusters, None, now).is_empty(), "it is under way");
        for (id, work) in &due {
            let listed = work.list.then(Vec::new);
            let outcome = Outcome { listed, renewed: work.renew.clone(), removed: work.remove.clone(), failed: false };
            ledger.done(id, &outcome, now, now);
        }
        due.into_iter().map(|(id, work)| (id.to_string(), work)).collect()
    }

    fn renew(of: &[&str]) -> Work {
        Work { renew: list(of), ..Work::default() }
    }

    #[test]
    fn mcs_r84_every_live_source_is_renewed_in_every_other_live_member_in_time() {
        let (mut ledger, begin) = (Ledger::new(LASTS), Instant::now());
        let all = clusters(&["a", "b", "c"], &["a", "b"]);
        let first = carry_out(&mut ledger, &all, begin);
        let looked = |of: &[&str]| Work { list: true, ..renew(of) };
        assert_eq!(first, [("a".to_owned(), looked(&["b"])), ("b".to_owned(), looked(&["a"]))]);
        assert!(carry_out(&mut ledger, &all, begin + LASTS / 4).is_empty());
        let again = carry_out(&mut ledger, &all, begin + LASTS / 3);
        assert_eq!(again, [("a".to_owned(), renew(&["b"])), ("b".to_owned(), renew(&["a"]))]);
        // One that falls silent is not renewed, nor is anything in it; one that is heard again is, at once.
        let without = clusters(&["a", "b", "c"], &["a"]);
        assert!(carry_out(&mut ledger, &without, begin + LASTS).is_empty());
        let back = clusters(&["a", "b", "c"], &["a", "b"]);
        assert_eq!(carry_out(&mut ledger, &back, begin + LASTS).len(), 2);
    }

    #[test]
    fn mcs_r83_the_lease_of_a_cluster_that_left_goes_but_not_before_that_is_certain() {
        let (mut ledger, now) = (Ledger::new(LASTS), Instant::now());
        let a = ClusterId::new("a").unwrap();
        // From an earlier life.
        let first = ledger.due(&clusters(&["a", "b"], &["a"]), None, now);
        assert_eq!(first, [(a.clone(), Work { list: true, ..Work::default() })]);
        ledger.done(&a, &Outcome { listed: Some(list(&["a", "b", "z"])), ..Outcome::default() }, now, now);
        let uncertain = Clusters { complete: false, ..clusters(&["a"], &["a"]) };
        let own = Work { remove: list(&["a"]), ..Work::default() };
        assert_eq!(carry_out(&mut ledger, &uncertain, now), [("a".to_owned(), own)], "its own is never to be there");
        let gone = Work { remove: list(&["z"]), ..Work::default() };
        assert_eq!(carry_out(&mut ledger, &clusters(&["a", "b"], &["a"]), now), [("a".to_owned(), gone)]);
        assert!(carry_out(&mut ledger, &clusters(&["a", "b"], &["a"]), now).is_empty(), "b is silent, and a member");
    }

    #[test]
    fn mcs_r95_a_member_that_fails_has_a_pause_and_nobody_else() {
        let (mut ledger, now) = (Ledger::new(LASTS), Instant::now());
        let all = clusters(&["a", "b"], &["a", "b"]);
        let due = ledger.due(&all, None, now);
        assert_eq!(due.len(), 2);
        let (a, b) = (&due[0].0, &due[1].0);
        let failed = Outcome { failed: true, ..Outcome::default() };
        ledger.done(a, &failed, now, now);
        ledger.done(b, &Outcome { listed: Some(Vec::new()), ..Outcome::default() }, now, now);
        assert_eq!(ledger.due(&all, None, now).len(), 1, "b alone, whose renewal was not done");
        assert!(ledger.due(&all, None, now + PAUSE.0 / 2).is_empty());
        assert_eq!(ledger.due(&all, None, now + PAUSE.0).len(), 1);
        ledger.done(a, &failed, now, now + PAUSE.0);
        assert!(ledger.due(&all, None, now + PAUSE.0 * 2).is_empty(), "twice as long");
        assert_eq!(ledger.due(&all, None, now + PAUSE.0 * 3).len(), 1);
        // A new way to it, or a new term of ours: everything is looked at anew.
        ledger.forget(a);
        assert!(ledger.due(&all, None, now).iter().all(|(id, work)| id == a && work.list));
        ledger.clear();
        assert_eq!(ledger.due(&all, None, now).len(), 2);
    }

    #[test]
    fn mcs_r84_one_controller_per_cluster_writes_into_its_own_alone() {
        let mut ledger = Ledger::new(LASTS);
        let b = ClusterId::new("b").unwrap();
        let due = ledger.due(&clusters(&["a", "b", "c"], &["a", "b", "c"]), Some(&b), Instant::now());
        assert_eq!(due, [(b, Work { list: true, ..renew(&["a", "c"]) })]);
    }
}
