//! The DNS of a cluster with a node: a CoreDNS that knows `cluster.local`, behind the Service `kube-dns`, in the three
//! ways in which `clusterset.local` comes to pods. What users put into their Corefiles for it is taken from
//! `deploy/coredns` itself.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::binaries::binaries;
use crate::cluster::Cluster;
use crate::dig::dig;
use crate::error::{Doing, Error, Result};
use crate::own_image::repository;
use crate::process::Process;

/// How the answers of `clusterset.local` come to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arrangement {
    /// The cluster's CoreDNS forwards the zone to Namesake: `deploy/coredns/stub.corefile`.
    Forward,
    /// A CoreDNS reads our objects itself, by its plugin `kubernetes` with the option `multicluster`.
    Plugin,
    /// A cache on the node, as NodeLocal DNSCache, forwards the zone to Namesake: `deploy/coredns/nodelocal.corefile`.
    NodeLocal,
}

impl Arrangement {
    /// All of them.
    pub const ALL: [Arrangement; 3] = [Arrangement::Forward, Arrangement::Plugin, Arrangement::NodeLocal];

    /// A word for it, in tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Forward => "forward",
            Arrangement::Plugin => "plugin",
            Arrangement::NodeLocal => "nodelocal",
        }
    }

    /// The address of its server on the cluster's node. The two link-local ones are the same on every node; the first is
    /// the one that NodeLocal DNSCache takes.
    fn bind(self, cluster: &Cluster) -> Ipv4Addr {
        match self {
            Arrangement::Forward => cluster.node_ip(),
            Arrangement::Plugin => Ipv4Addr::new(169, 254, 20, 11),
            Arrangement::NodeLocal => Ipv4Addr::new(169, 254, 20, 10),
        }
    }

    /// The address that pods ask: what `dnsConfig.nameservers` takes, and what kubelets write into pods by themselves for
    /// [`Forward`](Arrangement::Forward).
    pub fn nameserver(self, cluster: &Cluster) -> Ipv4Addr {
        match self {
            Arrangement::Forward => cluster.service_ip(KUBE_DNS),
            Arrangement::Plugin | Arrangement::NodeLocal => self.bind(cluster),
        }
    }
}

/// The last number of the address of the Service `kube-dns`.
const KUBE_DNS: u8 = 10;

/// The zone.
const ZONE: &str = "clusterset.local";

/// What stands for the address of Namesake's Service in `deploy/coredns`.
const PLACEHOLDER: &str = "192.0.2.53";

/// How long a server may take to answer; it takes less than a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The DNS servers of a cluster, as processes on its node. They end when it is dropped.
pub struct ClusterDns {
    cluster: Cluster,
    servers: Vec<(Arrangement, Process)>,
}

impl ClusterDns {
    /// Starts what needs no MultiCluster objects: the cluster's CoreDNS and the cache, which forward the zone to
    /// `namesake`; and makes the Service `kube-dns`. Waits until names of `cluster.local` are answered by both.
    pub async fn start(cluster: &Cluster, namesake: Ipv4Addr) -> Result<ClusterDns> {
        let mut dns = ClusterDns { cluster: cluster.clone(), servers: Vec::new() };
        for arrangement in [Arrangement::NodeLocal, Arrangement::Plugin] {
            let address = arrangement.bind(cluster);
            cluster.node_network()?.ip(&format!("addr replace {address}/32 dev lo"))?;
        }
        cluster.apply(&service(cluster)).await?;
        dns.serve(Arrangement::Forward, namesake)?;
        dns.serve(Arrangement::NodeLocal, namesake)?;
        for arrangement in [Arrangement::Forward, Arrangement::NodeLocal] {
            dns.wait(arrangement, "kubernetes.default.svc.cluster.local", "A").await?;
        }
        Ok(dns)
    }

    /// Starts the CoreDNS of the plugin, which needs the ServiceImport CRD, and waits until it has the zone.
    pub async fn start_plugin(&mut self) -> Result<()> {
        self.serve(Arrangement::Plugin, Ipv4Addr::UNSPECIFIED)?;
        self.wait(Arrangement::Plugin, ZONE, "SOA").await
    }

    /// Waits until every server has answers of the zone, from wherever it takes them.
    pub async fn wait_zone(&self) -> Result<()> {
        for (arrangement, _) in &self.servers {
            self.wait(*arrangement, ZONE, "SOA").await?;
        }
        Ok(())
    }

    /// The process of one server, for its log and for signals.
    pub fn process(&self, arrangement: Arrangement) -> Option<&Process> {
        self.servers.iter().find(|(which, _)| *which == arrangement).map(|(_, process)| process)
    }

    fn serve(&mut self, arrangement: Arrangement, namesake: Ipv4Addr) -> Result<()> {
        let cluster = &self.cluster;
        let text = corefile(cluster, arrangement, namesake)?;
        let file = cluster.dir().join(format!("{}.corefile", arrangement.name()));
        fs::write(&file, text).doing(file.display())?;
        let process = cluster.in_node(&format!("coredns-{}", arrangement.name()), binaries()?.join("coredns"))?;
        self.servers.push((arrangement, process.arg("-conf").arg(file).spawn()?));
        Ok(())
    }

    /// Waits until a pod that asks as arranged would have an answer.
    async fn wait(&self, arrangement: Arrangement, name: &'static str, kind: &'static str) -> Result<()> {
        let server = arrangement.nameserver(&self.cluster);
        let answered = wait_answer(&self.cluster, server, name, kind, || match self.process(arrangement) {
            Some(process) => process.must_run(),
            None => Ok(()),
        });
        answered.await.doing(format!("cluster {}: DNS by {}", self.cluster.name(), arrangement.name()))
    }
}

