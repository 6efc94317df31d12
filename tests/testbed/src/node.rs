//! What a node is made of: containerd, kubelet, a CNI configuration, kube-proxy; their files and arguments.
//!
//! ```text
//!  network namespace of the node ── etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy
//!    └─ PID and mount namespace ── node.sh ─┬─ containerd ── shims ── containers, each pod with a network of its own
//!                                           └─ kubelet
//! ```

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Doing, Error, Result};
use crate::site::node_name;

/// How the node's kube-proxy programs the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    /// nftables, the kernel's present way.
    #[default]
    Nftables,
    /// iptables, what most clusters have.
    Iptables,
}

/// A cluster with a node, on which pods run.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// How its kube-proxy programs the kernel.
    pub proxy: ProxyMode,
}

/// The commands that a node needs, and the Debian packages that bring them.
const COMMANDS: [(&str, &str); 15] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("socat", "socat"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("sysctl", "procps"),
    ("dash", "dash"),
];

/// Where Debian's containernetworking-plugins are.
const CNI: &str = "/usr/lib/cni";

/// Says what is missing on this machine for nodes.
pub(crate) fn check() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::new(
            "clusters with nodes need root: they are made of network namespaces and containers. Run it as root; \
             `tests/run --no-packets` runs what does not need them",
        ));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let there = |command: &str| folders.iter().any(|folder| folder.join(command).is_file());
    let mut missing: Vec<_> =
        COMMANDS.iter().filter(|(command, _)| !there(command)).map(|(_, package)| *package).collect();
    if !Path::new(CNI).join("ptp").is_file() {
        missing.push("containernetworking-plugins");
    }
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(format!(
        "clusters with nodes need these Debian packages, which are missing: {0}; as root: apt-get install {0}",
        missing.join(" ")
    )))
}

/// What the files of a node are written from.
pub(crate) struct Node<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) number: u32,
    pub(crate) dual_stack: bool,
    pub(crate) proxy: ProxyMode,
    pub(crate) dir: &'a Path,
}

impl Node<'_> {
    pub(crate) fn ip(&self) -> Ipv4Addr {
        node_ip(self.number)
    }

    /// Writes what its programs read into the cluster's folder.
    pub(crate) fn write(&self) -> Result<()> {
        for folder in ["cni", "cni-bin"] {
            fs::create_dir_all(self.dir.join(folder)).doing(self.dir.join(folder).display())?;
        }
        let init = self.dir.join("node.sh");
        let files = [
            ("node.sh", include_str!("node.sh").to_owned()),
            ("containerd.toml", self.containerd()),
            ("cni/10-pods.conflist", self.cni()),
            ("cni-bin/ptp", ptp()),
            ("kubelet.yaml", self.kubelet()),
            ("proxy.yaml", self.kube_proxy()),
        ];
        for (file, text) in files {
            fs::write(self.dir.join(file), text).doing(self.dir.join(file).display())?;
        }
        let ptp = self.dir.join("cni-bin/ptp");
        for program in [&init, &ptp] {
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).doing(program.display())?;
        }
        for plugin in ["host-local", "loopback"] {
            let link = self.dir.join("cni-bin").join(plugin);
            let made = std::os::unix::fs::symlink(Path::new(CNI).join(plugin), &link);
            if let Err(e) = made
                && e.kind() != std::io::ErrorKind::AlreadyExists
            {
                return Err(e).doing(link.display());
            }
        }
        Ok(())
    }

    /// The arguments of `node.sh`, which are the kubelet's.
    pub(crate) fn kubelet_args(&self) -> Vec<String> {
        let ips = if self.dual_stack { format!("{},fd88::{}", self.ip(), self.number) } else { self.ip().to_string() };
        vec![
            "--config=kubelet.yaml".to_owned(),
            "--kubeconfig=node.kubeconfig".to_owned(),
            format!("--root-dir={}/kubelet", self.dir.display()),
            format!("--cert-dir={}/kubelet/pki", self.dir.display()),
            format!("--hostname-override={}", node_name(self.cluster)),
            format!("--node-ip={ips}"),
        ]
    }

    fn containerd(&self) -> String {
        let dir = self.dir.display();
        format!(
            r#"version = 2
root = "{dir}/containerd/root"
state = "{dir}/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{dir}/containerd.sock"
[ttrpc]
  address = "{dir}/containerd.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{dir}/cni-bin"
    conf_dir = "{dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"#
        )
    }

    /// Pods hang on the node by a pair of interfaces each, without a bridge: the kernel need not filter bridged packets.
    fn cni(&self) -> String {
        let n = 200 + self.number;
        let (range, route) = match self.dual_stack {
            true => (format!(r#", [{{"subnet": "fd00:{n}::/64"}}]"#), r#", {"dst": "::/0"}"#),
            false => (String::new(), ""),
        };
        format!(
            r#"{{"cniVersion": "0.4.0", "name": "pods", "plugins": [{{"type": "ptp", "ipMasq": false, "mtu": 1500,
 "ipam": {{"type": "host-local", "dataDir": "{dir}/cni-ipam", "ranges": [[{{"subnet": "10.{n}.0.0/24"}}]{range}],
          "routes": [{{"dst": "0.0.0.0/0"}}{route}]}}}}]}}
"#,
            dir = self.dir.display()
        )
    }

    fn kubelet(&self) -> String {
        format!(
            r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {ip}
containerRuntimeEndpoint: unix://{dir}/containerd.sock
cgroupDriver: cgroupfs
# Kubelets that share a kernel can't each be the owner of its control groups.
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
clusterDNS: [{dns}]
clusterDomain: cluster.local
resolvConf: ""
podLogsDir: {dir}/pod-logs
evictionHard: {{memory.available: "50Mi", nodefs.available: "1%", nodefs.inodesFree: "1%", imagefs.available: "1%", imagefs.inodesFree: "1%"}}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
maxPods: 200
serializeImagePulls: false
"#,
            ip = self.ip(),
            dns = service_ip(self.number, 10),
            dir = self.dir.display(),
        )
    }

    fn kube_proxy(&self) -> String {
        let mode = match self.proxy {
            ProxyMode::Nftables => "nftables",
            ProxyMode::Iptables => "iptables",
        };
        let n = 200 + self.number;
        let pods = if self.dual_stack { format!("10.{n}.0.0/16,fd00:{n}::/56") } else { format!("10.{n}.0.0/16") };
        format!(
            r#"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: {mode}
clientConnection: {{kubeconfig: proxy.kubeconfig}}
hostnameOverride: {name}
clusterCIDR: {pods}
bindAddress: {ip}
# The kernel's table is shared by all namespaces: leave its limits alone.
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
iptables: {{minSyncPeriod: 0s}}
nftables: {{minSyncPeriod: 0s}}
"#,
            name = node_name(self.cluster),
            ip = self.ip(),
        )
    }
}

/// The address of a node on the fabric.
pub(crate) fn node_ip(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, number as u8)
}

/// An address of a cluster's Services.
pub(crate) fn service_ip(number: u32, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, (100 + number) as u8, 0, last)
}

/// The CNI plugin `ptp` would wait a second and more for the kernel to find out that nobody else has the pod's IPv6
/// address (RFC 4862, 5.4); nobody else has it, so the kernel is told not to ask, in the pod's own namespace.
fn ptp() -> String {
    format!(
        "#!/bin/dash\nif [ \"$CNI_COMMAND\" = ADD ]; then\n  nsenter --net=\"$CNI_NETNS\" -- sysctl -qw \
         net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.dad_transmits=0 >/dev/null 2>&1\nfi\nexec {CNI}/ptp\n"
    )
}
