//! What the routes of the DNS half look at.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::Half;
use super::ready::{self, AdminState};
use crate::metrics::{Metrics, State};
use crate::source::{Health, WatchPhase};
use crate::systemd::Notifier;

/// Says what is served for a name and a type, and why; the error is for people too.
pub type Explain = Arc<dyn Fn(&str, &str) -> Result<String, String> + Send + Sync>;

/// What the routes of the DNS half look at.
pub struct AdminParts {
    /// What is not ready in `/ready`'s body: `multicluster`, or `kubernetes`, by the directive that was used.
    pub plugin: &'static str,
    /// The watches.
    pub health: Arc<Health>,
    /// Bound, shutting down.
    pub state: Arc<AdminState>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Counts of the index and the zones at a scrape. `synced` and `watches` are filled in from `health`.
    pub counts: Arc<dyn Fn() -> State + Send + Sync>,
    /// The route `/explain`, if there is one.
    pub explain: Option<Explain>,
    /// Who is told under systemd.
    pub notifier: Notifier,
}

/// Whether to send queries here. Once the lists were complete an API server that is gone changes nothing: what is
/// known is served (`dns.md` L6, L9).
#[must_use]
pub fn is_ready(health: &Health, state: &AdminState) -> bool {
    !state.shutting_down() && state.dns_bound() && health.synced()
}

impl Half for AdminParts {
    /// The short body of `/ready`, byte for byte CoreDNS's: `OK`, `Shutting down`, or the plugin that is not ready.
    fn ready(&self) -> (bool, &'static str) {
        match (is_ready(&self.health, &self.state), self.state.shutting_down()) {
            (true, _) => (true, "OK"),
            (false, true) => (false, "Shutting down"),
            (false, false) => (false, self.plugin),
        }
    }

    /// Every condition on a line of its own, and the short body as the last line.
    fn verbose(&self) -> (bool, String) {
        let mut text = String::new();
        for resource in self.health.needed() {
            let (mark, words) = ready::watch(&self.health.status(resource));
            let _ = writeln!(text, "{mark} {}: {words}", resource.plural());
        }
        let (mark, words) = if self.state.dns_bound() { ("[+]", "bound") } else { ("[-]", "not bound yet") };
        let _ = writeln!(text, "{mark} dns sockets: {words}");
        let (ready, body) = self.ready();
        ready::end(&mut text, ready, self.state.shutting_down(), body);
        (ready, text)
    }

    /// CoreDNS's line.
    fn unready_line(&self, body: &str) -> String {
        format!("Plugins not ready: {body:?}")
    }

    fn metrics(&self) -> Result<String, String> {
        self.metrics.render(state(&*self.counts, &self.health)).map_err(|error| error.to_string())
    }

    fn explain(&self) -> Option<Explain> {
        self.explain.clone()
    }

    fn health_request(&self, took: Duration, failed: bool) {
        self.metrics.health_request(took, failed);
    }

    fn shutting_down(&self) -> bool {
        self.state.shutting_down()
    }

    fn notifier(&self) -> Notifier {
        self.notifier
    }
}

/// What `/metrics` shows, filled in from the health of the watches.
fn state(counts: &(dyn Fn() -> State + Send + Sync), health: &Health) -> State {
    let watch = |resource: crate::model::Resource| {
        let status = health.status(resource);
        crate::metrics::Watch {
            resource: resource.plural(),
            up: status.phase == WatchPhase::Live,
            age: status.quiet_for,
            errors: status.troubles.into_iter().collect(),
        }
    };
    State { synced: health.synced(), watches: health.needed().into_iter().map(watch).collect(), ..counts() }
}
