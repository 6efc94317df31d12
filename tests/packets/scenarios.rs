//! The list of the 27 scenarios, in the suite's order: where each stands in the suite, what the suite says of it, and
//! which section of the specification (KEP-1645) it holds an implementation to.

use std::pin::Pin;

use crate::stage::Stage;
use crate::{connectivity, dns, headless_dns, imports, merging, slices};

/// One of the suite's scenarios.
pub struct Scenario {
    /// The name of its function, which begins with its number: `c02_…`.
    pub name: &'static str,
    /// The file of the suite that has it.
    pub file: &'static str,
    /// The suite's labels.
    pub labels: &'static [&'static str],
    /// The title of the section in KEP-1645.
    pub section: &'static str,
    /// Plays it; it panics where it finds what should not be.
    pub play: for<'a> fn(&'a Stage) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl Scenario {
    /// `C2`.
    pub fn id(&self) -> String {
        format!("C{}", self.name[1..3].trim_start_matches('0'))
    }

    /// What it says, in words.
    pub fn title(&self) -> String {
        self.name[4..].replace('_', " ")
    }

    /// Whether every implementation has to pass it.
    pub fn is_required(&self) -> bool {
        self.labels.contains(&"Required")
    }

    /// The section's address.
    pub fn section_url(&self) -> String {
        let anchor = self.section.to_lowercase().replace(' ', "-");
        format!(
            "https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/\
             1645-multi-cluster-services-api#{anchor}"
        )
    }

    /// Whether it is about names, so that it is played in every arrangement of the cluster's DNS.
    pub fn looks_up(&self) -> bool {
        self.name.starts_with("c02_") || self.labels.contains(&"DNS")
    }

    /// Whether it takes long: it has ten passes in a row, one a second, for each cluster, family and port.
    pub fn takes_long(&self) -> bool {
        ["c03_", "c04_", "c05_"].iter().any(|long| self.name.starts_with(long))
    }
}

macro_rules! scenarios {
    ($($file:literal { $($module:ident::$name:ident $labels:expr, $section:literal;)* })*) => {
        &[$($(Scenario {
            name: stringify!($name),
            file: $file,
            labels: &$labels,
            section: $section,
            play: |stage| Box::pin($module::$name(stage)),
        },)*)*]
    };
}

/// All of them. A scenario that is missing here is an unused function, which the compiler tells.
#[rustfmt::skip]
pub static ALL: &[Scenario] = scenarios! {
    "connectivity.go" {
        connectivity::c01_service_that_is_not_exported_is_inaccessible
            ["Required"], "Exporting Services";
        connectivity::c02_exported_service_is_reachable_by_dns
            ["Optional", "Connectivity", "ClusterIP"], "DNS";
        connectivity::c03_service_exported_from_one_of_two_is_reached_in_that_one
            ["Optional", "Connectivity", "ClusterIP"], "Exporting Services";
        connectivity::c04_port_of_another_number_by_the_same_name_gets_no_traffic
            ["Optional", "Connectivity", "ClusterIP", "StrictPortConflict"], "Service Port";
        connectivity::c05_each_port_leads_to_the_cluster_that_has_it
            ["Optional", "Connectivity", "ClusterIP", "StrictPortConflict"], "Service Port";
    }
    "clusterip_service_dns.go" {
        dns::c06_addresses_are_the_clusterset_ips
            ["Optional", "DNS", "ClusterIP"], "DNS";
        dns::c07_srv_is_one_record_for_one_port_number
            ["Optional", "DNS", "ClusterIP"], "DNS";
        dns::c08_cluster_local_names_local_services_only
            ["Optional", "DNS", "ClusterIP"], "DNS";
    }
    "endpoint_slice.go" {
        slices::c09_slices_with_the_labels_in_each_and_none_without_an_export
            ["Optional", "EndpointSlice"], "Using EndpointSlice objects to track endpoints";
    }
    "headless_service_dns.go" {
        headless_dns::c10_addresses_are_all_ready_pods
            ["Optional", "DNS", "Headless"], "DNS";
        headless_dns::c11_hostname_in_a_cluster_is_that_pod
            ["Optional", "DNS", "Headless", "EndpointSlice"], "DNS";
        headless_dns::c12_srv_is_a_record_for_each_pod
            ["Optional", "DNS", "Headless"], "DNS";
    }
    "service_import.go" {
        imports::c13_import_is_there_as_long_as_one_exports
            ["Required"], "Importing Services";
        imports::c14_exported_labels_and_annotations_alone_reach_the_import
            ["Optional", "ExportedLabels"], "Labels and Annotations";
        merging::c15_conflicting_exported_labels_and_annotations_are_the_oldests
            ["Optional", "ExportedLabels"], "Labels and Annotations";
        imports::c16_service_becomes_clusterset_ip_in_each_until_unexported
            ["Required", "ClusterIP"], "Importing Services";
        imports::c17_session_affinity_and_its_config_are_the_services
            ["Required", "ClusterIP"], "Session Affinity";
        imports::c18_internal_traffic_policy_is_the_services
            ["Required", "ClusterIP"], "Internal Traffic Policy";
        imports::c19_traffic_distribution_is_the_services_to_the_letter
            ["Required", "ClusterIP"], "Traffic Distribution";
        imports::c20_there_is_an_address_for_each_family_in_their_order
            ["Required", "ClusterIP"], "ClusterSetIP";
        imports::c21_ports_are_the_services
            ["Required", "ClusterIP"], "Service Port";
        merging::c22_union_of_ports_and_a_conflict_since_they_differ
            ["Required", "ClusterIP"], "Service Port";
        merging::c23_conflicting_ports_are_the_oldests
            ["Required", "ClusterIP"], "Service Port";
        imports::c24_headless_service_becomes_headless_until_unexported
            ["Required", "Headless"], "Service Types";
        imports::c25_headless_import_has_no_address
            ["Required", "Headless"], "ClusterSetIP";
        imports::c26_external_name_is_not_valid_and_not_imported
            ["Required", "ExternalName"], "Service Types";
        merging::c27_conflict_of_types_is_the_oldests
            ["Required"], "Headlessness";
    }
};
