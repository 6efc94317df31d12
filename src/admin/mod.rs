//! Health, ready, metrics and explain over HTTP, on threads of their own: a slow scrape never touches DNS, and a
//! flood of DNS never makes a probe wait for a thread.
//!
//! | path | answer |
//! |---|---|
//! | `/health` | 200 `OK`, as long as the process lives (CoreDNS's `health`) |
//! | `/ready` | 200 `OK`, else 503 and what is not ready (CoreDNS's `ready`); `?verbose` names every condition |
//! | `/metrics` | Prometheus's text format |
//! | `/explain?name=&type=` | the answer to a query and the reason for it |
//!
//! Both halves have them: [`AdminParts`] are what the DNS half shows, [`ControllerParts`] what the controller shows.

mod check;
mod connections;
mod controller;
mod dns;
mod ready;
mod routes;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::systemd::Notifier;
pub use controller::ControllerParts;
pub use dns::{AdminParts, Explain, is_ready};
pub use ready::AdminState;
use routes::Shared;

/// Where each part listens; `None` is not at all. Equal addresses share a listener; port 0 takes a free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdminConfig {
    /// `/health`
    pub health: Option<SocketAddr>,
    /// `/ready`
    pub ready: Option<SocketAddr>,
    /// `/metrics`
    pub metrics: Option<SocketAddr>,
    /// `/explain`
    pub explain: Option<SocketAddr>,
}

impl AdminConfig {
    /// Everything on one address.
    #[must_use]
    pub fn one(address: SocketAddr) -> Self {
        Self { health: Some(address), ready: Some(address), metrics: Some(address), explain: Some(address) }
    }

    fn parts(&mut self) -> [(&'static str, &mut Option<SocketAddr>); 4] {
        let Self { health, ready, metrics, explain } = self;
        [("health", health), ("ready", ready), ("metrics", metrics), ("explain", explain)]
    }
}

/// A half of Namesake, as the routes see it.
pub trait Half: Send + Sync + 'static {
    /// Whether it is ready, and `/ready`'s body: `OK`, or what is not ready.
    fn ready(&self) -> (bool, &'static str);
    /// The same with a line for each condition.
    fn verbose(&self) -> (bool, String);
    /// What the log says of a probe that found it not ready.
    fn unready_line(&self, body: &str) -> String;
    /// The body of `/metrics`. It may take its time.
    fn metrics(&self) -> Result<String, String>;
    /// The route `/explain`, if there is one.
    fn explain(&self) -> Option<Explain> {
        None
    }
    /// A request to our own `/health` took so long, or failed.
    fn health_request(&self, took: Duration, failed: bool) {
        let _ = (took, failed);
    }
    /// Whether it is on its way out.
    fn shutting_down(&self) -> bool;
    /// Who is told under systemd.
    fn notifier(&self) -> Notifier;
    /// What systemd shows of it from then on.
    fn ready_status(&self) -> &'static str {
        "serving"
    }
}

/// Why the routes could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// An address can't be listened on.
    #[error("can't listen on {address} for {what}: {source}; {}", remedy(source))]
    Bind {
        /// Which parts: `health, ready`.
        what: String,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The threads could not be started.
    #[error("can't start the threads for health, ready and metrics: {0}; raise the limit on threads")]
    Threads(io::Error),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that has this port, or choose another one with --admin",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: choose one of its own, or 0.0.0.0 or [::]"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE: grant it, or choose a higher port"
        }
        _ => "choose another address with --admin",
    }
}

/// The open routes. Dropping it closes them.
pub struct Admin {
    addresses: AdminConfig,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// How long requests that are being answered have at the end.
const GRACE: Duration = Duration::from_secs(1);

impl Admin {
    /// Opens the routes on threads of their own.
    ///
    /// # Errors
    /// If an address can't be listened on, or no thread can be started.
    pub fn start(config: &AdminConfig, half: impl Half) -> Result<Self, AdminError> {
        let mut bound = *config;
        let mut wanted: BTreeMap<SocketAddr, Vec<&'static str>> = BTreeMap::new();
        for (part, address) in bound.parts() {
            if let Some(address) = *address {
                wanted.entry(address).or_default().push(part);
            }
        }
        let mut listeners = Vec::new();
        for (address, parts) in wanted {
            let fail = |source| AdminError::Bind { what: parts.join(", "), address, source };
            let listener = TcpListener::bind(address).map_err(fail)?;
            listener.set_nonblocking(true).map_err(fail)?;
            let local = listener.local_addr().map_err(fail)?;
            for (part, place) in bound.parts() {
                if parts.contains(&part) {
                    *place = Some(local);
                }
            }
            listeners.push((listener, parts));
        }

        // A blocking thread for a scrape and one for an explanation; the workers stay free for the probes.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(4)
            .thread_name("admin")
            .enable_all()
            .build()
            .map_err(AdminError::Threads)?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let shared = Arc::new(Shared::new(Box::new(half)));
        let thread = thread::Builder::new().name("admin".to_owned()).spawn(move || {
            runtime.block_on(run(listeners, &bound, &shared, &stopped));
            runtime.shutdown_timeout(GRACE);
        });
        Ok(Self { addresses: bound, stop, thread: Some(thread.map_err(AdminError::Threads)?) })
    }

    /// The addresses that are listened on, with the ports that were given for port 0.
    #[must_use]
    pub fn addresses(&self) -> &AdminConfig {
        &self.addresses
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Serves until told to stop.
async fn run(
    listeners: Vec<(TcpListener, Vec<&'static str>)>,
    bound: &AdminConfig,
    shared: &Arc<Shared>,
    stop: &CancellationToken,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for (listener, parts) in listeners {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                let router = routes::router(&parts, Arc::clone(shared));
                tasks.spawn(connections::serve(listener, router, stop.clone()));
            }
            Err(error) => tracing::error!(%error, "the routes for {} can't be served", parts.join(", ")),
        }
    }
    if let Some(address) = bound.health {
        tasks.spawn(check::health(address, Arc::clone(shared), stop.clone()));
    }
    tasks.spawn(check::notify(Arc::clone(shared), stop.clone()));
    while tasks.join_next().await.is_some() {}
}
