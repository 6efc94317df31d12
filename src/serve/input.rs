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
use crate::preview::Sandbox;
use crate::source::folder::{self, FileError};
use crate::source::kube::{Access, KubeError, KubeSource, Observer, default_kubeconfig};
use crate::source::{Convert, Health, QUEUE, Updates};

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

/// Reads the source and feeds the store, both on one thread of their own: a change passes from the socket to the table
/// of answers without waking another thread, which costs more than all that is done with it, and building a large
/// service never delays TCP or the admin routes. It does delay the watches, which would have to wait for it anyway.
/// `open` comes to the source. The receiver learns why it ended, which it never should; both end when it is dropped.
pub(super) fn start<O>(feed: Feed, health: Arc<Health>, open: O) -> std::io::Result<oneshot::Receiver<RunError>>
where
    O: Future<Output = Result<Input, InputError>> + Send + 'static,
{
    let (updates, queue) = mpsc::channel(QUEUE);
    on_thread(async move {
        let fed = tokio::spawn(feed::run(feed, queue));
        let reading = tokio::spawn(async move { open.await?.run(updates, health).await });
        first_end(reading, fed).await
    })
}

fn on_thread<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> std::io::Result<oneshot::Receiver<T>> {
    let (mut told, end) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("source".to_owned()).spawn(move || {
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = task => Some(outcome),
                () = told.closed() => None,
            }
        });
        let _ = outcome.map(|outcome| told.send(outcome)); // whoever does not wait does not want to know
    })?;
    Ok(end)
}

/// What a source came to.
type Read = Result<Result<(), InputError>, JoinError>;

/// Waits for whichever ends first, the source or the feed, and says why the process can't go on: a server whose data
/// is frozen must not look alive (WCH-10).
async fn first_end(mut reading: JoinHandle<Result<(), InputError>>, fed: JoinHandle<()>) -> RunError {
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

/// Why the source's thread has ended.
pub(super) async fn end(source: &mut oneshot::Receiver<RunError>) -> RunError {
    source.await.unwrap_or_else(|_| RunError::Died("the source's thread".to_owned()))
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
        let fed = tokio::spawn(async { panic!("as this test wants") });
        let why = first_end(for_ever(), fed).await.to_string();
        assert!(why.starts_with("the feed has ended"), "{why}");
    }

    #[tokio::test]
    async fn case_wch_10_a_source_that_panics_or_stops_ends_the_process() {
        let fed = || tokio::spawn(std::future::pending());
        let why = first_end(tokio::spawn(async { panic!("as this test wants") }), fed()).await.to_string();
        assert!(why.starts_with("the source (") && why.contains("panic"), "{why}");
        let why = first_end(tokio::spawn(async { Ok(()) }), fed()).await.to_string();
        assert!(why.starts_with("the source has ended"), "{why}");
    }

    #[tokio::test]
    async fn case_wch_10_where_both_end_the_sources_reason_is_told() {
        let fed = tokio::spawn(async {});
        let why = KubeError::NotInCluster { message: "as this test wants".to_owned() };
        let reading = tokio::spawn(async { Err(InputError::from(why)) });
        assert!(matches!(first_end(reading, fed).await, RunError::Input(_)));
    }

    #[tokio::test]
    async fn case_wch_10_a_thread_that_panics_ends_the_process() {
        let mut ended = on_thread(async { panic!("as this test wants") }).unwrap();
        let why = end(&mut ended).await.to_string();
        assert!(why.starts_with("the source's thread has ended"), "{why}");
    }

    #[tokio::test]
    async fn case_wch_10_while_both_live_nothing_ends() {
        let store = Arc::new(crate::answers::Store::new(Options::default()));
        let health = Arc::new(Health::new(true));
        let feed = Feed::new(store, health.clone(), None, feed::Now::read());
        let (fail, told) = oneshot::channel();
        let mut source = start(feed, health, async move { Err(told.await.unwrap()) }).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), end(&mut source)).await.is_err());
        fail.send(InputError::from(KubeError::NotInCluster { message: "as this test wants".to_owned() })).unwrap();
        assert!(matches!(end(&mut source).await, RunError::Input(_)));
    }
}
