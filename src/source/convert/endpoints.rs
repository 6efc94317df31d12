//! The endpoints of a slice.

use std::net::IpAddr;

use super::object::{self, Addresses, Conditions, Many, entries};
use super::slice::Family;
use super::{quoted, skip};
use crate::model::{ClusterId, Endpoint, EndpointList, Label, Readiness, SkipReason, Skipped, usable_address};

pub(super) fn convert(
    endpoints: Many<object::Endpoint<'_>>,
    family: Family,
    cluster: Option<&ClusterId>,
    pod_names: bool,
    skipped: &mut Vec<Skipped>,
) -> EndpointList {
    let mut kept = Vec::with_capacity(endpoints.as_ref().map_or(0, Vec::len));
    for (i, endpoint) in entries(endpoints) {
        let readiness = readiness(&endpoint.conditions);
        let hostname = endpoint.hostname.filter(|text| !text.is_empty()).and_then(|text| {
            let label = hostname(&text);
            if label.is_none() {
                let what =
                    format!("endpoints[{i}].hostname: {} can't be a host's label; it is left out", quoted(&text));
                skipped.push(skip(SkipReason::BadHostname, what));
            }
            label
        });
        // A hostname goes before the pod's name, so the latter is kept only where there is none.
        let pod = match endpoint.target_ref {
            Some(target) if pod_names && hostname.is_none() => target.name.as_deref().and_then(self::hostname),
            _ => None,
        };
        for (j, text) in endpoint.addresses.into_iter().flat_map(Addresses::entries) {
            match address(&text, family) {
                Ok(address) => {
                    kept.push(Endpoint { address, hostname: hostname.clone(), pod: pod.clone(), readiness });
                }
                Err((reason, why)) => {
                    let from = cluster.map_or_else(|| "no cluster".to_owned(), |id| format!("cluster {id}"));
                    let what = format!("endpoints[{i}].addresses[{j}]: {} {why} (from {from})", quoted(&text));
                    skipped.push(skip(reason, what));
                }
            }
        }
    }
    kept.into_iter().collect()
}

/// What the conditions mean (discovery.k8s.io/v1): nil `ready` is ready; nil `serving` is what `ready` is, so an
/// endpoint that is not ready serves only where it says so. `ready` together with `terminating` is ready: that is
/// how a Service that publishes not-ready addresses says it.
fn readiness(conditions: &Conditions) -> Readiness {
    if conditions.ready.unwrap_or(true) {
        Readiness::Ready
    } else if conditions.serving == Some(true) && conditions.terminating == Some(true) {
        Readiness::ServingTerminating
    } else {
        Readiness::NotReady
    }
}

/// A label that an endpoint may go by: `_` in front is for ports and protocols (`dns.md` E12).
fn hostname(text: &str) -> Option<Label> {
    if text.starts_with('_') { None } else { Label::new(text) }
}

fn address(text: &str, family: Family) -> Result<IpAddr, (SkipReason, &'static str)> {
    let Ok(address) = text.parse::<IpAddr>() else {
        return Err((SkipReason::BadAddress, "is no IP address"));
    };
    match (address, family) {
        (IpAddr::V6(_), Family::V4) => return Err((SkipReason::BadAddress, "is not IPv4, as the slice's addressType")),
        (IpAddr::V4(_), Family::V6) => return Err((SkipReason::BadAddress, "is not IPv6, as the slice's addressType")),
        _ => {}
    }
    if !usable_address(address) {
        let why = "can't be an endpoint's address: it means this host, its link or nobody";
        return Err((SkipReason::ForbiddenAddress, why));
    }
    Ok(address)
}
