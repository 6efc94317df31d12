//! What systemd is told of a unit with `Type=notify`: ready, stopping, and signs of life for `WatchdogSec=`.
//!
//! Outside systemd (`NOTIFY_SOCKET` is not set) all of it does nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// The way to the service manager.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notifier {
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Reads what the service manager set: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    #[must_use]
    pub fn from_env() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled() }
    }

    /// How often to call [`alive`](Self::alive): half the unit's `WatchdogSec=`, as sd_watchdog_enabled(3) asks, and
    /// `None` without one.
    #[must_use]
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }

    /// Every list is complete and the DNS sockets are bound: units that are ordered after this one may start.
    pub fn ready(&self, status: &str) {
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// A line for `systemctl status`.
    pub fn status(&self, status: &str) {
        send(&[NotifyState::Status(status)]);
    }

    /// The process works.
    pub fn alive(&self) {
        send(&[NotifyState::Watchdog]);
    }

    /// The process is on its way out.
    pub fn stopping(&self) {
        send(&[NotifyState::Stopping, NotifyState::Status("shutting down")]);
    }
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd can't be notified; check NOTIFY_SOCKET, or use Type=exec in the unit");
    }
}
