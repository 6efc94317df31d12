//! A zone that changes while it is asked: edits go through the feed, on a clock the test owns.

use std::sync::Arc;
use std::time::Duration;

use namesake::answers::{Options, Store};
use namesake::feed::{Feed, Now, resync};
use namesake::model::{Change, Label, Resource, ServiceKey, SliceKey, Update};
use namesake::source::Health;

use super::zone::{Zone, changes};

/// A feed and the zone it feeds.
pub struct Live {
    pub zone: Zone,
    pub feed: Feed,
    pub now: Now,
}

impl Live {
    /// A synced zone of these manifests with the default options.
    #[track_caller]
    pub fn new(manifests: impl AsRef<str>) -> Self {
        Self::with(Options::default(), manifests)
    }

    /// A synced zone of these manifests.
    #[track_caller]
    pub fn with(options: Options, manifests: impl AsRef<str>) -> Self {
        let mut live = Self::unsynced(options);
        live.resync(manifests);
        live
    }

    /// A zone that knows nothing yet.
    pub fn unsynced(options: Options) -> Self {
        let slices = !options.no_endpoints;
        let store = Arc::new(Store::new(options));
        let now = Now::read();
        let feed = Feed::new(Arc::clone(&store), Arc::new(Health::new(slices)), None, now);
        Self { zone: Zone::new(store), feed, now }
    }

    /// Lets time go by; what was waiting is done.
    pub fn wait(&mut self, time: Duration) -> &mut Self {
        self.now.instant += time;
        self.now.wall += time;
        self.feed.flush(self.now);
        self
    }

    /// Sends updates as one burst, a second after the one before.
    pub fn send(&mut self, updates: impl IntoIterator<Item = Update>) -> &mut Self {
        self.wait(Duration::from_secs(1));
        self.feed.take(updates, self.now);
        self
    }

    /// Objects that are new or changed.
    #[track_caller]
    pub fn apply(&mut self, manifests: impl AsRef<str>) -> &mut Self {
        let changes = changes(self.zone.options(), manifests.as_ref());
        self.send(changes.into_iter().map(Update::Change))
    }

    /// Objects one after the other, without time between them.
    #[track_caller]
    pub fn burst(&mut self, manifests: &[&str]) -> &mut Self {
        for manifest in manifests {
            let changes = changes(self.zone.options(), manifest);
            self.feed.take(changes.into_iter().map(Update::Change), self.now);
        }
        self
    }

    /// A full list of everything.
    #[track_caller]
    pub fn resync(&mut self, manifests: impl AsRef<str>) -> &mut Self {
        let changes = changes(self.zone.options(), manifests.as_ref());
        self.send(resync(changes))
    }

    /// A full list of one kind.
    #[track_caller]
    pub fn resync_one(&mut self, resource: Resource, manifests: &str) -> &mut Self {
        let changes = changes(self.zone.options(), manifests).into_iter().filter(|c| c.resource() == resource);
        let list: Vec<_> = changes.map(Update::Change).collect();
        self.send([Update::ResyncBegin(resource)].into_iter().chain(list).chain([Update::ResyncEnd(resource)]))
    }

    /// The deletion of `namespace/name`.
    #[track_caller]
    pub fn delete_import(&mut self, key: &str) -> &mut Self {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let key = ServiceKey::new(namespace, name).expect("labels");
        self.send([Update::Change(Change::Import(key, None))])
    }

    /// The deletion of `namespace/name`.
    #[track_caller]
    pub fn delete_slice(&mut self, key: &str) -> &mut Self {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let key = SliceKey { namespace: Label::new(namespace).expect("a label"), name: name.into() };
        self.send([Update::Change(Change::Slice(key, None))])
    }
}
