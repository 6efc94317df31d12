use serde_json::{Value, json};

use super::Origin;
use super::profiles::Profiles;
use super::refusal::{BadKubeconfig, Refusal};
use super::secrets::{Candidate, Convention, SecretObject};
use crate::source::kube::Access;

fn base64(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}

fn kubeconfig(server: &str) -> Value {
    base64(&format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], clusters: [{{name: k, cluster: \
         {{server: 'https://{server}'}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    ))
}

#[allow(clippy::needless_pass_by_value, reason = "reads better with literals")]
fn secret(name: &str, labels: Value, data: Value) -> SecretObject {
    let object = json!({
        "metadata": {
            "name": name, "namespace": "hub", "labels": labels, "creationTimestamp": "2026-01-01T00:00:10Z",
        },
        "data": data,
    });
    serde_json::from_value(object).unwrap()
}

fn server(candidate: &Candidate) -> &str {
    match &candidate.access {
        Ok(Access::Inline(inline)) => &inline.server,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_convention_finds_its_own() {
    let ours = secret("a", json!({"namesake/cluster": "east"}), json!({"kubeconfig": kubeconfig("east")}));
    let found = ours.candidates(Convention::Labelled, false);
    assert_eq!((found.len(), found[0].claim.setting.as_deref(), found[0].created), (1, Some("east"), 1_767_225_610));
    assert_eq!(server(&found[0]), "https://east");
    assert_eq!(found[0].origin.to_string(), "Secret hub/a");

    let capi = secret(
        "blue-kubeconfig",
        json!({"cluster.x-k8s.io/cluster-name": "blue"}),
        json!({"value": kubeconfig("blue")}),
    );
    let found = capi.candidates(Convention::ClusterApi, false);
    assert_eq!((&found[0].claim.setting, &found[0].claim.fallback), (&None, &None), "a name is no id by itself");
    let found = capi.candidates(Convention::ClusterApi, true);
    assert_eq!(found[0].claim.fallback.as_deref(), Some("blue"));
    assert!(capi.candidates(Convention::Sveltos, true).is_empty());
    // Other Secrets of Cluster API carry the same label.
    let ca = secret("blue-ca", json!({"cluster.x-k8s.io/cluster-name": "blue"}), json!({"tls.key": base64("k")}));
    assert!(ca.candidates(Convention::ClusterApi, true).is_empty());

    for (key, data) in [("kubeconfig", 1), ("re-kubeconfig", 2), ("anything", 3)] {
        let host = format!("green{data}");
        let sveltos = secret("green-sveltos-kubeconfig", json!({}), json!({key: kubeconfig(&host)}));
        let found = sveltos.candidates(Convention::Sveltos, true);
        assert_eq!(
            (found[0].claim.fallback.as_deref(), server(&found[0])),
            (Some("green"), &*format!("https://{host}"))
        );
        assert!(sveltos.candidates(Convention::ClusterApi, true).is_empty());
    }

    let istio = secret(
        "istio-remote-secret-x",
        json!({"istio/multiCluster": "true"}),
        json!({"north": kubeconfig("north"), "south": kubeconfig("south"), "bad": base64("no: config")}),
    );
    let found = istio.candidates(Convention::Istio, false);
    let names: Vec<_> = found.iter().map(|c| c.claim.fallback.clone().unwrap()).collect();
    assert_eq!(names, ["bad", "north", "south"]);
    assert!(found[0].access.is_err(), "a bad one spoils no other");
    assert_eq!(server(&found[2]), "https://south");
    assert_eq!(found[1].origin.to_string(), "Secret hub/istio-remote-secret-x, key \"north\"");
}

#[test]
fn an_id_can_be_put_on_any_of_them() {
    let labels = json!({"cluster.x-k8s.io/cluster-name": "blue", "namesake/cluster": "east"});
    let capi = secret("blue-kubeconfig", labels, json!({"value": kubeconfig("blue")}));
    assert_eq!(capi.candidates(Convention::ClusterApi, false)[0].claim.setting.as_deref(), Some("east"));
}

#[test]
fn a_secret_without_kubeconfig_says_what_it_has() {
    let candidate = |data: Value| {
        let found = secret("a", json!({"namesake/cluster": "east"}), data).candidates(Convention::Labelled, false);
        found[0].access.clone().unwrap_err().to_string()
    };
    assert_eq!(candidate(Value::Null), "there is no kubeconfig: it has no data; put it under the key \"kubeconfig\"");
    let two = candidate(json!({"ca": base64("a"), "token": base64("b")}));
    assert_eq!(two, "there is no kubeconfig: it has the keys ca, token; put it under the key \"kubeconfig\"");
    let binary = serde_json::to_value(k8s_openapi::ByteString(vec![0xff, 0xfe])).unwrap();
    assert!(candidate(json!({"kubeconfig": binary})).contains("no UTF-8"));
}

fn profile(properties: &Value) -> String {
    json!({
        "metadata": {"name": "east", "namespace": "fleet", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"displayName": "east", "clusterManager": {"name": "m"}},
        "status": {"properties": properties, "accessProviders": [{"name": "secretreader", "cluster": {"server": "https://x"}}]},
    })
    .to_string()
}

#[test]
fn a_cluster_profile_needs_a_secret_with_its_kubeconfig() {
    let mut profiles = Profiles::new(false);
    let key =
        profiles.set_profile(&profile(&json!([{"name": "cluster.clusterset.k8s.io", "value": "east-1"}]))).unwrap();
    let candidate = profiles.candidate(&key).unwrap();
    assert_eq!(candidate.claim.fallback.as_deref(), Some("east-1"));
    let refused = candidate.access.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "its credentials are to be had by a program alone (secretreader), and Namesake runs none; label a Secret with a \
         kubeconfig x-k8s.io/cluster-profile=east"
    );

    let labels = json!({"x-k8s.io/cluster-profile": "east", "x-k8s.io/cluster-profile-namespace": "fleet"});
    assert_eq!(
        profiles.set_secret(&secret("a", labels.clone(), json!({"Config": kubeconfig("e")}))),
        std::slice::from_ref(&key)
    );
    let candidate = profiles.candidate(&key).unwrap();
    assert_eq!(server(&candidate), "https://e");
    assert_eq!(candidate.origin, Origin::Profile { namespace: "fleet".to_owned(), name: "east".to_owned() });

    profiles.set_secret(&secret("b", labels, json!({"Config": kubeconfig("f")})));
    let ambiguous = profiles.candidate(&key).unwrap().access.unwrap_err();
    assert_eq!(ambiguous.to_string(), "several Secrets have its kubeconfig: hub/a, hub/b; leave one of them");
    assert_eq!(profiles.remove_secret(&("hub".to_owned(), "a".to_owned())), std::slice::from_ref(&key));
    // One that lost its label is none of its any more.
    assert_eq!(profiles.set_secret(&secret("b", json!({}), json!({}))), std::slice::from_ref(&key));
    assert!(matches!(profiles.candidate(&key).unwrap().access, Err(Refusal::NoInlineCredentials { .. })));
    profiles.remove_profile(&key);
    assert!(profiles.candidate(&key).is_none());
}

#[test]
fn a_profiles_secret_is_no_more_trusted_than_others() {
    let mut profiles = Profiles::new(true);
    let key = profiles.set_profile(&profile(&json!([]))).unwrap();
    let config = base64(
        "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], clusters: [{name: k, cluster: \
         {server: 'https://e'}}], users: [{name: u, user: {exec: {command: sh}}}]}",
    );
    let labels = json!({"x-k8s.io/cluster-profile": "east", "x-k8s.io/cluster-profile-namespace": "fleet"});
    profiles.set_secret(&secret("a", labels, json!({"Config": config})));
    let candidate = profiles.candidate(&key).unwrap();
    assert_eq!(candidate.claim.fallback.as_deref(), Some("east"));
    assert!(matches!(candidate.access, Err(Refusal::Kubeconfig(BadKubeconfig::Refused { .. }))));
}
