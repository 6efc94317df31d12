//! EndpointSlices: sources, ours, and others'.

use std::net::IpAddr;

use super::super::object::{Many, entries};
use super::super::{quoted, skip};
use super::meta::{self, Keep};
use super::{object, service};
use crate::api;
use crate::model::{SkipReason, Skipped, usable_address};
use crate::reconcile::objects::{Endpoint, Family, PodRef, SliceContent, SlicePort};
use crate::reconcile::observed::Slice;

/// What of a slice's labels says whose it is. kube-controller-manager copies all of its Service's labels into it.
const LABELS: &[&str] = &[
    api::LABEL_KUBERNETES_SERVICE_NAME,
    api::LABEL_SLICE_MANAGED_BY,
    api::LABEL_SERVICE_NAME,
    api::LABEL_SOURCE_CLUSTER,
];

/// The slice, or `None` where it has no IP addresses (controller.md R66).
pub(super) fn convert(from: object::EndpointSlice, namespace: &str, skipped: &mut Vec<Skipped>) -> Option<Slice> {
    let family = from.address_type.as_deref().and_then(Family::new)?;
    Some(Slice {
        meta: meta::convert(from.metadata, Keep::Labels(LABELS)),
        content: SliceContent {
            family,
            ports: ports(from.ports, skipped),
            endpoints: endpoints(from.endpoints, family, namespace, skipped),
        },
    })
}

fn ports(from: Many<object::Port>, skipped: &mut Vec<Skipped>) -> Vec<SlicePort> {
    let convert = |(i, from): (usize, object::Port)| {
        let (protocol, port) = service::number(&format!("ports[{i}]"), &from, skipped)?;
        Some(SlicePort { name: from.name.unwrap_or_default(), protocol, port, app_protocol: from.app_protocol })
    };
    entries(from).filter_map(convert).collect()
}

fn endpoints(
    from: Many<object::Endpoint>,
    family: Family,
    namespace: &str,
    skipped: &mut Vec<Skipped>,
) -> Vec<Endpoint> {
    let mut kept = Vec::with_capacity(from.as_ref().map_or(0, Vec::len));
    for (i, from) in entries(from) {
        let mut addresses = Vec::with_capacity(1);
        for (j, text) in entries(from.addresses) {
            match text.parse::<IpAddr>() {
                // A lying cluster is not to have others send packets to themselves or to their neighbours.
                Ok(address) if !usable_address(address) => {
                    let what = format!(
                        "endpoints[{i}].addresses[{j}]: {address} can't be an endpoint's address: it means this host, its \
                         link or nobody"
                    );
                    skipped.push(skip(SkipReason::ForbiddenAddress, what));
                }
                Ok(address) if Family::of(address) == family => addresses.push(address),
                _ => {
                    let what = format!("endpoints[{i}].addresses[{j}]: {} is no {family} address", quoted(&text));
                    skipped.push(skip(SkipReason::BadAddress, what));
                }
            }
        }
        if addresses.is_empty() {
            continue;
        }
        // discovery.k8s.io/v1: an absent `ready` is ready, an absent `serving` is what `ready` is.
        let ready = from.conditions.ready.unwrap_or(true);
        kept.push(Endpoint {
            addresses,
            ready,
            serving: from.conditions.serving.unwrap_or(ready),
            terminating: from.conditions.terminating.unwrap_or_default(),
            hostname: from.hostname.filter(|name| !name.is_empty()),
            zone: from.zone.filter(|zone| !zone.is_empty()),
            node: from.node_name.filter(|node| !node.is_empty()),
            pod: from.target_ref.and_then(|target| pod(target, namespace)),
            hint_zones: entries(from.hints.for_zones).filter_map(|(_, zone)| zone.name).collect(),
        });
    }
    kept
}

fn pod(target: object::TargetRef, namespace: &str) -> Option<PodRef> {
    let here = target.namespace.as_deref().is_none_or(|of| of.is_empty() || of.eq_ignore_ascii_case(namespace));
    if target.kind.as_deref() != Some("Pod") || !here {
        return None;
    }
    Some(PodRef { name: target.name?, uid: target.uid.unwrap_or_default() })
}
