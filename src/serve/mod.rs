//! The running DNS half: every part started, watched and stopped in order.
//!
//! ```text
//!  start     admin routes ─► source and feed ─► DNS sockets, at the first sync or after startup_timeout
//!  running   a tick a second tells the store how old the data is; a part that dies ends the process
//!  stop      unready at once ─► lameduck: DNS and /health go on ─► drain ─► exit 0
//! ```

mod controller;
mod input;
mod once;
mod report;
mod signals;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use crate::admin::{Admin, AdminConfig, AdminError, AdminParts, AdminState};
use crate::answers::Store;
use crate::config::{self, dns::Settings};
use crate::dns::{self, BindError, Bound, LineFormat, LineLog, QueryLog, Running, ServerConfig};
use crate::feed::{Feed, Now};
use crate::metrics::Metrics;
use crate::preview::Sandbox;
use crate::source::{Health, Trouble, WatchPhase};
use crate::systemd::Notifier;
use crate::telemetry::{self, LogFormat, TelemetryError};

pub use controller::run_controller;
pub use input::{Input, InputError, convert};
pub use once::{LookError, look};

/// Our name among CoreDNS's plugins: in `/ready`'s body and in `coredns_dns_responses_total`.
pub const PLUGIN: &str = "multicluster";

/// Data older than this is called stale: EDE 3 in answers (`dns.md` L9).
pub const STALE: Duration = Duration::from_secs(60);

/// Why the server could not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Logging could not be set up.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// No thread or file is left.
    #[error("{what}: {source}; raise the limits on threads and open files")]
    System {
        /// What was to be started.
        what: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The admin routes could not be opened.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// DNS could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// DNS could not be started.
    #[error(transparent)]
    Serve(#[from] dns::ServeError),
    /// The source could not be started.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A part ended that never should.
    #[error(
        "{0} has ended, which should never happen: please report it with the log; the process ends so that it is started anew"
    )]
    Died(String),
}

/// Runs until a signal.
///
/// # Errors
/// What keeps it from starting or going on; a signal is none.
pub fn run(settings: Settings) -> Result<(), RunError> {
    run_on(settings, None)
}

/// The same on a simulated clusterset instead of the source that the settings name.
///
/// # Errors
/// As for [`run`].
pub fn run_sandbox(settings: Settings, sandbox: Sandbox) -> Result<(), RunError> {
    let convert = convert(&settings.answers);
    run_on(settings, Some(Input::Sandbox(Box::new(sandbox), convert)))
}

fn run_on(settings: Settings, input: Option<Input>) -> Result<(), RunError> {
    let (log, warnings) = (settings.log.clone(), settings.warnings.clone());
    // TCP is answered on them. No more than there are cores: of two threads on one core, each waits for the other's slice
    // of time now and then, which is some milliseconds.
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(2));
    on_runtime(&log, &warnings, threads, serve(settings, input))
}

/// Runs a half on so many threads, with logging before it and until it has ended.
fn on_runtime(
    log: &config::Log,
    warnings: &[String],
    threads: usize,
    half: impl Future<Output = Result<(), RunError>>,
) -> Result<(), RunError> {
    telemetry::init(log.format, &log.filter)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let system = |what| move |source| RunError::System { what, source };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .thread_name("main")
        .build()
        .map_err(system("the runtime's threads"))?;
    let ended = runtime.block_on(half);
    runtime.shutdown_timeout(Duration::from_millis(200));
    telemetry::flush(Duration::from_millis(500));
    ended
}

