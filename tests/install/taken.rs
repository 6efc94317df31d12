//! One verb is taken away at a time, while everything else stays: it is missed, named, and taken up again.

use serde_json::{Value, json};
use testbed::Cluster;

use crate::product::PATIENCE;
use crate::rig::{controller, list, text, until};
use crate::roles::{ABOUT, Set, allowed, exported, exported_everywhere, import_of, rules};

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_each_verb_in_a_member_that_is_taken_away_is_missed_named_and_taken_up_again() {
    let set = Set::joined("controller").await;
    let Set { bed, east, .. } = &set;
    east.apply(ABOUT).await.unwrap();
    let path = "clusterroles/namesake-member";
    let whole = rules(east, path).await;
    let verbs = single(&whole);
    assert_eq!(verbs.len(), allowed(&whole).len());
    let mut running = controller(bed, east, "controller", &["--no-lease"]).await;
    running.wait_ready().await;
    for left_out in 0..verbs.len() {
        let rule = &verbs[left_out];
        let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
        let what = format!("{verb} {resource}");
        println!("{what}");
        let name = format!("web-{left_out}");
        // What is to be changed or deleted must be there.
        if verb == "delete" {
            east.apply(&exported(&name, "")).await.unwrap();
            exported_everywhere(east, &name, &running).await;
        }
        let mut rest = verbs.clone();
        rest.remove(left_out);
        let before = refused(&running.wait_for("/metrics", |code, _| code == 200).await);
        allow(east, path, Value::Array(rest)).await;
        forbidden(east, "namesake-member", rule).await;

        if verb == "list" || verb == "watch" || resource == "customresourcedefinitions" {
            // A watch that runs is not ended by the API server for that; a new one is refused.
            drop(running);
            running = controller(bed, east, "controller", &["--no-lease"]).await;
        } else if verb == "delete" {
            east.kubectl(&["delete", "serviceexport", &name]).unwrap();
        } else {
            east.apply(&exported(&name, "")).await.unwrap();
        }
        match (verb, resource) {
            // What is no member's object is named in the log, and what somebody else may mend the next moment: the garbage
            // collector deletes too.
            (_, "clusterproperties") => {
                let line = format!("not allowed to {verb} {resource}");
                running.process.wait_for_line(&line, PATIENCE).await.unwrap();
            }
            (_, "customresourcedefinitions") | ("delete", _) => {
                let line = format!("cannot {verb} resource \\\"{resource}\\\"");
                running.process.wait_for_line(&line, PATIENCE).await.unwrap();
            }
            ("list" | "watch", _) => {
                let line = format!("not allowed to {verb} {resource}");
                running.wait_for("/ready?verbose", |_, body| body.contains(&line)).await;
            }
            // Nothing hangs on Events.
            (_, "events") => {
                exported_everywhere(east, &name, &running).await;
                running.wait_for("/metrics", |_, body| refused(body) > before).await;
            }
            _ => {
                let line = format!("cannot {verb} resource \"{resource}\"");
                running.wait_for("/ready?verbose", |_, body| body.contains(&line)).await;
            }
        }

        allow(east, path, whole.clone()).await;
        running.wait_for("/ready?verbose", |code, body| code == 200 && !body.contains("[!]")).await;
        if verb == "delete" {
            until("it is deleted after all", || async {
                import_of(east, &name).await.map_or(Ok(()), |import| Err(import.to_string()))
            })
            .await;
        } else if east.kubectl(&["get", "serviceexport", &name]).is_ok() {
            exported_everywhere(east, &name, &running).await;
        }
    }
}

/// How many requests the controller counts as refused.
fn refused(metrics: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.contains("code=\"403\""));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// A rule for each verb of each resource.
fn single(rules: &Value) -> Vec<Value> {
    let mut single = Vec::new();
    for rule in list(rules) {
        for resource in list(&rule["resources"]) {
            for verb in list(&rule["verbs"]) {
                let mut one = rule.clone();
                one["resources"] = Value::Array(vec![resource.clone()]);
                one["verbs"] = Value::Array(vec![verb.clone()]);
                single.push(one);
            }
        }
    }
    single
}

