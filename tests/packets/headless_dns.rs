//! Names of a headless Service and of its pods.

use serde_json::{Value, json};

use crate::clusterset::place::text;
use crate::clusterset::{Place, until};
use crate::objects::{self, HELLO};
use crate::slices::until_slice;
use crate::stage::{PODS, Stage, export, headless, strings};

/// How many pods the Service has.
const PODS_OF_IT: usize = 2;

pub async fn c10_addresses_are_all_ready_pods(stage: &Stage) {
    stage.hello_of(2, headless).await;
    export(stage.first(), json!({})).await;
    for place in &stage.places {
        for family in place.until_families().await {
            let pods = until_endpoints(stage.first(), &family).await;
            let addresses: Vec<_> = pods.into_iter().map(|(address, _)| address).collect();
            place.until_resolves(&stage.name(), &family, &addresses).await;
        }
    }
}

pub async fn c11_hostname_in_a_cluster_is_that_pod(stage: &Stage) {
    stage.hello_of(0, headless).await;
    export(stage.first(), json!({})).await;
    stage.first().apply_values(vec![objects::stateful_set(2)]).await;
    for place in &stage.places {
        for family in place.until_families().await {
            let slice = until_slice(place, &family, |slice| {
                let endpoints: Vec<_> = slice["endpoints"].as_array().into_iter().flatten().collect();
                let named = endpoints.iter().all(|e| e["conditions"]["ready"] != false && e["hostname"].is_string());
                named && endpoints.len() == PODS_OF_IT
            })
            .await;
            let cluster = text(&slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"]);
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                let name = format!("{}.{cluster}.{}", text(&endpoint["hostname"]), stage.name());
                place.until_resolves(&name, &family, &strings(&endpoint["addresses"])).await;
            }
        }
    }
}

pub async fn c12_srv_is_a_record_for_each_pod(stage: &Stage) {
    stage.hello_of(2, headless).await;
    export(stage.first(), json!({})).await;
    let mut pods = Vec::new();
    for family in stage.families().await {
        pods.extend(until_endpoints(stage.first(), &family).await);
    }
    for place in &stage.places {
        let records = place.until_srv(&stage.name(), pods.len()).await;
        for (address, host) in &pods {
            let record = records.iter().find(|record| record.target.starts_with(host));
            let record = record.unwrap_or_else(|| panic!("{}: none is {host} of {address}: {records:?}", place.id()));
            assert_eq!(record.port, 42, "{}: {records:?}", place.id());
        }
    }
}

/// Waits until the Service itself has all its pods ready in its own cluster: their addresses, and the hostname of each or
/// what stands in for it.
async fn until_endpoints(place: &Place, family: &str) -> Vec<(String, String)> {
    until(&format!("{}: {PODS_OF_IT} pods of {family} are ready", place.id()), PODS, async || {
        let slices = place.list("endpointslices", &format!("kubernetes.io/service-name={HELLO}")).await;
        let of_family = slices.iter().filter(|slice| slice["addressType"] == family);
        let endpoints: Vec<&Value> = of_family.flat_map(|s| s["endpoints"].as_array().into_iter().flatten()).collect();
        if endpoints.iter().any(|endpoint| endpoint["conditions"]["ready"] == false) || endpoints.len() != PODS_OF_IT {
            return Err(format!("{endpoints:?}"));
        }
        let hosts = endpoints.iter().flat_map(|endpoint| {
            let hostname = endpoint["hostname"].as_str();
            let host = move |address: &String| hostname.map_or_else(|| address.replace(['.', ':'], "-"), str::to_owned);
            strings(&endpoint["addresses"]).into_iter().map(move |address| (address.clone(), host(&address)))
        });
        Ok(hosts.collect())
    })
    .await
}
