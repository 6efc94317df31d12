//! A Kubernetes cluster as a source: a list and a watch of our own for each resource.
//!
//! ```text
//!  API server ─► frames ──► Convert ──► Updates        one task per resource, each with its own
//!       ▲                                              backoff; neither waits for the other
//!       └── list, watch, discovery (Server: one client, renewed with its credentials)
//! ```
//!
//! Raw requests and single objects, for three reasons: bookmarks and new watches must be seen, since they are what
//! proves that a quiet cluster is fresh; one object that does not decode must hide no other; and no more than two
//! pages of a list are ever in memory, the one that is taken in and the next.

mod access;
mod backoff;
mod connect;
mod decode;
mod follow;
mod frames;
mod held;
mod imports;
mod inline;
mod media;
mod member;
mod server;
mod subject;
mod target;
mod watch;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

pub(crate) use access::chain;
pub use access::{Access, Endpoint, KubeError, default_kubeconfig};
pub(crate) use decode::version as version_of;
use follow::Follower;
use imports::ForDns;
pub use inline::{Inline, Secret};
pub use media::Encoded;
pub use member::{MemberUpdate, MemberWatch, ReachClock, Served};
pub use server::Failure;
use server::Server;
pub use subject::{Collection, Presence, Subject};
use tokio::sync::mpsc;
pub use write::{Refusal, Write, WriteError};

use super::{Convert, Health, Trouble, Updates};

/// Hears of every request to the API server. Metrics implement it.
pub trait Observer: Send + Sync {
    /// A request was answered (`code` is the HTTP status) or not (`<error>`), after so many seconds. `verb` is
    /// `get`, `list`, `watch`, or that of a write; a watch counts until it begins.
    fn request(&self, method: &str, host: &str, code: &str, seconds: f64, verb: &str);
}

/// Nobody listens.
impl Observer for () {
    fn request(&self, _: &str, _: &str, _: &str, _: f64, _: &str) {}
}

/// How long a single request may take.
const SMALL: Duration = Duration::from_secs(10);

/// An API server, and all that is followed there.
#[derive(Clone)]
pub struct Connection {
    server: Arc<Server>,
    watch_seconds: u64,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// The cluster at `access`. Nothing is asked of it yet, so it may be down or still to come.
    ///
    /// # Errors
    /// Where the credentials can't be read, or no client can be made of them.
    pub async fn new(access: Access, observer: Arc<dyn Observer>) -> Result<Self, KubeError> {
        let server = Arc::new(Server::new(access, observer).await?);
        Ok(Self { server, watch_seconds: 50 })
    }

    /// Asks for watches of at most so many seconds; 50 by default. More than about 55 makes a quiet cluster look
    /// stale, since its API server may send its only bookmark at the end.
    #[must_use]
    pub fn watch_seconds(self, seconds: u64) -> Self {
        Self { watch_seconds: seconds, ..self }
    }

    /// The client as it is now: it changes with the credentials, so it is not to be kept for long.
    pub async fn client(&self) -> kube::Client {
        self.server.place().await;
        self.server.client()
    }

    /// The credentials were refused: reads them again.
    pub async fn renew(&self) {
        self.server.renew().await;
    }

    /// The JSON at `path`.
    ///
    /// # Errors
    /// What the API server said, or that it said nothing.
    pub async fn get(&self, path: &str) -> Result<String, Failure> {
        self.server.place().await;
        let answer = self.server.get("get", path, SMALL).await;
        if matches!(answer, Err(Failure::Unauthorized(_))) {
            self.server.renew().await;
        }
        answer
    }

    /// Has `object` checked and filled in at `path` as if it were to be made, without making it (a dry run).
    ///
    /// # Errors
    /// What the API server said, or that it said nothing.
    pub async fn try_create(&self, path: &str, object: &serde_json::Value) -> Result<String, Failure> {
        self.server.place().await;
        self.server.post(&format!("{path}?dryRun=All"), object.to_string(), SMALL).await
    }

    /// Follows `subject` until nobody takes `items` any more, also after a panic: a bug must not leave a process that
    /// looks well and knows nothing new (WCH-10). The list that comes first then mends whatever was half done.
    pub fn follow<S: Subject>(
        &self,
        subject: S,
        items: mpsc::Sender<S::Item>,
    ) -> impl Future<Output = ()> + Send + use<S> {
        let (server, watch_seconds, subject) = (self.server.clone(), self.watch_seconds, Arc::new(subject));
        async move {
            loop {
                let follower = Follower::new(subject.clone(), server.clone(), items.clone(), watch_seconds);
                let mut task = JoinSet::new();
                task.spawn(follower.run());
                match task.join_next().await {
                    Some(Err(panicked)) if panicked.is_panic() => {
                        let resource = subject.collection().plural;
                        error!(resource, "the watch task panicked, and is started again");
                        let message = "the watch task panicked, please report this; it is started again".to_owned();
                        subject.down(Trouble::Unreachable { message });
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    _ => return,
                }
            }
        }
    }
}

/// A cluster whose imports and slices are followed.
pub struct KubeSource {
    connection: Connection,
    convert: Arc<Convert>,
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
        Ok(Self { connection: Connection::new(access, observer).await?, convert: Arc::new(convert) })
    }

    /// As [`Connection::watch_seconds`].
    #[must_use]
    pub fn watch_seconds(self, seconds: u64) -> Self {
        Self { connection: self.connection.watch_seconds(seconds), ..self }
    }

    /// Follows what `health` needs, until cancelled or nobody takes `updates` any more. What goes wrong meanwhile is
    /// named in `health` and tried again.
    pub async fn run(self, updates: Updates, health: Arc<Health>, cancel: CancellationToken) {
        let mut tasks = JoinSet::new();
        for resource in health.needed() {
            let subject = ForDns::new(resource, self.convert.clone(), health.clone());
            tasks.spawn(self.connection.follow(subject, updates.clone()));
        }
        // Dropping the set ends the tasks wherever they are.
        tokio::select! {
            () = cancel.cancelled() => {}
            () = updates.closed() => {}
            () = async { while tasks.join_next().await.is_some() {} } => {}
        }
    }
}
