//! Everywhere that members are registered, live: added, changed and removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use namesake::controller::members::{ContextMember, Convention, Inventory, MemberSettings};
use testbed::{Bed, merge_kubeconfigs};

use crate::rig::{Followed, Seen, connection, id, inventories, secret};

/// The CRD of ClusterProfile, as far as it matters.
const PROFILES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles, singular: clusterprofile}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

fn profile(id: &str) -> String {
    format!(
        "{{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {{name: fleet-1, namespace: default}}, \
         spec: {{displayName: one}}, status: {{properties: [{{name: cluster.clusterset.k8s.io, value: {id}}}], \
         accessProviders: [{{name: secretreader}}]}}}}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_every_inventory_come_change_and_go() {
    let bed = Bed::new().unwrap();
    let hub = bed.cluster("hub").await.unwrap();
    let config = fs::read_to_string(hub.kubeconfig()).unwrap();
    let all = Convention::ALL.into_iter().map(Inventory::Secrets).chain([Inventory::Profiles]);
    let settings = MemberSettings { inventory_names: true, ..inventories(all) };
    let mut seen = Seen::start(settings, Some(connection(&hub.kubeconfig()).await));

    hub.apply(&secret("blue-kubeconfig", "{cluster.x-k8s.io/cluster-name: blue}", "value", &config)).await.unwrap();
    hub.apply(&secret("blue-ca", "{cluster.x-k8s.io/cluster-name: blue}", "tls.key", "a key")).await.unwrap();
    hub.apply(&secret("green-sveltos-kubeconfig", "{}", "kubeconfig", &config)).await.unwrap();
    hub.apply(&secret("istio-remote-secret-red", "{istio/multiCluster: 'true'}", "red", &config)).await.unwrap();
    hub.apply(&secret("plain", "{}", "kubeconfig", &config)).await.unwrap();
    seen.until_present(&["blue", "green", "red"]).await;
    assert!(!seen.complete, "ClusterProfiles can't be listed yet");
    let watch = namesake::controller::members::Watch::Profiles;
    seen.until_down(watch, "clusterprofiles.multicluster.x-k8s.io is not installed; install it").await;

    // The CRD comes, a profile, and the Secret with its kubeconfig.
    hub.apply(PROFILES).await.unwrap();
    seen.until("all are listed", |seen| seen.complete).await;
    assert_eq!(seen.members.len(), 3, "{:?}", seen.told);
    hub.wait_for_crds(PROFILES).await.unwrap();
    hub.apply(&profile("violet")).await.unwrap();
    let origin = "ClusterProfile default/fleet-1";
    seen.until("no program is run", |seen| {
        seen.why_refused(origin).is_some_and(|why| why.contains("by a program alone (secretreader)"))
    })
    .await;
    hub.apply(&secret("fleet-1", "{x-k8s.io/cluster-profile: fleet-1}", "Config", &config)).await.unwrap();
    seen.until_present(&["violet"]).await;
    Followed::start(seen.member("violet")).until("its Services", |f| f.local("default/kubernetes").is_some()).await;
    hub.apply(&profile("indigo")).await.unwrap();
    seen.until_present(&["indigo"]).await;
    assert!(!seen.members.contains_key(&id("violet")), "another id is another cluster");

    // A label says the id of any of them.
    hub.kubectl(&["label", "secret", "blue-kubeconfig", "namesake/cluster=navy"]).unwrap();
    seen.until_present(&["navy"]).await;
    assert!(!seen.members.contains_key(&id("blue")));

    // One Secret of Istio's can register several.
    let two = secret("istio-remote-secret-red", "{istio/multiCluster: 'true'}", "orange", &config);
    hub.apply(&two.replace("testbed", "other")).await.unwrap();
    seen.until_present(&["orange"]).await;

    for (name, gone) in
        [("blue-kubeconfig", "navy"), ("green-sveltos-kubeconfig", "green"), ("istio-remote-secret-red", "orange")]
    {
        hub.kubectl(&["delete", "secret", name]).unwrap();
        seen.until(gone, |seen| !seen.members.contains_key(&id(gone))).await;
    }
    hub.kubectl(&["delete", "clusterprofile", "fleet-1"]).unwrap();
    seen.until("indigo", |seen| seen.members.is_empty()).await;

    // CLU-05: gone while nobody looked.
    hub.apply(&secret("blue-kubeconfig", "{cluster.x-k8s.io/cluster-name: blue}", "value", &config)).await.unwrap();
    seen.until_present(&["blue"]).await;
    hub.kill_api().unwrap();
    hub.start_api().await.unwrap();
    hub.kubectl(&["delete", "secret", "blue-kubeconfig"]).unwrap();
    seen.until("blue", |seen| seen.members.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_kubeconfigs_may_run_programs() {
    let bed = Bed::new().unwrap();
    let one = bed.cluster("one").await.unwrap();
    let config: serde_json::Value = serde_json::from_str(&fs::read_to_string(one.kubeconfig()).unwrap()).unwrap();
    let token = config.pointer("/users/0/user/token").unwrap().as_str().unwrap();
    let script = bed
        .file(
            "login",
            &format!(
                "#!/bin/sh\necho '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \
                 \"status\": {{\"token\": \"{token}\"}}}}'\n"
            ),
        )
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut exec = config.clone();
    exec["users"][0]["user"] = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": script.to_str().unwrap(),
    }});
    let file = bed.file("own.kubeconfig", &exec.to_string()).unwrap();
    let folder = bed.dir().join("folder");
    fs::create_dir(&folder).unwrap();

    let member = |context: &str, id: Option<&str>| ContextMember {
        file: file.clone(),
        context: context.to_owned(),
        id: id.map(str::to_owned),
    };
    let settings = MemberSettings {
        contexts: vec![member("one", Some("east")), member("missing", Some("nowhere"))],
        folder: Some(folder.clone()),
        ..MemberSettings::default()
    };
    let mut seen = Seen::start(settings, None);
    seen.until_present(&["east"]).await;
    seen.until("the other context is named", |seen| {
        seen.unusable("nowhere").is_some_and(|why| why.contains("has no context \"missing\"; give one of one"))
    })
    .await;
    Followed::start(seen.member("east")).until("its Services", |f| f.local("default/kubernetes").is_some()).await;

    // Files come, are broken, and go.
    fs::write(folder.join("west.kubeconfig"), config.to_string()).unwrap();
    fs::write(folder.join(".hidden"), "not ours").unwrap();
    fs::write(folder.join("broken.yaml"), "not: [a kubeconfig").unwrap();
    seen.until_present(&["west"]).await;
    seen.until("it is named", |seen| seen.unusable("broken").is_some_and(|why| why.contains("broken.yaml"))).await;
    fs::write(folder.join("broken.yaml"), config.to_string()).unwrap();
    seen.until_present(&["broken"]).await;
    fs::remove_file(folder.join("west.kubeconfig")).unwrap();
    seen.until("west", |seen| !seen.members.contains_key(&id("west"))).await;

    // A folder that can't be read says of nobody that he left.
    let told = seen.told.len();
    let away = bed.dir().join("away");
    fs::rename(&folder, &away).unwrap();
    seen.until_down(namesake::controller::members::Watch::Folder, "").await;
    seen.pass(std::time::Duration::from_millis(2500)).await;
    assert_eq!(seen.told[told..], [""; 0]);
    fs::rename(&away, &folder).unwrap();

    // A context that turns up later is found.
    let mut second = exec.clone();
    second["contexts"][0]["name"] = serde_json::json!("missing");
    second["clusters"] = serde_json::json!([]);
    second["users"] = serde_json::json!([]);
    let added = bed.file("second", &second.to_string()).unwrap();
    fs::write(&file, merge_kubeconfigs([&file, &added]).unwrap()).unwrap();
    seen.until_present(&["nowhere"]).await;
}
