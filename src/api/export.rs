//! ServiceExport.

use std::collections::BTreeMap;

use super::schema::object;
use super::{Condition, Metadata};

object! {
    /// Offers the Service of the same name and namespace to all clusters of the clusterset. A Service without one stays
    /// in its cluster.
    pub struct ServiceExport {
        /// Group and version of this object.
        api_version ("apiVersion"): Option<String>,
        /// The kind of this object: ServiceExport.
        kind ("kind"): Option<String>,
        /// Name and namespace are those of the Service.
        metadata ("metadata"): Option<Metadata>,
        /// What is exported beside the Service itself.
        spec ("spec"): Option<ServiceExportSpec>,
        /// What the controller says of this export.
        status ("status"): Option<ServiceExportStatus>,
    }
}

object! {
    /// What is exported beside the Service itself.
    pub struct ServiceExportSpec {
        /// Labels that the ServiceImports get. Clusters that differ are in conflict; the oldest export wins.
        exported_labels ("exportedLabels"): Option<BTreeMap<String, String>>,
        /// Annotations that the ServiceImports get. Clusters that differ are in conflict; the oldest export wins.
        exported_annotations ("exportedAnnotations"): Option<BTreeMap<String, String>>,
    }
}

object! {
    /// What the controller says of an export.
    pub struct ServiceExportStatus {
        /// Valid: whether there is a Service that can be exported. Ready: whether the other clusters have it. Conflict:
        /// whether clusters that export the same service differ.
        conditions ("conditions"): Option<Vec<Condition>> {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"]
        },
    }
}
