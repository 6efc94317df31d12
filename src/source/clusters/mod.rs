//! A folder in which each sub-folder is a cluster of YAML: a clusterset without a cluster, for `sandbox` and `plan`.
//!
//! ```text
//!  east/*.yaml ─► documents ─► manifests ─► filled in as an API server would ─► slices as its
//!  west/*.yaml                              (addresses, uids, defaults)         controllers would make them
//! ```
//!
//! A state is a function of the folder alone: whatever is made up comes from names, so it is the same at every reading
//! and on every machine. An edit that can't be read is an error with its file and line, and changes nothing.

mod endpoints;
mod fill;
mod made;
mod manifests;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use made::Ranges;

use super::folder::files::{Look, Texts};
use super::folder::{self, FileError, FileProblem, Seen};
use super::member::Observed;
use crate::model::ClusterId;
use crate::reconcile::observed::Features;
use crate::reconcile::world::Kind;
use manifests::Manifests;

/// What a folder says about each of its clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters(pub BTreeMap<ClusterId, Cluster>);

/// One cluster of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its objects.
    pub objects: BTreeMap<ObjectId, Observed>,
    /// From where its Services get addresses.
    pub ranges: Ranges,
    /// What a person may have meant otherwise, each a sentence with its file and line.
    pub hints: Vec<String>,
    /// Its manifests as written, to see which changed: `Pod shop/web-0` and a hash.
    pub written: BTreeMap<String, u64>,
    /// The addresses of Services that were made up.
    pub made_up: BTreeSet<IpAddr>,
}

impl Cluster {
    /// What its API server can do: everything that one of today can.
    #[must_use]
    pub fn features(&self) -> Features {
        Features { endpoint_slice_objects: true, families: Some(self.ranges.families()) }
    }
}

/// Which object of a cluster: kind, namespace (empty for a Namespace) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl ObjectId {
    fn of(object: &Observed) -> Self {
        let (namespace, name) = match object {
            Observed::Namespace(name, _) => ("", name.as_str()),
            Observed::Export(key, _) | Observed::Service(key, _) | Observed::Import(key, _) => {
                (key.namespace.as_str(), key.name.as_str())
            }
            Observed::Slice(key, _) => (key.namespace.as_str(), &*key.name),
        };
        Self { kind: object.kind(), namespace: namespace.into(), name: name.into() }
    }
}

/// Whether a uid is made up here: the manifest had none, and no API server knows it.
#[must_use]
pub fn is_made_up(uid: &str, cluster: &ClusterId, id: &ObjectId) -> bool {
    *uid == *made::object_uid(cluster, id)
}

/// What `dir` says now.
///
/// # Errors
/// Where the folder or a file in it can't be read, or says what no API server would take.
pub fn read(dir: &Path) -> Result<Clusters, FileError> {
    parse(dir, &Look::at(dir).and_then(|look| look.read()).map_err(of_clusters)?)
}

fn parse(dir: &Path, texts: &Texts) -> Result<Clusters, FileError> {
    let mut manifests: BTreeMap<ClusterId, Manifests> = BTreeMap::new();
    let mut folders: BTreeMap<PathBuf, ClusterId> = BTreeMap::new();
    for folder in texts.folders() {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let valid = made::is_dns_label(name);
        let Some(id) = ClusterId::new(name).filter(|_| valid) else {
            return Err(FileError::new(folder.display().to_string(), 0, FileProblem::BadClusterName));
        };
        manifests.insert(id.clone(), Manifests::of(&id));
        folders.insert(folder.clone(), id);
    }
    for (file, text) in texts.iter() {
        let of = folders.iter().find(|(folder, _)| Path::new(file).starts_with(folder));
        let manifests = of.and_then(|(_, id)| manifests.get_mut(id));
        let Some(manifests) = manifests else {
            return Err(FileError::new(file, 0, FileProblem::OutsideClusters));
        };
        manifests.add(file, text)?;
    }
    if manifests.is_empty() {
        return Err(FileError::new(dir.display().to_string(), 0, FileProblem::NoClusters));
    }
    let mut first: Option<(ClusterId, String)> = None;
    let clusters = manifests.into_iter().map(|(id, mut manifests)| {
        let hint = manifests.set.take().and_then(|(set, place)| other_set(&mut first, &id, set, &place));
        let mut cluster = fill::cluster(&id, manifests)?;
        cluster.hints.extend(hint);
        Ok((id, cluster))
    });
    clusters.collect::<Result<_, _>>().map(Clusters)
}

/// A hint where a cluster says that it is in another clusterset than the first that says anything.
fn other_set(first: &mut Option<(ClusterId, String)>, id: &ClusterId, set: String, place: &str) -> Option<String> {
    match first {
        Some((other, theirs)) if *theirs != set => Some(format!(
            "{place}: the ClusterProperty clusterset.k8s.io says that {id} is in {set:?}, and {other} says {theirs:?}; here \
             all folders are one clusterset"
        )),
        Some(_) => None,
        None => {
            *first = Some((id.clone(), set));
            None
        }
    }
}

/// The errors of the folder itself have other remedies here.
fn of_clusters(error: FileError) -> FileError {
    let problem = match error.problem {
        FileProblem::NoFolder => FileProblem::NoClustersFolder,
        FileProblem::NotAFolder => FileProblem::NotAClustersFolder,
        other => other,
    };
    FileError { problem, ..error }
}

/// A folder that is looked at again and again.
#[derive(Debug)]
pub struct Watched {
    dir: Arc<Path>,
    seen: Seen,
}

impl Watched {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.into(), seen: Seen::default() }
    }

    /// How long to wait between two looks.
    pub const POLL: Duration = folder::POLL;

    /// The new state where there is one, `None` where nothing changed since the last look.
    ///
    /// # Errors
    /// As for [`read`]; the same error again for as long as the folder stays as it is.
    pub async fn look(&mut self) -> Result<Option<Clusters>, FileError> {
        let dir = Arc::clone(&self.dir);
        let news = folder::look(&Arc::clone(&dir), &mut self.seen, move |texts: &Texts| parse(&dir, texts)).await;
        match news {
            Ok(news) => {
                self.seen.broken = None;
                Ok(news)
            }
            Err(error) => {
                let error = of_clusters(error);
                self.seen.broken = Some(error.clone());
                Err(error)
            }
        }
    }
}
