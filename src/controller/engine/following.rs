//! One member, as the loop follows it and writes to it.

use std::collections::{BTreeMap, HashSet};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::JoinSet;

use super::echo::Echoes;
use super::twins::Twin;
use crate::controller::apply::{Outbox, Target};
use crate::controller::members::{Member, Origin};
use crate::controller::settings::WriteLimits;
use crate::model::ClusterId;
use crate::reconcile::objects::Time;
use crate::reconcile::observed::Reach;
use crate::source::kube::{MemberUpdate, MemberWatch, ReachClock};

/// How many updates of a member are taken in a turn: then the others have theirs.
const TURN: usize = 128;

/// A member.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) origin: Origin,
    /// The way to it and its watches, where it has any.
    pub(super) live: Option<Live>,
    /// Why its registration can't be used.
    pub(super) unusable: Option<String>,
    /// How far it is known: in all, and what it exports.
    pub(super) clocks: [ReachClock; 2],
    pub(super) outbox: Outbox,
    pub(super) echoes: Echoes,
    /// Jobs under way. Dropped, they end.
    pub(super) tasks: JoinSet<()>,
    /// Counts the ways to it: what came of a job by a former one is not told.
    pub(super) serial: u64,
    /// Targets whose last job failed.
    pub(super) failing: HashSet<Target>,
    pub(super) last_error: Option<String>,
    /// Since when it has been cleared, because it was taken out of the set.
    pub(super) leaving: Option<Instant>,
    /// When it came.
    pub(super) came: Instant,
    /// It is the same cluster as another, and not used.
    pub(super) twin: Option<Twin>,
}

/// A member that can be spoken to.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) member: Member,
    pub(super) watch: MemberWatch,
    /// The version of the Multi-Cluster Services API to write there.
    pub(super) version: Option<&'static str>,
}

impl Following {
    pub(super) fn new(origin: Origin, limits: WriteLimits, now: Time) -> Self {
        Self {
            origin,
            live: None,
            unusable: None,
            clocks: clocks(ReachClock::new(now)),
            outbox: Outbox::new(limits, Instant::now()),
            echoes: Echoes::default(),
            tasks: JoinSet::new(),
            serial: 0,
            failing: HashSet::new(),
            last_error: None,
            leaving: None,
            came: Instant::now(),
            twin: None,
        }
    }

    /// Begins anew, by this way, in which we may write or only read, or by none. `before` is how far its objects are known
    /// from before. Returns how far they are now: what is known may be another cluster's, or old, so until all is listed
    /// anew it is the last known state.
    pub(super) fn restart(
        &mut self,
        member: Option<(Member, bool)>,
        before: Option<Reach>,
        limits: WriteLimits,
        now: Time,
    ) -> Reach {
        self.tasks = JoinSet::new();
        self.serial += 1;
        self.outbox = Outbox::new(limits, Instant::now());
        self.echoes = Echoes::default();
        let (reach, clock) = match before {
            Some(Reach::Live) => (Reach::Unreachable { since: now }, ReachClock::away(now)),
            Some(Reach::Unreachable { since }) => (Reach::Unreachable { since }, ReachClock::away(since)),
            Some(Reach::Unheard { since }) => (Reach::Unheard { since }, ReachClock::new(since)),
            None => (Reach::Unheard { since: now }, ReachClock::new(now)),
        };
        self.clocks = clocks(clock);
        self.live = member.map(|(member, write)| {
            let start = if write { MemberWatch::start } else { MemberWatch::start_reading };
            let watch = start(&member.connection);
            Live { member, watch, version: None }
        });
        reach
    }

    /// How far it is known now, in all and what it exports; `None` where its registration can't be used.
    pub(super) fn reach(&mut self, now: Time) -> Option<[Reach; 2]> {
        let live = self.live.as_ref()?;
        Some(self.clocks.each_mut().map(|clock| clock.read(live.watch.health(), now)))
    }
}

fn clocks(clock: ReachClock) -> [ReachClock; 2] {
    [clock.clone(), clock.of_sources()]
}

/// The updates of all members, a few of each: ready as soon as there is one.
pub(super) fn poll_updates(
    members: &mut BTreeMap<ClusterId, Following>,
    context: &mut Context<'_>,
) -> Poll<Vec<(ClusterId, Vec<MemberUpdate>)>> {
    let mut all = Vec::new();
    for (id, following) in members {
        let Some(live) = &mut following.live else { continue };
        let mut updates = Vec::new();
        while updates.len() < TURN
            && let Poll::Ready(Some(update)) = live.watch.poll_next(context)
        {
            updates.push(update);
        }
        if !updates.is_empty() {
            all.push((id.clone(), updates));
        }
    }
    if all.is_empty() { Poll::Pending } else { Poll::Ready(all) }
}
