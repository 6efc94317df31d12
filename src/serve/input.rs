//! From settings to a running source and feed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::answers::Options;
use crate::config::Source;
use crate::feed::{self, Feed};
use crate::metrics::Metrics;
use crate::model::Update;
use crate::preview::Sandbox;
use crate::source::folder::{self, FileError};
use crate::source::kube::{Access, KubeError, KubeSource, Observer};
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
                let file = kubeconfig.clone().unwrap_or_else(default_kubeconfig);
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

/// kubectl's own choice: the first file of $KUBECONFIG, else `~/.kube/config`.
fn default_kubeconfig() -> PathBuf {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let first = std::env::split_paths(&listed).find(|path| !path.as_os_str().is_empty());
    first.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".kube/config"))
}

/// Runs the feed on a thread of its own, so that building a large service never delays TCP or a watch. The receiver
/// learns when it has ended.
pub(super) fn feed(feed: Feed, queue: mpsc::Receiver<Update>) -> std::io::Result<oneshot::Receiver<()>> {
    let (alive, ended) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    std::thread::Builder::new().name("feed".to_owned()).spawn(move || {
        let _alive = alive; // dropped at the end, also by a panic
        runtime.block_on(feed::run(feed, queue));
    })?;
    Ok(ended)
}

/// Counts requests to the API server under CoreDNS's names.
struct Requests(Arc<Metrics>);

impl Observer for Requests {
    fn request(&self, method: &str, host: &str, code: &str, seconds: f64, verb: &str) {
        let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.0.kube_request(method, host, code.parse().ok(), verb, took);
    }
}
