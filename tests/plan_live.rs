//! `namesake plan` from clusters that run: as from a folder, and nothing is written to any of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testbed::{Bed, Cluster, merge_kubeconfigs};

const CRDS: &str = "v0.5.2";

/// A Service with one ready endpoint, and its export.
fn web(port: u16, ip: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{ports: [{{name: http, port: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: 8080, protocol: TCP}}]
endpoints: [{{addresses: [{ip}], conditions: {{ready: true}}}}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {{name: web, namespace: shop}}
"
    )
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
    took: Duration,
}

/// Runs `namesake plan` without the variables of this machine.
async fn plan(args: &[&str]) -> Ran {
    let args: Vec<_> = args.iter().map(ToString::to_string).collect();
    let run = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_namesake"));
        command.arg("plan").args(args).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let ours = name.to_string_lossy().starts_with("NAMESAKE_CONTROLLER");
            if ours || name == "KUBERNETES_SERVICE_HOST" || name == "KUBECONFIG" {
                command.env_remove(&name);
            }
        }
        let began = Instant::now();
        let out = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: out.status.code(), out: text(out.stdout), err: text(out.stderr), took: began.elapsed() }
    });
    tokio::time::timeout(Duration::from_secs(90), run).await.expect("the command ends").unwrap()
}

fn contexts(bed: &Bed, clusters: &[Cluster]) -> PathBuf {
    let merged = merge_kubeconfigs(clusters.iter().map(Cluster::kubeconfig)).unwrap();
    bed.file("contexts.kubeconfig", &merged).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What was asked of a cluster that would change something, not counting what set the stage.
fn written(cluster: &Cluster, stage: &testbed::Audit) -> Vec<String> {
    let writes = cluster.audit().unwrap().since(stage).writes();
    let ours = writes.only(|entry| entry.user == "admin" && !entry.uri.contains("dryRun=All"));
    ours.entries.into_iter().map(|entry| format!("{} {}", entry.verb, entry.uri)).collect()
}

#[tokio::test]
async fn running_clusters_are_planned_and_nothing_is_written() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["a", "b"]).await.unwrap();
    for (cluster, port, ip) in [(&clusters[0], 80, "10.1.0.5"), (&clusters[1], 81, "10.2.0.5")] {
        cluster.install_crds(CRDS).await.unwrap();
        cluster.apply(&web(port, ip)).await.unwrap();
    }
    let stage: Vec<_> = clusters.iter().map(|cluster| cluster.audit().unwrap()).collect();
    let file = contexts(&bed, &clusters);
    let of_both = ["--kubeconfig", text(&file), "--member", "a=east", "--member", "b=west"];

    let told = plan(&of_both).await;
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    for words in [
        "+ shop/web: exported by east, west\n",
        "+ shop/web: ServiceImport in east, west: ClusterSetIP, http 80/TCP (exported in east, west)\n",
        "! shop/web: PortConflict: ",
        "; 1 conflict\n",
    ] {
        assert!(told.out.contains(words), "{words:?} is not in\n{}", told.out);
    }
    let all = |more: &[&'static str]| [&of_both[..], more].concat();
    let strict = plan(&all(&["--fail-on-conflict"])).await;
    assert_eq!(strict.code, Some(2), "{}", strict.err);

    let yaml = plan(&all(&["-o", "yaml", "--cluster", "west"])).await;
    assert_eq!((yaml.code, yaml.err.as_str()), (Some(0), ""));
    assert!(yaml.out.contains("kind: ServiceImport") && yaml.out.contains("10.1.0.5"), "{}", yaml.out);
    assert!(!yaml.out.contains("# cluster: east"), "{}", yaml.out);

    let lost = plan(&all(&["--without", "east"])).await;
    assert_eq!((lost.code, lost.err.as_str()), (Some(0), ""));
    assert!(lost.out.contains("shop/web"), "{}", lost.out);

    // A policy has its effect here too.
    let denied = plan(&all(&["--export-deny", "sh*"])).await;
    assert!(!denied.out.contains("ServiceImport in"), "{}", denied.out);
    let unknown = plan(&all(&["--cluster", "north"])).await;
    assert_eq!(unknown.err, "namesake: --cluster north: there is no such cluster; there are east, west\n");
    assert_eq!(unknown.code, Some(2));

    for (cluster, stage) in clusters.iter().zip(&stage) {
        assert_eq!(written(cluster, stage), Vec::<String>::new(), "{}", cluster.name());
    }

    // A folder of kubeconfigs is the same.
    for (cluster, id) in clusters.iter().zip(["east", "west"]) {
        let kubeconfig = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
        bed.file(&format!("members/{id}.kubeconfig"), &kubeconfig).unwrap();
    }
    let folder = bed.dir().join("members");
    assert_eq!(plan(&["--member-folder", text(&folder)]).await.out, told.out);

    // What is applied is planned no more.
    let both = plan(&all(&["-o", "yaml"])).await.out;
    let documents: Vec<_> = both.split("---\n").filter(|document| !document.trim().is_empty()).collect();
    assert!(documents.len() >= 6, "{both}");
    for (cluster, id) in clusters.iter().zip(["east", "west"]) {
        let mark = format!("# cluster: {id}\n");
        let of_cluster: Vec<_> = documents.iter().filter(|document| document.starts_with(&mark)).collect();
        for document in of_cluster {
            let path = bed.file("document.yaml", document).unwrap();
            cluster.kubectl(&["apply", "--server-side", "--field-manager", "namesake", "-f", text(&path)]).unwrap();
        }
    }
    let after = plan(&of_both).await;
    assert!(!after.out.contains("to create") || after.out.contains("0 objects to create"), "{}", after.out);
    let owners = plan(&all(&["-o", "yaml", "--slice-owner", "service"])).await.out;
    assert!(owners.contains("  ownerReferences:\n  - apiVersion: v1\n    kind: Service\n"), "{owners}");
    assert!(after.out.contains("PortConflict"), "a conflict is told for as long as it is there: {}", after.out);
}

