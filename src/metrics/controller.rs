//! What the controller counts.

/// The counters of the controller.
#[derive(Debug, Default)]
pub struct ControllerMetrics {}

impl ControllerMetrics {
    /// None counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A write to a member ended: `resource` is the plural, with `/status` for a status; `verb` is `apply`, `delete`, `create` or
    /// `replace`; `outcome` is `ok`, or the kind of error.
    pub fn write(
        &self,
        cluster: &str,
        resource: &'static str,
        verb: &'static str,
        outcome: &'static str,
        seconds: f64,
    ) {
        let _ = (cluster, resource, verb, outcome, seconds);
    }

    /// A write to a member failed, for this reason.
    pub fn write_error(&self, cluster: &str, reason: &'static str) {
        let _ = (cluster, reason);
    }

    /// A change of a member was written to the last importer, so many seconds after it was seen.
    pub fn propagated(&self, seconds: f64) {
        let _ = seconds;
    }

    /// A service was planned.
    pub fn planned(&self, seconds: f64) {
        let _ = seconds;
    }

    /// A request to the API server of a member (or of the hub) was answered, as [`Observer::request`](crate::source::kube::Observer::request) has it.
    pub fn request(&self, cluster: &str, code: &str, verb: &str, seconds: f64) {
        let _ = (cluster, code, verb, seconds);
    }
}
