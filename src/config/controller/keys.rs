//! The settings of `namesake controller` by name.

use super::table;
use crate::config::keys::{Keyed, Section, Spec};

/// A setting. Its texts are in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is explained in the table, where people read it too")]
pub enum Key {
    Kubeconfig,
    Hub,
    NoHub,
    Namespace,
    Member,
    MemberFolder,
    Inventory,
    InventoryNames,
    Clusterset,
    AllowTwoLabelClusterId,
    Lease,
    NoLease,
    LeaseDuration,
    Shard,
    WriteOnlyTo,
    WritesPerSecond,
    ConcurrentWrites,
    SourceLeases,
    PortRename,
    Families,
    AutoExport,
    LegacyConditions,
    FailureGrace,
    ExportNamespaces,
    ExportDeny,
    ImportNamespaces,
    ImportDeny,
    NamespaceConsent,
    CreateNamespaces,
    DerivedSelector,
    HeadlessDerivedService,
    DerivedLabels,
    DerivedAnnotations,
    AdoptImports,
    SliceOwner,
    EndpointsPerSlice,
    RemoteNodeNames,
    ZoneHints,
    ClusterApiLabel,
    Unreachable,
    UnreachableTtl,
    UnreachableGrace,
    KeepLastEndpoints,
    Drain,
    Admin,
    Health,
    Ready,
    Metrics,
    LogFormat,
    LogLevel,
}

impl Keyed for Key {
    const COMMAND: &'static str = "controller";
    const PREFIX: &'static str = "NAMESAKE_CONTROLLER_";
    const TABLE: &'static [Spec<Self>] = table::KEYS;
    const SECTIONS: &'static [Section] = &[
        Section::Hub,
        Section::Members,
        Section::Sharing,
        Section::Merge,
        Section::Namespaces,
        Section::Written,
        Section::Absence,
        Section::Admin,
    ];
}
