//! Network namespaces: where the nodes of a bed live, so that nothing of them touches the machine's own network.
//!
//! A namespace has no name in `/run/netns`. It is held by a process of the bed and called after it, so it is gone when
//! the bed's processes are, however they ended.

use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns};

use crate::bed::Bed;
use crate::error::{Doing, Error, Result};
use crate::place;
use crate::process::Process;

/// A network namespace, by one of the processes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pid: u32,
}

impl Network {
    /// Makes a namespace in a bed, with its loopback up. It lives as long as the process.
    pub(crate) fn new(bed: &Bed, name: &str) -> Result<(Network, Process)> {
        let holder = bed.process(name, "/usr/bin/unshare").args(["--net", "--", "sleep", "infinity"]).spawn()?;
        let network = Network { pid: holder.pid() };
        // The process was in our namespace when it began.
        let ours = std::fs::read_link("/proc/self/ns/net").doing("/proc/self/ns/net")?;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while std::fs::read_link(network.path()).doing(network.path().display())? == ours {
            if let Some(status) = holder.exited()? {
                return Err(holder.error(&format!("ended ({status}): a network namespace needs root")));
            }
            if std::time::Instant::now() > deadline {
                return Err(holder.error("makes no network namespace"));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        network.ip("link set lo up")?;
        Ok((network, holder))
    }

    /// The namespace of a process.
    pub(crate) fn of(pid: u32) -> Network {
        Network { pid }
    }

    /// The namespace of the pod that has an address, among the pods whose processes descend from `init`: pods of several
    /// beds may have the same address.
    pub(crate) fn of_pod(address: IpAddr, init: u32) -> Result<Network> {
        for pid in place::family(init) {
            let table = match address {
                IpAddr::V4(_) => format!("/proc/{pid}/net/fib_trie"),
                IpAddr::V6(_) => format!("/proc/{pid}/net/if_inet6"),
            };
            let text = std::fs::read_to_string(table).unwrap_or_default();
            let found = match address {
                IpAddr::V4(address) => local_v4(&text, &address.to_string()),
                IpAddr::V6(address) => {
                    let digits: String = address.octets().iter().map(|byte| format!("{byte:02x}")).collect();
                    text.lines().any(|line| line.starts_with(&digits))
                }
            };
            if found {
                return Ok(Network::of(pid));
            }
        }
        Err(Error::new(format!("no pod has the address {address}; is it running?")))
    }

    /// The file that names it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.pid))
    }

    /// What in front of a command runs it in here.
    pub(crate) fn prefix(&self) -> [String; 2] {
        [format!("--net={}", self.path().display()), "--".to_owned()]
    }

    /// A command that runs in here.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.prefix()).arg(program).stdin(Stdio::null());
        command
    }

    /// `ip`, with these words; its error quotes what it says.
    pub(crate) fn ip(&self, words: &str) -> Result<()> {
        run(self.command("ip").args(words.split_whitespace()), &format!("ip {words}"))
    }

    /// `tc`, with these words.
    pub(crate) fn tc(&self, words: &str) -> Result<()> {
        run(self.command("tc").args(words.split_whitespace()), &format!("tc {words}"))
    }

    /// Sets kernel parameters of the namespace, `key=value`.
    pub(crate) fn sysctl(&self, settings: &[&str]) -> Result<()> {
        run(self.command("sysctl").arg("-qw").args(settings), &format!("sysctl {settings:?}"))
    }

    /// Runs a closure on a thread of its own in this namespace: the sockets that it makes are sockets of the pod or node.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
        let path = self.path();
        let namespace = File::open(&path).doing(path.display())?;
        let (entered, outcome) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("in a pod".to_owned()).spawn(move || {
            let entry = setns(&namespace, CloneFlags::CLONE_NEWNET);
            let inside = entry.is_ok();
            let _ = entered.send(entry);
            // Without the namespace the work would be done on the machine's own network, so it is not begun.
            inside.then(work)
        });
        let thread = thread.doing("starting a thread")?;
        outcome.recv().doing("a thread in a namespace")?.doing(format!("entering {}", path.display()))?;
        // The error was returned above, so the work was begun and has a result.
        Ok(std::thread::spawn(move || thread.join().ok().flatten().expect("the work in the namespace panicked")))
    }
}

/// Whether a `fib_trie` holds an address as the host's own: `|-- 10.1.2.3` and below it `/32 host LOCAL`.
fn local_v4(trie: &str, address: &str) -> bool {
    let mut lines = trie.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.strip_prefix("|-- ") == Some(address) && lines.next().is_some_and(|next| next == "/32 host LOCAL") {
            return true;
        }
    }
    false
}

/// Runs a command to its end; its error quotes what it says.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<()> {
    let out = command.output().doing(what)?;
    if out.status.success() {
        return Ok(());
    }
    Err(Error::new(format!("{what}: {} ({})", String::from_utf8_lossy(&out.stderr).trim(), out.status)))
}

#[cfg(test)]
mod tests {
    use super::local_v4;

    #[test]
    fn an_address_counts_only_where_it_is_the_hosts_own() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.201.0.7\n        \
                    /32 host LOCAL\n     |-- 10.201.0.8\n        /32 link UNICAST\n";
        assert!(local_v4(trie, "10.201.0.7"));
        assert!(!local_v4(trie, "10.201.0.8") && !local_v4(trie, "10.201.0.70") && !local_v4(trie, "0.0.0.0"));
    }
}
