//! Clustersets of real clusters with RBAC on, the controller with the account that `namesake join` would give it in each,
//! and looks at what is there.
#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

pub mod faults;
pub mod kubelet;
pub mod objects;
pub mod place;
pub mod running;

use std::path::{Path, PathBuf};
use std::time::Duration;

use namesake::controller::enrol::manifests;
use testbed::{Bed, Cluster, ClusterOptions, merge_kubeconfigs};

pub use place::{Place, Story};
pub use running::{Controller, until};

/// How long anything may take that takes a moment: the conformance suite's wait for effects through the API.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The account of the controller in a member, as `namesake join` makes it.
pub const ACCOUNT: (&str, &str) = (manifests::NAMESPACE, manifests::ACCOUNT);

/// Clusters that are ready to be members: with CRDs, the controller's account and a node.
pub struct Clusterset {
    pub bed: Bed,
    pub clusters: Vec<Cluster>,
    /// The controller's access to each.
    pub kubeconfigs: Vec<PathBuf>,
}

impl Clusterset {
    /// Starts clusters side by side, each with its options.
    pub async fn start(wanted: Vec<(&'static str, ClusterOptions)>) -> Self {
        let bed = Bed::new().unwrap();
        let starts: Vec<_> = wanted
            .into_iter()
            .map(|(name, options)| {
                let bed = bed.clone();
                tokio::spawn(async move {
                    let cluster = bed.cluster_with(name, options).await.unwrap();
                    prepare(&cluster).await;
                    let kubeconfig = cluster.kubeconfig_for_service_account(ACCOUNT.0, ACCOUNT.1).await.unwrap();
                    (cluster, kubeconfig)
                })
            })
            .collect();
        let (mut clusters, mut kubeconfigs) = (Vec::new(), Vec::new());
        for start in starts {
            let (cluster, kubeconfig) = start.await.unwrap();
            clusters.push(cluster);
            kubeconfigs.push(kubeconfig);
        }
        Self { bed, clusters, kubeconfigs }
    }

    /// The arguments that make all of these members, by contexts of one kubeconfig.
    pub fn as_members(&self) -> Vec<String> {
        self.as_members_by(&self.kubeconfigs)
    }

    /// The same, with other kubeconfigs, in the clusters' order. Fewer of them make fewer members.
    pub fn as_members_by(&self, kubeconfigs: &[PathBuf]) -> Vec<String> {
        let merged = merge_kubeconfigs(kubeconfigs).unwrap();
        let file = format!("members-{}.kubeconfig", self.bed.port().unwrap());
        let file = self.bed.file(&file, &merged).unwrap();
        let mut args = vec!["--no-hub".to_owned(), format!("--kubeconfig={}", file.display())];
        args.extend(self.clusters.iter().take(kubeconfigs.len()).map(|c| format!("--member={0}={0}", c.name())));
        args
    }
}

/// CRDs, the account that `namesake join` would make, and a node for pods to be on.
pub async fn prepare(cluster: &Cluster) {
    prepare_with(cluster, Some("v0.5.2")).await;
}

/// The same, with the CRDs of another release or none.
pub async fn prepare_with(cluster: &Cluster, crds: Option<&str>) {
    if let Some(version) = crds {
        cluster.install_crds(version).await.unwrap();
    }
    cluster.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", ACCOUNT.0)).await.unwrap();
    let account = manifests::account(ACCOUNT.0, &manifests::Rights::Write(vec![manifests::Grant::SourceLeases]));
    cluster.apply_values(account.into_iter().map(|placed| placed.object).collect()).await.unwrap();
    kubelet::node(cluster).await;
}

/// A folder of kubeconfigs, each called after the id of a member.
pub struct Folder(PathBuf);

impl Folder {
    /// With these clusters of the set.
    pub fn new(set: &Clusterset, members: &[usize]) -> Self {
        let keep = set.bed.file(&format!("members-{}/.keep", set.bed.port().unwrap()), "").unwrap();
        let folder = Self(keep.parent().unwrap().to_owned());
        for member in members {
            folder.put(set.clusters[*member].name(), &set.kubeconfigs[*member]);
        }
        folder
    }

    /// Writes a file beside and moves it in, as tools do.
    pub fn put(&self, id: &str, kubeconfig: &Path) {
        let beside = self.0.join(format!(".{id}"));
        std::fs::copy(kubeconfig, &beside).unwrap();
        std::fs::rename(beside, self.0.join(format!("{id}.kubeconfig"))).unwrap();
    }

    pub fn remove(&self, id: &str) {
        std::fs::remove_file(self.0.join(format!("{id}.kubeconfig"))).unwrap();
    }

    /// The arguments that make its clusters members.
    pub fn args(&self) -> Vec<String> {
        vec!["--no-hub".to_owned(), format!("--member-folder={}", self.0.display())]
    }
}

/// The top of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
