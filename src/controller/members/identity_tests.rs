use super::identity::{Claim, IdRules, Identity, Properties, identify, parse};
use super::refusal::BadId;
use crate::model::ClusterId;

fn id(text: &str) -> ClusterId {
    ClusterId::new(text).unwrap()
}

fn claim(setting: Option<&str>, fallback: Option<&str>) -> Claim {
    Claim { setting: setting.map(str::to_owned), fallback: fallback.map(str::to_owned), remedy: "say it" }
}

fn says(cluster: Option<&str>) -> Properties {
    Properties { cluster: cluster.map(str::to_owned), set: None }
}

#[test]
fn mcs_r90_an_id_is_one_rfc_1123_label_by_default() {
    let rules = IdRules::default();
    let longest = "a".repeat(63);
    for good in ["a", "cluster-a", "1", "0-0", &longest] {
        assert_eq!(parse(good, "test", &rules), Ok(id(good)), "{good}");
    }
    let too_long = "a".repeat(64);
    for bad in ["", "-a", "a-", "A", "Cluster-A", "a_b", "a b", "a.b.c", "a..b", ".", "a/b", "ä", "a\n", &too_long] {
        assert!(matches!(parse(bad, "test", &rules), Err(BadId::Malformed { .. })), "{bad:?}");
    }
}

#[test]
fn mcs_r90_two_labels_only_where_they_are_allowed() {
    let refused = parse("east.prod", "its registration", &IdRules::default()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "its registration: \"east.prod\" can't be a cluster id, which is one DNS label by default: allow two with \
         --allow-two-label-cluster-id where Namesake serves the DNS; give another one"
    );
    let rules = IdRules { two_labels: true, ..IdRules::default() };
    assert_eq!(parse("east.prod", "test", &rules), Ok(id("east.prod")));
    assert_eq!(parse("east", "test", &rules), Ok(id("east")));
    // It must fit into a label's value as well.
    let long = format!("{}.{}", "a".repeat(40), "b".repeat(40));
    for bad in ["a.b.c", "a.", ".a", "a.-b", "a.B", &long] {
        assert!(parse(bad, "test", &rules).is_err(), "{bad:?}");
    }
}

#[test]
fn mcs_r91_setting_then_property_then_inventory_then_refused() {
    let rules = IdRules::default();
    let identify = |claim: &Claim, properties: Option<&Properties>| identify(claim, properties, &rules);
    // Explicit configuration, also while the cluster can't be asked.
    let explicit = claim(Some("east"), Some("other"));
    assert_eq!(identify(&explicit, None), Identity::Known(id("east")));
    assert_eq!(identify(&explicit, Some(&says(None))), Identity::Known(id("east")));
    assert_eq!(identify(&explicit, Some(&says(Some("east")))), Identity::Known(id("east")));
    // Its own property, before what an inventory calls it.
    let silent = claim(None, Some("inventory-name"));
    assert_eq!(identify(&silent, None), Identity::Pending, "nobody may guess before it was asked");
    assert_eq!(identify(&silent, Some(&says(Some("west")))), Identity::Known(id("west")));
    assert_eq!(identify(&silent, Some(&says(None))), Identity::Known(id("inventory-name")));
    let nobody = identify(&claim(None, None), Some(&says(None)));
    assert_eq!(nobody, Identity::Refused(BadId::Unknown { remedy: "say it" }));
    // A name that can't be one is none, wherever it comes from.
    for claim in [claim(Some("East"), None), claim(None, Some("a_b"))] {
        let identity = identify(&claim, Some(&says(None)));
        assert!(matches!(identity, Identity::Refused(BadId::Malformed { .. })), "{identity:?}");
    }
    let identity = identify(&claim(None, None), Some(&says(Some("0.0.0"))));
    assert!(matches!(identity, Identity::Refused(BadId::Malformed { .. })), "{identity:?}");
}

#[test]
fn mcs_r91_a_disagreement_is_an_error_and_names_both() {
    let identity = identify(&claim(Some("east"), None), Some(&says(Some("west"))), &IdRules::default());
    let Identity::Doubtful(east, bad) = identity else { panic!("{identity:?}") };
    assert_eq!(east, id("east"));
    assert_eq!(
        bad.to_string(),
        "it is registered as east, but its own ClusterProperty cluster.clusterset.k8s.io says \"west\"; change one of them"
    );
}

#[test]
fn mcs_r92_a_cluster_of_another_clusterset_is_refused() {
    let rules = IdRules { clusterset: Some("prod".to_owned()), ..IdRules::default() };
    let in_set = |set: &str| Properties { cluster: Some("east".to_owned()), set: Some(set.to_owned()) };
    assert_eq!(identify(&claim(None, None), Some(&in_set("prod")), &rules), Identity::Known(id("east")));
    let other = identify(&claim(None, None), Some(&in_set("test")), &rules);
    assert!(matches!(other, Identity::Refused(BadId::OtherSet { .. })), "{other:?}");
    let other = identify(&claim(Some("east"), None), Some(&in_set("test")), &rules);
    assert!(matches!(other, Identity::Doubtful(_, BadId::OtherSet { .. })), "{other:?}");
    // It need not say, and we need not ask.
    assert_eq!(identify(&claim(None, None), Some(&says(Some("east"))), &rules), Identity::Known(id("east")));
    let anything = identify(&claim(None, None), Some(&in_set("test")), &IdRules::default());
    assert_eq!(anything, Identity::Known(id("east")));
}
