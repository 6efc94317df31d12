//! The policies of the controller as flags of `plan` and `sandbox`: each changes what is written, visibly.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;
mod product;

use std::process::Command;
use std::time::{Duration, Instant};

use clusters::{Folder, exported, pod};
use product::{Namesake, PATIENCE, binary};
use testbed::{Bed, dig};

fn node(n: u8) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{n}, labels: {{topology.kubernetes.io/zone: zone-{n}}}}}\n"
    )
}

/// Three clusters: `east` and `west` export and disagree, `north` only consumes; one more has not even the namespace.
fn folder() -> Folder {
    let east = exported(
        "web",
        "ports: [{name: http, port: 80}]\nipFamilyPolicy: PreferDualStack\ntrafficDistribution: PreferClose",
        "exportedLabels: {team: shop}\nexportedAnnotations: {note: hello}",
    );
    let west = exported(
        "web",
        "ports: [{name: www, port: 80}]\ntrafficDistribution: PreferClose",
        "exportedLabels: {team: shop}\nexportedAnnotations: {note: hello}",
    );
    let placed =
        |pod: String, n: u8| pod.replace("status:\n", &format!("spec: {{nodeName: node-{n}}}\nstatus:\n")) + &node(n);
    let headless = exported("db", "ports: [{name: sql, port: 5432}]\nclusterIP: None", "");
    let plain = "---\napiVersion: v1\nkind: Service\nmetadata: {name: plain, namespace: shop, labels: {example.com/export: 'yes'}}\n\
                 spec: {selector: {app: plain}, ports: [{port: 81}]}\n";
    let foreign = "---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: web, namespace: shop}\n\
                   spec: {type: ClusterSetIP, ports: [{name: theirs, port: 8}]}\n";
    Folder::new(&[
        (
            "east/web.yaml",
            &(east
                + &placed(pod("web", "web-0", "10.1.0.5"), 1)
                + &placed(pod("web", "web-1", "10.1.0.6"), 1).replace(&node(1), "")),
        ),
        ("east/db.yaml", &(headless + &pod("db", "db-0", "10.1.0.9"))),
        ("east/plain.yaml", plain),
        ("west/web.yaml", &(west + &placed(pod("web", "web-2", "10.2.0.5"), 2))),
        ("north/shop.yaml", &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n{foreign}")),
        ("south/none.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n"),
    ])
}

#[test]
fn pod_and_node_of_the_rig_are_read() {
    let yaml = folder().plan(&["-o", "yaml"]).ok();
    for text in ["name: derived-", "kind: ServiceImport", "- \"10.1.0.5\"", "- \"10.2.0.5\""] {
        assert!(yaml.contains(text), "{text:?} is not in\n{yaml}");
    }
}

/// Each flag has its text in the YAML or takes one out, compared with the default.
#[test]
fn every_policy_that_shows_in_what_is_planned_does_so() {
    let folder = folder();
    let planned = |flags: &[&str]| folder.plan(&[&["-o", "yaml"], flags].concat()).ok();
    let usual = planned(&[]);
    for (flags, new) in [
        (&["--families", "union"][..], "  - IPv6\n"),
        (&["--create-namespaces", "create"], "kind: Namespace\n"),
        (&["--auto-export", "example.com/export=yes"], "kind: ServiceExport\n"),
        (&["--derived-selector", "always"], "  selector:\n    app: web\n"),
        (
            &["--derived-labels"],
            "  name: derived-isrlchlhrq\n  namespace: shop\n  labels:\n    app.kubernetes.io/managed-by: namesake\n    multicluster.kubernetes.io/service-imported: \"true\"\n    multicluster.kubernetes.io/service-name: web\n    team: shop\n",
        ),
        (
            &["--derived-annotations"],
            "  name: derived-isrlchlhrq\n  namespace: shop\n  labels:\n    app.kubernetes.io/managed-by: namesake\n    multicluster.kubernetes.io/service-imported: \"true\"\n    multicluster.kubernetes.io/service-name: web\n  annotations:\n    note: hello\n",
        ),
        (
            &["--adopt-imports"],
            "# cluster: north\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata:\n  name: web\n",
        ),
        (&["--endpoints-per-slice", "1"], "  name: derived-isrlchlhrq-east-2\n"),
        (&["--cluster-api-label"], "cluster.x-k8s.io/cluster-name: east\n"),
    ] {
        let changed = planned(flags);
        assert!(changed.contains(new), "{flags:?}: {new:?} is not in\n{changed}");
        assert!(!usual.contains(new), "{new:?} is there without {flags:?}\n{usual}");
    }
    // A cluster's own endpoints keep their node anyway.
    let west =
        |keep: &str| planned(&["--cluster", "west", "--remote-node-names", keep]).contains("  nodeName: node-1\n");
    assert_eq!((west("strip"), west("keep")), (false, true));
    for (flags, gone) in [
        (&["--headless-derived-service", "false"][..], "  clusterIP: None\n"),
        (&["--zone-hints", "false"], "    forZones:\n"),
        (&["--port-rename=false"], "  - \"10.2.0.5\"\n"),
        (&["--export-namespaces", "other*"], "kind: ServiceImport\n"),
        (&["--export-deny", "shop"], "kind: ServiceImport\n"),
        (&["--import-namespaces", "other"], "kind: ServiceImport\n"),
        (&["--import-deny", "sh*"], "kind: ServiceImport\n"),
        (&["--namespace-consent", "opt-in"], "kind: ServiceImport\n"),
    ] {
        let changed = planned(flags);
        assert!(!changed.contains(gone), "{flags:?}: {gone:?} is in\n{changed}");
        assert!(usual.contains(gone), "{gone:?} is not there without {flags:?}\n{usual}");
    }
}

#[test]
fn the_policies_come_from_the_file_and_the_variables_of_the_controller_too() {
    let folder = folder();
    folder.write(".controller.yaml", "version: 1\nexport_deny: [shop]\nhub: not-there\n");
    let file = folder.path().join(".controller.yaml");
    let plan = |flags: &[&str], variable: Option<&str>| {
        let mut command = Command::new(binary());
        command.arg("plan").arg(folder.path()).args(["-o", "yaml"]).args(flags);
        command.envs(variable.map(|value| ("NAMESAKE_CONTROLLER_EXPORT_DENY", value)));
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().contains("kind: ServiceImport")
    };
    let config = ["--config", file.to_str().unwrap()];
    assert!(plan(&[], None));
    assert!(!plan(&config, None), "the file's policy counts, and its hub not, where a folder is named");
    assert!(!plan(&[], Some("shop")));
    assert!(plan(&config, Some("other")), "a variable wins over the file");
    assert!(plan(&["--export-deny", "other"], Some("shop")), "a flag wins over both");
}

#[test]
fn mcs_r90_a_cluster_property_and_the_name_of_its_folder_agree() {
    let property = |name: &str, value: &str| {
        format!(
            "apiVersion: about.k8s.io/v1beta1\nkind: ClusterProperty\nmetadata: {{name: {name}}}\nspec: {{value: {value}}}\n"
        )
    };
    let id = |value: &str| property("cluster.clusterset.k8s.io", value);
    let folder = Folder::new(&[("east/id.yaml", &id("east")), ("west/id.yaml", &id("west"))]);
    assert_eq!(folder.plan(&[]).ok(), "no objects to write; no conflicts\n");
    folder.write("west/id.yaml", &format!("# a comment\n{}", id("kind-west")));
    let ran = folder.plan(&[]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            1,
            "namesake: DIR/west/id.yaml:2: ClusterProperty cluster.clusterset.k8s.io: spec.value: the cluster's id is \
             \"kind-west\" by this and \"west\" by the name of its folder; change one of them\n"
        )
    );
    folder.write("west/id.yaml", &id("\"\""));
    assert!(folder.plan(&[]).err.contains("spec.value: give a text that is not empty"));
    // Two sets are told apart, once.
    folder.write("west/id.yaml", &property("clusterset.k8s.io", "blue"));
    folder.write("east/id.yaml", &property("clusterset.k8s.io", "green"));
    assert!(
        folder.plan(&[]).ok().starts_with(
            "# DIR/west/id.yaml:1: the ClusterProperty clusterset.k8s.io says that west is in \"blue\", and east says \
             \"green\"; here all folders are one clusterset\n"
        ),
        "{:?}",
        folder.plan(&[])
    );
    folder.write("east/id.yaml", &property("clusterset.k8s.io", "blue"));
    assert_eq!(folder.plan(&[]).ok(), "no objects to write; no conflicts\n");
}

