//! The life of a ServiceImport, and what it takes over from one Service.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::clusterset::running::stays;
use crate::objects::HELLO;
use crate::stage::{STAYS, Stage, as_it_is, deploy, export, headless, strings};

pub async fn c13_import_is_there_as_long_as_one_exports(stage: &Stage) {
    stage.exported(as_it_is).await;
    stage.first().until_import().await;
    deploy(stage.second(), 1, as_it_is).await;
    export(stage.second(), json!({})).await;
    stage.until_each("there is an import", |_| true).await;
    stage.stays_imported().await;
    // Else the last step would not be the end of the second export, but its first sight.
    stage.second().until_export_status("Valid", "True").await;
    stage.first().delete("serviceexports", HELLO).await;
    stage.stays_imported().await;
    stage.second().delete("serviceexports", HELLO).await;
    stage.until_none().await;
}

pub async fn c14_exported_labels_and_annotations_alone_reach_the_import(stage: &Stage) {
    stage.hello(as_it_is).await;
    let exported =
        json!({"exportedLabels": {"dummy-label": "true"}, "exportedAnnotations": {"dummy-annotation": "true"}});
    export(stage.first(), exported).await;
    stage
        .until_each("it has what is exported, and nothing else", |import| {
            let (labels, annotations) = (&import["metadata"]["labels"], &import["metadata"]["annotations"]);
            let has = labels["dummy-label"] == "true" && annotations["dummy-annotation"] == "true";
            let lacks = |map: &Value| map.get("dummy-svc").is_none() && map.get("dummy-svcexport").is_none();
            has && lacks(labels) && lacks(annotations)
        })
        .await;
}

pub async fn c16_service_becomes_clusterset_ip_in_each_until_unexported(stage: &Stage) {
    stage.exported(as_it_is).await;
    stage.first().until_export_status("Valid", "True").await;
    stage.until_each("its type is ClusterSetIP", |import| import["spec"]["type"] == "ClusterSetIP").await;
    stage.first().delete("serviceexports", HELLO).await;
    stage.until_none().await;
}

pub async fn c17_session_affinity_and_its_config_are_the_services(stage: &Stage) {
    stage.exported(as_it_is).await;
    let service = stage.first().get("services", HELLO).await.unwrap();
    stage
        .until_each("both are equal", |import| {
            ["sessionAffinity", "sessionAffinityConfig"].iter().all(|f| import["spec"][f] == service["spec"][f])
        })
        .await;
    assert_eq!(service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], 10);
}

pub async fn c18_internal_traffic_policy_is_the_services(stage: &Stage) {
    stage.exported(|service| service["spec"]["internalTrafficPolicy"] = json!("Cluster")).await;
    stage.until_each("it is Cluster", |import| import["spec"]["internalTrafficPolicy"] == "Cluster").await;
}

pub async fn c19_traffic_distribution_is_the_services_to_the_letter(stage: &Stage) {
    stage.exported(|service| service["spec"]["trafficDistribution"] = json!("PreferClose")).await;
    stage.until_each("it is PreferClose", |import| import["spec"]["trafficDistribution"] == "PreferClose").await;
}

pub async fn c20_there_is_an_address_for_each_family_in_their_order(stage: &Stage) {
    stage.exported(as_it_is).await;
    let wanted = stage.families().await;
    stage
        .until_each("an address for each family", |import| {
            let ips = strings(&import["spec"]["ips"]);
            let family = |ip: &String| match ip.parse() {
                Ok(IpAddr::V4(_)) => "IPv4",
                Ok(IpAddr::V6(_)) => "IPv6",
                Err(_) => "none",
            };
            let families: Vec<_> = ips.iter().map(family).collect();
            strings(&import["spec"]["ipFamilies"]) == wanted && families == wanted
        })
        .await;
}

pub async fn c21_ports_are_the_services(stage: &Stage) {
    stage.exported(|service| service["spec"]["ports"][0]["appProtocol"] = json!("example.com/hello")).await;
    let service = stage.first().get("services", HELLO).await.unwrap();
    let fields = |port: &Value| ["name", "protocol", "port", "appProtocol"].map(|field| port[field].to_string());
    let sorted = |object: &Value| {
        let mut ports: Vec<_> = object["spec"]["ports"].as_array().into_iter().flatten().map(fields).collect();
        ports.sort();
        ports
    };
    stage.until_each("its ports are equal", |import| sorted(import) == sorted(&service)).await;
    assert_eq!(sorted(&service).len(), 2);
}

pub async fn c24_headless_service_becomes_headless_until_unexported(stage: &Stage) {
    stage.exported(headless).await;
    stage.until_each("its type is Headless", |import| import["spec"]["type"] == "Headless").await;
    stage.first().delete("serviceexports", HELLO).await;
    stage.until_none().await;
}

pub async fn c25_headless_import_has_no_address(stage: &Stage) {
    stage.exported(headless).await;
    stage.until_each("there is an import", |_| true).await;
    stays("it has no address", STAYS, async || {
        for place in &stage.places {
            let import = place.import(HELLO).await.unwrap_or_default();
            if import["spec"]["ips"].as_array().is_some_and(|ips| !ips.is_empty()) {
                return Err(import.to_string());
            }
        }
        Ok(())
    })
    .await;
}

pub async fn c26_external_name_is_not_valid_and_not_imported(stage: &Stage) {
    stage
        .exported(|service| {
            let spec = service["spec"].as_object_mut().unwrap();
            spec.remove("ipFamilyPolicy");
            spec.insert("type".into(), json!("ExternalName"));
            spec.insert("externalName".into(), json!("example.com"));
        })
        .await;
    stage.first().until_export_status("Valid", "False").await;
    stage.stays_without().await;
}
