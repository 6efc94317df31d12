//! What the operator decides: every option of the controller (controller.md 7) with its default.

use std::time::Duration;

use super::objects::Map;
use crate::model::{ClusterId, Label, ServiceKey};

/// The options of the merge, of what is written, and of what is done about clusters that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Which pods a derived Service selects (D2).
    pub derived_selector: DerivedSelector,
    /// Who owns slices (D5, R69).
    pub slice_owner: SliceOwner,
    /// Whether a headless import gets a derived Service (R56).
    pub headless_derived_service: bool,
    /// Whether slices also carry Cluster API's cluster-name label (D4).
    pub cluster_api_label: bool,
    /// Whether endpoints of other clusters keep their node's name (R64, D13).
    pub remote_node_names: bool,
    /// Whether zone hints are made anew where the merged traffic distribution prefers zones (R65).
    pub zone_hints: bool,
    /// Whether exports that can't be valid also get the request documents' condition `InvalidService` (D7).
    pub legacy_conditions: bool,
    /// Whether one (protocol, number) under two names is served under the older one (R40). Off: the younger cluster's
    /// endpoints leave that port, as with Cilium.
    pub rename_ports: bool,
    /// How the families of several exports become one list (R48).
    pub families: FamilyRule,
    /// Namespaces from which exports are taken (R13).
    pub export_namespaces: NamespaceRule,
    /// Namespaces into which services are imported (R13).
    pub import_namespaces: NamespaceRule,
    /// Whether a namespace has a say itself, by annotation.
    pub namespace_consent: NamespaceConsent,
    /// What is done where a namespace is missing (R4).
    pub create_namespaces: CreateNamespaces,
    /// Whether ServiceImports that are not ours are taken over (R8).
    pub adopt_imports: bool,
    /// Whether exported labels also go to the derived Service (R37).
    pub derived_labels: bool,
    /// Whether exported annotations also go to the derived Service (R37).
    pub derived_annotations: bool,
    /// How long the endpoints of an export that leaves stay, as terminating, before they are deleted (R79).
    pub drain: Duration,
    /// Most endpoints of one slice (R62), 1 to 1000.
    pub endpoints_per_slice: usize,
    /// What happens to the endpoints of a cluster that cannot be reached (R84).
    pub unreachable: Unreachable,
    /// Services that are exported without a ServiceExport of their user (W65).
    pub auto_export: Option<LabelRule>,
    /// How long a failing write may be retried before an export that was ready says so (R75).
    pub failure_grace: Duration,
    /// The only cluster to write to: one controller per cluster instead of one for all.
    pub write_only_to: Option<ClusterId>,
    /// The part of the services that is this controller's, where several share them.
    pub shard: Shard,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            derived_selector: DerivedSelector::None,
            slice_owner: SliceOwner::Import,
            headless_derived_service: true,
            cluster_api_label: false,
            remote_node_names: false,
            zone_hints: true,
            legacy_conditions: false,
            rename_ports: true,
            families: FamilyRule::Intersection,
            export_namespaces: NamespaceRule::default(),
            import_namespaces: NamespaceRule {
                allow: Vec::new(),
                deny: ["kube-system", "kube-public", "kube-node-lease"].map(Into::into).to_vec(),
            },
            namespace_consent: NamespaceConsent::Ignored,
            create_namespaces: CreateNamespaces::Never,
            adopt_imports: false,
            derived_labels: false,
            derived_annotations: false,
            drain: Duration::ZERO,
            endpoints_per_slice: 100,
            unreachable: Unreachable::default(),
            auto_export: None,
            failure_grace: Duration::from_secs(60),
            write_only_to: None,
            shard: Shard::default(),
        }
    }
}

/// Which pods a derived Service selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DerivedSelector {
    /// None: its endpoints are ours alone.
    #[default]
    None,
    /// In a cluster that exports: those of its own Service, instead of a mirrored slice of its own.
    LocalExport,
    /// The oldest export's selector everywhere. Not conformant: pods of clusters that don't export join.
    Always,
}

/// Who owns slices, so that the garbage collector removes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SliceOwner {
    /// The ServiceImport.
    #[default]
    Import,
    /// The derived Service.
    Service,
    /// Both.
    Both,
}

/// How the families of several exports become one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FamilyRule {
    /// Those that all have: every client reaches every backend.
    #[default]
    Intersection,
    /// Those that any has.
    Union,
}

/// Namespaces by name; `*` at the end of a pattern stands for any rest. Deny wins; an empty `allow` allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceRule {
    /// Patterns, one of which has to fit.
    pub allow: Vec<Box<str>>,
    /// Patterns, none of which may fit.
    pub deny: Vec<Box<str>>,
}

impl NamespaceRule {
    /// Whether `namespace` passes.
    #[must_use]
    pub fn allows(&self, namespace: &Label) -> bool {
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => namespace.as_str().starts_with(start),
            None => pattern == namespace.as_str(),
        };
        let any = |patterns: &[Box<str>]| patterns.iter().any(|pattern| fits(pattern));
        !any(&self.deny) && (self.allow.is_empty() || any(&self.allow))
    }
}

/// Whether a namespace has a say itself, by the annotation [`crate::api::ANNOTATION_NAMESPACE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NamespaceConsent {
    /// No.
    #[default]
    Ignored,
    /// It takes part unless it says `"false"`.
    OptOut,
    /// It takes part only if it says `"true"`.
    OptIn,
}

/// What is done where an exported service's namespace is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreateNamespaces {
    /// Nothing: such a cluster does not import (KEP-1645).
    #[default]
    Never,
    /// It is made, and stays.
    Create,
    /// It is made, and removed again when nothing is imported into it any more and nothing of others is in it.
    CreateAndRemove,
}

/// What happens to the endpoints of a cluster that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// Whether they are removed at all.
    pub remove: bool,
    /// After how long. Also how long a cluster that was never heard holds up deletions (R82).
    pub ttl: Duration,
    /// How long a cluster may be away before conditions name it: an outage of seconds writes nothing.
    pub grace: Duration,
    /// Whether the last usable endpoints of a service stay all the same.
    pub keep_last_endpoints: bool,
}

impl Default for Unreachable {
    fn default() -> Self {
        Self { remove: true, ttl: Duration::from_secs(300), grace: Duration::from_secs(30), keep_last_endpoints: true }
    }
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRule {
    /// The key.
    pub key: Box<str>,
    /// The value; `None` for any.
    pub value: Option<Box<str>>,
}

impl LabelRule {
    /// Whether an object with these labels fits.
    #[must_use]
    pub fn fits(&self, labels: &Map) -> bool {
        labels.get(&self.key).is_some_and(|value| self.value.as_ref().is_none_or(|wanted| wanted == value))
    }
}

/// One of several equal parts of all services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Shard {
    /// Whether `key` is of this part. The same in every version and on every machine (FNV-1a).
    #[must_use]
    pub fn owns(self, key: &ServiceKey) -> bool {
        let bytes = key.namespace.as_str().bytes().chain([b'/']).chain(key.name.as_str().bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        hash % u64::from(self.count.max(1)) == u64::from(self.index)
    }
}
