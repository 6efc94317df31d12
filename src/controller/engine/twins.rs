//! One cluster that is registered under two ids: its pods would be there twice, and the two would write over each other
//! for ever. Only the registration that came first is used (R91).

use std::collections::HashMap;

use tracing::{info, warn};

use super::{Engine, now};
use crate::controller::members::Member;
use crate::model::{ClusterId, Label};

/// The namespace whose uid tells one cluster from another, whatever they are called (KEP-2149).
const SYSTEM: &str = "kube-system";

/// A member that is not used, because it is the same cluster as another.
#[derive(Debug)]
pub(super) struct Twin {
    of: ClusterId,
    /// The way to it, and whether we may write.
    way: (Member, bool),
}

impl Engine {
    /// Parks every member that turns out to be the same cluster as one that came before it.
    pub(super) fn look_at_twins(&mut self) {
        let Some(system) = Label::new(SYSTEM) else { return };
        let mut members: Vec<_> = self.members.iter().filter(|(_, it)| it.live.is_some()).collect();
        members.sort_by_key(|(_, it)| it.came);
        let (mut first, mut twins) = (HashMap::new(), Vec::new());
        for (id, _) in members {
            let namespace = self.world.members().get(id).and_then(|member| member.namespace(&system));
            let Some(uid) = namespace.map(|found| found.meta.id.uid.clone()).filter(|uid| !uid.is_empty()) else {
                continue;
            };
            match first.get(&uid) {
                Some(of) => twins.push((id.clone(), ClusterId::clone(of), uid)),
                None => drop(first.insert(uid, id.clone())),
            }
        }
        for (id, of, uid) in twins {
            self.park(&id, of, &uid);
        }
    }

    fn park(&mut self, id: &ClusterId, of: ClusterId, uid: &str) {
        let limits = self.writes;
        let Some(following) = self.members.get_mut(id) else { return };
        let Some(live) = following.live.take() else { return };
        let why = format!(
            "it is the same cluster as {of}, which came first: the namespace {SYSTEM} of both has the uid {uid}; take one of \
             the two registrations away"
        );
        warn!(cluster = %id, "is not used: {why}");
        following.restart(None, None, limits, now());
        following.unusable = Some(why);
        let write = self.settings.write_only_to.as_ref().is_none_or(|only| only == id);
        following.twin = Some(Twin { of, way: (live.member, write) });
        let dirty = self.world.remove_member(id);
        self.mark(dirty);
    }

    /// `gone` is no member any more: those that were the same cluster are looked at anew.
    pub(super) fn unpark(&mut self, gone: &ClusterId) {
        let (limits, now) = (self.writes, now());
        let mut back = Vec::new();
        for (id, following) in &mut self.members {
            if let Some(Twin { way, .. }) = following.twin.take_if(|twin| twin.of == *gone) {
                info!(cluster = %id, "is used now: {gone}, which was the same cluster, is gone");
                following.unusable = None;
                back.push((id.clone(), following.restart(Some(way), None, limits, now)));
            }
        }
        for (id, reach) in back {
            let dirty = self.world.set_reach(&id, reach);
            self.mark(dirty);
        }
    }
}
