//! ServiceImport → [`Import`].

use std::net::IpAddr;

use super::object::{ServiceImport, entries};
use super::{ports, quoted, skip};
use crate::api;
use crate::model::{ClusterId, EndpointObjects, Import, ImportKind, SkipReason, Skipped, usable_address};

pub(super) fn convert(object: ServiceImport) -> Import {
    let mut skipped = Vec::new();
    let kind = kind(object.spec.kind.as_deref(), &mut skipped);
    // A headless import's ips mean nothing (`dns.md` H17), so nothing is said about them either.
    let ips = match kind {
        ImportKind::Headless => Box::default(),
        ImportKind::ClusterSetIp => entries(object.spec.ips)
            .filter_map(|(i, text)| address(i, &text).map_err(|bad| skipped.push(bad)).ok())
            .collect(),
    };
    Import {
        kind,
        ips,
        ports: ports::convert("spec.ports", object.spec.ports, &mut skipped),
        clusters: entries(object.status.clusters)
            .filter_map(|(_, status)| ClusterId::new(status.cluster.as_deref()?))
            .collect(),
        endpoint_objects: match object.status.endpoint_slice_objects.as_deref() {
            Some("Present") => EndpointObjects::Present,
            Some("Absent") => EndpointObjects::Absent,
            _ => EndpointObjects::Unknown,
        },
        skipped: skipped.into(),
    }
}

/// `dns.md` C15: whatever is not headless counts as ClusterSetIP.
fn kind(text: Option<&str>, skipped: &mut Vec<Skipped>) -> ImportKind {
    match text {
        Some(api::TYPE_HEADLESS) => ImportKind::Headless,
        Some(api::TYPE_CLUSTERSET_IP) => ImportKind::ClusterSetIp,
        other => {
            skipped.push(skip(
                SkipReason::UnknownType,
                format!(
                    "spec.type: {} is neither {} nor {}; taken as {}",
                    quoted(other.unwrap_or_default()),
                    api::TYPE_CLUSTERSET_IP,
                    api::TYPE_HEADLESS,
                    api::TYPE_CLUSTERSET_IP
                ),
            ));
            ImportKind::ClusterSetIp
        }
    }
}

fn address(i: usize, text: &str) -> Result<IpAddr, Skipped> {
    let Ok(address) = text.parse::<IpAddr>() else {
        return Err(skip(SkipReason::BadAddress, format!("spec.ips[{i}]: {} is no IP address", quoted(text))));
    };
    if !usable_address(address) {
        return Err(skip(
            SkipReason::ForbiddenAddress,
            format!("spec.ips[{i}]: {address} can't be a service's address: it means this host, its link or nobody"),
        ));
    }
    Ok(address)
}
