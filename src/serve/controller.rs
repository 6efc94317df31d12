//! The running controller half: every part started, watched and stopped in order.
//!
//! ```text
//!  start     admin routes ─► the hub ─► lease, members ─► the loop
//!  stop      writing ends ─► what is under way ends ─► the lease is given up ─► exit 0
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{RunError, on_runtime, signals};
use crate::admin::{Admin, AdminConfig, AdminState, ControllerParts};
use crate::config::controller::Settings;
use crate::controller::members::{Members, Origin};
use crate::controller::source_leases::Keeper;
use crate::controller::status::Writing;
use crate::controller::{ControllerSettings, Engine, Status, lease};
use crate::metrics::{ControllerMetrics, HUB};
use crate::source::kube::{Connection, KubeError, Observer};
use crate::systemd::Notifier;

/// How many changes of the set of members may wait.
const CHANGES: usize = 64;

/// How long requests that are under way have at the end, before the lease is given up.
const GRACE: Duration = Duration::from_secs(2);

/// How long the hub is waited for until it is tried again: its credentials may come from a program or a file that is
/// still to be written.
const AGAIN: Duration = Duration::from_secs(5);

/// Runs the controller until a signal.
///
/// # Errors
/// What keeps it from starting or going on; a signal is none.
pub fn run_controller(settings: Settings) -> Result<(), RunError> {
    let (log, warnings) = (settings.log.clone(), settings.warnings.clone());
    // Two also on one core: planning a large clusterset must not keep the Lease from being renewed.
    on_runtime(&log, &warnings, 2, serve(settings))
}

async fn serve(settings: Settings) -> Result<(), RunError> {
    let mut signals = signals::Signals::new().map_err(|source| RunError::System { what: "signal handlers", source })?;
    let metrics = Arc::new(ControllerMetrics::new());
    let (status, state) = (Arc::new(Status::default()), Arc::new(AdminState::new()));
    if settings.controller.lease.is_some() {
        status.lock().writing = Writing::Standby(None);
    }
    let config = AdminConfig {
        explain: None,
        health: settings.admin.health,
        ready: settings.admin.ready,
        metrics: settings.admin.metrics,
    };
    let parts = ControllerParts::new(status.clone(), state.clone(), metrics.clone(), Notifier::from_env());
    let admin = Admin::start(&config, parts)?;
    tracing::info!("health, ready and metrics on {}", super::report::admin(admin.addresses()));

    let stop = CancellationToken::new();
    let running = run(settings.controller, status, metrics, stop.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => return Err(ended),
        () = signals.stop() => {}
    }
    tracing::info!("stopping: nothing more is written");
    state.set_shutting_down();
    stop.cancel();
    tokio::select! {
        _ = &mut running => {}
        () = tokio::time::sleep(GRACE * 2) => {}
        () = signals.stop() => tracing::warn!("a second signal: ending at once"),
    }
    tracing::info!("stopped");
    drop(admin);
    Ok(())
}

/// Runs the parts. Returns when one has ended that never should, or after `stop`.
async fn run(
    settings: ControllerSettings,
    status: Arc<Status>,
    metrics: Arc<ControllerMetrics>,
    stop: CancellationToken,
) -> RunError {
    let hub = match &settings.hub {
        None => None,
        Some(access) => {
            let observer = Arc::new(OfHub(metrics.clone()));
            match connect(access, observer, &stop).await {
                Some(hub) => Some(hub),
                None => return RunError::Died("the hub's connection".to_owned()),
            }
        }
    };
    let (leading, may_write) = watch::channel(settings.lease.is_none());
    let writing_ended = CancellationToken::new();
    let mut parts = JoinSet::new();
    let mut election = JoinSet::new();
    let mut alone = None;
    match (&hub, &settings.lease) {
        (Some(hub), Some(of)) => {
            let (hub, of, status, ended) = (hub.clone(), of.clone(), status.clone(), writing_ended.clone());
            election.spawn(lease::run(hub, of, status, leading, ended));
        }
        _ => alone = Some(leading),
    }
    let observers = {
        let (metrics, status) = (metrics.clone(), status.clone());
        Arc::new(move |origin: &Origin| -> Arc<dyn Observer> {
            Arc::new(OfMember { origin: origin.clone(), status: status.clone(), metrics: metrics.clone() })
        })
    };
    let members = Members::new(settings.members.clone(), hub, observers);
    status.lock().registries = Some(members.health());
    let (sender, changes) = mpsc::channel(CHANGES);
    let changes = match settings.source_leases.clone() {
        None => changes,
        Some(leases) => {
            let (pass, passed) = mpsc::channel(CHANGES);
            let only = settings.policy.write_only_to.clone();
            let keeper = Keeper::new(leases, only, status.clone(), metrics.clone());
            parts.spawn(async move {
                keeper.run(changes, pass).await;
                "the keeper of the Leases of sources"
            });
            passed
        }
    };
    let engine = Engine::new(&settings, status, metrics, may_write);
    parts.spawn(async move {
        members.run(sender).await;
        "the registry of members"
    });
    parts.spawn(async move {
        engine.run(changes).await;
        "the controller's loop"
    });
    let died = tokio::select! {
        part = parts.join_next() => match part {
            Some(Ok(part)) => part.to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "the controller".to_owned(),
        },
        ended = election.join_next(), if !election.is_empty() => match ended {
            Some(Err(error)) => error.to_string(),
            _ => "the election".to_owned(),
        },
        () = stop.cancelled() => String::new(),
    };
    // Jobs end with the loop: after that nothing is written any more, and another one may lead at once.
    parts.shutdown().await;
    drop(alone);
    writing_ended.cancel();
    let _ = tokio::time::timeout(GRACE, async { while election.join_next().await.is_some() {} }).await;
    RunError::Died(died)
}

/// The hub, as soon as there can be a client for it; `None` when told to stop.
async fn connect(
    access: &crate::source::kube::Access,
    observer: Arc<dyn Observer>,
    stop: &CancellationToken,
) -> Option<Connection> {
    let mut said: Option<KubeError> = None;
    loop {
        match Connection::new(access.clone(), observer.clone()).await {
            Ok(hub) => return Some(hub),
            Err(error) => {
                if said.as_ref().map(ToString::to_string) != Some(error.to_string()) {
                    tracing::error!("the hub: {error}; it is tried again");
                }
                said = Some(error);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// Counts the requests to the hub.
struct OfHub(Arc<ControllerMetrics>);

impl Observer for OfHub {
    fn request(&self, _: &str, _: &str, code: &str, seconds: f64, verb: &str) {
        self.0.request(HUB, code, verb, seconds);
    }
}

/// Counts the requests to one member, once its id is known.
struct OfMember {
    origin: Origin,
    status: Arc<Status>,
    metrics: Arc<ControllerMetrics>,
}

impl Observer for OfMember {
    fn request(&self, _: &str, _: &str, code: &str, seconds: f64, verb: &str) {
        let id = self.status.lock().ids.get(&self.origin).cloned();
        if let Some(id) = id {
            self.metrics.request(id.as_str(), code, verb, seconds);
        }
    }
}
