//! A member cluster, followed: what it exports, what it could export, and what is ours in it.
//!
//! ```text
//!  API server ──► five watches ──► Observed ──► a queue of this member's own ──► MemberWatch::next
//!            └──► what it can do (CRD schema, IP families), asked now and then ──┘
//! ```
//!
//! Each member has tasks, back-off, health and a queue of its own, so a slow, dead or lying one costs itself alone.

mod features;
mod reach;

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::debug;

pub use features::Served;
pub use reach::ReachClock;

use super::{Collection, Connection, Encoded, Presence, Subject};
use crate::api;
use crate::model::{ClusterId, Label, Skipped, SliceKey};
use crate::reconcile::world::Kind;
use crate::reconcile::{Dirty, World};
use crate::source::member::{self, Observed};
use crate::source::{Health, Trouble};

/// How many updates of a member may wait. A full queue slows this member's watches down, and nobody else's.
const QUEUE: usize = 1024;

/// What a member's watches say, in order. Full lists are bounded as those of [`Update`](crate::model::Update) are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberUpdate {
    /// One object changed, or is part of a running list.
    Object(Box<Observed>),
    /// One object was deleted, and the version of its deletion; 0 where that is not known.
    Gone(Box<Observed>, u64),
    /// An object is there, but can't be read. What was known of it stays.
    Unreadable {
        /// Its kind.
        kind: Kind,
        /// Its namespace, as written.
        namespace: String,
        /// Its name, as written.
        name: String,
        /// Why.
        skipped: Skipped,
    },
    /// A full list begins.
    Begin(Kind),
    /// The full list is complete: what it did not hold is gone.
    End(Kind),
    /// What the API server serves and can do.
    Served(Served),
}

impl MemberUpdate {
    /// Tells it to `world`, and says whom that concerns.
    pub fn tell(self, world: &mut World, cluster: &ClusterId) -> Vec<Dirty> {
        match self {
            Self::Object(object) | Self::Gone(object, _) => vec![object.tell(world, cluster)],
            Self::Unreadable { kind, namespace, name, .. } => {
                // A Namespace is filed under its own name, as everything else under its namespace's.
                let namespace = if kind == Kind::Namespaces { &name } else { &namespace };
                if let Some(namespace) = Label::new(namespace) {
                    world.keep(cluster, kind, &SliceKey { namespace, name: name.into() });
                }
                Vec::new()
            }
            Self::Begin(kind) => {
                world.begin_list(cluster, kind);
                Vec::new()
            }
            Self::End(kind) => world.end_list(cluster, kind),
            Self::Served(served) => vec![world.set_features(cluster, served.features)],
        }
    }
}

/// A member that is followed. Dropping it ends that.
#[derive(Debug)]
pub struct MemberWatch {
    updates: mpsc::Receiver<MemberUpdate>,
    health: Arc<Health<Kind>>,
    /// Dropped, it ends the tasks wherever they are.
    _tasks: JoinSet<()>,
}

impl MemberWatch {
    /// Follows the cluster at `connection`.
    #[must_use]
    pub fn start(connection: &Connection) -> Self {
        Self::of(connection, true)
    }

    /// Follows a cluster in which we may only read.
    #[must_use]
    pub fn start_reading(connection: &Connection) -> Self {
        Self::of(connection, false)
    }

    fn of(connection: &Connection, write: bool) -> Self {
        let (sender, updates) = mpsc::channel(QUEUE);
        let health = Arc::new(Health::of(&Kind::ALL));
        let mut tasks = JoinSet::new();
        for kind in Kind::ALL {
            let subject = OfMember { kind, collection: collection(kind), health: health.clone() };
            tasks.spawn(connection.follow(subject, sender.clone()));
        }
        tasks.spawn(features::ask(connection.clone(), write, sender));
        Self { updates, health, _tasks: tasks }
    }

    /// The next update; never `None` while its tasks live. It may lose a `select!` without losing an update.
    pub async fn next(&mut self) -> Option<MemberUpdate> {
        let update = self.updates.recv().await;
        self.taken(update.as_ref());
        update
    }

    /// The next update, for those who wait for several members.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<MemberUpdate>> {
        let update = std::task::ready!(self.updates.poll_recv(context));
        self.taken(update.as_ref());
        Poll::Ready(update)
    }

    fn taken(&self, update: Option<&MemberUpdate>) {
        if let Some(MemberUpdate::End(kind)) = update {
            self.health.mark_synced(*kind);
        }
    }

    /// How its watches are doing.
    #[must_use]
    pub fn health(&self) -> &Arc<Health<Kind>> {
        &self.health
    }
}

/// Where the objects of a kind are.
fn collection(kind: Kind) -> Collection {
    let mcs = |plural, crd| Collection {
        group: api::GROUP,
        versions: &api::VERSIONS,
        plural,
        presence: Presence::Crd(crd),
        namespace: None,
        labels: None,
        page: 250,
        protobuf: false,
    };
    let built_in = |group, plural, page| Collection {
        group,
        versions: &["v1"],
        plural,
        presence: Presence::BuiltIn { since: "Kubernetes 1.21 is the oldest that does" },
        namespace: None,
        labels: None,
        page,
        protobuf: false,
    };
    match kind {
        Kind::Namespaces => built_in("", "namespaces", 250),
        Kind::Services => built_in("", "services", 125),
        Kind::Slices => built_in(api::DISCOVERY_GROUP, api::ENDPOINT_SLICES, 125),
        Kind::Exports => mcs(api::SERVICE_EXPORTS, api::SERVICE_EXPORT_CRD),
        Kind::Imports => mcs(api::SERVICE_IMPORTS, api::SERVICE_IMPORT_CRD),
    }
}

/// One kind of object of a member.
struct OfMember {
    kind: Kind,
    collection: Collection,
    health: Arc<Health<Kind>>,
}

impl Subject for OfMember {
    type Item = MemberUpdate;

    fn collection(&self) -> &Collection {
        &self.collection
    }

    fn present(&self, object: &Encoded<'_>) -> Option<MemberUpdate> {
        let json = object.json()?;
        Some(match member::observed(self.kind, json) {
            Ok(read) => {
                for skipped in &read.skipped {
                    debug!(kind = member::kind_name(self.kind), object = ?read.object.kind(), "{}", skipped.what);
                }
                MemberUpdate::Object(Box::new(read.object))
            }
            Err(skipped) => {
                let (namespace, name) = super::decode::name(json);
                MemberUpdate::Unreadable { kind: self.kind, namespace, name, skipped }
            }
        })
    }

    fn absent(&self, object: &Encoded<'_>) -> Option<MemberUpdate> {
        let json = object.json()?;
        let object = Box::new(member::absent(self.kind, json)?);
        Some(MemberUpdate::Gone(object, super::decode::version(json)))
    }

    fn begin(&self) -> MemberUpdate {
        MemberUpdate::Begin(self.kind)
    }

    fn end(&self) -> MemberUpdate {
        MemberUpdate::End(self.kind)
    }

    fn alive(&self) {
        self.health.alive(self.kind);
    }

    fn down(&self, trouble: Trouble) {
        self.health.down(self.kind, trouble);
    }
}
