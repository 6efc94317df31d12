//! One resource, followed for ever: list, watch, and back to either after whatever happens.
//!
//! ```text
//!            ┌─────────────── 410, CRD changed or back ───────────────┐
//!            ▼                                                        │
//!  find ─► list in pages ─► ResyncEnd ─► watch ──── time is up ───────┤
//!   ▲        │                             ▲ └──── broken off ──┐     │
//!   │        ▼ trouble: named, wait        └──── last version ◄─┘     │
//!   └────────┘                                                        │
//!                          404: the CRD is gone, keep what is served ─┘
//! ```
//!
//! kube-runtime's `watcher` does not do here: it swallows bookmarks, so freshness can't be seen; it recovers in 20 s
//! where 1 s will do; and it asks for a missing CRD every second (`dependencies.md` 3a).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use super::backoff::{AWAY, Backoff, REFUSED, Said};
use super::decode;
use super::held::{HOLD, Held};
use super::media::{Encoded, Media, Reply};
use super::server::{Failure, Server};
use super::subject::Subject;
use super::target::{Found, Target};
use crate::source::Trouble;

/// How long a page of a list may take.
const LIST: Duration = Duration::from_secs(30);

/// How many page tokens in a row may expire before the list is asked for in one piece.
const EXPIRED: usize = 2;

/// How often it is looked whether a CRD that may be missing is there now.
const LOOK: Duration = Duration::from_secs(5);

/// Follows one resource.
pub(super) struct Follower<S: Subject> {
    pub(super) subject: Arc<S>,
    pub(super) server: Arc<Server>,
    pub(super) items: mpsc::Sender<S::Item>,
    pub(super) watch_seconds: u64,
    pub(super) backoff: Backoff,
    said: Said,
    /// Whether it was in trouble when it was last heard of.
    troubled: bool,
    /// Whether the API server was ever seen to let objects be made.
    creatable: bool,
    /// 410s since the watch last brought anything.
    gone: usize,
    /// How many objects the last complete list had.
    listed: usize,
    /// Whether it was told that there are none, since their CRD is not there.
    told_absent: bool,
}

/// Where a watch goes on.
pub(super) struct Position<T> {
    /// The server that the version is of.
    pub(super) place: u64,
    pub(super) target: Target,
    pub(super) version: String,
    pub(super) held: Held<T>,
}

/// Why something ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// Nobody takes items any more.
    Closed,
    /// 410, or something else after which only a new list will do.
    Relist,
    /// The resource is not there.
    Missing,
    /// A request was refused or not answered.
    Failed { verb: &'static str, failure: Failure },
    /// The watch reported an error other than 410, or sent what is no event. Its version is not to be trusted.
    Broken(Failure),
}

impl<S: Subject> Follower<S> {
    pub(super) fn new(subject: Arc<S>, server: Arc<Server>, items: mpsc::Sender<S::Item>, watch_seconds: u64) -> Self {
        Self {
            subject,
            server,
            items,
            watch_seconds,
            backoff: Backoff::new(),
            said: Said::default(),
            troubled: false,
            creatable: false,
            gone: 0,
            listed: 0,
            told_absent: false,
        }
    }

    /// Runs until nobody takes items any more.
    pub(super) async fn run(mut self) {
        loop {
            let stop = match self.list().await {
                Ok(position) => self.watch(position).await,
                Err(stop) => stop,
            };
            match stop {
                Stop::Closed => return,
                Stop::Relist => self.gone().await,
                // The CRD may be absent, and was never there.
                Stop::Missing if self.may_be_missing() => match self.absent().await {
                    Ok(()) => tokio::time::sleep(LOOK).await,
                    Err(_) => return,
                },
                Stop::Missing | Stop::Failed { .. } | Stop::Broken(_) => self.trouble(stop).await,
            }
        }
    }

    /// The whole list, as a full replacement. It ends only when it is sure to be whole.
    async fn list(&mut self) -> Result<Position<S::Item>, Stop> {
        let place = self.server.place().await;
        let target = self.find().await?;
        let mut expired = 0;
        let (version, count) = loop {
            match self.pages(&target, expired < EXPIRED).await {
                Err(Stop::Failed { failure: Failure::Gone, .. }) if expired < EXPIRED => expired += 1,
                Err(Stop::Failed { failure: Failure::Gone, .. }) => return Err(Stop::Relist),
                other => break other?,
            }
        };
        // A CRD that is being deleted lists fewer objects with every request: that is no list to sweep by
        // (`held`). For built-in resources, looking asks nobody.
        if self.subject.collection().is_custom() && count < self.listed {
            tokio::time::sleep(HOLD).await;
        }
        if !self.find().await?.same_place(&target) {
            return Err(Stop::Relist);
        }
        self.send(self.subject.end()).await?;
        self.listed = count;
        self.subject.alive();
        debug!(resource = self.plural(), path = target.path(), version, count, "listed");
        Ok(Position { place, target, version, held: Held::default() })
    }

