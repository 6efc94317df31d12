//! Members with other releases of the CRDs, and one that has none yet.

use std::time::Duration;

use testbed::Bed;

use crate::clusterset::objects::exported;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Story, prepare_with, until};

#[tokio::test(flavor = "multi_thread")]
async fn mcs_w32_w60_members_with_old_crds_and_one_that_gets_them_late() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["newest", "older", "oldest", "none"]).await.unwrap();
    let mut kubeconfigs = Vec::new();
    for (cluster, crds) in clusters.iter().zip([Some("v0.5.2"), Some("v0.5.0"), Some("v0.4.1"), None]) {
        prepare_with(cluster, crds).await;
        kubeconfigs.push(cluster.kubeconfig_for_service_account(ACCOUNT.0, ACCOUNT.1).await.unwrap());
    }
    let set = Clusterset { bed, clusters, kubeconfigs };
    let controller = Controller::launch(&set.bed, set.as_members());
    let story = Story::new(&set, "versions").await;
    let [newest, older, oldest, none] = &story.places[..] else { panic!() };
    let oldest = oldest.speaking("v1alpha1");
    newest.apply(&exported("web", &["10.1.0.1"])).await;
    oldest.apply(&exported("web", &["10.3.0.1"]).replace("v1beta1", "v1alpha1")).await;
    for place in [newest, older, &oldest] {
        place.until_ready("web").await;
        place.until_addresses("web", &["10.1.0.1", "10.3.0.1"]).await;
    }
    newest.until_export_says("web", "Valid", "True/Valid").await;
    oldest.until_export_says("web", "Valid", "True/Valid").await;
    // The field is written where the CRD has it.
    assert_eq!(newest.import("web").await.unwrap()["status"]["endpointSliceObjects"], "Present");
    for place in [older, &oldest] {
        assert!(place.import("web").await.unwrap()["status"]["endpointSliceObjects"].is_null());
    }
    // A cluster is upgraded while it is a member. What it can hold is asked once a minute.
    older.cluster.install_crds("v0.5.2").await.unwrap();
    until("the one without CRDs is named", PATIENCE, async || {
        let (_, ready) = controller.get("/ready?verbose").await;
        if ready.contains("none") { Ok(()) } else { Err(ready) }
    })
    .await;
    none.cluster.install_crds("v0.5.2").await.unwrap();
    none.until_ready("web").await;
    none.until_addresses("web", &["10.1.0.1", "10.3.0.1"]).await;
    until("the new field is written", Duration::from_secs(75), async || {
        let import = older.import("web").await.unwrap_or_default();
        if import["status"]["endpointSliceObjects"] == "Present" { Ok(()) } else { Err(import["status"].to_string()) }
    })
    .await;
}
