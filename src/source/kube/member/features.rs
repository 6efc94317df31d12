//! What a member's API server serves and can do: asked at the start and now and then, since CRDs are changed in place.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::MemberUpdate;
use crate::api;
use crate::reconcile::objects::Family;
use crate::reconcile::observed::Features;
use crate::source::kube::{Connection, Failure};

/// How long until it is asked again: what it said, and what it did not say.
const AGAIN: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(5));

/// What an API server serves and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The version in which ServiceExports and ServiceImports are to be written.
    pub version: &'static str,
    /// What plans need to know.
    pub features: Features,
}

/// Asks, and tells what is new, until nobody listens. Which IP families there are is asked where we `write`.
pub(super) async fn ask(connection: Connection, write: bool, updates: mpsc::Sender<MemberUpdate>) {
    let (mut told, mut families, mut denied) = (None, None, None);
    while !updates.is_closed() {
        let pause = match look(&connection, write, &mut families).await {
            Ok(served) => {
                let whole = families.is_some() || !write;
                if told.as_ref() != Some(&served) {
                    if updates.send(MemberUpdate::Served(served.clone())).await.is_err() {
                        return;
                    }
                    told = Some(served);
                }
                if whole { AGAIN.0 } else { AGAIN.1 }
            }
            // The watches don't need this right, and would not name it.
            Err(Failure::Forbidden(message)) => {
                if denied.as_ref() != Some(&message) {
                    warn!(
                        "what an API server can hold is not known, so nothing is written there: {message}; repeat \
                         `namesake join`, it is tried again"
                    );
                    denied = Some(message);
                }
                AGAIN.1
            }
            // The watches of the same cluster name what is wrong.
            Err(failure) => {
                debug!("what an API server can do is not known: {failure}");
                AGAIN.1
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn look(connection: &Connection, write: bool, families: &mut Option<Vec<Family>>) -> Result<Served, Failure> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", api::SERVICE_IMPORT_CRD);
    let text = connection.get(&path).await?;
    let crd: Value = serde_json::from_str(&text).map_err(|e| Failure::Unreachable(format!("{path}: {e}")))?;
    let (version, endpoint_slice_objects) = of_crd(&crd).ok_or(Failure::NotFound)?;
    if write && families.is_none() {
        match connection.try_create("/api/v1/namespaces/default/services", &trial()).await {
            Ok(answer) => *families = of_service(&answer),
            Err(failure) => debug!("the IP families of an API server are not known: {failure}"),
        }
    }
    Ok(Served { version, features: Features { endpoint_slice_objects, families: families.clone() } })
}

/// The version to write, and whether it declares `status.endpointSliceObjects`.
fn of_crd(crd: &Value) -> Option<(&'static str, bool)> {
    let versions = crd["spec"]["versions"].as_array()?;
    api::VERSIONS.into_iter().find_map(|wanted| {
        let version = versions.iter().find(|version| version["name"] == wanted && version["served"] == true)?;
        let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
        Some((wanted, status["properties"]["endpointSliceObjects"].is_object()))
    })
}

/// A Service that asks for both families and is not made: what comes back says which there are.
fn trial() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        // The name of a derived Service, since we may be allowed to make no others (R98).
        "metadata": {"name": "derived-families", "namespace": "default", "labels": {api::LABEL_MANAGED_BY: api::MANAGED_BY}},
        "spec": {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 1}]},
    })
}

fn of_service(answer: &str) -> Option<Vec<Family>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let families = answer["spec"]["ipFamilies"].as_array()?;
    let families: Vec<_> = families.iter().filter_map(|text| Family::new(text.as_str()?)).collect();
    (!families.is_empty()).then_some(families)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_version_that_is_served_is_written() {
        let ours = api::crd::all();
        assert_eq!(of_crd(&ours[1]), Some(("v1beta1", true)));
        let mut old = ours[1].clone();
        old["spec"]["versions"][1]["served"] = json!(false);
        assert_eq!(of_crd(&old), Some(("v1alpha1", true)));
        old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({});
        assert_eq!(of_crd(&old), Some(("v1alpha1", false)));
        assert_eq!(of_crd(&json!({})), None);
    }

    #[test]
    fn the_families_are_those_of_the_answer() {
        let families = |text| of_service(&format!(r#"{{"spec":{{"ipFamilies":{text}}}}}"#));
        assert_eq!(families(r#"["IPv6","IPv4"]"#), Some(vec![Family::V6, Family::V4]));
        assert_eq!(families("[]"), None);
        assert_eq!(of_service("null"), None);
    }
}
