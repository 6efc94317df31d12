//! Serving on bound sockets, noticing that it ended, and ending it well.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::Handler;
use super::limits::{Connections, raise_open_files};
use super::listen::Bound;
use super::tcp::Listener;
use super::udp::Worker;
use super::{QueryLog, Responder, Transport};
use crate::metrics::Metrics;

/// The wish to stop: threads read the deadline, tasks wait for the token.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    deadline: Arc<OnceLock<Instant>>,
    token: CancellationToken,
}

impl Stop {
    /// When to be finished, once there is a wish to stop.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }

    /// Returns once there is a wish to stop.
    pub(super) async fn wait(&self) {
        self.token.cancelled().await;
    }

    pub(super) fn ask(&self, grace: Duration) {
        self.deadline.get_or_init(|| Instant::now() + grace);
        self.token.cancel();
    }
}

/// Held by each worker and listener: tells when it ends, and whether anybody wanted that.
struct Alive {
    name: String,
    stop: Stop,
    died: watch::Sender<Option<String>>,
    /// Closed when the last one is gone.
    _running: mpsc::Sender<()>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        if self.stop.deadline().is_none() {
            self.died.send_replace(Some(std::mem::take(&mut self.name)));
        }
    }
}

impl Bound {
    /// Answers on every socket from now on. UDP has its own threads; TCP runs on the Tokio runtime that this is called
    /// in, also when that is busy with other work.
    ///
    /// # Errors
    ///
    /// [`ServeError`], where the system has no thread or file left; nothing is served then.
    pub fn serve<R: Responder>(
        self,
        responder: &Arc<R>,
        metrics: &Metrics,
        log: Option<&Arc<dyn QueryLog>>,
    ) -> Result<Running, ServeError> {
        let runtime = Handle::try_current().map_err(|_| ServeError::NoRuntime)?;
        let (running, all_ended) = mpsc::channel(1);
        let (died, _) = watch::channel(None);
        let tasks = TaskTracker::new();
        let serving = Running {
            addresses: self.addresses(),
            stop: Stop::default(),
            died: died.clone(),
            all_ended,
            connections: Connections::new(&self.tcp, raise_open_files()),
            tasks: tasks.clone(),
            cut: CancellationToken::new(),
        };
        // From here on an error drops `serving`, and with it ends what has been started.
        for listening in self.listening {
            let label = listening.label();
            let address = listening.address;
            let alive = |name: String| Alive {
                name,
                stop: serving.stop.clone(),
                died: died.clone(),
                _running: running.clone(),
            };
            let handler = |transport: Transport| {
                let shard = metrics.dns_shard(&label, transport == Transport::Tcp);
                Handler::new(Arc::clone(responder), shard, log.cloned(), transport)
            };
            let failed = |source| ServeError::Start { address, source };
            for (number, socket) in listening.udp.into_iter().enumerate() {
                let worker = Worker {
                    socket,
                    wildcard: listening.wildcard,
                    ipv6: address.is_ipv6(),
                    handler: handler(Transport::Udp),
                    stop: serving.stop.clone(),
                };
                let alive = alive(format!("UDP worker {number} of {address}"));
                std::thread::Builder::new()
                    // The kernel shows 15 characters: `udp:65535/123`.
                    .name(format!("udp:{}/{number}", address.port()))
                    .spawn(move || {
                        let _alive = alive;
                        worker.run();
                    })
                    .map_err(failed)?;
            }
            let _context = runtime.enter();
            let listener = Listener {
                listener: tokio::net::TcpListener::from_std(listening.tcp).map_err(failed)?,
                limits: self.tcp.clone(),
                handler: Arc::new(handler(Transport::Tcp)),
                connections: Arc::clone(&serving.connections),
                stop: serving.stop.clone(),
                tasks: tasks.clone(),
                cut: serving.cut.clone(),
            };
            let alive = alive(format!("TCP listener of {address}"));
            runtime.spawn(async move {
                let _alive = alive;
                listener.run().await;
            });
        }
        Ok(serving)
    }
}

/// Why serving could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// [`Bound::serve`] needs a runtime for TCP.
    #[error("DNS over TCP was started outside of a Tokio runtime")]
    NoRuntime,
    /// No thread, or no file.
    #[error(
        "cannot start serving on {address}: the limit on threads or open files is too low (TasksMax=, LimitNOFILE=)"
    )]
    Start {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// A server that answers. Dropped, it stops without waiting.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    stop: Stop,
    died: watch::Sender<Option<String>>,
    all_ended: mpsc::Receiver<()>,
    connections: Arc<Connections>,
    tasks: TaskTracker,
    cut: CancellationToken,
}

/// How a drain went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// TCP connections that were cut because their clients did not finish in time.
    pub connections_cut: usize,
    /// Whether every worker and listener ended in time.
    pub workers_ended: bool,
}

impl Running {
    /// The addresses that are served, in the order they were given, with real ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns when a worker or a listener has ended that nobody stopped, and says which. That should never happen;
    /// if it does, a part of the queries is lost for good, and the process had better end with an error.
    pub async fn died(&self) -> String {
        let mut died = self.died.subscribe();
        match died.wait_for(Option::is_some).await {
            Ok(name) => name.clone().unwrap_or_default(),
            // Not before `self` is gone.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes no more queries, answers those that have arrived, and closes: at the latest after `grace`.
    ///
    /// Over UDP, what is queued in the sockets is answered; who asks later is told by ICMP that the port is closed.
    /// Over TCP, connections that the kernel has accepted are taken, messages that have begun are awaited and answered,
    /// and resting connections are closed.
    pub async fn drain(mut self, grace: Duration) -> Drained {
        let deadline = tokio::time::Instant::now() + grace;
        self.stop.ask(grace);
        // Listeners first: they may still admit connections.
        let workers_ended = tokio::time::timeout_at(deadline, self.all_ended.recv()).await.is_ok();
        self.tasks.close();
        let in_time = tokio::time::timeout_at(deadline, self.tasks.wait()).await.is_ok();
        let connections_cut = if in_time { 0 } else { self.connections.total() };
        self.cut.cancel();
        self.tasks.wait().await;
        Drained { connections_cut, workers_ended }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.ask(Duration::ZERO);
        self.cut.cancel();
    }
}
