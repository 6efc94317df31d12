//! EndpointSlice → [`Slice`].

use super::object::EndpointSlice;
use super::{endpoints, ports, quoted, skip, time};
use crate::api;
use crate::model::{ClusterId, EndpointList, Label, SkipReason, Skipped, Slice};

/// The addresses a slice may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
    /// The slice does not say (an API server would have refused it): each address speaks for itself.
    Any,
}

/// The slice, or `None` where it belongs to no import.
pub(super) fn convert(object: EndpointSlice<'_>, pod_names: bool) -> Result<Option<Slice>, Skipped> {
    let Some(service) = object.metadata.labels.service_name.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // Label values have their case, Service names have none: in capitals it is no Service's, as for CoreDNS.
    let Some(service) = Label::new(service).filter(|label| label.as_str() == service) else {
        return Err(skip(
            SkipReason::BadName,
            format!(
                "label {}: {} can't be a Service's name, a DNS label in lower case",
                api::LABEL_SERVICE_NAME,
                quoted(service)
            ),
        ));
    };

    let mut skipped = Vec::new();
    let cluster = cluster(object.metadata.labels.source_cluster.as_deref(), &mut skipped);
    let family = match object.address_type.as_deref() {
        Some("IPv4") => Some(Family::V4),
        Some("IPv6") => Some(Family::V6),
        Some("FQDN") => None,
        _ => Some(Family::Any),
    };
    let endpoints = match family {
        Some(family) => endpoints::convert(object.endpoints, family, cluster.as_ref(), pod_names, &mut skipped),
        None => {
            skipped.push(skip(
                SkipReason::FqdnSlice,
                "addressType: FQDN is not served; write a slice of type IPv4 or IPv6".to_owned(),
            ));
            EndpointList::default()
        }
    };
    Ok(Some(Slice {
        service,
        cluster,
        ports: ports::convert("ports", object.ports, &mut skipped),
        endpoints,
        triggered: object.metadata.annotations.trigger_time.as_deref().and_then(time::parse),
        skipped: skipped.into(),
    }))
}

/// `dns.md` H12: without a cluster the endpoints have no names, but the bare service name has their addresses.
fn cluster(label: Option<&str>, skipped: &mut Vec<Skipped>) -> Option<ClusterId> {
    let cluster = label.and_then(ClusterId::new);
    if cluster.is_none() {
        let what = match label {
            None | Some("") => format!("label {} is missing", api::LABEL_SOURCE_CLUSTER),
            Some(text) => {
                format!(
                    "label {}: {} can't be a cluster id, one or two DNS labels",
                    api::LABEL_SOURCE_CLUSTER,
                    quoted(text)
                )
            }
        };
        let what = format!("{what}; its endpoints have no names and no SRV records");
        skipped.push(skip(SkipReason::NoCluster, what));
    }
    cluster
}
