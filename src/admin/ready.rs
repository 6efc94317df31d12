//! Readiness: what it hangs on, and how a person is told.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::source::{Health, WatchPhase};

/// What the process knows about itself and readiness needs.
#[derive(Debug, Default)]
pub struct AdminState {
    dns_bound: AtomicBool,
    shutting_down: AtomicBool,
}

impl AdminState {
    /// Neither bound nor shutting down.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every DNS socket is bound.
    pub fn set_dns_bound(&self) {
        self.dns_bound.store(true, Ordering::Release);
    }

    /// The process is on its way out: not ready from now on, though healthy and answering until the end (`dns.md` L15).
    pub fn set_shutting_down(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    /// Whether every DNS socket is bound.
    #[must_use]
    pub fn dns_bound(&self) -> bool {
        self.dns_bound.load(Ordering::Acquire)
    }

    /// Whether the process is on its way out.
    #[must_use]
    pub fn shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }
}

/// Whether to send queries here. Once the lists were complete an API server that is gone changes nothing: what is
/// known is served (`dns.md` L6, L9).
#[must_use]
pub fn is_ready(health: &Health, state: &AdminState) -> bool {
    !state.shutting_down() && state.dns_bound() && health.synced()
}

/// The short body of `/ready`, byte for byte CoreDNS's: `OK`, `Shutting down`, or the plugin that is not ready.
#[must_use]
pub(super) fn short(health: &Health, state: &AdminState, plugin: &'static str) -> (bool, &'static str) {
    match (is_ready(health, state), state.shutting_down()) {
        (true, _) => (true, "OK"),
        (false, true) => (false, "Shutting down"),
        (false, false) => (false, plugin),
    }
}

/// Every condition on a line of its own, and the short body as the last line. `[+]` holds, `[-]` does not and keeps
/// us from being ready, `[!]` holds but wants attention.
#[must_use]
pub(super) fn verbose(health: &Health, state: &AdminState, plugin: &'static str) -> (bool, String) {
    let mut text = String::new();
    for resource in health.needed() {
        let status = health.status(resource);
        let name = resource.plural();
        let mark = match (&status.phase, status.synced) {
            (_, false) => "[-]",
            (WatchPhase::Live, true) => "[+]",
            (_, true) => "[!]",
        };
        let mut words = vec![if status.synced { "synced" } else { "not synced" }.to_owned()];
        match &status.phase {
            WatchPhase::Starting if status.synced => words.push("connecting again".to_owned()),
            WatchPhase::Starting => words.push("waiting for the first list".to_owned()),
            WatchPhase::Live if status.synced => words.push("live".to_owned()),
            WatchPhase::Live => words.push("the first list is being read".to_owned()),
            WatchPhase::Down(trouble) => words.push(one_line(&trouble.to_string())),
        }
        if let Some(quiet) = status.quiet_for {
            words.push(format!("last event {} ago", span(quiet)));
        }
        let _ = writeln!(text, "{mark} {name}: {}", words.join(", "));
    }
    let (mark, words) = if state.dns_bound() { ("[+]", "bound") } else { ("[-]", "not bound yet") };
    let _ = writeln!(text, "{mark} dns sockets: {words}");
    let (mark, words) = if state.shutting_down() { ("[-]", "shutting down") } else { ("[+]", "running") };
    let _ = writeln!(text, "{mark} process: {words}");
    let (ready, body) = short(health, state, plugin);
    let _ = writeln!(
        text,
        "{}",
        if ready || state.shutting_down() { body.to_owned() } else { format!("not ready: {body}") }
    );
    (ready, text)
}

/// An API server's message may have several lines; a condition has one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time for people: `3 s`, `4 min`, `2 h`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        assert_eq!(span(Duration::from_millis(3_900)), "3 s");
        assert_eq!(span(Duration::from_secs(119)), "119 s");
        assert_eq!(span(Duration::from_secs(299)), "4 min");
        assert_eq!(span(Duration::from_secs(7_200)), "2 h");
    }
}
