//! One trial: a scenario on a stage of its own, with a clear end whatever it does.

use std::cell::{Cell as Flag, RefCell};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use libtest_mimic::Failed;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::beds::Beds;
use crate::grid::Cell;

/// How long the looks at a failure and the clearing away may take: they shall not hold up the others.
const AFTERWARDS: Duration = Duration::from_secs(20);

/// What trials have in common.
#[derive(Clone)]
pub struct Theatre {
    pub runtime: Handle,
    /// Set before the first trial runs.
    pub beds: Arc<OnceLock<Beds>>,
    pub played: Arc<Mutex<Vec<Played>>>,
    /// Cancelled by a signal: then every trial ends at once.
    pub stop: CancellationToken,
}

/// What came of one trial.
pub struct Played {
    pub cell: Cell,
    pub seconds: f64,
    /// What was wrong, where, and what there was in the clusters.
    pub error: Option<String>,
}

thread_local! {
    /// Whether this thread plays a scenario, whose panic is its outcome.
    static PLAYS: Flag<bool> = const { Flag::new(false) };
    /// What it panicked with, and where.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of scenarios are kept for their outcome; all others are printed as ever.
pub fn keep_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !PLAYS.get() {
            return before(info);
        }
        let at = info.location().map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
        let said = info.payload().downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| info.payload().downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        PANIC.set(Some(format!("{said}{at}")));
    }));
}

impl Theatre {
    /// Plays a scenario to its end.
    pub fn play(&self, cell: Cell) -> Result<(), Failed> {
        if self.stop.is_cancelled() {
            return Err("not begun: the run was stopped".into());
        }
        let began = Instant::now();
        PLAYS.set(true);
        let error = self.runtime.block_on(self.error_of(cell));
        PLAYS.set(false);
        let seconds = began.elapsed().as_secs_f64();
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        played.push(Played { cell, seconds, error: error.clone() });
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn error_of(&self, cell: Cell) -> Option<String> {
        let stage = self.beds.get().expect("beds are started before trials").stage(cell.column);
        let outcome = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Some("the run was stopped".to_owned()),
            outcome = caught((cell.scenario.play)(&stage)) => outcome,
        };
        let error = match outcome {
            Ok(()) => None,
            Err(why) => {
                let seen = tokio::time::timeout(AFTERWARDS, caught(stage.describe())).await;
                let seen = seen.unwrap_or_else(|_| Err("it takes too long to look".to_owned()));
                let (namespace, seen) = (&stage.first().namespace, seen.unwrap_or_else(|e| e));
                Some(format!("{why}\nwhat there is in {namespace}:\n{seen}"))
            }
        };
        // What is left goes with the bed.
        drop(tokio::time::timeout(AFTERWARDS, caught(stage.clear())).await);
        error
    }
}

/// The outcome of something that may panic.
async fn caught<T>(what: impl Future<Output = T>) -> Result<T, String> {
    let outcome = AssertUnwindSafe(what).catch_unwind().await;
    outcome.map_err(|_| PANIC.take().unwrap_or_else(|| "it panicked".to_owned()))
}
