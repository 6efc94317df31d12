//! Readiness: what both halves have in common.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::source::{WatchPhase, WatchStatus};

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

/// What is to be said of a watch: its mark, and what it does in words. `[+]` holds, `[-]` does not and keeps us from
/// being ready, `[!]` holds but wants attention.
pub(super) fn watch(status: &WatchStatus) -> (&'static str, String) {
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
    (mark, words.join(", "))
}

/// The last lines of `/ready?verbose`: whether the process runs, and the short body.
pub(super) fn end(text: &mut String, ready: bool, shutting_down: bool, body: &str) {
    let (mark, words) = if shutting_down { ("[-]", "shutting down") } else { ("[+]", "running") };
    text.push_str(&format!("{mark} process: {words}\n"));
    text.push_str(&if ready || shutting_down { format!("{body}\n") } else { format!("not ready: {body}\n") });
}

/// An API server's message may have several lines; a condition has one.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time for people: `3 s`, `4 min`, `2 h`.
pub(super) fn span(time: Duration) -> String {
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
