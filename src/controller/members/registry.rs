//! Candidates → members: who has which id, who is refused, and what changed. Pure.
//!
//! Everything is judged anew at each change: there are as many candidates as clusters, and no history can make the
//! result differ from that of a restart.

use std::collections::{BTreeMap, BTreeSet};

use super::Origin;
use super::identity::{Claim, IdRules, Identity, Properties, identify};
use super::refusal::Refusal;
use crate::model::ClusterId;

/// A way to a cluster: a connection, or in tests just something to compare.
pub(super) trait Way: Clone {
    /// Whether both lead to the same place by the same means.
    fn same(&self, other: &Self) -> bool;
}

/// What is known of a candidate.
#[derive(Debug, Clone)]
struct Known<W> {
    created: i64,
    claim: Claim,
    way: Result<W, Refusal>,
    properties: Option<Properties>,
    /// Why it can't be asked for them.
    unheard: Option<String>,
}

/// What a candidate is in the end.
#[derive(Debug, Clone)]
enum Verdict<W> {
    Member(Origin, W),
    Unusable(Origin, Refusal),
}

/// One change of the set of members.
#[derive(Debug, Clone)]
pub(super) enum Judged<W> {
    /// A member is there, or is reached in another way now.
    Present(ClusterId, Origin, W),
    /// A member is registered, and can't be used.
    Unusable(ClusterId, Origin, Refusal),
    /// A member is none any more.
    Left(ClusterId),
    /// A candidate is refused; `None`: not any more.
    Refused(Origin, Option<Refusal>),
    /// Whether all members are known.
    Complete(bool),
}

/// All candidates, and what was made of them.
#[derive(Debug)]
pub(super) struct Registry<W> {
    rules: IdRules,
    candidates: BTreeMap<Origin, Known<W>>,
    members: BTreeMap<ClusterId, Verdict<W>>,
    refused: BTreeMap<Origin, Refusal>,
    complete: bool,
}

impl<W: Way> Registry<W> {
    pub(super) fn new(rules: IdRules) -> Self {
        let (candidates, members, refused) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { rules, candidates, members, refused, complete: false }
    }

    /// A candidate is there, or was changed. What its ClusterProperties said is kept: only the cluster can take that
    /// back.
    pub(super) fn set(&mut self, origin: Origin, created: i64, claim: Claim, way: Result<W, Refusal>) {
        let properties = self.candidates.remove(&origin).and_then(|before| before.properties);
        self.candidates.insert(origin, Known { created, claim, way, properties, unheard: None });
    }

    /// What is said about a candidate that is there already.
    pub(super) fn set_claim(&mut self, origin: &Origin, created: i64, claim: Claim) {
        if let Some(known) = self.candidates.get_mut(origin) {
            known.created = created;
            known.claim = claim;
        }
    }

    /// Another way to a candidate that is there already.
    pub(super) fn set_way(&mut self, origin: &Origin, way: Result<W, Refusal>) {
        if let Some(known) = self.candidates.get_mut(origin) {
            known.way = way;
        }
    }

    /// What a candidate's own ClusterProperties say.
    pub(super) fn set_properties(&mut self, origin: &Origin, properties: Properties) {
        if let Some(known) = self.candidates.get_mut(origin) {
            known.properties = Some(properties);
            known.unheard = None;
        }
    }

    /// A candidate can't be asked for its properties.
    pub(super) fn set_unheard(&mut self, origin: &Origin, why: String) {
        if let Some(known) = self.candidates.get_mut(origin) {
            known.unheard = Some(why);
        }
    }

    /// A candidate is registered no more.
    pub(super) fn remove(&mut self, origin: &Origin) {
        self.candidates.remove(origin);
    }

    /// Judges all, and says what changed. `listed` says whether every source has told all its candidates.
    pub(super) fn judge(&mut self, listed: bool) -> Vec<Judged<W>> {
        let mut ranked: Vec<_> = self.candidates.iter().collect();
        // The operator's own come first, then the older; by where they are where even that is the same.
        ranked.sort_by_key(|(origin, known)| (!origin.is_own(), known.created, *origin));
        let mut members: BTreeMap<ClusterId, Verdict<W>> = BTreeMap::new();
        let (mut refused, mut places, mut pending) = (BTreeMap::new(), BTreeSet::new(), false);
        for (origin, known) in ranked {
            if !places.insert(origin.place()) {
                // The same Secret, found by two conventions.
                continue;
            }
            let (id, verdict) = match identify(&known.claim, known.properties.as_ref(), &self.rules) {
                Identity::Known(id) => match &known.way {
                    Ok(way) => (id, Verdict::Member(origin.clone(), way.clone())),
                    Err(refusal) => (id, Verdict::Unusable(origin.clone(), refusal.clone())),
                },
                Identity::Doubtful(id, bad) => (id, Verdict::Unusable(origin.clone(), bad.into())),
                Identity::Pending => {
                    pending = true;
                    let why = known.way.as_ref().err().cloned();
                    let why = why.or_else(|| known.unheard.clone().map(Refusal::Unidentified));
                    refused.insert(origin.clone(), why.unwrap_or(Refusal::Connecting));
                    continue;
                }
                Identity::Refused(bad) => {
                    refused.insert(origin.clone(), bad.into());
                    continue;
                }
            };
            match members.get(&id) {
                None => {
                    members.insert(id, verdict);
                }
                Some(Verdict::Member(by, _) | Verdict::Unusable(by, _)) => {
                    let by = by.to_string();
                    refused.insert(origin.clone(), Refusal::Duplicate { id, by });
                }
            }
        }
        self.changes(members, refused, listed && !pending)
    }

    fn changes(
        &mut self,
        members: BTreeMap<ClusterId, Verdict<W>>,
        refused: BTreeMap<Origin, Refusal>,
        complete: bool,
    ) -> Vec<Judged<W>> {
        let mut changes = Vec::new();
        if self.complete && !complete {
            changes.push(Judged::Complete(false));
        }
        let left = self.members.keys().filter(|id| !members.contains_key(id));
        changes.extend(left.cloned().map(Judged::Left));
        for (id, verdict) in &members {
            if self.members.get(id).is_some_and(|before| before.same(verdict)) {
                continue;
            }
            changes.push(match verdict.clone() {
                Verdict::Member(origin, way) => Judged::Present(id.clone(), origin, way),
                Verdict::Unusable(origin, refusal) => Judged::Unusable(id.clone(), origin, refusal),
            });
        }
        let mended = self.refused.keys().filter(|origin| !refused.contains_key(origin));
        changes.extend(mended.cloned().map(|origin| Judged::Refused(origin, None)));
        let news = refused.iter().filter(|(origin, refusal)| self.refused.get(origin) != Some(refusal));
        changes.extend(news.map(|(origin, refusal)| Judged::Refused(origin.clone(), Some(refusal.clone()))));
        // Last, so that whoever hears it has heard of all members.
        if !self.complete && complete {
            changes.push(Judged::Complete(true));
        }
        (self.members, self.refused, self.complete) = (members, refused, complete);
        changes
    }
}

impl<W: Way> Verdict<W> {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Member(a, way_a), Self::Member(b, way_b)) => a == b && way_a.same(way_b),
            (Self::Unusable(a, why_a), Self::Unusable(b, why_b)) => a == b && why_a == why_b,
            _ => false,
        }
    }
}
