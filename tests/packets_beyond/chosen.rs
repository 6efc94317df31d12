//! Which pod kube-proxy chose for a connection, also for one that failed: the kernel's connection tracking tells it for
//! each new connection of the client's node.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use testbed::{Cluster, Process};

use crate::world::until;

/// The choices of one node. Dropped, it ends.
pub struct Choices {
    process: Process,
}

impl Choices {
    /// Listens to the node of a cluster.
    pub async fn follow(cluster: &Cluster) -> Self {
        let program = ["/usr/sbin/conntrack", "/usr/bin/conntrack"].into_iter().find(|path| Path::new(path).exists());
        let program = program.expect("the command conntrack, of the Debian package conntrack");
        // Its name in the log is the cluster's: one process a node.
        let process =
            cluster.in_node("conntrack", program).unwrap().args(["-E", "-e", "NEW", "-p", "tcp"]).spawn().unwrap();
        // It listens once it has a socket; what tells is that its own binding of it is done.
        until("conntrack listens", Duration::from_secs(10), async || {
            assert!(process.exited().unwrap().is_none(), "conntrack has ended: {}", process.log_tail(5));
            let sockets = std::fs::read_to_string(format!("/proc/{}/net/netlink", process.pid())).unwrap_or_default();
            // Protocol 12 is netfilter's, and a group that is not 0 means that events are subscribed to.
            let listens = sockets.lines().skip(1).any(|line| {
                let fields: Vec<_> = line.split_whitespace().collect();
                fields.get(1) == Some(&"12") && fields.get(3).is_some_and(|groups| !groups.trim_matches('0').is_empty())
            });
            if listens { Ok(()) } else { Err(sockets) }
        })
        .await;
        Self { process }
    }

    /// The chosen pod by the client's port, for all connections of a client until now. A port that was used twice keeps
    /// its last choice.
    pub fn of(&self, client: IpAddr) -> HashMap<u16, IpAddr> {
        let log = self.process.log().unwrap();
        log.lines().filter_map(|line| choice(line, client)).collect()
    }
}

/// `[NEW] tcp 6 120 SYN_SENT src=10.202.0.5 dst=10.102.3.4 sport=4567 dport=80 [UNREPLIED] src=10.201.0.7 dst=10.202.0.5
/// sport=8080 dport=4567`: who connects to whom, and from whom the answers will come.
fn choice(line: &str, client: IpAddr) -> Option<(u16, IpAddr)> {
    let value = |key: &str, which: usize| {
        line.split_whitespace().filter_map(|word| word.strip_prefix(key)?.strip_prefix('=')).nth(which)
    };
    if value("src", 0)?.parse::<IpAddr>().ok()? != client {
        return None;
    }
    Some((value("sport", 0)?.parse().ok()?, value("src", 1)?.parse().ok()?))
}
