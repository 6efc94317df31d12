//! The wires between the nodes of a bed: a bridge in a namespace of its own, and a port of it for each node.
//!
//! ```text
//!  fabric (10.88.0.254, fd88::fe)
//!    └─ bridge ─┬─ port 1 ── eth0 of node 1: 10.88.0.1, fd88::1   pods 10.201.0.0/16, fd00:201::/56
//!               ├─ port 2 ── eth0 of node 2: 10.88.0.2, fd88::2   pods 10.202.0.0/16, fd00:202::/56
//! ```
//!
//! The network is flat: every node has a route to every other's pods. There is no way out of it.

use std::sync::Mutex;

use crate::bed::Bed;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::process::Process;

/// The bridge of a bed and what hangs on it.
pub(crate) struct Fabric {
    network: Network,
    _holder: Process,
    /// Which nodes are there; each new one learns of all, and all learn of it.
    joined: Mutex<Vec<(u32, Network)>>,
}

impl Fabric {
    pub(crate) fn new(bed: &Bed) -> Result<Fabric> {
        let (network, holder) = Network::new(bed, "fabric")?;
        network.sysctl(&["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])?;
        network.ip("link add fabric type bridge")?;
        network.ip("addr add 10.88.0.254/24 dev fabric")?;
        network.ip("addr add fd88::fe/64 dev fabric nodad")?;
        network.ip("link set fabric up")?;
        Ok(Fabric { network, _holder: holder, joined: Mutex::new(Vec::new()) })
    }

    /// Connects a node.
    pub(crate) fn join(&self, number: u32, node: &Network) -> Result<()> {
        let mut joined = self.joined.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A cluster that is gone, or whose start has failed, has left the bridge.
        joined.retain(|(other, network)| *other != number && network.path().exists());
        let port = port(number);
        self.network.ip(&format!("link add {port} type veth peer name eth0 netns {}", node.path().display()))?;
        self.network.ip(&format!("link set {port} master fabric up"))?;
        node.sysctl(&[
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv6.conf.all.forwarding=1",
            "net.ipv6.conf.default.accept_dad=0",
            "net.ipv6.conf.default.dad_transmits=0",
        ])?;
        node.ip(&format!("addr add 10.88.0.{number}/24 dev eth0"))?;
        node.ip(&format!("addr add fd88::{number}/64 dev eth0 nodad"))?;
        node.ip("link set eth0 up")?;
        // What nobody has a route for ends at the bridge.
        node.ip("route add default via 10.88.0.254")?;
        node.ip("-6 route add default via fd88::fe")?;
        route(&self.network, number)?;
        for (other, its_network) in joined.iter() {
            route(its_network, number)?;
            route(node, *other)?;
        }
        joined.push((number, node.clone()));
        Ok(())
    }

    /// Takes a node off the bridge, or puts it back. Everything inside the node goes on.
    pub(crate) fn plug(&self, number: u32, plugged: bool) -> Result<()> {
        self.network.ip(&format!("link set {} {}", port(number), if plugged { "up" } else { "down" }))
    }

    /// Lets no more than this through to a node, or everything again.
    pub(crate) fn limit(&self, number: u32, kilobits: Option<u32>) -> Result<()> {
        let port = port(number);
        // Replacing works whether or not there was a limit; taking away only where there was one.
        match kilobits {
            Some(0) => Err(Error::new("a link of 0 kbit/s: cut it off instead")),
            Some(rate) => {
                self.network.tc(&format!("qdisc replace dev {port} root tbf rate {rate}kbit burst 1600 latency 10s"))
            }
            None => self.network.tc(&format!("qdisc del dev {port} root")),
        }
    }
}

fn port(number: u32) -> String {
    format!("port{number}")
}

/// Tells a node where another one's pods are.
fn route(from: &Network, to: u32) -> Result<()> {
    from.ip(&format!("route replace 10.{}.0.0/16 via 10.88.0.{to}", 200 + to))?;
    from.ip(&format!("-6 route replace fd00:{}::/56 via fd88::{to}", 200 + to))
}
