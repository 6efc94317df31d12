//! How far each cluster's word counts: whether what it exports is known, and for how long its silence is respected.

use super::objects::Time;
use super::observed::Reach;
use super::settings::Settings;
use super::world::World;
use crate::model::ClusterId;

/// What can be said of a cluster as a source of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Everything of it is known and current.
    Live,
    /// Its last state is known, but it can't be reached.
    Unreachable {
        /// When its endpoints may go.
        expires: Time,
    },
    /// It was never heard in this run.
    Unheard {
        /// When it stops holding up others; `None`: never, since the list of members is not complete.
        expires: Option<Time>,
    },
    /// It is no member, or is being taken out: what it exported goes.
    Gone,
}

impl Standing {
    /// Whether its endpoints may go although it has not withdrawn them.
    pub(super) fn is_expired(self, now: Time) -> bool {
        match self {
            Self::Unreachable { expires } | Self::Unheard { expires: Some(expires) } => now >= expires,
            Self::Live | Self::Unheard { expires: None } | Self::Gone => false,
        }
    }

    /// When it will be, if that is still to come.
    pub(super) fn expiry(self, now: Time) -> Option<Time> {
        match self {
            Self::Unreachable { expires } | Self::Unheard { expires: Some(expires) } => {
                Some(expires).filter(|t| *t > now)
            }
            Self::Live | Self::Unheard { expires: None } | Self::Gone => None,
        }
    }
}

/// The standing of `cluster`.
pub(super) fn standing(world: &World, settings: &Settings, cluster: &ClusterId) -> Standing {
    match world.members().get(cluster) {
        Some(member) if member.leaving => Standing::Gone,
        Some(member) => match member.sources {
            Reach::Live => Standing::Live,
            Reach::Unreachable { since } => Standing::Unreachable { expires: since + settings.unreachable.ttl },
            Reach::Unheard { since } => Standing::Unheard { expires: Some(since + settings.unreachable.ttl) },
        },
        None if world.members_listed() => Standing::Gone,
        None => Standing::Unheard { expires: None },
    }
}

/// Whether somebody who was not heard may still hold up what is to be deleted, and until when (R82): a member that has
/// not been heard yet; one that the list of members is still to name, for as long as a member would; and one of
/// `exporters`, which an import names, for as long as it may still be found among the members.
pub(super) fn held_up(world: &World, settings: &Settings, now: Time, exporters: &[ClusterId]) -> (bool, Option<Time>) {
    let unlisted = (!world.members_listed()).then(|| world.unlisted_since() + settings.unreachable.ttl);
    let mut again = unlisted.filter(|until| *until > now);
    let missing = |id: &ClusterId| standing(world, settings, id) == Standing::Unheard { expires: None };
    let mut held = again.is_some() || exporters.iter().any(missing);
    for id in world.members().keys() {
        let standing = standing(world, settings, id);
        if matches!(standing, Standing::Unheard { .. }) && !standing.is_expired(now) {
            held = true;
            again = earlier(again, standing.expiry(now));
        }
    }
    (held, again)
}

/// The earlier of two times at which to look again.
pub(super) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
