//! The packet tier in one call: clusters with nodes, their DNS in three arrangements, and Namesake deployed in them as its
//! README says.

use std::future::Future;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::bed::Bed;
use crate::cluster::{Cluster, ClusterOptions};
use crate::clusterdns::{Arrangement, ClusterDns};
use crate::deployment::{DNS_SERVICE, Deployment};
use crate::error::{Doing, Error, Result};
use crate::images::{self, NETSHOOT, suite_images};
use crate::node::{self, NodeOptions, ProxyMode};
use crate::own_image::{NAMESAKE, OwnImage};
use crate::site;

/// What a packet bed is to have.
#[derive(Clone, Debug)]
pub struct PacketOptions {
    /// The names of the clusters, which are their contexts and their ids in the clusterset too. The first one is the hub.
    pub names: Vec<String>,
    /// Give pods and Services addresses of both families.
    pub dual_stack: bool,
}

impl PacketOptions {
    /// As many clusters, `c1`, `c2` and so on.
    pub fn clusters(count: u32) -> PacketOptions {
        PacketOptions { names: (1..=count).map(|n| format!("c{n}")).collect(), dual_stack: false }
    }

    /// With addresses of both families.
    pub fn dual_stack(mut self) -> PacketOptions {
        self.dual_stack = true;
        self
    }
}

/// How long each step took.
pub type Phase = (String, Duration);

/// Clusters whose pods reach each other, with Namesake at work in them. All of it ends when the value is dropped.
pub struct PacketBed {
    /// The clusters, in the order of their names. The first one is the hub, with the controller in it.
    pub clusters: Vec<Cluster>,
    dns: Vec<ClusterDns>,
    kubeconfig: PathBuf,
    phases: Vec<Phase>,
    bed: Bed,
}

impl PacketBed {
    /// Says what is missing on this machine for packet beds: root, or Debian packages.
    pub fn check() -> Result<()> {
        node::check()?;
        images::check()
    }

    /// Makes a bed with clusters in it and waits until names of the zone are answered in all of them, in every
    /// arrangement. Needs root, and Debian packages that an error names.
    pub async fn start(options: PacketOptions) -> Result<PacketBed> {
        // Said before anything is built.
        PacketBed::check()?;
        PacketBed::start_in(&Bed::new()?, options).await
    }

    /// As [`start`](PacketBed::start), in a bed that is there already and has no clusters yet.
    pub async fn start_in(bed: &Bed, options: PacketOptions) -> Result<PacketBed> {
        if options.names.is_empty() {
            return Err(Error::new("a packet bed needs a cluster: names is empty"));
        }
        let clock = Clock::new();
        // Images are made while control planes start, and imported while nodes register.
        let up = Arc::new(AtomicBool::new(false));
        let images = async {
            let images = Arc::new(clock.time("making images", images(bed.dir().to_owned())).await?);
            let dirs = options.names.iter().map(|name| bed.dir().join(name));
            let early = dirs.map(|dir| import_early(images.clone(), dir, up.clone()));
            clock.time("images on the nodes", side_by_side(early)).await?;
            Ok::<_, Error>(images)
        };
        let clusters = async {
            let clusters = clock.time("control planes and nodes", clusters(bed, &options)).await;
            up.store(true, Ordering::Relaxed);
            clusters
        };
        let (images, clusters) = tokio::join!(images, clusters);
        let (clusters, images) = (clusters?, images?);
        let deployment = Deployment::new(bed, images.own.program(), &clusters)?;

        let hub = &clusters[0];
        let ready = |cluster: &Cluster| {
            let (clock, images, deployment) = (clock.clone(), images.clone(), deployment.clone());
            let (cluster, is_hub) = (cluster.clone(), cluster.number() == hub.number());
            async move {
                let deployed = async {
                    import_late(images, cluster.clone()).await?;
                    if is_hub {
                        let hub = cluster.clone();
                        let applied = blocking(move || deployment.apply_controller(&hub));
                        clock.time("kubectl apply -k controller", applied).await?;
                    }
                    Ok(())
                };
                let dns = ClusterDns::start(&cluster, cluster.service_ip(DNS_SERVICE));
                let dns = clock.time(&format!("{}: cluster DNS", cluster.name()), dns);
                let (deployed, dns) = tokio::join!(deployed, dns);
                deployed.and(dns)
            }
        };
        let mut dns = side_by_side(clusters.iter().map(ready)).await?;

        let joined = |(cluster, mut dns): (&Cluster, ClusterDns)| {
            let (clock, deployment, hub, cluster) = (clock.clone(), deployment.clone(), hub.clone(), cluster.clone());
            async move {
                let (name, to, what) = (cluster.name().to_owned(), cluster.clone(), deployment.clone());
                clock.time(&format!("{name}: namesake join"), blocking(move || what.join(&hub, &to))).await?;
                let (to, what) = (cluster.clone(), deployment.clone());
                let deployed = async {
                    let applied = blocking(move || what.apply_dns(&to));
                    clock.time(&format!("{name}: kubectl apply -k dns"), applied).await?;
                    clock.time(&format!("{name}: DNS pods"), deployment.wait_dns(&cluster)).await
                };
                let plugin = clock.time(&format!("{name}: plugin"), dns.start_plugin());
                let (deployed, plugin) = tokio::join!(deployed, plugin);
                deployed.and(plugin)?;
                dns.wait_zone().await?;
                Ok(dns)
            }
        };
        let answering = side_by_side(clusters.iter().zip(dns.drain(..)).map(joined));
        let writing = clock.time("controller", deployment.wait_controller(hub, &clusters));
        let (answering, writing) = tokio::join!(answering, writing);
        let dns = answering?;
        writing?;
        let phases = clock.done();
        Ok(PacketBed { dns, kubeconfig: deployment.kubeconfig().to_owned(), phases, bed: bed.clone(), clusters })
    }

