//! What TCP clients may take: connections and time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Limits on TCP. They bound memory and open files; none of them is a rate, since a client may be a forwarder that
/// speaks for a whole cluster (`dns.md` F8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpLimits {
    /// Most connections at once, on all addresses together. Lowered at start to half of the open files that the
    /// process may have, so that clients never take the ones that watches need.
    pub max_connections: usize,
    /// Most connections at once from one address.
    pub max_per_client: usize,
    /// How long a connection may rest between messages. Not below 10 s: CoreDNS's `forward` keeps its own that long.
    pub idle: Duration,
    /// How long a message may take from its first byte to its last.
    pub read: Duration,
    /// How long a client may take to accept a batch of replies.
    pub write: Duration,
}

impl Default for TcpLimits {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_per_client: 1024,
            idle: Duration::from_secs(10),
            read: Duration::from_secs(3),
            write: Duration::from_secs(5),
        }
    }
}

/// Lets the process open as many files as it may, and says how many that is. `None` where there is no limit or it
/// cannot be read.
pub(super) fn raise_open_files() -> Option<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let allowed = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    usize::try_from(allowed).ok()
}

/// The connections that are open, by client.
#[derive(Debug)]
pub(super) struct Connections {
    open: Mutex<Open>,
    max: usize,
    max_per_client: usize,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

impl Connections {
    pub(super) fn new(limits: &TcpLimits, open_files: Option<usize>) -> Arc<Self> {
        let room = open_files.map_or(usize::MAX, |files| files / 2);
        if room < limits.max_connections {
            tracing::warn!(
                asked = limits.max_connections,
                taken = room,
                "fewer TCP connections than configured: the limit on open files is too low (LimitNOFILE=, ulimit -n)"
            );
        }
        Arc::new(Self {
            open: Mutex::default(),
            max: limits.max_connections.min(room).max(1),
            max_per_client: limits.max_per_client.max(1),
        })
    }

    /// A place for one more connection from `client`, or `None` where it, or all together, have enough.
    pub(super) fn admit(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let client = client.to_canonical();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.max {
            return None;
        }
        let of_client = open.by_client.entry(client).or_insert(0);
        if *of_client >= self.max_per_client {
            return None;
        }
        *of_client += 1;
        open.total += 1;
        Some(Place { connections: Arc::clone(self), client })
    }

    /// How many are open.
    pub(super) fn total(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    fn leave(&self, client: IpAddr) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total = open.total.saturating_sub(1);
        if let Some(of_client) = open.by_client.get_mut(&client) {
            *of_client = of_client.saturating_sub(1);
            if *of_client == 0 {
                // Else every address that ever asked would stay.
                open.by_client.remove(&client);
            }
        }
    }
}

/// A connection's place among the permitted ones, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    client: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.leave(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_connections: usize, max_per_client: usize) -> TcpLimits {
        TcpLimits { max_connections, max_per_client, ..TcpLimits::default() }
    }

    #[test]
    fn dns_t21_connections_are_counted_in_all_and_by_client() {
        let connections = Connections::new(&limits(3, 2), None);
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let first = connections.admit(a);
        let second = connections.admit(a);
        assert!(first.is_some() && second.is_some());
        assert!(connections.admit(a).is_none(), "a third of one client");
        let other = connections.admit(b);
        assert!(other.is_some());
        assert!(connections.admit(b).is_none(), "a fourth in all");
        drop(first);
        assert!(connections.admit(b).is_some(), "a place is free again");
        drop((second, other));
        assert_eq!(connections.total(), 0);
        assert!(connections.open.lock().unwrap().by_client.is_empty(), "nobody is remembered");
    }

    #[test]
    fn dns_t21_a_mapped_address_is_the_client_it_maps() {
        let connections = Connections::new(&limits(9, 1), None);
        let _held = connections.admit(IpAddr::from([10, 0, 0, 1]));
        assert!(connections.admit("::ffff:10.0.0.1".parse().unwrap()).is_none());
    }

    #[test]
    fn dns_t21_clients_never_take_more_than_half_of_the_open_files() {
        assert_eq!(Connections::new(&limits(4096, 9), Some(1024)).max, 512);
        assert_eq!(Connections::new(&limits(100, 9), Some(1024)).max, 100);
    }
}
