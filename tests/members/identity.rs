//! Who a cluster is: its registration, its own ClusterProperty, and two that claim the same.

use testbed::Bed;

use crate::rig::{Seen, connection, id, install_about, labelled, property, secret, set};

const CLUSTER: &str = "cluster.clusterset.k8s.io";

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r91_r92_the_id_is_the_settings_then_the_clusters_own_then_none() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub", "one"]).await.unwrap();
    let [hub, one] = clusters.as_slice() else { panic!() };
    let config = std::fs::read_to_string(one.kubeconfig()).unwrap();
    let settings = namesake::controller::members::MemberSettings { rules: set("prod"), ..labelled() };
    let mut seen = Seen::start(settings, Some(connection(&hub.kubeconfig()).await));
    let origin = "Secret default/one";

    // Nobody says what it is: not the Secret, and not the cluster, which has no such CRD.
    hub.apply(&secret("one", "{namesake/cluster: ''}", "kubeconfig", &config)).await.unwrap();
    seen.until("refused", |seen| seen.why_refused(origin).is_some_and(|why| why.starts_with("nobody says"))).await;
    assert_eq!(
        seen.why_refused(origin),
        Some(
            "nobody says what the id of this cluster is; label its Secret namesake/cluster=<id>, or create the \
             ClusterProperty cluster.clusterset.k8s.io in it"
        )
    );
    seen.until("and that is all", |seen| seen.complete).await;

    // The CRD comes, and the property.
    install_about(one).await;
    one.apply(&property(CLUSTER, "east")).await.unwrap();
    seen.until_present(&["east"]).await;
    seen.until("no longer refused", |seen| seen.refused.is_empty()).await;

    // It changes: one leaves, another joins.
    one.apply(&property(CLUSTER, "west")).await.unwrap();
    seen.until_present(&["west"]).await;
    assert!(!seen.members.contains_key(&id("east")), "{:?}", seen.told);

    // Two labels are refused by default, and so is what is none.
    one.apply(&property(CLUSTER, "east.prod")).await.unwrap();
    seen.until("refused", |seen| {
        seen.why_refused(origin).is_some_and(|why| why.contains("\"east.prod\" can't be a cluster id"))
    })
    .await;
    assert!(seen.members.is_empty());

    // The Secret says otherwise: an error, and the cluster is not used, nor taken for having left.
    hub.apply(&secret("one", "{namesake/cluster: east}", "kubeconfig", &config)).await.unwrap();
    seen.until("doubtful", |seen| seen.unusable("east").is_some_and(|why| why.contains("registered as east"))).await;
    one.apply(&property(CLUSTER, "east")).await.unwrap();
    seen.until_present(&["east"]).await;

    // It is in another clusterset.
    one.apply(&property("clusterset.k8s.io", "test")).await.unwrap();
    seen.until("of another set", |seen| {
        seen.unusable("east").is_some_and(|why| why.contains("it is in \"test\", and this is \"prod\""))
    })
    .await;
    one.apply(&property("clusterset.k8s.io", "prod")).await.unwrap();
    seen.until_present(&["east"]).await;

    // The CRD is deleted by a slip: what it said still holds.
    let told = seen.told.len();
    hub.apply(&secret("one", "{namesake/cluster: ''}", "kubeconfig", &config)).await.unwrap();
    one.kubectl(&["delete", "crd", "clusterproperties.about.k8s.io"]).unwrap();
    seen.pass(std::time::Duration::from_secs(2)).await;
    assert_eq!(seen.told[told..], [""; 0], "nobody leaves because of that");
    assert!(matches!(seen.members.get(&id("east")), Some(Ok(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r91_of_two_with_one_id_the_younger_is_refused_and_not_touched() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub", "one", "two"]).await.unwrap();
    let [hub, one, two] = clusters.as_slice() else { panic!() };
    let mut seen = Seen::start(labelled(), Some(connection(&hub.kubeconfig()).await));
    let config = |cluster: &testbed::Cluster| std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    hub.apply(&secret("z-old", "{namesake/cluster: east}", "kubeconfig", &config(one))).await.unwrap();
    seen.until_present(&["east"]).await;
    // The API server's time stamps have seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    hub.apply(&secret("a-young", "{namesake/cluster: east}", "kubeconfig", &config(two))).await.unwrap();
    let young = "Secret default/a-young";
    seen.until("refused", |seen| seen.why_refused(young).is_some_and(|why| why.contains("already"))).await;
    assert_eq!(
        seen.why_refused(young),
        Some(
            "the id east is that of Secret default/z-old already, which is older; give this cluster another id, or remove \
             one of them"
        )
    );
    assert_eq!(seen.member("east").origin.to_string(), "Secret default/z-old");

    // A restart says the same.
    let mut again = Seen::start(labelled(), Some(connection(&hub.kubeconfig()).await));
    again.until("refused", |seen| seen.why_refused(young).is_some_and(|why| why.contains("already"))).await;
    again.until_present(&["east"]).await;
    assert_eq!(again.member("east").origin.to_string(), "Secret default/z-old");

    // The older one goes.
    hub.kubectl(&["delete", "secret", "z-old"]).unwrap();
    seen.until(
        "it is the other one now",
        |seen| matches!(seen.members.get(&id("east")), Some(Ok(member)) if member.origin.to_string() == young),
    )
    .await;
}
