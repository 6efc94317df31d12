//! The running sandbox: a folder of clusters as a source for the DNS half, and every edit of it told in words.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{error, info};

use super::clusterset::{Clusterset, Settled};
use super::{Telling, differences, edits, view};
use crate::feed::resync;
use crate::model::{Change, ClusterId};
use crate::reconcile::objects::Time;
use crate::reconcile::simulate::Refused;
use crate::reconcile::{Settings, World};
use crate::source::clusters::{self, Clusters, Watched};
use crate::source::folder::FileError;
use crate::source::{Convert, Health, Trouble, Updates};

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The folder can't be read.
    #[error(transparent)]
    Folder(#[from] FileError),
    /// The cluster to look from is not there.
    #[error("--view {view}: there is no such cluster in {dir}; there are {clusters}")]
    NoView {
        /// What was asked for.
        view: String,
        /// The folder.
        dir: String,
        /// The clusters there are.
        clusters: String,
    },
    /// A simulated API server refuses a write.
    #[error("a simulated API server refuses a write of ours: {0}; please report this with the folder")]
    Refused(#[from] Refused),
}

/// A folder of clusters that is followed.
pub struct Sandbox {
    dir: PathBuf,
    watched: Watched,
    set: Clusterset,
    view: Option<ClusterId>,
    out: Box<dyn Write + Send>,
    again: Option<Time>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("dir", &self.dir).field("view", &self.view).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Reads the folder once and tells what it makes of it. `view` is the cluster from which DNS is seen; without it, the
    /// first by name.
    ///
    /// # Errors
    /// Where the folder can't be read, or there is no such cluster.
    pub fn open(
        dir: &Path,
        view: Option<&str>,
        settings: Settings,
        out: Box<dyn Write + Send>,
    ) -> Result<Self, SandboxError> {
        let clusters = clusters::read(dir)?;
        let id = view.and_then(ClusterId::new);
        if let Some(view) = view
            && id.as_ref().is_none_or(|id| !clusters.0.contains_key(id))
        {
            let known = clusters.0.keys().map(ClusterId::as_str).collect::<Vec<_>>().join(", ");
            return Err(SandboxError::NoView {
                view: view.to_owned(),
                dir: dir.display().to_string(),
                clusters: known,
            });
        }
        let mut sandbox = Self {
            dir: dir.to_owned(),
            watched: Watched::new(dir),
            set: Clusterset::new(settings),
            view: id,
            out,
            again: None,
        };
        sandbox.introduce(&clusters);
        sandbox.hints(&Clusters::default(), &clusters);
        sandbox.set.tell(clusters);
        sandbox.settle(&World::default())?;
        Ok(sandbox)
    }

    /// Follows the folder until nobody takes the updates any more.
    pub async fn run(mut self, convert: Convert, updates: Updates, health: Arc<Health>) {
        let mut broken: Option<FileError> = None;
        let mut send = true;
        loop {
            if send {
                for update in resync(self.seen(&convert)) {
                    if updates.send(update).await.is_err() {
                        return;
                    }
                }
            }
            send = false;
            tokio::select! {
                () = updates.closed() => return,
                () = tokio::time::sleep(Watched::POLL) => {}
            }
            match self.watched.look().await {
                Ok(news) => {
                    if broken.take().is_some() {
                        info!(folder = %self.dir.display(), "the folder can be read again");
                    }
                    for resource in health.needed() {
                        health.alive(resource);
                    }
                    match news {
                        Some(clusters) if clusters != *self.set.told() => send = self.edited(clusters),
                        _ if self.again.is_some_and(|at| now() >= at) => {
                            let before = self.set.world().clone();
                            send = self.carry_on(&before);
                        }
                        _ => {}
                    }
                }
                Err(error) => {
                    if broken.as_ref() != Some(&error) {
                        error!("{error} (the last good state goes on)");
                        for resource in health.needed() {
                            health.down(resource, Trouble::BrokenFile { message: error.to_string() });
                        }
                        broken = Some(error);
                    }
                }
            }
        }
    }

    /// Takes an edit in. Returns whether DNS has to be told.
    fn edited(&mut self, clusters: Clusters) -> bool {
        for edit in edits(self.set.told(), &clusters) {
            self.print(&format!("# {edit}"));
        }
        let told = self.set.told().clone();
        self.hints(&told, &clusters);
        let before = self.set.world().clone();
        let viewed = self.set.cluster(self.view.as_ref()).cloned();
        self.set.tell(clusters);
        let done = self.carry_on(&before);
        let view = self.set.cluster(self.view.as_ref()).cloned();
        if viewed != view {
            self.print(&match &view {
                Some(view) => format!("DNS answers as seen from {view}"),
                None => "the cluster that DNS is seen from is gone: no name exists until it is back".to_owned(),
            });
        }
        done
    }

    fn carry_on(&mut self, before: &World) -> bool {
        match self.settle(before) {
            Ok(()) => true,
            Err(error) => {
                error!("{error}");
                false
            }
        }
    }

    /// Carries out what follows from what was told, and tells it in words.
    fn settle(&mut self, before: &World) -> Result<(), SandboxError> {
        let now = now();
        let Settled { plans, again } = self.set.settle(now)?;
        self.again = again;
        let after = self.set.world();
        let lines = differences(before, after, &plans, Telling::Done, self.set.settings(), now);
        let quiet = lines.is_empty();
        for line in lines {
            self.print(&line.to_string());
        }
        if quiet {
            self.print("nothing changes for the clusterset");
        }
        Ok(())
    }

    /// All that DNS sees.
    fn seen(&self, convert: &Convert) -> Vec<Change> {
        let cluster = self.set.cluster(self.view.as_ref());
        cluster.map(|cluster| view(self.set.world(), self.set.told(), cluster, convert)).unwrap_or_default()
    }

    fn introduce(&mut self, clusters: &Clusters) {
        let names = clusters.0.keys().map(ClusterId::as_str).collect::<Vec<_>>().join(", ");
        let view = self.view.as_ref().or_else(|| clusters.0.keys().next());
        let view = view.map(ToString::to_string).unwrap_or_default();
        let count = match clusters.0.len() {
            1 => "1 cluster".to_owned(),
            n => format!("{n} clusters"),
        };
        let dir = self.dir.display().to_string();
        self.print(&format!("{count} in {dir}: {names}; DNS answers as seen from {view}"));
    }

    /// Hints that were not given before.
    fn hints(&mut self, before: &Clusters, clusters: &Clusters) {
        let known: Vec<_> = before.0.values().flat_map(|cluster| &cluster.hints).collect();
        let new: Vec<_> = clusters.0.values().flat_map(|cluster| &cluster.hints).collect();
        for hint in new {
            if !known.contains(&hint) {
                self.print(&format!("# {hint}"));
            }
        }
    }

    fn print(&mut self, line: &str) {
        // A reader that has gone away is no reason to stop serving.
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }
}

/// The clock.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
