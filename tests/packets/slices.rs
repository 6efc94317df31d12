//! EndpointSlices in the importing clusters.

use serde_json::Value;

use crate::clusterset::place::text;
use crate::clusterset::{PATIENCE, Place, until};
use crate::objects::HELLO;
use crate::stage::{PODS, Stage, as_it_is};

pub async fn c09_slices_with_the_labels_in_each_and_none_without_an_export(stage: &Stage) {
    stage.exported(as_it_is).await;
    let mut found = Vec::new();
    for place in &stage.places {
        for family in place.until_families().await {
            let slice = until_slice(place, &family, |_| true).await;
            let label = |key: &str| text(&slice["metadata"]["labels"][key]);
            assert_eq!(label("multicluster.kubernetes.io/service-name"), HELLO, "{}: {slice}", place.id());
            let manager = label("endpointslice.kubernetes.io/managed-by");
            let is_ours = !manager.is_empty() && manager != "endpointslice-controller.k8s.io";
            assert!(is_ours, "{}: managed by {manager:?}: {slice}", place.id());
            found.push((place, text(&slice["metadata"]["name"]).to_owned()));
        }
    }
    assert_eq!(found.len(), stage.places.len() * stage.families().await.len());
    stage.first().delete("serviceexports", HELLO).await;
    for (place, name) in found {
        until(&format!("{}: the slice {name} is gone", place.id()), PATIENCE, async || {
            place.get("endpointslices", &name).await.map_or(Ok(()), |slice| Err(slice.to_string()))
        })
        .await;
    }
}

/// Waits for a slice of the clusterset's Service of this family, known by its two labels, that has endpoints and of which
/// this holds.
pub async fn until_slice(place: &Place, family: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let labels = "multicluster.kubernetes.io/service-name,multicluster.kubernetes.io/source-cluster";
    until(&format!("{}: a slice of {family} with what is wanted", place.id()), PODS, async || {
        let slices = place.list("endpointslices", labels).await;
        let fits = |slice: &&Value| {
            let some = slice["endpoints"].as_array().is_some_and(|endpoints| !endpoints.is_empty());
            some && slice["addressType"] == family && holds(slice)
        };
        slices.iter().find(fits).cloned().ok_or_else(|| format!("{slices:?}"))
    })
    .await
}