    /// All pages; the version of the list and how many objects it has.
    async fn pages(&mut self, target: &Target, paged: bool) -> Result<(String, usize), Stop> {
        let failed = |failure| match failure {
            Failure::NotFound => Stop::Missing,
            failure => Stop::Failed { verb: "list", failure },
        };
        let (mut begun, mut count) = (false, 0);
        let mut reply = self.page(target, paged, "").await.map_err(failed)?;
        loop {
            let page = decode::page(&reply).map_err(failed)?;
            if !begun {
                self.send(self.subject.begin()).await?;
                begun = true;
            }
            count += page.items.len();
            if page.next.is_empty() {
                self.take(page.items).await?;
                return Ok((page.version, count));
            }
            // The server makes the next page while this one is taken in.
            let (next, taken) = tokio::join!(self.page(target, paged, &page.next), self.take(page.items));
            taken?;
            reply = next.map_err(failed)?;
        }
    }

    async fn page(&self, target: &Target, paged: bool, token: &str) -> Result<Reply, Failure> {
        self.server.reply("list", &target.list_uri(paged, token), self.media(), LIST).await
    }

    /// Hands the objects of a page on.
    async fn take(&self, items: Vec<Encoded<'_>>) -> Result<(), Stop> {
        tokio::task::yield_now().await; // so that the request for the next page leaves first
        for item in items {
            if let Some(item) = self.subject.present(&item) {
                self.send(item).await?;
            }
        }
        Ok(())
    }

    /// Where the resource is, unless it is missing or going.
    pub(super) async fn find(&mut self) -> Result<Target, Stop> {
        match Target::find(&self.server, self.subject.collection()).await {
            Found::At(target) => {
                // An API that never lets anybody make objects is read-only; one that did and does not is going.
                if self.creatable && !target.creatable() {
                    return Err(Stop::Missing);
                }
                self.creatable |= target.creatable();
                Ok(target)
            }
            Found::Missing => Err(Stop::Missing),
            Found::Unknown(failure) => Err(Stop::Failed { verb: "get", failure }),
        }
    }

    pub(super) async fn send(&self, item: S::Item) -> Result<(), Stop> {
        self.items.send(item).await.map_err(|_| Stop::Closed)
    }

    /// The form to ask for.
    pub(super) fn media(&self) -> Media {
        if self.subject.collection().protobuf { Media::Protobuf } else { Media::Json }
    }

    pub(super) fn plural(&self) -> &'static str {
        self.subject.collection().plural
    }

    /// Whether it is no trouble that the resource is missing.
    fn may_be_missing(&self) -> bool {
        self.subject.collection().is_optional() && !self.creatable
    }

    /// There are none, since there can be none; said once.
    async fn absent(&mut self) -> Result<(), Stop> {
        if !self.told_absent {
            self.send(self.subject.begin()).await?;
            self.send(self.subject.end()).await?;
            self.told_absent = true;
        }
        self.alive();
        self.progress();
        Ok(())
    }

    /// The API server showed that we are up to date.
    pub(super) fn alive(&mut self) {
        self.subject.alive();
        if self.troubled {
            self.troubled = false;
            self.said.clear();
            info!("the watch of {} is live again", self.subject.collection().full_name());
        }
    }

    /// The watch brought something: what went wrong before is over.
    pub(super) fn progress(&mut self) {
        self.backoff.reset();
        self.gone = 0;
    }

    /// A 410 is answered by a new list at once. Should the new version be too old again, a pause comes between.
    async fn gone(&mut self) {
        self.gone += 1;
        debug!(resource = self.plural(), in_a_row = self.gone, "listing again");
        if self.gone > 1 {
            let pause = self.backoff.pause(AWAY);
            tokio::time::sleep(pause).await;
        }
    }

    /// Names what is wrong, and waits a while.
    pub(super) async fn trouble(&mut self, stop: Stop) {
        let (trouble, most) = match stop {
            Stop::Closed | Stop::Relist => return,
            Stop::Missing => (self.subject.collection().missing(), REFUSED),
            Stop::Broken(failure) => (self.named("watch", failure), AWAY),
            Stop::Failed { verb, failure } => {
                if matches!(failure, Failure::Unauthorized(_)) {
                    self.server.renew().await;
                }
                let most = if matches!(failure, Failure::Forbidden(_)) { REFUSED } else { AWAY };
                (self.named(verb, failure), most)
            }
        };
        if self.said.due(trouble.reason()) {
            warn!("{}: {trouble}", self.subject.collection().full_name());
        }
        self.troubled = true;
        self.subject.down(trouble);
        let pause = self.backoff.pause(most);
        tokio::time::sleep(pause).await;
    }

    fn named(&self, verb: &'static str, failure: Failure) -> Trouble {
        let resource = match verb {
            "get" => format!("/apis/{}", self.subject.collection().group),
            _ => self.subject.collection().full_name(),
        };
        match failure {
            Failure::Forbidden(message) => Trouble::Forbidden { verb, resource, message },
            Failure::Unauthorized(message) => Trouble::Unauthorized { message },
            Failure::Unreachable(message) => Trouble::Unreachable { message },
            Failure::NotFound => self.subject.collection().missing(),
            Failure::Gone => Trouble::Unreachable { message: format!("410 for {resource}") },
        }
    }
}
