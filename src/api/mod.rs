//! The Multi-Cluster Services API as users see it: group, versions, labels and values, each exactly once; the types of
//! ServiceExport and ServiceImport; and the CRDs, which are made of these types.

mod condition;
pub mod crd;
mod export;
mod import;
mod metadata;
mod schema;

pub use condition::{Condition, ConditionStatus};
pub use export::{ServiceExport, ServiceExportSpec, ServiceExportStatus};
pub use import::{
    ClientIpConfig, ClusterStatus, EndpointSliceObjects, ImportType, ServiceImport, ServiceImportSpec,
    ServiceImportStatus, ServicePort, SessionAffinityConfig,
};
pub use metadata::{Metadata, OwnerReference};
pub use schema::Schema;

/// The API group of ServiceImport and ServiceExport (KEP-1645).
pub const GROUP: &str = "multicluster.x-k8s.io";

/// The versions of the group that we read, the preferred one first. `v1beta1` is the storage version since mcs-api
/// v0.5.0; older clusters have `v1alpha1` alone. Their schemas are the same.
pub const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// The plural of ServiceExport, as in URLs and RBAC rules.
pub const SERVICE_EXPORTS: &str = "serviceexports";

/// The name of the ServiceExport CRD.
pub const SERVICE_EXPORT_CRD: &str = "serviceexports.multicluster.x-k8s.io";

/// The plural of ServiceImport, as in URLs and RBAC rules.
pub const SERVICE_IMPORTS: &str = "serviceimports";

/// The name of the ServiceImport CRD.
pub const SERVICE_IMPORT_CRD: &str = "serviceimports.multicluster.x-k8s.io";

/// The group of EndpointSlice.
pub const DISCOVERY_GROUP: &str = "discovery.k8s.io";

/// The plural of EndpointSlice, as in URLs and RBAC rules.
pub const ENDPOINT_SLICES: &str = "endpointslices";

/// Label of a multi-cluster EndpointSlice: the name of the ServiceImport it belongs to.
pub const LABEL_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";

/// Label of a multi-cluster EndpointSlice: the id of the cluster its endpoints run in.
pub const LABEL_SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";

/// Annotation of an EndpointSlice: the time (RFC 3339) of the change that led to this version of it.
pub const ANNOTATION_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// `spec.type` of an import with an address of its own.
pub const TYPE_CLUSTERSET_IP: &str = "ClusterSetIP";

/// `spec.type` of an import whose names are its endpoints.
pub const TYPE_HEADLESS: &str = "Headless";
