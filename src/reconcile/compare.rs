//! Whether an object is as it shall be: the reason for a write, or none. What an API server fills in by itself does
//! not count, nor does what others add without taking anything of ours away.

use std::collections::BTreeSet;

use super::merge::{affinity, policy, timeout};
use super::objects::{Condition, ImportStatus, Map, Meta, Owner, ServicePort, ServiceType, SliceContent, SlicePort};
use super::observed::{Export, Import, Service, Slice};
use super::plan::{ImportObject, ServiceObject, SliceObject};

/// What of an import has to be written, if anything.
#[must_use]
pub fn import(observed: &Import, desired: &ImportObject) -> Option<&'static str> {
    let (is, shall) = (&observed.spec, &desired.spec);
    if is.kind != shall.kind {
        Some("type differs")
    } else if ports(&is.ports, false) != ports(&shall.ports, false) || !same_order(&is.ports, &shall.ports) {
        Some("ports differ")
    } else if is.ips != shall.ips {
        Some("clusterset IPs differ")
    } else if is.families != shall.families {
        Some("IP families differ")
    } else if is.traffic != shall.traffic {
        Some("session affinity or traffic policy differs")
    } else {
        metadata(&observed.meta, &desired.labels, &desired.annotations)
    }
}

/// What of a derived Service has to be written, if anything.
#[must_use]
pub fn service(observed: &Service, desired: &ServiceObject) -> Option<&'static str> {
    let (is, shall) = (&observed.spec, &desired.spec);
    let selects = !shall.selector.is_empty();
    if is.kind != ServiceType::ClusterIp {
        Some("type differs")
    } else if is.headless != shall.headless {
        Some("headless or not differs")
    } else if ports(&is.ports, selects) != ports(&shall.ports, selects) {
        Some("ports differ")
    } else if is.selector != shall.selector {
        Some("selector differs")
    } else if affinity(&is.traffic) != affinity(&shall.traffic)
        || timeout(&is.traffic) != timeout(&shall.traffic)
        || policy(&is.traffic) != policy(&shall.traffic)
        || is.traffic.distribution != shall.traffic.distribution
    {
        Some("session affinity or traffic policy differs")
    } else if !shall.families.is_empty() && shall.headless && is.families != shall.families {
        Some("IP families differ")
    } else if is.dual_stack != shall.dual_stack {
        Some("IP family policy differs")
    } else if shall.publish_not_ready != is.publish_not_ready {
        Some("publication of not-ready addresses differs")
    } else if !owners(&observed.meta, &desired.owners) {
        Some("owner differs")
    } else {
        metadata(&observed.meta, &desired.labels, &desired.annotations)
    }
}

/// Whether a ServiceImport's status has to be written.
#[must_use]
pub fn import_status(observed: &Import, desired: &ImportStatus) -> bool {
    super::status::import_differs(&observed.status, desired)
}

/// Whether our conditions of a ServiceExport have to be written.
#[must_use]
pub fn export_status(observed: &Export, desired: &[Condition]) -> bool {
    super::status::export_differs(&observed.conditions, desired)
}

/// What of a mirrored slice has to be written, if anything.
#[must_use]
pub fn slice(observed: &Slice, desired: &SliceObject) -> Option<&'static str> {
    slice_content(&observed.content, &desired.content)
        .or_else(|| slice_meta(&observed.meta, &desired.labels, &desired.annotations, &desired.owners))
}

/// The same, of what a slice carries.
pub(super) fn slice_content(is: &SliceContent, shall: &SliceContent) -> Option<&'static str> {
    if std::ptr::eq(is, shall) {
        None
    } else if slice_ports(&is.ports) != slice_ports(&shall.ports) {
        Some("ports differ")
    } else if is.endpoints != shall.endpoints {
        Some("endpoints differ")
    } else {
        None
    }
}

/// The same, of a slice's metadata.
pub(super) fn slice_meta(is: &Meta, labels: &Map, annotations: &Map, wanted: &[Owner]) -> Option<&'static str> {
    if owners(is, wanted) { metadata(is, labels, annotations) } else { Some("owner differs") }
}

fn slice_ports(list: &[SlicePort]) -> BTreeSet<&SlicePort> {
    list.iter().collect()
}

/// Ports without what is not compared: target ports without a selector are the API server's (R45).
fn ports(list: &[ServicePort], targets: bool) -> BTreeSet<ServicePort> {
    list.iter().map(|port| ServicePort { target: port.target.clone().filter(|_| targets), ..port.clone() }).collect()
}

fn same_order(a: &[ServicePort], b: &[ServicePort]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a.protocol, a.port) == (b.protocol, b.port))
}

/// Every wanted label and annotation is there, and none that we own and don't want any more.
fn metadata(meta: &Meta, labels: &Map, annotations: &Map) -> Option<&'static str> {
    let missing = |there: &Map, wanted: &Map| wanted.iter().any(|(key, value)| there.get(key) != Some(value));
    let left = |owned: &BTreeSet<Box<str>>, wanted: &Map| owned.iter().any(|key| !wanted.contains_key(key));
    if missing(&meta.labels, labels) || left(&meta.owned_labels, labels) {
        Some("labels differ")
    } else if missing(&meta.annotations, annotations) || left(&meta.owned_annotations, annotations) {
        Some("annotations differ")
    } else {
        None
    }
}

/// Every wanted owner is there, and no former one of the same name. A wanted owner that is only being made has no uid
/// yet, so it can't be there.
fn owners(meta: &Meta, wanted: &[Owner]) -> bool {
    let names: BTreeSet<_> = wanted.iter().map(|owner| (owner.kind, &owner.name)).collect();
    wanted.iter().all(|owner| owner.uid.is_some() && meta.owners.contains(owner))
        && meta.owners.iter().all(|owner| wanted.contains(owner) || !names.contains(&(owner.kind, &owner.name)))
}
