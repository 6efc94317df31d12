//! A Kubernetes cluster as a source: a list and a watch of our own for each resource.
//!
//! ```text
//!  API server ──► lines ──► Convert ──► Updates        one task per resource, each with its own
//!       ▲                                              backoff; neither waits for the other
//!       └── list, watch, discovery (Server: one client, renewed with its credentials)
//! ```
//!
//! Raw requests and single objects, for three reasons: bookmarks and new watches must be seen, since they are what
//! proves that a quiet cluster is fresh; one object that does not decode must hide no other; and no more than one
//! page of a list is ever in memory.

mod access;
mod backoff;
mod decode;
mod follow;
mod held;
mod lines;
mod server;
mod target;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

pub use access::{Access, KubeError};
use backoff::{Backoff, Said};
use follow::Follower;
use server::Server;

use super::{Convert, Health, Trouble, Updates};
use crate::model::Resource;

/// Hears of every request to the API server. Metrics implement it.
pub trait Observer: Send + Sync {
    /// A request was answered (`code` is the HTTP status) or not (`<error>`), after so many seconds. `verb` is
    /// `get`, `list` or `watch`; a watch counts until it begins.
    fn request(&self, method: &str, host: &str, code: &str, seconds: f64, verb: &str);
}

/// Nobody listens.
impl Observer for () {
    fn request(&self, _: &str, _: &str, _: &str, _: f64, _: &str) {}
}

/// A cluster whose imports and slices are followed.
pub struct KubeSource {
    server: Arc<Server>,
    convert: Arc<Convert>,
    watch_seconds: u64,
}

impl fmt::Debug for KubeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeSource").field("convert", &self.convert).finish_non_exhaustive()
    }
}

impl KubeSource {
    /// The cluster at `access`. Nothing is asked of it yet, so it may be down or still to come.
    ///
    /// # Errors
    /// Where the credentials can't be read, or no client can be made of them.
    pub async fn new(access: Access, convert: Convert, observer: Arc<dyn Observer>) -> Result<Self, KubeError> {
        let server = Arc::new(Server::new(access, observer).await?);
        Ok(Self { server, convert: Arc::new(convert), watch_seconds: 50 })
    }

    /// Asks for watches of at most so many seconds; 50 by default. More than about 55 makes a quiet cluster look
    /// stale, since its API server may send its only bookmark at the end.
    #[must_use]
    pub fn watch_seconds(self, seconds: u64) -> Self {
        Self { watch_seconds: seconds, ..self }
    }

    /// Follows what `health` needs, until cancelled or nobody takes `updates` any more. What goes wrong meanwhile is
    /// named in `health` and tried again.
    pub async fn run(self, updates: Updates, health: Arc<Health>, cancel: CancellationToken) {
        let mut tasks = JoinSet::new();
        for resource in health.needed() {
            tasks.spawn(self.keep_following(resource, updates.clone(), health.clone()));
        }
        // Dropping the set ends the tasks wherever they are.
        tokio::select! {
            () = cancel.cancelled() => {}
            () = updates.closed() => {}
            () = async { while tasks.join_next().await.is_some() {} } => {}
        }
    }

    /// Follows one resource, also after a panic: a bug must not leave a process that looks well and knows nothing
    /// new (WCH-10). The list that comes first then mends whatever was half done.
    fn keep_following(
        &self,
        resource: Resource,
        updates: Updates,
        health: Arc<Health>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (server, convert, watch_seconds) = (self.server.clone(), self.convert.clone(), self.watch_seconds);
        async move {
            loop {
                let follower = Follower {
                    resource,
                    server: server.clone(),
                    convert: convert.clone(),
                    updates: updates.clone(),
                    health: health.clone(),
                    watch_seconds,
                    backoff: Backoff::new(),
                    said: Said::default(),
                    troubled: false,
                    creatable: false,
                    gone: 0,
                    listed: 0,
                };
                let mut task = JoinSet::new();
                task.spawn(follower.run());
                match task.join_next().await {
                    Some(Err(panicked)) if panicked.is_panic() => {
                        error!(resource = resource.plural(), "the watch task panicked, and is started again");
                        let message = "the watch task panicked, please report this; it is started again".to_owned();
                        health.down(resource, Trouble::Unreachable { message });
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    _ => return,
                }
            }
        }
    }
}
