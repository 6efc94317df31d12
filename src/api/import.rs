//! ServiceImport.

use super::schema::{choice, object};
use super::{Condition, Metadata};

object! {
    /// A service that one or more clusters of the clusterset export, as this cluster can use it. A controller writes it;
    /// it is there as long as some cluster exports the service.
    pub struct ServiceImport {
        /// Group and version of this object.
        api_version ("apiVersion"): Option<String>,
        /// The kind of this object: ServiceImport.
        kind ("kind"): Option<String>,
        /// Name and namespace are those of the exported Services.
        metadata ("metadata"): Option<Metadata>,
        /// What clients can use.
        spec ("spec"): Option<ServiceImportSpec>,
        /// Which clusters it comes from, and whether it can be used.
        status ("status"): Option<ServiceImportStatus>,
    }
}

choice! {
    /// The two forms of an imported service.
    pub enum ImportType {
        /// It has an address of its own for the whole clusterset.
        ClusterSetIp ("ClusterSetIP"),
        /// Its name stands for its endpoints.
        Headless ("Headless"),
    }
}

object! {
    /// What clients of an imported service can use.
    pub struct ServiceImportSpec {
        /// ClusterSetIP: the service has an address of its own. Headless: its name stands for its endpoints.
        kind ("type"): ImportType,
        /// Its ports. A headless service may have none.
        ports ("ports"): Vec<ServicePort> {"x-kubernetes-list-type": "atomic"},
        /// Its addresses in this cluster, at most one a family, in the order of ipFamilies. Empty for Headless.
        ips ("ips"): Option<Vec<String>> {"maxItems": 2},
        /// Its address families, IPv4 and IPv6, the preferred one first.
        ip_families ("ipFamilies"): Option<Vec<String>> {"maxItems": 2},
        /// None, or ClientIP for a client to stay with the endpoint it had. Without meaning for Headless.
        session_affinity ("sessionAffinity"): Option<String>,
        /// How long a client stays.
        session_affinity_config ("sessionAffinityConfig"): Option<SessionAffinityConfig>,
        /// Cluster, or Local where clients are to reach endpoints on their own node alone.
        internal_traffic_policy ("internalTrafficPolicy"): Option<String>,
        /// Which endpoints are preferred, such as PreferSameZone. A hint, no promise.
        traffic_distribution ("trafficDistribution"): Option<String>,
    }
}

object! {
    /// A port of an imported service.
    pub struct ServicePort {
        /// The name, a DNS label. Services with several ports have a different one for each.
        name ("name"): Option<String>,
        /// TCP, UDP or SCTP; TCP where it is absent.
        protocol ("protocol"): Option<String>,
        /// The protocol above that, such as https or kubernetes.io/h2c. A hint.
        app_protocol ("appProtocol"): Option<String>,
        /// The number.
        port ("port"): i32,
    }
}

object! {
    /// How session affinity works.
    pub struct SessionAffinityConfig {
        /// For ClientIP.
        client_ip ("clientIP"): Option<ClientIpConfig>,
    }
}

object! {
    /// How session affinity by client address works.
    pub struct ClientIpConfig {
        /// How many seconds a client stays with an endpoint, 1 to 86400; 10800 where it is absent.
        timeout_seconds ("timeoutSeconds"): Option<i32>,
    }
}

object! {
    /// Which clusters an import comes from, and whether it can be used.
    pub struct ServiceImportStatus {
        /// The clusters that export the service.
        clusters ("clusters"): Option<Vec<ClusterStatus>> {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["cluster"]
        },
        /// Ready: whether the import can be used.
        conditions ("conditions"): Option<Vec<Condition>> {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"]
        },
        /// Present where the endpoints of all clusters are in EndpointSlices of this one. Absent where they are kept
        /// elsewhere, so that no slice does not mean no endpoint.
        endpoint_slice_objects ("endpointSliceObjects"): Option<EndpointSliceObjects>,
    }
}

object! {
    /// A cluster that exports the service.
    pub struct ClusterStatus {
        /// Its id, a DNS label.
        cluster ("cluster"): String,
    }
}

choice! {
    /// Whether imported endpoints are in EndpointSlices.
    pub enum EndpointSliceObjects {
        /// They are.
        Present ("Present"),
        /// They are kept elsewhere.
        Absent ("Absent"),
    }
}