    /// The server that a pod of one cluster asks in an arrangement: for `dnsConfig.nameservers`, with `dnsPolicy: None`.
    ///
    /// # Panics
    ///
    /// If there is no such cluster.
    pub fn nameserver(&self, cluster: usize, arrangement: Arrangement) -> IpAddr {
        IpAddr::V4(arrangement.nameserver(&self.clusters[cluster]))
    }

    /// The DNS servers of one cluster.
    ///
    /// # Panics
    ///
    /// If there is no such cluster.
    pub fn dns(&self, cluster: usize) -> &ClusterDns {
        &self.dns[cluster]
    }

    /// A kubeconfig with a context of each cluster's name.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The bed, to start other things in.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// How long each step of the start took; the last one is the whole.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }
}

/// All archives that are needed.
struct Images {
    suite: PathBuf,
    own: OwnImage,
    own_archive: PathBuf,
}

impl Images {
    fn archives(&self) -> [&Path; 2] {
        [&self.suite, &self.own_archive]
    }
}

/// Makes the archives. Its thread holds no part of the bed, so that a build of minutes keeps no bed up that was given up.
async fn images(dir: PathBuf) -> Result<Images> {
    blocking(move || {
        let suite = suite_images()?;
        let own = OwnImage::build()?;
        let own_archive = dir.join("namesake-image.tar");
        own.write(&own_archive)?;
        Ok(Images { suite, own, own_archive })
    })
    .await
}

/// Imports into the containerd of the cluster in `dir` as soon as it answers. A cluster that had to start over, or did
/// not start, may have none of it: that is for [`import_late`], or for the start's own error.
async fn import_early(images: Arc<Images>, dir: PathBuf, up: Arc<AtomicBool>) -> Result<()> {
    loop {
        // Looked at in this order, a containerd that answers late is asked once more.
        let last = up.load(Ordering::Relaxed);
        let (images, dir) = (images.clone(), dir.clone());
        let import = move || {
            let answers = site::containerd_answers(&dir);
            if answers {
                let _ = images.archives().map(|archive| site::import_image(&dir, archive));
            }
            Ok(answers)
        };
        if blocking(import).await? || last {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Imports what is not there yet.
async fn import_late(images: Arc<Images>, cluster: Cluster) -> Result<()> {
    blocking(move || {
        let archives = images.archives().into_iter().zip([NETSHOOT, NAMESAKE]);
        for (archive, name) in archives {
            if !cluster.has_image(name)? {
                cluster.import_image(archive)?;
            }
        }
        Ok(())
    })
    .await
}

/// The clusters, side by side, every other one with the other kind of kube-proxy.
async fn clusters(bed: &Bed, options: &PacketOptions) -> Result<Vec<Cluster>> {
    let proxies = [ProxyMode::Nftables, ProxyMode::Iptables].into_iter().cycle();
    let starts = options.names.iter().zip(proxies).map(|(name, proxy)| {
        let node = Some(NodeOptions { proxy });
        bed.cluster_with(name, ClusterOptions { dual_stack: options.dual_stack, node, ..Default::default() })
    });
    side_by_side(starts).await
}

/// Runs tasks side by side and waits for all, also after an error; their results come in order.
async fn side_by_side<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = Result<T>> + Send + 'static>,
) -> Result<Vec<T>> {
    let mut set = JoinSet::new();
    for (number, task) in tasks.into_iter().enumerate() {
        set.spawn(async move { (number, task.await) });
    }
    let mut results = Vec::new();
    while let Some(joined) = set.join_next().await {
        results.push(joined.doing("a step of the bed")?);
    }
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Work that waits for other programs, off the threads that others wait on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.doing("a step of the bed")?
}

/// Notes how long steps take.
#[derive(Clone)]
struct Clock {
    began: Instant,
    phases: Arc<Mutex<Vec<Phase>>>,
}

impl Clock {
    fn new() -> Clock {
        Clock { began: Instant::now(), phases: Arc::default() }
    }

    fn time<T, F: Future<Output = T>>(&self, name: &str, step: F) -> impl Future<Output = T> + use<T, F> {
        let (phases, name) = (self.phases.clone(), name.to_owned());
        async move {
            let began = Instant::now();
            let result = step.await;
            phases.lock().unwrap_or_else(PoisonError::into_inner).push((name, began.elapsed()));
            result
        }
    }

    fn done(self) -> Vec<Phase> {
        let mut phases = std::mem::take(&mut *self.phases.lock().unwrap_or_else(PoisonError::into_inner));
        phases.push(("all".to_owned(), self.began.elapsed()));
        phases
    }
}
