//! One look at a source, for commands that end: the same source, feed and store as the server's, until they are
//! complete.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::mpsc;

use super::input::{Input, InputError, convert};
use crate::answers::{Options, Store};
use crate::config::dns::Source;
use crate::feed::{self, Feed, Now};
use crate::index::Index;
use crate::metrics::Metrics;
use crate::source::{Health, QUEUE, WatchPhase};

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// No runtime.
    #[error("no thread or file is left: {0}; raise the limits")]
    System(std::io::Error),
    /// The source could not be started.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It did not deliver in time.
    #[error("no complete lists within {0:?}: {1}")]
    Late(Duration, String),
}

/// Reads a source once, taking at most `patience`.
///
/// # Errors
/// Where it can't be read, with the reason each watch gives.
pub fn look(
    source: &Source,
    options: Options,
    patience: Duration,
) -> Result<(Arc<RwLock<Index>>, Arc<Store>), LookError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LookError::System)?;
    let seen = runtime.block_on(async {
        let health = Arc::new(Health::new(!options.no_endpoints));
        let metrics = Arc::new(Metrics::new(&options.zones, super::PLUGIN));
        let input = Input::new(source, convert(&options), &metrics).await?;
        let store = Arc::new(Store::new(options));
        let feed = Feed::new(Arc::clone(&store), Arc::clone(&health), None, Now::read());
        let index = feed.index();
        let (updates, queue) = mpsc::channel(QUEUE);
        let complete = async {
            while !store.state().synced() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            () = complete => Ok((index, store.clone())),
            error = input.run(updates, Arc::clone(&health)) => match error {
                Err(error) => Err(error.into()),
                Ok(()) => Err(LookError::Late(patience, troubles(&health))),
            },
            () = feed::run(feed, queue) => Err(LookError::Late(patience, troubles(&health))),
            () = tokio::time::sleep(patience) => Err(LookError::Late(patience, troubles(&health))),
        }
    });
    // A program that was run for credentials and hangs is not waited for.
    runtime.shutdown_background();
    seen
}

/// What keeps the watches from being complete.
fn troubles(health: &Health) -> String {
    let all = health.needed().into_iter().filter_map(|resource| match health.status(resource).phase {
        WatchPhase::Down(trouble) => Some(format!("{}: {trouble}", resource.plural())),
        WatchPhase::Starting => Some(format!("{}: no answer yet", resource.plural())),
        WatchPhase::Live => None,
    });
    all.collect::<Vec<_>>().join("; ")
}
