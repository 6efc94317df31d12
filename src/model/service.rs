//! Imported services.

use std::net::IpAddr;
use std::sync::Arc;

use super::{ClusterId, Port, Skipped};

/// The two forms of a ServiceImport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportKind {
    /// One address (or one per family) for the whole clusterset.
    ClusterSetIp,
    /// The names are those of the endpoints.
    Headless,
}

/// `status.endpointSliceObjects` (mcs-api v0.5.1): whether slices exist in this cluster at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EndpointObjects {
    /// The field is not there: an older CRD or controller.
    #[default]
    Unknown,
    /// The implementation writes slices.
    Present,
    /// It does not: no slice means "endpoints unknown", not "no endpoints".
    Absent,
}

/// A ServiceImport, reduced to what DNS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// `spec.type`; an empty or unknown value counts as ClusterSetIP (`dns.md` C15).
    pub kind: ImportKind,
    /// `spec.ips` without what can't be served. A headless import's are dropped (`dns.md` H17).
    pub ips: Box<[IpAddr]>,
    /// `spec.ports`; answers share them.
    pub ports: Arc<[Port]>,
    /// `status.clusters`: who exports it. For people only; answers do not depend on it.
    pub clusters: Arc<[ClusterId]>,
    /// Whether slices can be expected.
    pub endpoint_objects: EndpointObjects,
    /// What of it is not served, and why.
    pub skipped: Box<[Skipped]>,
}
