//! How far a member is known at a time: its watches' health → [`Reach`].

use std::time::Duration;

use crate::reconcile::objects::Time;
use crate::reconcile::observed::Reach;
use crate::reconcile::world::Kind;
use crate::source::{Health, WatchPhase};

/// How long a watch may be broken before its member counts as one that can't be reached: watches break off all the
/// time, and are back within a second.
const GRACE: Duration = Duration::from_secs(10);

/// How long a watch may be silent although its connection stands: bookmarks come at least every 50 s.
const SILENT: Duration = Duration::from_secs(65);

/// Remembers since when a member has been what it is.
#[derive(Debug, Clone)]
pub struct ReachClock {
    /// What has to be known.
    kinds: &'static [Kind],
    /// Since when it has been waited for.
    began: Time,
    /// Since when something has been broken.
    broken: Option<Time>,
    heard: bool,
}

impl ReachClock {
    /// Nothing has been heard yet.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { kinds: &Kind::ALL, began: now, broken: None, heard: false }
    }

    /// The same, of what a member exports alone.
    #[must_use]
    pub fn of_sources(self) -> Self {
        Self { kinds: &[Kind::Namespaces, Kind::Exports, Kind::Services, Kind::Slices], ..self }
    }

    /// A member that has been heard before, by watches that have ended.
    #[must_use]
    pub fn heard(now: Time) -> Self {
        Self { heard: true, ..Self::new(now) }
    }

    /// A member that has been heard before, and could not be reached since that time.
    #[must_use]
    pub fn away(since: Time) -> Self {
        Self { broken: Some(since), ..Self::heard(since) }
    }

    /// How far the member is known now.
    pub fn read(&mut self, health: &Health<Kind>, now: Time) -> Reach {
        let synced = self.kinds.iter().all(|kind| health.status(*kind).synced);
        self.heard |= synced;
        if !self.heard {
            return Reach::Unheard { since: self.began };
        }
        let live = synced
            && self.kinds.iter().all(|kind| {
                let status = health.status(*kind);
                status.phase == WatchPhase::Live && status.quiet_for.is_some_and(|quiet| quiet < SILENT)
            });
        if live {
            self.broken = None;
            return Reach::Live;
        }
        let since = *self.broken.get_or_insert(now);
        if now.since(since) < GRACE { Reach::Live } else { Reach::Unreachable { since } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Trouble;

    fn live() -> Health<Kind> {
        let health = Health::of(&Kind::ALL);
        for kind in Kind::ALL {
            health.alive(kind);
            health.mark_synced(kind);
        }
        health
    }

    fn trouble() -> Trouble {
        Trouble::Unreachable { message: "gone".to_owned() }
    }

    #[test]
    fn mcs_r82_a_member_is_unheard_until_every_list_is_complete() {
        let health = Health::of(&Kind::ALL);
        let mut clock = ReachClock::new(Time(100));
        assert_eq!(clock.read(&health, Time(500)), Reach::Unheard { since: Time(100) });
        for kind in Kind::ALL {
            assert_eq!(clock.read(&health, Time(600)), Reach::Unheard { since: Time(100) }, "before {kind:?}");
            health.alive(kind);
            health.mark_synced(kind);
        }
        assert_eq!(clock.read(&health, Time(700)), Reach::Live);
    }

    #[test]
    fn mcs_r84_a_member_is_unreachable_after_a_grace_and_live_at_once() {
        let health = live();
        let mut clock = ReachClock::new(Time(0));
        assert_eq!(clock.read(&health, Time(0)), Reach::Live);
        health.down(Kind::Slices, trouble());
        assert_eq!(clock.read(&health, Time(10)), Reach::Live);
        assert_eq!(clock.read(&health, Time(19)), Reach::Live);
        assert_eq!(clock.read(&health, Time(20)), Reach::Unreachable { since: Time(10) });
        assert_eq!(clock.read(&health, Time(99)), Reach::Unreachable { since: Time(10) });
        health.alive(Kind::Slices);
        assert_eq!(clock.read(&health, Time(100)), Reach::Live);
        health.down(Kind::Exports, trouble());
        assert_eq!(clock.read(&health, Time(101)), Reach::Live, "the grace begins anew");
    }

    #[test]
    fn new_watches_of_a_member_that_was_heard_do_not_make_it_unheard() {
        let mut clock = ReachClock::heard(Time(0));
        let health = Health::of(&Kind::ALL);
        assert_eq!(clock.read(&health, Time(1)), Reach::Live);
        assert_eq!(clock.read(&health, Time(11)), Reach::Unreachable { since: Time(1) });
        assert_eq!(clock.read(&live(), Time(12)), Reach::Live);
    }

    #[test]
    fn mcs_r84_trouble_with_imports_makes_a_member_no_worse_a_source() {
        let health = live();
        let mut clocks = (ReachClock::new(Time(0)), ReachClock::new(Time(0)).of_sources());
        health.down(Kind::Imports, trouble());
        let mut read = |now| (clocks.0.read(&health, Time(now)), clocks.1.read(&health, Time(now)));
        assert_eq!(read(1), (Reach::Live, Reach::Live));
        assert_eq!(read(20), (Reach::Unreachable { since: Time(1) }, Reach::Live));
        health.down(Kind::Slices, trouble());
        assert_eq!(read(21).1, Reach::Live);
        assert_eq!(read(40).1, Reach::Unreachable { since: Time(21) });
    }

    #[test]
    fn mcs_r84_new_watches_of_a_member_that_was_away_do_not_make_it_live() {
        let mut clock = ReachClock::away(Time(5));
        assert_eq!(clock.read(&Health::of(&Kind::ALL), Time(500)), Reach::Unreachable { since: Time(5) });
        assert_eq!(clock.read(&live(), Time(501)), Reach::Live);
    }
}
