//! What the settings of every command have in common.

use std::net::SocketAddr;

use crate::telemetry::LogFormat;

/// Where probes and metrics are served; equal addresses share a listener, `[::]` takes IPv4 too, `None` is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admin {
    /// `/explain`.
    pub explain: Option<SocketAddr>,
    /// `/health`.
    pub health: Option<SocketAddr>,
    /// `/ready`.
    pub ready: Option<SocketAddr>,
    /// `/metrics`.
    pub metrics: Option<SocketAddr>,
}

/// How things are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Text or JSON.
    pub format: LogFormat,
    /// A filter in the syntax of `tracing_subscriber::EnvFilter`, which has been checked.
    pub filter: String,
    /// Whether every query is logged.
    pub queries: bool,
}
