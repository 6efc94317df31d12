//! Members that come, go, fall silent and return.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::{Engine, Following, now};
use crate::controller::apply::Target;
use crate::controller::members::{MemberChange, Origin, Refusal};
use crate::controller::status::ClusterView;
use crate::model::ClusterId;
use crate::reconcile::objects::Time;
use crate::reconcile::observed::Reach;
use crate::reconcile::plan_namespace;
use crate::reconcile::settings::CreateNamespaces;

/// How long a member that was taken out of the set is cleared.
const CLEARING: Duration = Duration::from_secs(120);

/// How long until that begins: a Secret that is deleted and made again must not be an outage, and a cluster whose id
/// changes shows first that the old one is gone.
const FAREWELL: Duration = Duration::from_secs(5);

impl Engine {
    /// Takes in what changed in the set of members.
    pub(super) fn member_changed(&mut self, change: MemberChange) {
        match change {
            MemberChange::Present(member) => {
                let (id, now) = (member.id.clone(), now());
                self.status.lock().ids.insert(member.origin.clone(), id.clone());
                self.renamed(&id, &member.origin);
                let before = self.world.members().get(&id).map(|member| member.reach);
                let limits = self.writes;
                let following = self
                    .members
                    .entry(id.clone())
                    .or_insert_with(|| Following::new(member.origin.clone(), limits, now));
                following.origin = member.origin.clone();
                (following.unusable, following.leaving, following.twin) = (None, None, None);
                let write = self.settings.write_only_to.as_ref().is_none_or(|only| *only == id);
                let reach = following.restart(Some((member, write)), before, limits, now);
                let dirty = self.world.set_reach(&id, reach);
                self.mark(dirty);
                let dirty = self.world.set_leaving(&id, false);
                self.mark(dirty);
                // What its outbox held is planned again.
                self.mark(crate::reconcile::Dirty::All);
            }
            MemberChange::Unusable { id, origin, refusal } => {
                let (now, limits) = (now(), self.writes);
                let before = self.world.members().get(&id).map(|member| member.reach);
                let following =
                    self.members.entry(id.clone()).or_insert_with(|| Following::new(origin.clone(), limits, now));
                following.origin = origin;
                // One that is being connected to is not heard yet, and that is no fault of its registration.
                following.unusable = (refusal != Refusal::Connecting).then(|| refusal.to_string());
                (following.leaving, following.twin) = (None, None);
                let reach = following.restart(None, before, limits, now);
                let dirty = self.world.set_reach(&id, reach);
                self.mark(dirty);
            }
            MemberChange::Left(id) => self.left(&id),
            MemberChange::Refused { origin, refusal } => {
                let refused = &mut self.status.lock().refused;
                match refusal {
                    Some(refusal) => refused.insert(origin, refusal.to_string()),
                    None => refused.remove(&origin),
                };
            }
            MemberChange::Complete(complete) => {
                if !complete {
                    self.world.set_unlisted_since(now());
                }
                let dirty = self.world.set_members_listed(complete);
                self.mark(dirty);
            }
        }
    }

    /// A member was taken out of the set: what is ours in it goes first, if it can be reached (R83).
    fn left(&mut self, id: &ClusterId) {
        if self.members.get(id).is_some_and(|it| it.twin.is_some()) {
            // What is ours in it is the other's.
            info!(cluster = %id, "is no member any more");
            self.remove(id);
        } else if let Some(following) = self.members.get_mut(id) {
            following.leaving = Some(Instant::now());
        }
    }

    /// A member of that id has come by this way: one that left by the same way has only another id now, and what is ours
    /// in it is the new one's.
    fn renamed(&mut self, id: &ClusterId, origin: &Origin) {
        let former = self.members.iter().filter(|(of, it)| *of != id && it.leaving.is_some() && it.origin == *origin);
        for former in former.map(|(of, _)| of.clone()).collect::<Vec<_>>() {
            info!(cluster = %former, "is called {id} now");
            self.remove(&former);
        }
    }

    /// Nothing more is known of a member, and nothing is written to it. `why` it could not be cleared, if so.
    fn forget(&mut self, id: &ClusterId, why: &str) {
        if why.is_empty() {
            info!(cluster = %id, "cleared: nothing of ours is left in it");
        } else {
            warn!(
                cluster = %id,
                "what is ours in it could not be cleared: {why}; run `namesake leave` with a context of that cluster"
            );
        }
        self.remove(id);
    }

    fn remove(&mut self, id: &ClusterId) {
        self.members.remove(id);
        self.status.lock().ids.retain(|_, of| of != id);
        self.unpark(id);
        let dirty = self.world.remove_member(id);
        self.mark(dirty);
    }

    /// Looks at every member's clock.
    pub(super) fn look_at_members(&mut self, now: Time) {
        let mut changed = Vec::new();
        for (id, following) in &mut self.members {
            let Some([reach, sources]) = following.reach(now) else { continue };
            let member = self.world.members().get(id);
            let before = member.map(|member| member.reach);
            if before == Some(reach) && member.is_some_and(|member| member.sources == sources) {
                continue;
            }
            changed.push((id.clone(), reach, sources));
            if before == Some(reach) {
                continue;
            }
            match reach {
                Reach::Live if matches!(before, Some(Reach::Unreachable { .. })) => {
                    info!(cluster = %id, "reachable again");
                    following.outbox.reached();
                }
                Reach::Live => info!(cluster = %id, "everything is listed"),
                Reach::Unreachable { .. } => warn!(cluster = %id, "can't be reached"),
                Reach::Unheard { .. } => {}
            }
        }
        for (id, reach, sources) in changed {
            let dirty = [self.world.set_reach(&id, reach), self.world.set_sources(&id, sources)];
            dirty.into_iter().for_each(|dirty| self.mark(dirty));
        }
        self.look_at_twins();
        self.look_at_leavers();
        self.look_at_namespaces();
    }

