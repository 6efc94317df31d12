//! The table of answers.

use super::Options;

/// What is served: shared by every thread that answers.
#[derive(Debug)]
pub struct Store {
    options: Options,
}

impl Store {
    /// An empty, unsynced table: data names answer SERVFAIL with EDE 14 until [`Store::set_synced`].
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// What the operator chose.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Says that every needed list was complete once. There is no way back (`dns.md` L9).
    pub fn set_synced(&self) {}

    /// Says whether the data is known to be old: answers with an OPT then carry EDE 3 (`dns.md` L9).
    pub fn set_stale(&self, _stale: bool) {}

    /// Says whether the data is older than `max_stale` allows: data names then answer SERVFAIL (`dns.md` L9).
    pub fn set_expired(&self, _expired: bool) {}
}
