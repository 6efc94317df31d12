//! A bed: a scratch folder, and everything that was started in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::binaries::binaries;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::{Doing, Error, Result};
use crate::fabric::Fabric;
use crate::process::ProcessBuilder;
use crate::{place, ports};

/// A scratch folder and everything that was started in it. When the last clone of the bed, its clusters and its
/// processes is dropped, also by a panic, all of it ends and the folder is removed.
///
/// Should the test process die without dropping anything (SIGKILL, `process::exit`), the kernel ends the children
/// where `setpriv` is installed, and the next bed that is made removes what is left.
///
/// `NAMESAKE_TESTBED_KEEP=1` keeps the folder with its logs for a look afterwards.
#[derive(Clone)]
pub struct Bed(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    /// The bed of `testbed up`: its processes are to outlive this one.
    outlives: bool,
    /// Clusters get networks of their own by this count.
    clusters: AtomicU32,
    /// The wires between nodes, as long as there is a node.
    fabric: Mutex<Weak<Fabric>>,
}

impl Bed {
    /// Makes a bed in a fresh folder, after removing the beds of test processes that died. Builds the real programs
    /// if they are missing.
    pub fn new() -> Result<Bed> {
        binaries()?;
        let base = place::base()?;
        let _lock = place::lock(&base)?;
        place::sweep(&base)?;
        let dir = base.join("beds").join(format!("{}-{}", std::process::id(), &ports::random_hex()?[..8]));
        place::claim(&dir)?;
        Ok(Bed::at(dir, false))
    }

    /// Makes a bed in `dir` whose processes go on after this program ends, once [`keep`](Bed::keep) was called.
    pub fn that_outlives_us(dir: &Path) -> Result<Bed> {
        binaries()?;
        let base = place::base()?;
        let _lock = place::lock(&base)?;
        place::sweep(&base)?;
        if dir.exists() {
            let full = fs::read_dir(dir).doing(dir.display())?.next().is_some();
            if place::is_bed(dir) && place::is_owned(dir) {
                return Err(Error::new(format!(
                    "clusters are up in {} already; end them first with `testbed down --dir {}`",
                    dir.display(),
                    dir.display()
                )));
            } else if place::is_bed(dir) {
                place::remove(dir)?;
            } else if full {
                return Err(Error::new(format!(
                    "{} holds files that are not a test bed's; give another --dir",
                    dir.display()
                )));
            }
        }
        fs::create_dir_all(dir).doing(dir.display())?;
        let dir = dir.canonicalize().doing(dir.display())?;
        place::claim(&dir)?;
        Ok(Bed::at(dir, true))
    }

    fn at(dir: PathBuf, outlives: bool) -> Bed {
        Bed(Arc::new(Inner { dir, outlives, clusters: AtomicU32::new(0), fabric: Mutex::new(Weak::new()) }))
    }

    /// Ends and removes the bed in `dir`, whoever made it. Says whether there was one.
    pub fn end_in(dir: &Path) -> Result<bool> {
        let base = place::base()?;
        let _lock = place::lock(&base)?;
        if !dir.exists() {
            return Ok(false);
        }
        let dir = dir.canonicalize().doing(dir.display())?;
        if !place::is_bed(&dir) {
            return Err(Error::new(format!("{} is not the folder of a test bed", dir.display())));
        }
        place::remove(&dir)?;
        place::sweep(&base)?;
        Ok(true)
    }

    /// Lets the processes of a bed made by [`that_outlives_us`](Bed::that_outlives_us) go on: nothing ends any more when
    /// values are dropped.
    pub fn keep(&self) -> Result<()> {
        place::keep(&self.0.dir)
    }

    /// The scratch folder; gone with the bed.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// A port of the loopback that is free for UDP and TCP and that no other bed gets while this one lives.
    pub fn port(&self) -> Result<u16> {
        ports::reserve(&self.0.dir)
    }

    /// Writes a file into the scratch folder and returns its path.
    pub fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).doing(parent.display())?;
        }
        fs::write(&path, text).doing(path.display())?;
        Ok(path)
    }

    /// Starts a cluster and waits until it is ready.
    pub async fn cluster(&self, name: &str) -> Result<Cluster> {
        self.cluster_with(name, ClusterOptions::default()).await
    }

    /// Starts a cluster with options and waits until it is ready. Its number in the bed is that of the call, whichever of
    /// several starts begins first.
    pub fn cluster_with(
        &self,
        name: &str,
        options: ClusterOptions,
    ) -> impl Future<Output = Result<Cluster>> + Send + use<> {
        let number = self.0.clusters.fetch_add(1, Ordering::Relaxed) + 1;
        Cluster::start(self.clone(), name.to_owned(), number, options)
    }

    /// Starts clusters side by side and waits until all are ready; they come in the order of their names.
    pub async fn clusters<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Result<Vec<Cluster>> {
        self.clusters_with(names, ClusterOptions::default()).await
    }

    /// Starts clusters side by side, all with the same options.
    pub async fn clusters_with<S: Into<String>>(
        &self,
        names: impl IntoIterator<Item = S>,
        options: ClusterOptions,
    ) -> Result<Vec<Cluster>> {
        let starts: Vec<_> =
            names.into_iter().map(|name| tokio::spawn(self.cluster_with(&name.into(), options.clone()))).collect();
        let mut clusters = Vec::new();
        let mut first_error = None;
        // All are waited for, also after an error: a start that goes on in the background would outlive this call.
        for start in starts {
            match start.await.doing("starting a cluster") {
                Ok(Ok(cluster)) => clusters.push(cluster),
                Ok(Err(e)) | Err(e) => {
                    first_error.get_or_insert(e);
                }
            }
        }
        first_error.map_or(Ok(clusters), Err)
    }

    /// A program to run in this bed, such as `env!("CARGO_BIN_EXE_namesake")`. `name` names its log.
    pub fn process(&self, name: &str, program: impl Into<PathBuf>) -> ProcessBuilder {
        ProcessBuilder::new(self.clone(), name, program.into())
    }

    /// How many processes of this bed run now.
    pub fn running(&self) -> usize {
        place::processes(&self.0.dir).len()
    }

    /// The wires between the nodes of this bed.
    pub(crate) fn fabric(&self) -> Result<Arc<Fabric>> {
        let mut fabric = self.0.fabric.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fabric) = fabric.upgrade() {
            return Ok(fabric);
        }
        let new = Arc::new(Fabric::new(self)?);
        *fabric = Arc::downgrade(&new);
        Ok(new)
    }

    pub(crate) fn outlives(&self) -> bool {
        self.0.outlives
    }

    /// Whether the processes are to be left alone when values are dropped.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.outlives && fs::read_to_string(self.0.dir.join("owner")).is_ok_and(|text| text.trim() == "kept")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.outlives && fs::read_to_string(self.dir.join("owner")).is_ok_and(|text| text.trim() == "kept") {
            return;
        }
        let ended = if std::env::var_os("NAMESAKE_TESTBED_KEEP").is_some_and(|v| v == "1") {
            eprintln!("testbed: kept for a look: {}", self.dir.display());
            // Copied away under a name that no sweep touches.
            let kept = self
                .dir
                .with_file_name(format!("../kept-{}", self.dir.file_name().and_then(|n| n.to_str()).unwrap_or("bed")));
            place::end_processes(&self.dir).and_then(|()| fs::rename(&self.dir, &kept).doing(kept.display()))
        } else {
            place::remove(&self.dir)
        };
        if let Err(e) = ended {
            eprintln!("testbed: {e}");
        }
    }
}
