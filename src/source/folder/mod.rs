//! A folder of YAML and JSON files as a source: development, tests, air-gapped sites, and ConfigMaps.
//!
//! ```text
//!  *.yaml, *.yml, *.json ──► documents ──► Convert ──► ResyncBegin, changes, ResyncEnd
//!      ▲ looked at every 250 ms; on a change everything is read again
//! ```
//!
//! An edit that can't be read changes nothing: the last good state is served, [`Health`] and the log say which file
//! and line, and the next good edit heals it.

mod documents;
mod error;
mod files;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};

use super::{Convert, Health, Trouble, Updates};
use crate::model::{Change, Resource, Update};
use documents::Collected;
pub use error::{FileError, FileProblem};
use files::{Look, Texts};

/// How often the folder is looked at.
const POLL: Duration = Duration::from_millis(250);

/// How long a changed folder must be left alone before it is read, so that an editor or `cp` can finish; and how
/// often that is waited for at most, so that a folder under constant change is read all the same.
const SETTLE: (Duration, usize) = (Duration::from_millis(30), 20);

/// What a text says: YAML with any number of documents, or JSON where `file` ends in `.json`.
///
/// # Errors
/// Where it is neither, or a document is no Kubernetes object, or an object is there twice.
pub fn read_text(file: &str, text: &str, convert: &Convert) -> Result<Vec<Change>, FileError> {
    let mut collected = Collected::new(convert);
    collected.add(file, text)?;
    Ok(collected.changes)
}

/// What a folder says, with the folders in it.
///
/// # Errors
/// Where the folder or a file in it can't be read, or as for [`read_text`], also across files.
pub fn read_dir(dir: &Path, convert: &Convert) -> Result<Vec<Change>, FileError> {
    parse(&Look::at(dir)?.read()?, convert)
}

fn parse(texts: &Texts, convert: &Convert) -> Result<Vec<Change>, FileError> {
    let mut collected = Collected::new(convert);
    for (file, text) in texts.iter() {
        collected.add(file, text)?;
    }
    Ok(collected.changes)
}

/// Reads `dir` and every change to it into `updates`, until cancelled or nobody listens any more.
///
/// # Errors
/// Where there is no such folder at the start. Whatever goes wrong later is reported to `health` and mended there.
pub async fn run(
    dir: &Path,
    convert: Convert,
    updates: Updates,
    health: Arc<Health>,
    cancel: CancellationToken,
) -> Result<(), FileError> {
    let dir: Arc<Path> = dir.into();
    let convert = Arc::new(convert);
    let mut seen = Seen::default();
    let mut first = true;
    loop {
        let news = look(&dir, &convert, &mut seen).await;
        match news {
            Err(gone) if first && matches!(gone.problem, FileProblem::NoFolder | FileProblem::NotAFolder) => {
                return Err(gone);
            }
            Err(broken) => report(&health, &mut seen, &broken),
            Ok(None) => {
                if seen.look.is_some() && seen.broken.is_none() {
                    prove(&health);
                }
            }
            Ok(Some(changes)) => {
                if seen.broken.take().is_some() {
                    info!(folder = %dir.display(), "the folder can be read again");
                }
                debug!(folder = %dir.display(), objects = changes.len(), "read");
                if send(&updates, &health, changes).await.is_err() {
                    return Ok(());
                }
                prove(&health);
            }
        }
        first = false;
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            () = updates.closed() => return Ok(()),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// What was there at the last look.
#[derive(Debug, Default)]
struct Seen {
    look: Option<Look>,
    /// Of the contents that were read then, and were right.
    hash: Option<u64>,
    /// What was wrong, while it is.
    broken: Option<FileError>,
}

/// One look: the new state where there is one, `None` where nothing changed.
async fn look(dir: &Arc<Path>, convert: &Arc<Convert>, seen: &mut Seen) -> Result<Option<Vec<Change>>, FileError> {
    // Taken out and put back only when the folder was read, so that whatever fails in between is tried again.
    let before = seen.look.take();
    let mut look = blocking({
        let dir = dir.clone();
        move || Look::at(&dir)
    })
    .await?;
    let changed = before.as_ref() != Some(&look);
    if !changed && !look.racy() {
        seen.look = before;
        return seen.broken.clone().map_or(Ok(None), Err);
    }
    if changed && before.is_some() {
        look = settle(dir, look).await?;
    }
    let (look, texts, still) = blocking({
        let dir = dir.clone();
        move || {
            let texts = look.read();
            let still = Look::at(&dir).is_ok_and(|now| now == look);
            Ok((look, texts, still))
        }
    })
    .await?;
    if !still {
        // Written to while it was read: what was read may be a mixture. The next look sees it whole.
        return seen.broken.clone().map_or(Ok(None), Err);
    }
    let texts = texts?;
    seen.look = Some(look);
    let hash = texts.hash();
    if seen.hash == Some(hash) && seen.broken.is_none() {
        return Ok(None);
    }
    let convert = convert.clone();
    let changes = blocking(move || parse(&texts, &convert)).await?;
    seen.hash = Some(hash);
    Ok(Some(changes))
}

/// Waits until the folder has been left alone for a moment.
async fn settle(dir: &Arc<Path>, mut look: Look) -> Result<Look, FileError> {
    let (pause, most) = SETTLE;
    for _ in 0..most {
        tokio::time::sleep(pause).await;
        let dir = dir.clone();
        let now = blocking(move || Look::at(&dir)).await?;
        if now == look {
            break;
        }
        look = now;
    }
    Ok(look)
}

/// Runs file work where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e: JoinError| {
        // A panic in there is a bug of ours; it must not look like an empty folder.
        Err(FileError::new("folder", 0, FileProblem::Unreadable(e.to_string())))
    })
}

fn report(health: &Health, seen: &mut Seen, broken: &FileError) {
    if seen.broken.as_ref() == Some(broken) {
        return;
    }
    error!("{broken} (the last good state is served)");
    seen.broken = Some(broken.clone());
    for resource in health.needed() {
        health.down(resource, Trouble::BrokenFile { message: broken.to_string() });
    }
}

fn prove(health: &Health) {
    for resource in health.needed() {
        health.alive(resource);
    }
}

/// Sends everything as a full replacement of each needed resource.
async fn send(
    updates: &Updates,
    health: &Health,
    changes: Vec<Change>,
) -> Result<(), tokio::sync::mpsc::error::SendError<Update>> {
    let (imports, slices): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| match change {
        Change::Import(..) => true,
        Change::Slice(..) => false,
        Change::Unreadable { resource, .. } | Change::Forgotten { resource, .. } => *resource == Resource::Imports,
    });
    let needed = health.needed();
    for (resource, changes) in [(Resource::Imports, imports), (Resource::Slices, slices)] {
        if !needed.contains(&resource) {
            continue;
        }
        updates.send(Update::ResyncBegin(resource)).await?;
        for change in changes {
            updates.send(Update::Change(change)).await?;
        }
        updates.send(Update::ResyncEnd(resource)).await?;
    }
    Ok(())
}
