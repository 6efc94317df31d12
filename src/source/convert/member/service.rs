//! Services, and what they share with imports: ports, families, addresses, sessions and traffic.

use std::net::IpAddr;

use super::super::object::{Many, entries};
use super::super::{quoted, skip};
use super::meta::{self, Keep};
use super::object;
use crate::model::{Protocol, SkipReason, Skipped};
use crate::reconcile::objects::{Family, ServicePort, ServiceSpec, ServiceType, TargetPort, Traffic};
use crate::reconcile::observed::Service;

pub(super) fn convert(from: object::Service, skipped: &mut Vec<Skipped>) -> Service {
    let spec = from.spec;
    let first = spec.cluster_ip.as_deref().filter(|text| !text.is_empty());
    let headless = first == Some("None");
    let ips = match entries(spec.cluster_ips).map(|(_, ip)| ip).collect::<Vec<_>>() {
        listed if listed.is_empty() => first.map(str::to_owned).into_iter().collect(),
        listed => listed,
    };
    Service {
        meta: meta::convert(from.metadata, Keep::Annotations(&[])),
        spec: ServiceSpec {
            kind: match spec.kind.as_deref() {
                None | Some("" | "ClusterIP") => ServiceType::ClusterIp,
                Some("NodePort") => ServiceType::NodePort,
                Some("LoadBalancer") => ServiceType::LoadBalancer,
                Some("ExternalName") => ServiceType::ExternalName,
                Some(other) => ServiceType::Other(other.into()),
            },
            headless,
            ips: if headless { Vec::new() } else { addresses("spec.clusterIPs", ips, skipped) },
            families: families(spec.ip_families, skipped),
            dual_stack: matches!(spec.ip_family_policy.as_deref(), Some("PreferDualStack" | "RequireDualStack")),
            ports: ports(spec.ports, skipped),
            traffic: traffic(spec.traffic),
            selector: meta::map(spec.selector),
            publish_not_ready: spec.publish_not_ready_addresses.unwrap_or_default(),
        },
    }
}

pub(super) fn traffic(from: object::Traffic) -> Traffic {
    Traffic {
        session_affinity: from.session_affinity,
        session_timeout: from.session_affinity_config.client_ip.timeout_seconds,
        internal_policy: from.internal_traffic_policy,
        distribution: from.traffic_distribution,
    }
}

pub(super) fn addresses(place: &str, texts: Vec<String>, skipped: &mut Vec<Skipped>) -> Vec<IpAddr> {
    let mut address = |(i, text): (usize, String)| {
        let address = text.parse().ok();
        if address.is_none() {
            let what = format!("{place}[{i}]: {} is no IP address", quoted(&text));
            skipped.push(skip(SkipReason::BadAddress, what));
        }
        address
    };
    texts.into_iter().enumerate().filter_map(&mut address).collect()
}

pub(super) fn families(texts: Many<String>, skipped: &mut Vec<Skipped>) -> Vec<Family> {
    let mut family = |(i, text): (usize, String)| {
        let family = Family::new(&text);
        if family.is_none() {
            let what = format!("spec.ipFamilies[{i}]: {} is neither IPv4 nor IPv6", quoted(&text));
            skipped.push(skip(SkipReason::BadAddress, what));
        }
        family
    };
    entries(texts).filter_map(&mut family).collect()
}

pub(super) fn ports(from: Many<object::Port>, skipped: &mut Vec<Skipped>) -> Vec<ServicePort> {
    let convert = |(i, from): (usize, object::Port)| {
        let (protocol, port) = number(&format!("spec.ports[{i}]"), &from, skipped)?;
        let target = match from.target_port {
            Some(object::TargetPort::Number(0)) | None => None,
            Some(object::TargetPort::Number(number)) => u16::try_from(number).ok().map(TargetPort::Number),
            Some(object::TargetPort::Name(name)) => Some(match name.parse() {
                Ok(number) => TargetPort::Number(number),
                Err(_) => TargetPort::Name(name),
            }),
        };
        let name = from.name.unwrap_or_default();
        Some(ServicePort { name, protocol, port, app_protocol: from.app_protocol, target })
    };
    entries(from).filter_map(convert).collect()
}

/// Protocol and number of a port, or `None` where either can't be one.
pub(super) fn number(place: &str, port: &object::Port, skipped: &mut Vec<Skipped>) -> Option<(Protocol, u16)> {
    let mut bad = |what| skipped.push(skip(SkipReason::BadPort, what));
    let Some(protocol) = Protocol::new(port.protocol.as_deref()) else {
        let text = port.protocol.as_deref().unwrap_or_default();
        bad(format!("{place}.protocol: {} is none of TCP, UDP and SCTP", quoted(text)));
        return None;
    };
    match port.port.map(u16::try_from) {
        Some(Ok(number)) if number != 0 => Some((protocol, number)),
        Some(_) => {
            let number = port.port.unwrap_or_default();
            bad(format!("{place}.port: {number} is no port number, these are 1 to 65535"));
            None
        }
        None => {
            bad(format!("{place}.port: there is no number"));
            None
        }
    }
}
