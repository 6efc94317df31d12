//! Values in words.

use std::fmt::Display;

use crate::api;
use crate::controller::objects::protocol;
use crate::model::{ImportKind, Protocol};
use crate::reconcile::objects::{Endpoint, Family, Map, ServicePort, SlicePort, Traffic};

pub(super) fn kind(kind: ImportKind) -> &'static str {
    match kind {
        ImportKind::ClusterSetIp => api::TYPE_CLUSTERSET_IP,
        ImportKind::Headless => api::TYPE_HEADLESS,
    }
}

/// `http 80/TCP, 53/UDP`, or `no ports`.
pub(super) fn ports(ports: &[ServicePort]) -> String {
    let one = |port: &ServicePort| {
        let mut text = self::port(&port.name, port.port, port.protocol);
        if let Some(app) = &port.app_protocol {
            text.push_str(&format!(" ({app})"));
        }
        text
    };
    none_or(ports.iter().map(one), "no ports")
}

/// The same for a slice.
pub(super) fn slice_ports<'a>(ports: impl IntoIterator<Item = &'a SlicePort>) -> String {
    none_or(ports.into_iter().map(|port| self::port(&port.name, port.port, port.protocol)), "no ports")
}

pub(super) fn port(name: &str, number: u16, protocol: Protocol) -> String {
    let protocol = self::protocol(protocol);
    if name.is_empty() { format!("{number}/{protocol}") } else { format!("{name} {number}/{protocol}") }
}

pub(super) fn families(families: &[Family]) -> String {
    none_or(families.iter().map(|family| family.as_str().to_owned()), "no family")
}

pub(super) fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    none_or(items.into_iter().map(|item| item.to_string()), "none")
}

pub(super) fn map(map: &Map) -> String {
    none_or(map.iter().map(|(key, value)| format!("{key}={value}")), "none")
}

/// `session affinity ClientIP (10 s), internal traffic policy Local`.
pub(super) fn traffic(traffic: &Traffic) -> String {
    let affinity = traffic.session_affinity.as_deref().map(|affinity| match traffic.session_timeout {
        Some(timeout) => format!("session affinity {affinity} ({timeout} s)"),
        None => format!("session affinity {affinity}"),
    });
    let policy = traffic.internal_policy.as_deref().map(|policy| format!("internal traffic policy {policy}"));
    let distribution = traffic.distribution.as_deref().map(|it| format!("traffic distribution {it}"));
    none_or(affinity.into_iter().chain(policy).chain(distribution), "none")
}

/// What an endpoint is to clients.
pub(super) fn readiness(endpoint: &Endpoint) -> &'static str {
    match (endpoint.ready, endpoint.terminating) {
        (true, _) => "ready",
        (false, true) => "terminating",
        (false, false) => "not ready",
    }
}

/// `1 endpoint`, `2 endpoints`.
pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn none_or(items: impl Iterator<Item = String>, none: &str) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}
