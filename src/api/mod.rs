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

/// Who we are, in every label that says who manages an object: what carries it is ours, what doesn't isn't.
pub const MANAGED_BY: &str = "namesake";

/// Label of everything that we write: its manager.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Label of an EndpointSlice: its manager. Never the value of kube-controller-manager's own controllers.
pub const LABEL_SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The manager of the slices that Karmada brings from other clusters.
pub const KARMADA_DISPATCHER: &str = "endpointslice-dispatch-controller.karmada.io";

/// Label of an EndpointSlice: the Service that it belongs to. On ours it is the derived Service, never the user's: a
/// user's Service would receive another cluster's pods, and `cluster.local` would change.
pub const LABEL_KUBERNETES_SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Label of EndpointSlices of a headless Service: kube-proxy's informers skip them.
pub const LABEL_HEADLESS: &str = "service.kubernetes.io/headless";

/// Label of a derived Service: it stands for an import and must not be exported again.
pub const LABEL_SERVICE_IMPORTED: &str = "multicluster.kubernetes.io/service-imported";

/// Label of Cluster API for the cluster an object belongs to; on slices by option.
pub const LABEL_CLUSTER_API_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Label of a Secret in the hub: it registers a member cluster, and its value is the cluster's id; empty, the id is that of
/// the cluster's own ClusterProperty.
pub const LABEL_CLUSTER: &str = "namesake/cluster";

/// The group of ClusterProperty (KEP-2149).
pub const ABOUT_GROUP: &str = "about.k8s.io";

/// The name of the ClusterProperty CRD.
pub const CLUSTER_PROPERTY_CRD: &str = "clusterproperties.about.k8s.io";

/// The ClusterProperty that holds a cluster's id.
pub const PROPERTY_CLUSTER: &str = "cluster.clusterset.k8s.io";

/// The ClusterProperty that holds the name of the clusterset a cluster is in.
pub const PROPERTY_CLUSTERSET: &str = "clusterset.k8s.io";

/// Annotation of a ServiceImport: the name of its derived Service.
pub const ANNOTATION_DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";

/// Annotation of one of our EndpointSlices that is being drained: since when, in seconds since 1970.
pub const ANNOTATION_DRAINING_SINCE: &str = "namesake/draining-since";

/// Annotation of a Namespace: `"true"` or `"false"`, whether services are imported into it and exported from it, where
/// the settings listen to it.
pub const ANNOTATION_NAMESPACE: &str = "namesake/enabled";

/// Condition of a ServiceExport: its Service exists and may be exported.
pub const CONDITION_VALID: &str = "Valid";

/// Condition of a ServiceExport (it was written everywhere) and of a ServiceImport (it can be used).
pub const CONDITION_READY: &str = "Ready";

/// Condition of a ServiceExport: the exporting clusters disagree about a property.
pub const CONDITION_CONFLICT: &str = "Conflict";

/// Condition of the request documents for a Service that can't be exported; written by option alone.
pub const CONDITION_INVALID_SERVICE: &str = "InvalidService";
