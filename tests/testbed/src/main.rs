//! The test bed as a command for people: clusters that stay up until `down`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use testbed::{Bed, Cluster, ClusterOptions, Error, NAMESAKE, OwnImage, PacketBed, PacketOptions, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Real Kubernetes clusters on this machine.
///
/// Each cluster is an etcd, a kube-apiserver with RBAC on and a kube-controller-manager on loopback ports, ready in about
/// 4 seconds, without root. There are no nodes: objects live, pods do not run.
///
/// With --packets each has a node too (kubelet, containerd, kube-proxy, scheduler, CoreDNS), in network namespaces that
/// leave the machine's own network alone; pods reach those of the other clusters, and Namesake, built from this
/// repository, is deployed in them as its README says. That needs root and takes about 15 seconds for two clusters.
///
/// The programs are built from Go modules on first use, which needs Go and takes about 10 minutes on 2 cores; Namesake's
/// image takes 5 more.
#[derive(Parser)]
#[command(
    name = "testbed",
    after_help = "Example:
  testbed up --clusters 2 --crds v0.5.2
  export KUBECONFIG=$(testbed kubeconfig --path)
  kubectl --context c1 get serviceimports -A
  testbed down

The conformance program of sigs.k8s.io/mcs-api needs no other step than these:
  testbed up --packets --clusters 2
  conformance.test -kubeconfig $(testbed kubeconfig --path) -contexts c1,c2"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start clusters; they stay up when this command ends
    Up {
        #[command(flatten)]
        place: Place,
        /// How many clusters (named c1, c2, …), or their names, separated by commas
        #[arg(long, default_value = "1", value_name = "N|NAMES")]
        clusters: String,
        /// Install the MCS CRDs of this release of sigs.k8s.io/mcs-api in each, such as v0.5.2, v0.5.0 or v0.4.1
        #[arg(long, value_name = "VERSION", conflicts_with = "packets")]
        crds: Option<String>,
        /// With nodes on which pods run, and with Namesake deployed; the first cluster is the hub. Needs root
        #[arg(long)]
        packets: bool,
        /// Give Services, and pods where there are any, IPv4 and IPv6 addresses
        #[arg(long)]
        dual_stack: bool,
    },
    /// Print one kubeconfig with a context per cluster
    Kubeconfig {
        #[command(flatten)]
        place: Place,
        /// Print the path of the file instead of its text
        #[arg(long)]
        path: bool,
    },
    /// Build Namesake's image as deploy/image/Dockerfile says, without a container engine
    #[command(after_help = "Example:
  testbed image namesake.tar && ctr --namespace k8s.io images import namesake.tar")]
    Image {
        /// Where to write it, as an OCI archive; without it, only the program is built
        file: Option<PathBuf>,
    },
    /// End the clusters and remove their data
    Down {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Args)]
struct Place {
    /// The folder of the clusters' data and logs
    #[arg(long, env = "NAMESAKE_TESTBED_DIR", value_name = "DIR", default_value_os_t = default_dir())]
    dir: PathBuf,
}

/// A folder of this user that is the same for `up`, `kubeconfig` and `down`.
fn default_dir() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("namesake-testbed-up")
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("testbed: starting threads: {e}");
            return ExitCode::FAILURE;
        }
    };
    let done = match Cli::parse().command {
        Command::Up { place, clusters, crds, packets, dual_stack } => runtime.block_on(async {
            tokio::select! {
                done = up(place, &clusters, crds.as_deref(), packets, dual_stack) => done,
                // Dropping the other branch ends what it has started.
                signal = told_to_end() => Err(Error::new(format!("ended by {signal}; nothing stays up"))),
            }
        }),
        Command::Kubeconfig { place, path } => kubeconfig(&place, path),
        Command::Down { place } => down(&place),
        Command::Image { file } => image(file.as_deref()),
    };
    // What goes on in threads is waited for, since it may hold a part of the bed, such as a kubectl (30 s at most); a
    // build of the image does not.
    runtime.shutdown_timeout(Duration::from_secs(35));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("testbed: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for a signal that ends programs; its name.
async fn told_to_end() -> &'static str {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            // Then it ends this program as it ends any.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => "SIGINT",
        _ = terminated => "SIGTERM",
    }
}

async fn up(place: Place, clusters: &str, crds: Option<&str>, packets: bool, dual_stack: bool) -> Result<()> {
    let names: Vec<String> = match clusters.parse::<u32>() {
        Ok(0) => return Err(Error::new("--clusters 0: nothing to start")),
        Ok(count) => (1..=count).map(|n| format!("c{n}")).collect(),
        Err(_) => clusters.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    if packets {
        // Said before programs are built for ten minutes.
        PacketBed::check()?;
    }
    let began = Instant::now();
    let bed = Bed::that_outlives_us(&place.dir)?;
    // Held until the bed is kept: what is dropped before that ends.
    let mut with_nodes = None;
    let clusters = if packets {
        let packet_bed = PacketBed::start_in(&bed, PacketOptions { names, dual_stack }).await?;
        for (phase, took) in packet_bed.phases() {
            println!("{:5.1} s  {phase}", took.as_secs_f64());
        }
        with_nodes.insert(packet_bed).clusters.clone()
    } else {
        bed.clusters_with(names, ClusterOptions { dual_stack, ..Default::default() }).await?
    };
    for cluster in &clusters {
        println!("{}  {}  ready after {:.1} s", cluster.name(), cluster.server(), cluster.ready_after().as_secs_f64());
        if let Some(version) = crds {
            cluster.install_crds(version).await?;
        }
    }
    let merged = testbed::merge_kubeconfigs(clusters.iter().map(Cluster::kubeconfig))?;
    let file = bed.file(KUBECONFIG, &merged)?;
    bed.keep()?;
    println!("all of it took {:.1} s", began.elapsed().as_secs_f64());
    println!("export KUBECONFIG={}", file.display());
    Ok(())
}

/// The merged kubeconfig in the folder of the bed.
const KUBECONFIG: &str = "kubeconfig";

fn kubeconfig(place: &Place, path: bool) -> Result<()> {
    let file = place.dir.join(KUBECONFIG);
    let text = std::fs::read_to_string(&file).map_err(|e| {
        Error::new(format!("no clusters are up in {} ({e}); start some with `testbed up`", place.dir.display()))
    })?;
    if path {
        println!("{}", file.display())
    } else {
        println!("{text}")
    }
    Ok(())
}

fn image(file: Option<&Path>) -> Result<()> {
    let image = OwnImage::build()?;
    if let Some(file) = file {
        image.write(file)?;
        println!("{NAMESAKE} in {}", file.display());
    }
    Ok(())
}

fn down(place: &Place) -> Result<()> {
    if Bed::end_in(&place.dir)? {
        println!("ended and removed: {}", place.dir.display());
    } else {
        println!("nothing is up in {}", place.dir.display());
    }
    Ok(())
}