#[tokio::test]
async fn a_cluster_that_can_not_be_read_is_named_with_its_reason() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["a", "b"]).await.unwrap();
    clusters[0].install_crds(CRDS).await.unwrap();
    clusters[0].apply(&web(80, "10.1.0.5")).await.unwrap();
    let file = contexts(&bed, &clusters);
    let of_both = ["--kubeconfig", text(&file), "--member", "a=east", "--member", "b=west"];

    // No CRDs: said at once, and what to do.
    let ran = plan(&of_both).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(
        ran.err.starts_with(
            "namesake: cluster west can't be read: the CRD serviceexports.multicluster.x-k8s.io is not installed;"
        ),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("east"), "{}", ran.err);
    assert!(ran.took < Duration::from_secs(10), "nobody waits for what can't come: {:?}", ran.took);

    // Nobody says the id.
    let ran = plan(&["--kubeconfig", text(&file), "--member", "a"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("nobody says what the id of this cluster is") && ran.err.contains("context \"a\""),
        "{}",
        ran.err
    );

    // Files that are not there.
    let ran = plan(&["--member-folder", "/nonexistent"]).await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            Some(1),
            "namesake: /nonexistent: No such file or directory (os error 2); give a folder of <id>.kubeconfig files with --member-folder\n"
        )
    );
    let ran = plan(&["--kubeconfig", "/nonexistent", "--member", "a=east"]).await;
    assert!(
        ran.err.starts_with("namesake: cluster east can't be used (context \"a\" of /nonexistent): "),
        "{}",
        ran.err
    );

    // A context that is not there, beside one that is.
    let ran = plan(&["--kubeconfig", text(&file), "--member", "a=east", "--member", "c=north"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("cluster north") && ran.err.contains("has no context \"c\""), "{}", ran.err);

    // Silence ends at the time limit: at that which is given, which is longer than the usual one.
    clusters[1].kill_api().unwrap();
    let ran = plan(&[&of_both[..], &["--timeout", "20s"]].concat()).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(
        ran.err.starts_with("namesake: cluster west can't be read: the API server can't be reached: "),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("east"), "{}", ran.err);
    assert!(ran.took >= Duration::from_secs(20), "{:?}", ran.took);
}

#[tokio::test]
async fn the_clusters_that_joined_a_hub_are_planned() {
    let bed = Bed::new().unwrap();
    let clusters = bed.clusters(["hub", "a"]).await.unwrap();
    clusters[1].install_crds(CRDS).await.unwrap();
    clusters[1].apply(&web(80, "10.1.0.5")).await.unwrap();
    let file = contexts(&bed, &clusters);
    let hub = ["--kubeconfig", text(&file), "--hub", "hub"];

    let nobody = plan(&hub).await;
    assert_eq!(nobody.code, Some(1));
    assert_eq!(
        nobody.err,
        "namesake: there are no members: name some with --member or --member-folder, or let them join the hub\n"
    );

    let kubeconfig = std::fs::read_to_string(clusters[1].kubeconfig()).unwrap();
    let data = serde_json::to_string(&kubeconfig).unwrap();
    let secret = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: namesake}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: east, \
         namespace: namesake, labels: {{namesake/cluster: east}}}}\nstringData: {{kubeconfig: {data}}}\n"
    );
    clusters[0].apply(&secret).await.unwrap();
    let told = plan(&hub).await;
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    assert!(told.out.contains("+ shop/web: exported by east\n"), "{}", told.out);
}

#[tokio::test]
async fn a_hub_that_can_not_be_read_is_named_too() {
    let bed = Bed::new().unwrap();
    let nobody = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: hub, cluster: {{server: 'https://127.0.0.1:{}'}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: hub, context: {{cluster: hub, user: u}}}}]\n",
        bed.port().unwrap()
    );
    let file = bed.file("kubeconfig", &nobody).unwrap();
    let ran = plan(&["--kubeconfig", text(&file), "--hub", "hub", "--timeout", "10s"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let said = "namesake: the members can't be listed: the hub's Secrets (labelled): the API server can't be reached: ";
    assert!(ran.err.starts_with(said), "{}", ran.err);
    let ran = plan(&["--kubeconfig", text(&file), "--hub", "other"]).await;
    let said =
        format!("namesake: the hub: kubeconfig {} has no context \"other\"; give one of hub with ", file.display());
    assert!(ran.code == Some(1) && ran.err.starts_with(&said), "{}", ran.err);
}

#[tokio::test]
async fn what_contradicts_itself_is_refused_before_anything_is_asked() {
    for (args, said) in [
        (
            &["clusters", "--member", "a"][..],
            "namesake: --member: clusters is given too, and both say where the clusters are; keep one of them\n",
        ),
        (&["--member", "a=A"], "namesake: --member a=A: \"A\" can't be a cluster id"),
        (&["--member", "a", "--timeout", "15"], "namesake: --timeout 15: has no unit; write it as 15s or 1m\n"),
        (&["--families", "x", "--drain", "x"], "namesake: --families x: no such choice; give intersection or union\n"),
    ] {
        let ran = plan(args).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.err.starts_with(said), "{args:?}: {}", ran.err);
    }
}
