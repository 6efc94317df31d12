//! Where a cluster with a node stands: its network namespace on the bed's fabric, the way to its API server from the
//! machine, and what can be done to its link.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::{Doing, Error, Result};
use crate::fabric::Fabric;
use crate::network::{Network, run};
use crate::node::{self, Node};
use crate::parts::Part;
use crate::process::{Process, ProcessBuilder};

/// How long a node may take to become ready. It takes some 3 seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// The namespace of a node.
pub(crate) struct Site {
    network: Network,
    number: u32,
    fabric: Arc<Fabric>,
    /// The process that holds the namespace, and the two that carry connections from the machine's loopback into it:
    /// a socket in the file system is reached from every network namespace.
    _processes: [Process; 3],
}

impl Site {
    /// Makes the namespace, connects it, and makes a port of it reachable under the same number on the machine.
    pub(crate) fn new(bed: &Bed, name: &str, number: u32, dir: &Path, port: u16) -> Result<Site> {
        node::check()?;
        let fabric = bed.fabric()?;
        let (network, holder) = Network::new(bed, &format!("network-{name}"))?;
        fabric.join(number, &network)?;
        let socket = dir.join("api.sock");
        let socat = PathBuf::from("/usr/bin/socat");
        let inner = bed
            .process("way-in", &socat)
            .arg(format!("UNIX-LISTEN:{},fork,backlog=1024", socket.display()))
            .arg(format!("TCP:127.0.0.1:{port}"))
            .current_dir(dir)
            .in_network(Some(&network))
            .spawn()?;
        let outer = bed
            .process("way-out", &socat)
            .arg(format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,backlog=1024,nodelay"))
            .arg(format!("UNIX-CONNECT:{}", socket.display()))
            .current_dir(dir)
            .spawn()?;
        Ok(Site { network, number, fabric, _processes: [holder, inner, outer] })
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// What the files of its node are written from.
    pub(crate) fn files<'a>(&self, name: &'a str, options: &ClusterOptions, dir: &'a Path) -> Node<'a> {
        let proxy = options.node.as_ref().map(|node| node.proxy).unwrap_or_default();
        Node { cluster: name, number: self.number, dual_stack: options.dual_stack, proxy, dir }
    }
}

/// The name of a cluster's node.
pub(crate) fn node_name(cluster: &str) -> String {
    format!("{cluster}-node1")
}

/// `ctr`, speaking to the containerd of the node whose cluster has this folder.
fn ctr(dir: &Path) -> Command {
    let mut ctr = Command::new("ctr");
    ctr.arg("--address").arg(dir.join("containerd.sock")).args(["--namespace", "k8s.io"]).stdin(Stdio::null());
    ctr
}

/// Whether that containerd answers.
pub(crate) fn containerd_answers(dir: &Path) -> bool {
    dir.join("containerd.sock").exists() && ctr(dir).arg("version").output().is_ok_and(|out| out.status.success())
}

/// Gives it the images of an archive.
pub(crate) fn import_image(dir: &Path, archive: &Path) -> Result<()> {
    run(
        ctr(dir).args(["images", "import"]).arg(archive),
        &format!("{}: importing {}", dir.display(), archive.display()),
    )
}

impl Cluster {
    /// The name of its node.
    pub fn node_name(&self) -> String {
        node_name(self.name())
    }

    /// The address of its node on the network that it shares with the other clusters' nodes and pods.
    pub fn node_ip(&self) -> Ipv4Addr {
        node::node_ip(self.number())
    }

    /// The URL at which nodes and pods of all clusters reach its API server.
    pub fn server_from_nodes(&self) -> String {
        format!("https://{}:{}", self.node_ip(), self.api_port())
    }

    /// An address from its Services' network, to be given to a Service as `clusterIP`. 1 is that of `kubernetes`, 10 that
    /// of the cluster's DNS.
    pub fn service_ip(&self, last: u8) -> Ipv4Addr {
        node::service_ip(self.number(), last)
    }

    /// Whether its Services and pods have addresses of both families.
    pub fn is_dual_stack(&self) -> bool {
        self.options().dual_stack
    }

    /// A program to run on its node, in the node's network.
    pub fn in_node(&self, name: &str, program: impl Into<PathBuf>) -> Result<ProcessBuilder> {
        let process = self.bed().process(name, program).current_dir(self.dir());
        Ok(process.in_network(Some(self.site()?.network())))
    }

    /// The network of its node.
    pub fn node_network(&self) -> Result<Network> {
        Ok(self.site()?.network().clone())
    }

    /// The network of the pod that has this address.
    pub fn pod_network(&self, address: IpAddr) -> Result<Network> {
        Network::of_pod(address, self.pid(Part::Node)?).doing(format!("cluster {}", self.name()))
    }

    /// Gives its node the images of an OCI archive, so that pods can be made of them without a registry.
    pub fn import_image(&self, archive: &Path) -> Result<()> {
        import_image(self.dir(), archive)
    }

    /// Whether its node has an image of this whole name.
    pub(crate) fn has_image(&self, name: &str) -> Result<bool> {
        let out = ctr(self.dir()).args(["images", "ls", "--quiet"]).output().doing("running ctr")?;
        Ok(String::from_utf8_lossy(&out.stdout).lines().any(|line| line == name))
    }

    /// Takes its node off the network: nodes and pods of other clusters can't be reached, nor reach it. Inside, and from
    /// the machine to its API server, everything goes on.
    pub fn cut_off(&self) -> Result<()> {
        self.site()?.fabric.plug(self.number(), false)
    }

    /// Puts its node back on the network.
    pub fn reconnect(&self) -> Result<()> {
        self.site()?.fabric.plug(self.number(), true)
    }

    /// Makes the link to its node slow: this many kbit/s at most, what is more waits (up to 10 s); nothing for the full
    /// speed again.
    pub fn slow_link(&self, kilobits: Option<u32>) -> Result<()> {
        self.site()?.fabric.limit(self.number(), kilobits)
    }

    /// Waits until its node is ready for pods.
    pub async fn wait_node(&self) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.node_name());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = match self.request("GET", &path, None).await {
                Ok(node) => {
                    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    let ready =
                        conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
                    if ready["status"] == "True" {
                        return Ok(());
                    }
                    ready["message"].to_string()
                }
                Err(e) => e.to_string(),
            };
            for part in [Part::Node, Part::Proxy, Part::Scheduler] {
                self.must_run(part)?;
            }
            if Instant::now() > deadline {
                let log = self.log(Part::Node).unwrap_or_default();
                let tail: Vec<_> = log.lines().rev().take(20).collect();
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                return Err(Error::new(format!(
                    "{} is not ready after {PATIENCE:?} ({answer}); its log:\n{tail}",
                    self.node_name()
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
