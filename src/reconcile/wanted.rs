//! An import, its status and its derived Service as they shall be. They borrow what all importing clusters have in common,
//! since most are as they shall be already: objects are made of those that are not.

use std::borrow::Cow;
use std::net::IpAddr;

use super::objects::{
    Condition, Family, Identity, ImportSpec, ImportStatus, Map, Owner, ServicePort, ServiceSpec, ServiceType, Traffic,
};
use super::observed::Import;
use super::plan::{ImportObject, ServiceObject};
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// A ServiceImport.
#[derive(Debug, Clone)]
pub(super) struct WantedImport<'a> {
    /// `metadata.labels`
    pub labels: &'a Map,
    /// `metadata.annotations`
    pub annotations: &'a Map,
    /// `type`
    pub kind: ImportKind,
    /// `ports`
    pub ports: &'a [ServicePort],
    /// `ips`
    pub ips: Cow<'a, [IpAddr]>,
    /// `ipFamilies`
    pub families: &'a [Family],
    /// Sessions and traffic.
    pub traffic: &'a Traffic,
}

impl WantedImport<'_> {
    /// To be written in place of what is there.
    pub(super) fn into_object(self, key: &ServiceKey, existing: Option<&Import>) -> ImportObject {
        ImportObject {
            key: key.clone(),
            existing: existing.map(|import| import.meta.id.clone()),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            spec: ImportSpec {
                kind: self.kind,
                ports: self.ports.to_vec(),
                ips: self.ips.into_owned(),
                families: self.families.to_vec(),
                traffic: self.traffic.clone(),
            },
        }
    }
}

impl<'a> From<&'a ImportObject> for WantedImport<'a> {
    fn from(object: &'a ImportObject) -> Self {
        let spec = &object.spec;
        Self {
            labels: &object.labels,
            annotations: &object.annotations,
            kind: spec.kind,
            ports: &spec.ports,
            ips: Cow::Borrowed(&spec.ips),
            families: &spec.families,
            traffic: &spec.traffic,
        }
    }
}

/// A ServiceImport's status.
#[derive(Debug, Clone)]
pub(super) struct WantedStatus<'a> {
    /// `clusters`
    pub clusters: &'a [ClusterId],
    /// `endpointSliceObjects: Present`
    pub slices_present: bool,
    /// The condition `Ready`; borrowed where it says that already.
    pub ready: Cow<'a, Condition>,
}

impl WantedStatus<'_> {
    /// Whether it has to be written.
    pub(super) fn differs(&self, is: &ImportStatus) -> bool {
        is.clusters != self.clusters || is.slices_present != self.slices_present || matches!(self.ready, Cow::Owned(_))
    }

    /// To be written.
    pub(super) fn into_status(self) -> ImportStatus {
        ImportStatus {
            clusters: self.clusters.to_vec(),
            slices_present: self.slices_present,
            conditions: vec![self.ready.into_owned()],
        }
    }
}

/// A derived Service.
#[derive(Debug, Clone)]
pub(super) struct WantedService<'a> {
    /// `metadata.labels`
    pub labels: &'a Map,
    /// `metadata.annotations`
    pub annotations: &'a Map,
    /// The import.
    pub owners: &'a [Owner],
    /// Whether `clusterIP` is `None`.
    pub headless: bool,
    /// The addresses to ask for, or none for any.
    pub ips: Cow<'a, [IpAddr]>,
    /// Empty where the API server shall choose.
    pub families: Cow<'a, [Family]>,
    /// Whether `ipFamilyPolicy` is `PreferDualStack`.
    pub dual_stack: bool,
    /// `ports`
    pub ports: Cow<'a, [ServicePort]>,
    /// Sessions and traffic.
    pub traffic: Cow<'a, Traffic>,
    /// `selector`
    pub selector: Cow<'a, Map>,
    /// `publishNotReadyAddresses`
    pub publish_not_ready: bool,
}

impl WantedService<'_> {
    /// To be written in place of what is there.
    pub(super) fn to_object(&self, key: &ServiceKey, name: &Label, existing: Option<Identity>) -> ServiceObject {
        ServiceObject {
            key: key.clone(),
            name: name.clone(),
            existing,
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            owners: self.owners.to_vec(),
            spec: ServiceSpec {
                kind: ServiceType::ClusterIp,
                headless: self.headless,
                ips: self.ips.to_vec(),
                families: self.families.to_vec(),
                dual_stack: self.dual_stack,
                ports: self.ports.to_vec(),
                traffic: (*self.traffic).clone(),
                selector: (*self.selector).clone(),
                publish_not_ready: self.publish_not_ready,
            },
        }
    }
}

impl<'a> From<&'a ServiceObject> for WantedService<'a> {
    fn from(object: &'a ServiceObject) -> Self {
        let spec = &object.spec;
        Self {
            labels: &object.labels,
            annotations: &object.annotations,
            owners: &object.owners,
            headless: spec.headless,
            ips: Cow::Borrowed(&spec.ips),
            families: Cow::Borrowed(&spec.families),
            dual_stack: spec.dual_stack,
            ports: Cow::Borrowed(&spec.ports),
            traffic: Cow::Borrowed(&spec.traffic),
            selector: Cow::Borrowed(&spec.selector),
            publish_not_ready: spec.publish_not_ready,
        }
    }
}