/// Waits until a name has these addresses.
async fn answers(server: &Namesake, name: &str, wanted: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut found =
            dig(server.dns, &[name, "A"]).unwrap().data("A").iter().map(ToString::to_string).collect::<Vec<_>>();
        found.sort();
        if found == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{name}: {found:?}, not {wanted:?}\n{}", server.process.log_tail(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const DB: &str = "db.shop.svc.clusterset.local";

#[tokio::test]
async fn the_sandbox_follows_the_policies_too() {
    let folder = folder();
    let bed = Bed::new().unwrap();
    let plain = Namesake::sandbox(&bed, folder.path(), &[]).await.unwrap();
    answers(&plain, DB, &["10.1.0.9"]).await;
    drop(plain);
    let denied = Namesake::sandbox(&bed, folder.path(), &["--import-deny", "shop"]).await.unwrap();
    answers(&denied, DB, &[]).await;
    drop(denied);
    let config = bed.file("controller.yaml", "version: 1\nexport_deny: [shop]\n").unwrap();
    let by_file =
        Namesake::sandbox(&bed, folder.path(), &["--controller-config", config.to_str().unwrap()]).await.unwrap();
    answers(&by_file, DB, &[]).await;
}

#[tokio::test]
async fn the_sandbox_refuses_a_wrong_policy_and_a_wrong_flag_of_dns_at_once() {
    let out = Command::new(binary()).args(["sandbox", "--families", "x", "--ttl", "x"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(out.stderr).unwrap(),
        "namesake: --ttl x: not a whole number; give 0 to 3600 seconds\n\
         namesake: --families x: no such choice; give intersection or union\n"
    );
}
