//! Whether an object is as it shall be: the reason for a write, or none. What an API server fills in by itself does
//! not count, nor does what others add without taking anything of ours away.

use std::collections::BTreeSet;

use super::merge::{affinity, policy, timeout};
use super::objects::{Condition, ImportStatus, Map, Meta, Owner, ServicePort, ServiceType, SliceContent};
use super::observed::{Export, Import, Service, Slice};
use super::plan::{ImportObject, ServiceObject, SliceObject};
use super::wanted::{WantedImport, WantedService};

/// What of an import has to be written, if anything.
#[must_use]
pub fn import(observed: &Import, desired: &ImportObject) -> Option<&'static str> {
    WantedImport::from(desired).differs(observed)
}

impl WantedImport<'_> {
    /// What has to be written, if anything.
    pub(super) fn differs(&self, observed: &Import) -> Option<&'static str> {
        let is = &observed.spec;
        if is.kind != self.kind {
            Some("type differs")
        } else if !same_ports(&is.ports, self.ports, false) || !same_order(&is.ports, self.ports) {
            Some("ports differ")
        } else if is.ips != *self.ips {
            Some("clusterset IPs differ")
        } else if is.families != self.families {
            Some("IP families differ")
        } else if is.traffic != *self.traffic {
            Some("session affinity or traffic policy differs")
        } else {
            metadata(&observed.meta, self.labels, self.annotations)
        }
    }
}

/// What of a derived Service has to be written, if anything.
#[must_use]
pub fn service(observed: &Service, desired: &ServiceObject) -> Option<&'static str> {
    WantedService::from(desired).differs(observed)
}

impl WantedService<'_> {
    /// What has to be written, if anything.
    pub(super) fn differs(&self, observed: &Service) -> Option<&'static str> {
        let is = &observed.spec;
        let selects = !self.selector.is_empty();
        if is.kind != ServiceType::ClusterIp {
            Some("type differs")
        } else if is.headless != self.headless {
            Some("headless or not differs")
        } else if !same_ports(&is.ports, &self.ports, selects) {
            Some("ports differ")
        } else if is.selector != *self.selector {
            Some("selector differs")
        } else if affinity(&is.traffic) != affinity(&self.traffic)
            || timeout(&is.traffic) != timeout(&self.traffic)
            || policy(&is.traffic) != policy(&self.traffic)
            || is.traffic.distribution != self.traffic.distribution
        {
            Some("session affinity or traffic policy differs")
        } else if !self.families.is_empty() && self.headless && is.families != *self.families {
            Some("IP families differ")
        } else if is.dual_stack != self.dual_stack {
            Some("IP family policy differs")
        } else if self.publish_not_ready != is.publish_not_ready {
            Some("publication of not-ready addresses differs")
        } else if !owners(&observed.meta, self.owners) {
            Some("owner differs")
        } else {
            metadata(&observed.meta, self.labels, self.annotations)
        }
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
    } else if !same_set(&is.ports, &shall.ports, PartialEq::eq) {
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

/// The same ports, in whatever order. Target ports don't count without a selector: then they are the API server's (R45).
fn same_ports(is: &[ServicePort], shall: &[ServicePort], targets: bool) -> bool {
    same_set(is, shall, |a, b| {
        (&a.name, a.protocol, a.port, &a.app_protocol) == (&b.name, b.protocol, b.port, &b.app_protocol)
            && (!targets || a.target == b.target)
    })
}

/// Whether each of one list is in the other, in whatever order: most often in the same one.
fn same_set<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    let in_order = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    in_order || (a.iter().all(|a| b.iter().any(|b| same(a, b))) && b.iter().all(|b| a.iter().any(|a| same(a, b))))
}

fn same_order(a: &[ServicePort], b: &[ServicePort]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a.protocol, a.port) == (b.protocol, b.port))
}

/// Every wanted label and annotation is there, and none that we own and don't want any more. Most often there are just
/// those that are wanted: that is looked at first, since it takes one pass.
fn metadata(meta: &Meta, labels: &Map, annotations: &Map) -> Option<&'static str> {
    let missing =
        |there: &Map, wanted: &Map| there != wanted && wanted.iter().any(|(key, value)| there.get(key) != Some(value));
    let left = |owned: &BTreeSet<Box<str>>, wanted: &Map| {
        !owned.iter().eq(wanted.keys()) && owned.iter().any(|key| !wanted.contains_key(key))
    };
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
    let named = |is: &Owner| wanted.iter().any(|owner| owner.kind == is.kind && owner.name == is.name);
    wanted.iter().all(|owner| owner.uid.is_some() && meta.owners.contains(owner))
        && meta.owners.iter().all(|owner| wanted.contains(owner) || !named(owner))
}
