//! The life of a ServiceImport, and what it takes over from one Service.

use serde_json::{Value, json};

use crate::clusterset::running::stays;
use crate::spec::{HELLO, STAYS, Spec, as_it_is, export};

/// Labels: Connectivity, Required. Without packets: nothing is made by which it could be reached.
#[tokio::test(flavor = "multi_thread")]
async fn c01_a_service_that_is_not_exported_is_inaccessible() {
    let spec = Spec::hello(as_it_is).await;
    stays("nothing is made", STAYS, async || {
        for place in &spec.story.places {
            let parts = place.parts(HELLO).await;
            if parts != (false, false, 0) {
                return Err(format!("{}: {parts:?}", place.id()));
            }
        }
        Ok(())
    })
    .await;
    assert!(spec.second().get("services", HELLO).await.is_none());
}

/// Labels: ServiceImport, Required.
#[tokio::test(flavor = "multi_thread")]
async fn c13_an_import_is_there_as_long_as_one_exports() {
    let spec = Spec::two(as_it_is, as_it_is).await;
    spec.until_each("there is an import", |_| true).await;
    // The second has been taken in before the first leaves.
    spec.second().until_export_status("Valid", "True").await;
    spec.first().delete("serviceexports", HELLO).await;
    stays("the import is there", STAYS, async || {
        for place in &spec.story.places {
            place.import(HELLO).await.ok_or_else(|| format!("{}: it is gone", place.id()))?;
        }
        Ok(())
    })
    .await;
    spec.second().delete("serviceexports", HELLO).await;
    spec.until_none().await;
}

/// Labels: ServiceImport, ExportedLabels, Optional.
#[tokio::test(flavor = "multi_thread")]
async fn c14_exported_labels_and_annotations_alone_reach_the_import() {
    let spec = Spec::hello(as_it_is).await;
    let exported =
        json!({"exportedLabels": {"dummy-label": "true"}, "exportedAnnotations": {"dummy-annotation": "true"}});
    export(spec.first(), exported).await;
    spec.until_each("it has what is exported, and nothing else", |import| {
        let (labels, annotations) = (&import["metadata"]["labels"], &import["metadata"]["annotations"]);
        let has = labels["dummy-label"] == "true" && annotations["dummy-annotation"] == "true";
        let lacks = |map: &Value| map.get("dummy-svc").is_none() && map.get("dummy-svcexport").is_none();
        has && lacks(labels) && lacks(annotations)
    })
    .await;
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c16_a_service_with_an_address_becomes_clusterset_ip_in_each_and_goes_with_its_export() {
    let spec = Spec::exported(as_it_is).await;
    spec.first().until_export_status("Valid", "True").await;
    spec.until_each("its type is ClusterSetIP", |import| import["spec"]["type"] == "ClusterSetIP").await;
    spec.first().delete("serviceexports", HELLO).await;
    spec.until_none().await;
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c17_session_affinity_and_its_config_are_the_services() {
    let spec = Spec::exported(as_it_is).await;
    let service = spec.first().get("services", HELLO).await.unwrap();
    spec.until_each("both are equal", |import| {
        ["sessionAffinity", "sessionAffinityConfig"].iter().all(|f| import["spec"][f] == service["spec"][f])
    })
    .await;
    assert_eq!(service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], 10);
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c18_internal_traffic_policy_is_the_services() {
    let spec = Spec::exported(|service| service["spec"]["internalTrafficPolicy"] = json!("Cluster")).await;
    spec.until_each("it is Cluster", |import| import["spec"]["internalTrafficPolicy"] == "Cluster").await;
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c19_traffic_distribution_is_the_services_to_the_letter() {
    let spec = Spec::exported(|service| service["spec"]["trafficDistribution"] = json!("PreferClose")).await;
    spec.until_each("it is PreferClose", |import| import["spec"]["trafficDistribution"] == "PreferClose").await;
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c20_there_is_an_address_for_each_family_in_their_order() {
    let spec = Spec::exported(as_it_is).await;
    spec.until_each("an address for each family", |import| {
        let list = |field: &str| import["spec"][field].as_array().cloned().unwrap_or_default();
        let (ips, families) = (list("ips"), list("ipFamilies"));
        let fits = |(ip, family): (&Value, &Value)| {
            ip.as_str().is_some_and(|ip| ip.contains(':')) == (family == "IPv6")
                && (family == "IPv4" || family == "IPv6")
        };
        families.len() == 2 && ips.len() == families.len() && ips.iter().zip(&families).all(fits)
    })
    .await;
}

/// Labels: ServiceImport, Required, ClusterIP.
#[tokio::test(flavor = "multi_thread")]
async fn c21_ports_are_the_services() {
    let spec = Spec::exported(|service| service["spec"]["ports"][0]["appProtocol"] = json!("example.com/hello")).await;
    let service = spec.first().get("services", HELLO).await.unwrap();
    let fields = |port: &Value| ["name", "protocol", "port", "appProtocol"].map(|field| port[field].to_string());
    let sorted = |object: &Value| {
        let mut ports: Vec<_> = object["spec"]["ports"].as_array().into_iter().flatten().map(fields).collect();
        ports.sort();
        ports
    };
    spec.until_each("its ports are equal", |import| sorted(import) == sorted(&service)).await;
    assert_eq!(sorted(&service).len(), 2);
}

fn headless(service: &mut Value) {
    service["spec"]["clusterIP"] = json!("None");
    let spec = service["spec"].as_object_mut().unwrap();
    spec.remove("sessionAffinity");
    spec.remove("sessionAffinityConfig");
}

/// Labels: ServiceImport, Required, Headless.
#[tokio::test(flavor = "multi_thread")]
async fn c24_a_headless_service_becomes_headless_in_each_and_goes_with_its_export() {
    let spec = Spec::exported(headless).await;
    spec.until_each("its type is Headless", |import| import["spec"]["type"] == "Headless").await;
    spec.first().delete("serviceexports", HELLO).await;
    spec.until_none().await;
}

/// Labels: ServiceImport, Required, Headless.
#[tokio::test(flavor = "multi_thread")]
async fn c25_a_headless_import_has_no_address() {
    let spec = Spec::exported(headless).await;
    spec.until_each("there is an import", |_| true).await;
    stays("it has no address", STAYS, async || {
        for place in &spec.story.places {
            let import = place.import(HELLO).await.unwrap_or_default();
            if import["spec"]["ips"].as_array().is_some_and(|ips| !ips.is_empty()) {
                return Err(import.to_string());
            }
        }
        Ok(())
    })
    .await;
}

/// Labels: ServiceImport, Required, ExternalName.
#[tokio::test(flavor = "multi_thread")]
async fn c26_an_external_name_is_not_valid_and_not_imported() {
    let spec = Spec::exported(|service| {
        service["spec"] = json!({"type": "ExternalName", "externalName": "example.com"});
    })
    .await;
    spec.first().until_export_status("Valid", "False").await;
    spec.stays_without().await;
}