async fn serve(settings: Settings, input: Option<Input>) -> Result<(), RunError> {
    let mut signals = signals::Signals::new().map_err(|source| RunError::System { what: "signal handlers", source })?;
    let config = server_config(&settings);
    dns::probe(&config)?; // a port that is taken is told now, not after the first sync
    let slices = !settings.answers.no_endpoints;
    let metrics = Arc::new(Metrics::new(&settings.answers.zones, PLUGIN));
    let store = Arc::new(Store::new(settings.answers.clone()));
    let health = Arc::new(Health::new(slices));
    let state = Arc::new(AdminState::new());
    let feed = Feed::new(Arc::clone(&store), Arc::clone(&health), Some(Arc::clone(&metrics)), Now::read());
    let listening = Arc::default();
    let admin = Admin::start(
        &admin_config(&settings),
        AdminParts {
            plugin: PLUGIN,
            health: Arc::clone(&health),
            state: Arc::clone(&state),
            metrics: Arc::clone(&metrics),
            counts: report::counts(&feed, &store, Arc::clone(&listening)),
            explain: Some(report::explain(&feed, &store)),
            notifier: Notifier::from_env(),
        },
    )?;
    tracing::info!("health, ready and metrics on {}", report::admin(admin.addresses()));
    for zone in &settings.answers.zones {
        tracing::info!("authoritative for {zone}.");
    }

    // Credentials may come from a program that takes its time, and neither DNS nor a signal waits for it.
    let open = {
        let (source, convert) = (settings.source.clone(), convert(&settings.answers));
        let metrics = Arc::clone(&metrics);
        async move {
            match input {
                Some(input) => Ok(input),
                None => Input::new(&source, convert, &metrics).await,
            }
        }
    };
    let mut source = input::start(feed, Arc::clone(&health), open)
        .map_err(|source| RunError::System { what: "the source's thread", source })?;
    let mut died = Box::pin(input::end(&mut source));

    tokio::select! {
        () = synced(&store, settings.startup_timeout) => {}
        error = &mut died => return Err(error),
        () = signals.stop() => return Ok(()),
    }
    let log = query_log(&settings, &metrics)?;
    let running = Bound::bind(&config)?.serve(&store, &metrics, log.as_ref())?;
    let _ = listening.set(running.addresses().to_vec()); // nobody else sets it
    state.set_dns_bound();
    let addresses: Vec<_> = running.addresses().iter().map(ToString::to_string).collect();
    tracing::info!("DNS on {} (UDP and TCP)", addresses.join(", "));

    tokio::select! {
        () = keep_age(&store, &health, settings.max_stale) => {}
        error = &mut died => return Err(error),
        worker = running.died() => return Err(RunError::Died(worker)),
        () = signals.stop() => {}
    }
    state.set_shutting_down();
    tokio::select! {
        () = stop(running, &settings) => {}
        () = signals.stop() => tracing::warn!("a second signal: ending at once"),
    }
    drop(admin);
    Ok(())
}

/// Unready already: DNS goes on for the lameduck time, then what has arrived is answered.
async fn stop(running: Running, settings: &Settings) {
    tracing::info!("stopping: unready now, DNS goes on for {:?}", settings.lameduck);
    tokio::time::sleep(settings.lameduck).await;
    let drained = running.drain(settings.grace).await;
    if drained.connections_cut > 0 || !drained.workers_ended {
        tracing::warn!("{} connections were cut after {:?}", drained.connections_cut, settings.grace);
    }
    tracing::info!("stopped");
}

/// Waits for the first sync, saying what is awaited, but not longer than `timeout`.
async fn synced(store: &Store, timeout: Duration) {
    let begin = Instant::now();
    let mut said = 0;
    while !store.state().synced() {
        if begin.elapsed() >= timeout {
            tracing::warn!("no complete lists after {timeout:?}: serving SERVFAIL for data until they are there");
            return;
        }
        if begin.elapsed().as_secs() > said {
            said = begin.elapsed().as_secs();
            tracing::info!("waiting for the first complete lists");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Tells the store, once a second, how old its data is, and logs when that changes.
async fn keep_age(store: &Store, health: &Health, max_stale: Option<Duration>) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut was_stale, mut was_expired) = (false, false);
    loop {
        tick.tick().await;
        let age = health.staleness();
        let stale = age > STALE || gone(health);
        let expired = max_stale.is_some_and(|most| age > most);
        if stale != was_stale {
            store.set_stale(stale);
            if stale {
                tracing::warn!("the data is {} s old: answers go on and say so (EDE 3)", age.as_secs());
            } else {
                tracing::info!("the data is fresh again");
            }
        }
        if expired != was_expired {
            store.set_expired(expired);
            if expired {
                tracing::error!("the data is older than max_stale: data names answer SERVFAIL");
            }
        }
        (was_stale, was_expired) = (stale, expired);
    }
}

/// Whether a CRD is gone that was there: what is served then is known not to be fresh (`dns.md` L17).
fn gone(health: &Health) -> bool {
    health
        .needed()
        .into_iter()
        .map(|resource| health.status(resource))
        .any(|watch| watch.synced && matches!(watch.phase, WatchPhase::Down(Trouble::CrdMissing { .. })))
}

fn query_log(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Option<Arc<dyn QueryLog>>, RunError> {
    if !settings.log.queries {
        return Ok(None);
    }
    let format = match settings.log.format {
        LogFormat::Text => LineFormat::Text,
        LogFormat::Json => LineFormat::Json,
    };
    let log = LineLog::start(format, std::io::stdout(), Arc::clone(metrics))
        .map_err(|source| RunError::System { what: "the query log's thread", source })?;
    metrics.plugin_enabled("log");
    Ok(Some(Arc::new(log)))
}

fn server_config(settings: &Settings) -> ServerConfig {
    let mut config = ServerConfig::new(settings.listen.clone());
    config.udp_workers = settings.udp_workers.map(std::num::NonZero::get);
    config.tcp = dns::TcpLimits {
        max_connections: settings.tcp.connections,
        max_per_client: settings.tcp.per_client,
        idle: settings.tcp.idle,
        read: settings.tcp.read,
        write: settings.tcp.write,
    };
    config
}

fn admin_config(settings: &Settings) -> AdminConfig {
    let config::Admin { explain, health, ready, metrics } = settings.admin;
    AdminConfig { explain, health, ready, metrics }
}
