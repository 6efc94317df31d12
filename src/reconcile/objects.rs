//! What is compared: the parts of Kubernetes objects that a plan reads or writes, as plain values. The same types say
//! what a cluster holds ([`super::observed`]) and what it should hold ([`super::plan::Action`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::ops::Add;
use std::time::Duration;

use crate::model::{ClusterId, ImportKind, Protocol};

/// Labels or annotations.
pub type Map = BTreeMap<Box<str>, Box<str>>;

/// Seconds since 1970, the resolution of every time in the Kubernetes API. The clock is an argument, never read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)))
    }
}

/// An IP family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `IPv4`
    V4,
    /// `IPv6`
    V6,
}

impl Family {
    /// The family of Kubernetes' spelling (`spec.ipFamilies`, `addressType`); `FQDN` and others are none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        match text {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    /// Kubernetes' spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What identifies one version of an object: preconditions of a delete, and what others' owner references name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// `metadata.uid`
    pub uid: Box<str>,
    /// `metadata.resourceVersion`
    pub resource_version: Box<str>,
}

/// The kind of an owner that we set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// The ServiceImport.
    Import,
    /// The derived Service.
    Service,
}

/// An owner reference to one of our own objects in the same namespace. Foreign owners are never touched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Its kind.
    pub kind: OwnerKind,
    /// Its name.
    pub name: Box<str>,
    /// Its uid. In a plan `None` where the owner is made by an earlier change of the same plan: whoever applies the
    /// plan takes it from the API server's answer to that.
    pub uid: Option<Box<str>>,
}

/// The metadata of an object as a cluster holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Uid and version.
    pub id: Identity,
    /// `metadata.generation`; 0 where the kind has none.
    pub generation: i64,
    /// Its labels.
    pub labels: Map,
    /// Its annotations; those of users' objects may be left out.
    pub annotations: Map,
    /// The keys of labels that our field manager owns (from `metadata.managedFields`): what is taken away when it is no
    /// longer wanted. Others' labels stay.
    pub owned_labels: BTreeSet<Box<str>>,
    /// The same for annotations.
    pub owned_annotations: BTreeSet<Box<str>>,
    /// Owner references to ServiceImports and Services; others may be left out.
    pub owners: Vec<Owner>,
}

/// A condition of a status (metav1.Condition).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `type`
    pub kind: Box<str>,
    /// `status`
    pub status: Status,
    /// `reason`: one word, or several joined by commas.
    pub reason: Box<str>,
    /// `message`
    pub message: Box<str>,
    /// `observedGeneration`
    pub generation: i64,
    /// `lastTransitionTime`: when `status` last flipped.
    pub since: Time,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`
    Unknown,
}

impl Status {
    /// Kubernetes' spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A port of an import or of a Service. The protocol is always written out (controller.md R43, R45).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// `name`; empty where it has none. The KEP counts the empty name as a name.
    pub name: Box<str>,
    /// `protocol`
    pub protocol: Protocol,
    /// `port`
    pub port: u16,
    /// `appProtocol`
    pub app_protocol: Option<Box<str>>,
    /// `targetPort`, of users' Services and of a derived Service with a selector. Never part of an import.
    pub target: Option<TargetPort>,
}

/// A Service's `targetPort`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetPort {
    /// A number.
    Number(u16),
    /// The name of a container's port.
    Name(Box<str>),
}

/// A port of an EndpointSlice: where its endpoints listen (the resolved target port, controller.md R41).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlicePort {
    /// `name`; empty where it has none.
    pub name: Box<str>,
    /// `protocol`
    pub protocol: Protocol,
    /// `port`; a port without a number stands for all and can't be mirrored.
    pub port: u16,
    /// `appProtocol`
    pub app_protocol: Option<Box<str>>,
}

/// What an import and a Service share about sessions and traffic, verbatim: `None` is an absent field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traffic {
    /// `sessionAffinity`
    pub session_affinity: Option<Box<str>>,
    /// `sessionAffinityConfig.clientIP.timeoutSeconds`
    pub session_timeout: Option<i32>,
    /// `internalTrafficPolicy`
    pub internal_policy: Option<Box<str>>,
    /// `trafficDistribution`
    pub distribution: Option<Box<str>>,
}

/// The spec of a ServiceImport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSpec {
    /// `type`
    pub kind: ImportKind,
    /// `ports`, the precedence order of exports first (controller.md R43).
    pub ports: Vec<ServicePort>,
    /// `ips`, in the order of `families`.
    pub ips: Vec<IpAddr>,
    /// `ipFamilies`
    pub families: Vec<Family>,
    /// Sessions and traffic.
    pub traffic: Traffic,
}

/// The status of a ServiceImport, a subresource: written by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportStatus {
    /// `clusters[].cluster`: the valid exporters, in precedence order (controller.md R70).
    pub clusters: Vec<ClusterId>,
    /// `endpointSliceObjects: Present`. Only ever `true` where the CRD declares the field.
    pub slices_present: bool,
    /// `conditions`, by type. In a plan only ours; others' stay as they are.
    pub conditions: Vec<Condition>,
}

/// The type of a user's Service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServiceType {
    /// `ClusterIP`, headless or not.
    #[default]
    ClusterIp,
    /// `NodePort`
    NodePort,
    /// `LoadBalancer`
    LoadBalancer,
    /// `ExternalName`, which can't be exported.
    ExternalName,
    /// One that did not exist when this was written.
    Other(Box<str>),
}

/// The spec of a Service: a user's, or a derived one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceSpec {
    /// `type`
    pub kind: ServiceType,
    /// Whether `clusterIP` is `None`.
    pub headless: bool,
    /// `clusterIPs` without `None`. In a plan: the addresses to ask for, or none for any.
    pub ips: Vec<IpAddr>,
    /// `ipFamilies`. In a plan: empty where the API server shall choose.
    pub families: Vec<Family>,
    /// Whether `ipFamilyPolicy` is `PreferDualStack` (or `RequireDualStack`), not `SingleStack`.
    pub dual_stack: bool,
    /// `ports`
    pub ports: Vec<ServicePort>,
    /// Sessions and traffic.
    pub traffic: Traffic,
    /// `selector`
    pub selector: Map,
    /// `publishNotReadyAddresses`
    pub publish_not_ready: bool,
}

/// An endpoint of an EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// `addresses`; kube-proxy uses the first.
    pub addresses: Vec<IpAddr>,
    /// `conditions.ready`; absent counts as `true` (discovery.k8s.io/v1).
    pub ready: bool,
    /// `conditions.serving`; absent counts as `ready`.
    pub serving: bool,
    /// `conditions.terminating`
    pub terminating: bool,
    /// `hostname`
    pub hostname: Option<Box<str>>,
    /// `zone`
    pub zone: Option<Box<str>>,
    /// `nodeName`
    pub node: Option<Box<str>>,
    /// `targetRef`, where it names a Pod of the same namespace.
    pub pod: Option<PodRef>,
    /// `hints.forZones[].name`
    pub hint_zones: Vec<Box<str>>,
}

/// `targetRef` of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// The pod's name.
    pub name: Box<str>,
    /// The pod's uid.
    pub uid: Box<str>,
}

/// What an EndpointSlice carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceContent {
    /// `addressType`, immutable. FQDN slices are not observed (controller.md R66).
    pub family: Family,
    /// `ports`
    pub ports: Vec<SlicePort>,
    /// `endpoints`
    pub endpoints: Vec<Endpoint>,
}