    fn look_at_leavers(&mut self) {
        let planned = self.dirty.is_empty() && self.settled;
        let leavers: Vec<_> =
            self.members.iter().filter_map(|(id, it)| Some((id.clone(), it.leaving?, it.outbox.len()))).collect();
        // A hub that was emptied, or restored from an old backup, looks like this. Whoever takes the whole set apart has
        // `namesake leave` for it.
        let emptied = leavers.len() > 1 && leavers.len() == self.members.len();
        if emptied && leavers.iter().all(|(_, since, _)| since.elapsed() >= FAREWELL) {
            for (id, ..) in &leavers {
                self.forget(
                    id,
                    "all registrations were taken away at once, which may be an accident: nothing is deleted",
                );
            }
            return;
        }
        for (id, since, left) in leavers {
            if since.elapsed() < FAREWELL || emptied {
                continue;
            }
            let member = self.world.members().get(&id);
            let live = member.is_some_and(|member| member.reach == Reach::Live);
            if live && member.is_some_and(|member| !member.leaving) {
                info!(cluster = %id, "clearing what is ours in it");
                let dirty = self.world.set_leaving(&id, true);
                self.mark(dirty);
            } else if left == 0 && live && planned {
                self.forget(&id, "");
            } else if !live {
                self.forget(&id, "it can't be reached");
            } else if since.elapsed() >= CLEARING {
                let error = self.members.get(&id).and_then(|it| it.last_error.clone());
                self.forget(&id, &error.unwrap_or_else(|| "it took too long".to_owned()));
            }
        }
    }

    /// Namespaces that were made for imports and are not needed any more (R4).
    fn look_at_namespaces(&mut self) {
        if self.settings.create_namespaces != CreateNamespaces::CreateAndRemove || !self.settled {
            return;
        }
        let ours = self.world.members().values().flat_map(|member| {
            member.namespaces().filter(|name| member.namespace(name).is_some_and(|found| found.meta.is_ours()))
        });
        let names: BTreeSet<_> = ours.cloned().collect();
        for name in names {
            let target = Target::Namespace(name.clone());
            let plan = plan_namespace(&self.world, &name, &self.settings, now());
            let mut jobs = self.jobs(&target, plan);
            for (cluster, following) in &mut self.members {
                following.outbox.put(target.clone(), jobs.remove(cluster));
            }
        }
    }

    /// Writes down what probes, scrapes and people look at. That the set is complete is said together with who is in it:
    /// a set that is called complete before its members are there looks like one of which everybody was heard.
    pub(super) fn tell_status(&mut self) {
        let (world, planning, totals) = (&self.world, self.dirty.len(), self.tally.totals());
        let mut view = self.status.lock();
        (view.complete, view.planning) = (world.members_listed(), planning);
        view.totals.clone_from(totals);
        view.clusters = self
            .members
            .iter()
            .map(|(id, it)| {
                let reach = world.members().get(id).map_or(Reach::Unheard { since: now() }, |member| member.reach);
                let view = ClusterView {
                    origin: it.origin.to_string(),
                    unusable: it.unusable.clone(),
                    leaving: it.leaving.is_some(),
                    reach,
                    health: it.live.as_ref().map(|live| live.watch.health().clone()),
                    version: it.live.as_ref().and_then(|live| live.version),
                    waiting: it.outbox.len(),
                    failing: it.failing.len(),
                    last_error: it.last_error.clone(),
                };
                (id.clone(), view)
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::watch;

    use super::*;
    use crate::admin::{AdminState, ControllerParts, Half};
    use crate::controller::members::MemberSettings;
    use crate::controller::{ControllerSettings, Status, WriteLimits};
    use crate::metrics::ControllerMetrics;
    use crate::source::Health;
    use crate::systemd::Notifier;

    #[test]
    fn mcs_r96_a_set_is_complete_before_it_is_heard_and_that_is_not_ready() {
        let (status, metrics) = (Arc::new(Status::default()), Arc::new(ControllerMetrics::new()));
        status.lock().registries = Some(Arc::new(Health::of(&[])));
        let settings = ControllerSettings {
            hub: None,
            members: MemberSettings::default(),
            policy: crate::reconcile::Settings::default(),
            lease: None,
            source_leases: None,
            writes: WriteLimits::default(),
        };
        let (_leads, leading) = watch::channel(true);
        let mut engine = Engine::new(&settings, status.clone(), metrics.clone(), leading);
        let state = Arc::new(AdminState::new());
        let parts = ControllerParts::new(status, state, metrics, Notifier::default());
        let id = ClusterId::new("east").unwrap();
        let east = |refusal| MemberChange::Unusable { id: id.clone(), origin: Origin::File("east".into()), refusal };
        assert_eq!(parts.ready(), (false, "members"));

        // As where the id comes with the registration: all are known before one of them was spoken to.
        engine.member_changed(east(Refusal::Connecting));
        engine.member_changed(MemberChange::Complete(true));
        assert_eq!(parts.ready(), (false, "members"), "a probe may come before the next tick");
        engine.tell_status();
        assert_eq!(parts.ready(), (false, "members"));
        let (_, said) = parts.verbose();
        assert!(said.contains("[+] members: 1, all known\n[-] cluster east: not heard yet, for "), "{said}");

        // One whose registration is bad is not waited for.
        engine.member_changed(east(Refusal::NoClient("no".to_owned())));
        engine.tell_status();
        assert_eq!(parts.ready(), (true, "OK"));
    }
}