/// Asks a server from the node until it answers with data. `alive` says why waiting is of no use.
pub(crate) async fn wait_answer(
    cluster: &Cluster,
    server: Ipv4Addr,
    name: &'static str,
    kind: &'static str,
    alive: impl Fn() -> Result<()>,
) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let network = cluster.node_network()?;
    loop {
        let network = network.clone();
        let ask = move || {
            // The thread is the node's, and so is the `dig` that it starts.
            let asked = network.run(move || dig(SocketAddr::from((server, 53)), &["+time=1", name, kind]))?;
            asked.join().map_err(|_| Error::new("the thread that asks has panicked"))?
        };
        let said = match tokio::task::spawn_blocking(ask).await.doing("asking")? {
            Ok(answer) if answer.status == "NOERROR" && !answer.answer.is_empty() => return Ok(()),
            Ok(answer) => format!("{}, {} answers", answer.status, answer.answer.len()),
            Err(e) => e.to_string(),
        };
        alive()?;
        if Instant::now() > deadline {
            return Err(Error::new(format!("{server} has no {kind} of {name} after {PATIENCE:?}: {said}")));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The Service of the cluster's DNS, with an endpoint that is no pod.
fn service(cluster: &Cluster) -> String {
    let ports = "ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]";
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system}}
spec: {{clusterIP: {}, {ports}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: kube-dns-node, namespace: kube-system, labels: {{kubernetes.io/service-name: kube-dns}}}}
addressType: IPv4
{ports}
endpoints: [{{addresses: [{}], conditions: {{ready: true}}}}]
",
        cluster.service_ip(KUBE_DNS),
        cluster.node_ip()
    )
}

fn corefile(cluster: &Cluster, arrangement: Arrangement, namesake: Ipv4Addr) -> Result<String> {
    let bind = arrangement.bind(cluster);
    let kubeconfig = format!("kubeconfig {} {}", cluster.kubeconfig().display(), cluster.name());
    match arrangement {
        Arrangement::Forward => Ok(own_zone(bind, &kubeconfig) + &stub(bind, namesake)?),
        Arrangement::NodeLocal => Ok(cache(bind, cluster.service_ip(KUBE_DNS)) + &node_local(bind, namesake)?),
        Arrangement::Plugin => Ok(format!(
            ".:53 {{
    errors
    bind {bind}
    kubernetes cluster.local {ZONE} in-addr.arpa ip6.arpa {{
        {kubeconfig}
        multicluster {ZONE}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
}}
"
        )),
    }
}

/// The block that kubeadm makes, without what needs the world outside and ports for probes.
fn own_zone(bind: Ipv4Addr, kubeconfig: &str) -> String {
    format!(
        ".:53 {{
    errors
    bind {bind}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    cache 30 {{
        disable success cluster.local
        disable denial cluster.local
    }}
    loadbalance
}}
"
    )
}

/// The block that NodeLocal DNSCache has for the cluster's own zone.
fn cache(bind: Ipv4Addr, kube_dns: Ipv4Addr) -> String {
    format!(
        "cluster.local:53 {{
    errors
    cache {{
        success 9984 30
        denial 9984 5
    }}
    reload
    bind {bind}
    forward . {kube_dns} {{
        force_tcp
    }}
    prometheus :9253
}}
"
    )
}

/// Our block for the cluster's CoreDNS, on its address alone: others serve on this node too.
fn stub(bind: Ipv4Addr, namesake: Ipv4Addr) -> Result<String> {
    edited(
        "stub.corefile",
        &[(PLACEHOLDER, &namesake.to_string()), ("    errors\n", &format!("    errors\n    bind {bind}\n"))],
    )
}

/// Our block for the cache on the node, edited as its comments say.
fn node_local(bind: Ipv4Addr, namesake: Ipv4Addr) -> Result<String> {
    edited(
        "nodelocal.corefile",
        &[(PLACEHOLDER, &namesake.to_string()), ("169.254.20.10 10.96.0.10", &bind.to_string())],
    )
}

/// A file of `deploy/coredns` without its comments, in which each of these texts is replaced.
fn edited(name: &str, edits: &[(&str, &str)]) -> Result<String> {
    let path = repository().join("deploy/coredns").join(name);
    let text = fs::read_to_string(&path).doing(path.display())?;
    let mut block: String =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).map(|line| format!("{line}\n")).collect();
    for (from, to) in edits {
        if !block.contains(from) {
            return Err(Error::new(format!("{}: there is no {from:?} to replace", path.display())));
        }
        block = block.replace(from, to);
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_blocks_are_edited_as_they_say() {
        let (bind, namesake) = (Ipv4Addr::new(10, 88, 0, 1), Ipv4Addr::new(10, 101, 0, 53));
        let stub = stub(bind, namesake).unwrap();
        assert!(stub.contains("clusterset.local:53 {\n    errors\n    bind 10.88.0.1\n"), "{stub}");
        assert!(stub.contains("forward . 10.101.0.53\n") && !stub.contains(PLACEHOLDER), "{stub}");
        let cache = node_local(Ipv4Addr::new(169, 254, 20, 10), namesake).unwrap();
        assert!(cache.contains("    bind 169.254.20.10\n") && cache.contains("forward . 10.101.0.53 {"), "{cache}");
        let error = edited("stub.corefile", &[("not there", "")]).unwrap_err().to_string();
        assert!(error.contains("stub.corefile") && error.contains("not there"), "{error}");
    }
}