async fn allow(cluster: &Cluster, path: &str, rules: Value) {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
    let mut role = cluster.request("GET", &path, None).await.unwrap();
    role["rules"] = rules;
    cluster.request("PUT", &path, Some(&role)).await.unwrap();
}

/// Waits until the authorizer knows that it is forbidden.
async fn forbidden(cluster: &Cluster, account: &str, rule: &Value) {
    reviewed(cluster, account, "namesake", rule, false).await;
}

/// Waits until the authorizer knows all that an account of `namesake` was granted, by whichever bindings.
pub async fn granted(cluster: &Cluster, account: &str) {
    let mut rights = 0;
    for kind in ["clusterrolebindings", "rolebindings"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}");
        for binding in list(&cluster.request("GET", &path, None).await.unwrap()["items"]) {
            let mut subjects = binding["subjects"].as_array().into_iter().flatten();
            if !subjects.any(|subject| subject["namespace"] == "namesake" && subject["name"] == account) {
                continue;
            }
            let (namespace, role) = (binding["metadata"]["namespace"].as_str(), text(&binding["roleRef"]["name"]));
            let path = match namespace {
                Some(namespace) if binding["roleRef"]["kind"] == "Role" => {
                    format!("namespaces/{namespace}/roles/{role}")
                }
                _ => format!("clusterroles/{role}"),
            };
            for rule in single(&rules(cluster, &path).await) {
                reviewed(cluster, account, namespace.unwrap_or("namesake"), &rule, true).await;
                rights += 1;
            }
        }
    }
    assert!(rights > 0, "{account} in {} has no rights", cluster.name());
}

/// Waits until the authorizer says this of a rule with one verb and one resource: it learns of roles by a watch.
async fn reviewed(cluster: &Cluster, account: &str, namespace: &str, rule: &Value, allowed: bool) {
    let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
    let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({
        "verb": verb, "group": rule["apiGroups"][0], "resource": resource, "subresource": sub,
        "namespace": namespace, "name": rule["resourceNames"][0].as_str().unwrap_or_default(),
    });
    until(&format!("{account} may {verb} {resource}: {allowed}"), || async {
        let said = cluster.authorizes(("namesake", account), attributes.clone()).await.unwrap();
        if said["allowed"] == allowed { Ok(()) } else { Err(said.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcs_r97_each_verb_in_the_hub_that_is_taken_away_is_missed_named_and_taken_up_again() {
    let set = Set::joined("controller").await;
    let Set { bed, east, .. } = &set;
    let path = "namespaces/namesake/roles/namesake-controller";
    let lease = "/apis/coordination.k8s.io/v1/namespaces/namesake/leases/namesake-controller";
    let whole = rules(east, path).await;
    let verbs = single(&whole);
    assert_eq!(verbs.len(), 5, "{verbs:?}");
    for left_out in 0..verbs.len() {
        let rule = &verbs[left_out];
        let (verb, resource) = (text(&rule["verbs"][0]), text(&rule["resources"][0]));
        // Only where there is none is a lease created, and only where there is one is it updated.
        if verb == "create" {
            let _ = east.request("DELETE", lease, None).await;
        }
        let mut rest = verbs.clone();
        rest.remove(left_out);
        allow(east, path, Value::Array(rest)).await;
        forbidden(east, "namesake-controller", rule).await;
        let running = controller(bed, east, "controller", &["--lease-duration=3s"]).await;
        let named = if resource == "secrets" {
            format!("not allowed to {verb} {resource}")
        } else {
            format!("cannot {verb} resource \"{resource}\"")
        };
        running.wait_for("/ready?verbose", |_, body| body.contains(&named)).await;
        allow(east, path, whole.clone()).await;
        running
            .wait_for("/ready?verbose", |code, body| {
                code == 200 && body.contains("lease: ours") && !body.contains("[!]")
            })
            .await;
    }
}
