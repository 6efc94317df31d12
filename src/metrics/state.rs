//! What is not counted as it happens, but looked at when someone scrapes.

use std::time::Duration;

/// The state of the process at a scrape, as plain numbers: whoever owns the index and the watches fills it in.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Whether every needed list was complete once.
    pub synced: bool,
    /// Imports that are known, by `spec.type`.
    pub imports: Vec<(&'static str, u64)>,
    /// Ready endpoints that are known.
    pub endpoints: u64,
    /// The watches that are needed.
    pub watches: Vec<Watch>,
    /// What is there and not served.
    pub skipped: Vec<Skips>,
    /// The serial of each zone (without final dot).
    pub soa_serials: Vec<(String, u32)>,
    /// Objects taken in since the start, by the plural of their kind.
    pub updates: Vec<(&'static str, u64)>,
    /// How often the answers of a service were built since the start.
    pub rebuilds: u64,
    /// Queries that the kernel dropped because a socket's buffer was full, since the start.
    pub queue_drops: u64,
}

/// One watch.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The plural of the watched kind.
    pub resource: &'static str,
    /// Whether it delivers.
    pub up: bool,
    /// Time since the source last proved that we are up to date; `None` before the first.
    pub age: Option<Duration>,
    /// How often it was in trouble, by reason.
    pub errors: Vec<(&'static str, u64)>,
}

/// How much of one source cluster is skipped for one reason.
#[derive(Debug, Clone)]
pub struct Skips {
    /// The reason's label value.
    pub reason: &'static str,
    /// The source cluster; empty where there is none (imports, slices without the label).
    pub source_cluster: String,
    /// How many.
    pub count: u64,
}
