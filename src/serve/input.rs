//! From settings to a running source and feed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::answers::Options;
use crate::config::dns::Source;
use crate::feed::{self, Feed};
use crate::metrics::Metrics;
use crate::model::Update;
use crate::preview::Sandbox;
use crate::source::folder::{self, FileError};
use crate::source::kube::{Access, KubeError, KubeSource, Observer, default_kubeconfig};
use crate::source::{Convert, Health, Updates};

/// Why a source could not be started.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The folder can't be read.
    #[error(transparent)]
    Folder(#[from] FileError),
    /// There is no way to the API server.
    #[error(transparent)]
    Kube(#[from] KubeError),
}

/// A source that is ready to run.
#[derive(Debug)]
pub enum Input {
    /// A folder of YAML.
    Folder(PathBuf, Convert),
    /// An API server.
    Kube(Box<KubeSource>),
    /// One cluster of a simulated clusterset.
    Sandbox(Box<Sandbox>, Convert),
}

impl Input {
    /// The source that the settings name. An API server is not asked anything yet.
    ///
    /// # Errors
    /// Where credentials can't be read.
    pub async fn new(source: &Source, convert: Convert, metrics: &Arc<Metrics>) -> Result<Self, InputError> {
        let access = match source {
            Source::Folder(dir) => return Ok(Self::Folder(dir.clone(), convert)),
            Source::InCluster => Access::InCluster,
            Source::Kube { kubeconfig, context } => {
                let file = kubeconfig.clone().unwrap_or_else(|| default_kubeconfig(context.as_deref()));
                Access::Kubeconfig { file, context: context.clone() }
            }
        };
        let observer = Arc::new(Requests(Arc::clone(metrics)));
        Ok(Self::Kube(Box::new(KubeSource::new(access, convert, observer).await?)))
    }

    /// Reads until nobody takes the updates any more.
    ///
    /// # Errors
    /// Where a folder is not there at the start.
    pub async fn run(self, updates: Updates, health: Arc<Health>) -> Result<(), InputError> {
        let never = CancellationToken::new();
        match self {
            Self::Folder(dir, convert) => folder::run(&dir, convert, updates, health, never).await?,
            Self::Kube(source) => source.run(updates, health, never).await,
            Self::Sandbox(sandbox, convert) => sandbox.run(convert, updates, health).await,
        }
        Ok(())
    }
}

/// What of the options conversion needs to know.
#[must_use]
pub fn convert(options: &Options) -> Convert {
    Convert { pod_names: options.endpoint_pod_names, namespaces: options.namespaces.clone() }
}

/// Runs the feed on a thread of its own, so that building a large service never delays TCP or a watch. The receiver
/// learns when it has ended.
pub(super) fn feed(feed: Feed, queue: mpsc::Receiver<Update>) -> std::io::Result<oneshot::Receiver<()>> {
    on_thread("feed", feed::run(feed, queue))
}

fn on_thread(name: &str, task: impl Future<Output = ()> + Send + 'static) -> std::io::Result<oneshot::Receiver<()>> {
    let (alive, ended) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _alive = alive; // dropped at the end, also by a panic
        runtime.block_on(task);
    })?;
    Ok(ended)
}

/// What a source came to.
pub(super) type Read = Result<Result<(), InputError>, JoinError>;

/// Waits for whichever ends first, the source or the feed, and says why the process can't go on: a server whose data
/// is frozen must not look alive (WCH-10).
pub(super) async fn first_end(mut reading: JoinHandle<Result<(), InputError>>, fed: oneshot::Receiver<()>) -> RunError {
    let source = |read: Read| match read {
        Ok(Err(error)) => RunError::Input(error),
        Ok(Ok(())) => RunError::Died("the source".to_owned()),
        Err(panic) => RunError::Died(format!("the source ({panic})")),
    };
    tokio::select! {
        read = &mut reading => source(read),
        // The feed ends when its source does, and may be seen first: the source's reason is the one to tell.
        _ = fed => match tokio::time::timeout(Duration::from_secs(1), reading).await {
            Ok(read) => source(read),
            Err(_) => RunError::Died("the feed".to_owned()),
        },
    }
}

/// Counts requests to the API server under CoreDNS's names.
struct Requests(Arc<Metrics>);

impl Observer for Requests {
    fn request(&self, method: &str, host: &str, code: &str, seconds: f64, verb: &str) {
        let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.0.kube_request(method, host, code.parse().ok(), verb, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn for_ever() -> JoinHandle<Result<(), InputError>> {
        tokio::spawn(std::future::pending())
    }

    #[tokio::test]
    async fn case_wch_10_a_feed_that_panics_ends_the_process() {
        let fed = on_thread("feed", async { panic!("as this test wants") }).unwrap();
        let why = first_end(for_ever(), fed).await.to_string();
        assert!(why.starts_with("the feed has ended"), "{why}");
    }

    #[tokio::test]
    async fn case_wch_10_a_source_that_panics_or_stops_ends_the_process() {
        let (_alive, fed) = oneshot::channel();
        let why = first_end(tokio::spawn(async { panic!("as this test wants") }), fed).await.to_string();
        assert!(why.starts_with("the source (") && why.contains("panic"), "{why}");
        let (_alive, fed) = oneshot::channel();
        let why = first_end(tokio::spawn(async { Ok(()) }), fed).await.to_string();
        assert!(why.starts_with("the source has ended"), "{why}");
    }

    #[tokio::test]
    async fn case_wch_10_where_both_end_the_sources_reason_is_told() {
        let fed = on_thread("feed", async {}).unwrap();
        let why = KubeError::NotInCluster { message: "as this test wants".to_owned() };
        let reading = tokio::spawn(async { Err(InputError::from(why)) });
        assert!(matches!(first_end(reading, fed).await, RunError::Input(_)));
    }

    #[tokio::test]
    async fn case_wch_10_while_both_live_nothing_ends() {
        let (sender, queue) = mpsc::channel(1);
        let store = Arc::new(crate::answers::Store::new(Options::default()));
        let fed = feed(Feed::new(store, Arc::new(Health::new(true)), None, feed::Now::read()), queue).unwrap();
        let mut end = Box::pin(first_end(for_ever(), fed));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut end).await.is_err());
        drop(sender);
        let why = end.await.to_string();
        assert!(why.starts_with("the feed has ended"), "{why}");
    }
}
