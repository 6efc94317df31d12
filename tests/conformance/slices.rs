//! EndpointSlices in the importing clusters.

use serde_json::Value;

use crate::clusterset::place::text;
use crate::clusterset::{PATIENCE, until};
use crate::spec::{HELLO, SLICES, Spec, as_it_is};

/// Labels: EndpointSlice, Optional.
#[tokio::test(flavor = "multi_thread")]
async fn c09_slices_with_the_labels_in_each_and_none_without_an_export() {
    let spec = Spec::exported(as_it_is).await;
    let service = spec.first().get("services", HELLO).await.unwrap();
    let families: Vec<_> = service["spec"]["ipFamilies"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(families.len(), 2);
    for place in &spec.story.places {
        for family in &families {
            let fits = |slice: &&Value| {
                let label = |key: &str| text(&slice["metadata"]["labels"][key]);
                let manager = label("endpointslice.kubernetes.io/managed-by");
                slice["addressType"] == *family
                    && label("multicluster.kubernetes.io/service-name") == HELLO
                    && !label("multicluster.kubernetes.io/source-cluster").is_empty()
                    && !manager.is_empty()
                    && manager != "endpointslice-controller.k8s.io"
                    && slice["endpoints"].as_array().is_some_and(|endpoints| !endpoints.is_empty())
            };
            until(&format!("{}: a slice of {family}", place.id()), SLICES, async || {
                let slices = place.list("endpointslices", "multicluster.kubernetes.io/service-name=hello").await;
                slices.iter().find(fits).map(drop).ok_or_else(|| format!("{slices:?}"))
            })
            .await;
        }
    }
    spec.first().delete("serviceexports", HELLO).await;
    for place in &spec.story.places {
        until(&format!("{}: the slices are gone", place.id()), PATIENCE, async || {
            let slices = place.list("endpointslices", "multicluster.kubernetes.io/service-name=hello").await;
            if slices.is_empty() { Ok(()) } else { Err(format!("{slices:?}")) }
        })
        .await;
    }
}
