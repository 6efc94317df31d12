//! `--from DIR`: what files say, what is wrong with them, and what happens when they are edited.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "support/applied.rs"]
mod applied;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use applied::Applied;
use namesake::model::{Change, Resource, SkipReason};
use namesake::source::folder::{self, FileError, FileProblem, read_dir, read_text};
use namesake::source::{Convert, Health, QUEUE, Trouble, WatchPhase};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const WEB: &str = "\
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {namespace: shop, name: web}
spec:
  type: ClusterSetIP
  ips: [10.1.0.1]
  ports: [{name: http, port: 80}]
";

const DB: &str = "\
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {namespace: shop, name: db}
spec: {type: Headless}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: shop
  name: db-east
  labels:
    multicluster.kubernetes.io/service-name: db
    multicluster.kubernetes.io/source-cluster: east
addressType: IPv4
endpoints:
- addresses: [10.0.0.1]
  hostname: db-0
";

fn read(text: &str) -> Result<Vec<Change>, FileError> {
    read_text("web.yaml", text, &Convert::default())
}

fn keys(changes: &[Change]) -> Vec<String> {
    let key = |change: &Change| match change {
        Change::Import(key, Some(_)) => format!("import {key}"),
        Change::Slice(key, Some(_)) => format!("slice {key}"),
        other => format!("{other:?}"),
    };
    changes.iter().map(key).collect()
}

#[test]
fn a_file_holds_any_number_of_documents() {
    let changes = read(&format!("---\n{WEB}---\n---\n# only a comment\n---\n{DB}")).unwrap();
    assert_eq!(keys(&changes), ["import shop/web", "import shop/db", "slice shop/db-east"]);
    assert!(read("").unwrap().is_empty());
    assert!(read("# nothing yet\n").unwrap().is_empty());
}

#[test]
fn lists_are_unpacked_and_other_kinds_are_left_alone() {
    let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: multicluster.x-k8s.io/v1beta1
  kind: ServiceImport
  metadata: {name: web}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImportList
items:
- metadata: {namespace: shop, name: bare}
---
apiVersion: net.gke.io/v1
kind: ServiceImport
metadata: {name: other}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
";
    assert_eq!(keys(&read(text).unwrap()), ["import default/web", "import shop/bare"]);
}

#[test]
fn json_files_are_read_too() {
    let text = "{\"apiVersion\": \"multicluster.x-k8s.io/v1beta1\",\n\t\"kind\": \"ServiceImport\",\n\t\"metadata\": {\"name\": \"web\"}}\n";
    let changes =
        read_text("web.json", &format!("{text}\n{}", text.replace("web", "db")), &Convert::default()).unwrap();
    assert_eq!(keys(&changes), ["import default/web", "import default/db"]);
    let error = read_text("web.json", &format!("{text}{{"), &Convert::default()).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("web.json", Some(4)));
}

#[test]
fn errors_name_file_line_and_remedy() {
    let cases = [
        (format!("{WEB}---\nkind: [unclosed\nb: c\n"), 9..=11, "not valid YAML"),
        (format!("{WEB}---\nmetadata: {{name: x}}\n"), 9..=9, "no kind"),
        (format!("{WEB}---\nkind: ServiceImport\n"), 9..=9, "no apiVersion"),
        (format!("{WEB}---\n- a\n- b\n"), 9..=9, "a list"),
        (format!("{WEB}---\njust words\n"), 9..=9, "a single value"),
        (format!("{WEB}---\n{}", WEB.replace("name: web", "x: y")), 9..=9, "no metadata.name"),
        (format!("{WEB}---\n{WEB}"), 9..=9, "already in web.yaml:1"),
    ];
    for (text, lines, words) in cases {
        let error = read(&text).unwrap_err();
        let shown = error.to_string();
        assert!(error.line.is_some_and(|line| lines.contains(&line)), "{shown}\n{text}");
        assert!(shown.starts_with("web.yaml:") && shown.contains(words), "{shown}");
        assert!(!shown.contains('\n'), "{shown}");
    }
}

#[test]
fn an_object_that_does_not_decode_names_its_place_and_hides_no_other() {
    let text = format!("{}---\n{DB}", WEB.replace("[10.1.0.1]", "oops"));
    let changes = read(&text).unwrap();
    assert_eq!(changes.len(), 3);
    match &changes[0] {
        Change::Unreadable { resource: Resource::Imports, skipped, .. } => {
            assert_eq!(skipped.reason, SkipReason::Unreadable);
            assert!(skipped.what.starts_with("web.yaml:1: does not decode"), "{}", skipped.what);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_is_read_with_its_folders_and_links_but_without_what_is_hidden() {
    let dir = TempDir::new().unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir_all(at("b/deep")).unwrap();
    fs::create_dir_all(at(".git")).unwrap();
    fs::write(at("b/deep/web.YML"), WEB).unwrap();
    fs::write(at("a.yaml"), DB).unwrap();
    fs::write(at(".git/x.yaml"), "]").unwrap();
    fs::write(at(".hidden.yaml"), "]").unwrap();
    fs::write(at("README.md"), "]").unwrap();
    symlink(dir.path(), at("b/loop")).unwrap();
    symlink(at("nowhere"), at("dangling.yaml")).unwrap();
    let changes = read_dir(dir.path(), &Convert::default()).unwrap();
    assert_eq!(keys(&changes), ["import shop/db", "slice shop/db-east", "import shop/web"]);
}

#[test]
fn an_object_in_two_files_is_an_error_that_names_both() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.yaml"), DB).unwrap();
    fs::write(dir.path().join("b.yaml"), format!("{WEB}---\n{DB}")).unwrap();
    let shown = read_dir(dir.path(), &Convert::default()).unwrap_err().to_string();
    assert!(
        shown.contains("b.yaml:9:") && shown.contains("ServiceImport shop/db") && shown.contains("a.yaml:1"),
        "{shown}"
    );
}

#[test]
fn a_missing_folder_and_a_file_are_clear_errors() {
    let dir = TempDir::new().unwrap();
    let error = read_dir(&dir.path().join("none"), &Convert::default()).unwrap_err();
    assert_eq!(error.problem, FileProblem::NoFolder);
    fs::write(dir.path().join("file"), "").unwrap();
    let error = read_dir(&dir.path().join("file"), &Convert::default()).unwrap_err();
    assert_eq!(error.problem, FileProblem::NotAFolder);
    fs::write(dir.path().join("latin.yaml"), b"\xff\xfe\xfd").unwrap();
    let error = read_dir(dir.path(), &Convert::default()).unwrap_err();
    assert_eq!(error.problem, FileProblem::NotUtf8);
}

/// A source running on a folder.
struct Running {
    applied: Applied,
    health: Arc<Health>,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), FileError>>,
}

impl Running {
    fn on(dir: &Path) -> Self {
        let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
        let health = Arc::new(Health::new(true));
        let cancel = CancellationToken::new();
        let (dir, of, stop) = (dir.to_owned(), health.clone(), cancel.clone());
        let task = tokio::spawn(async move { folder::run(&dir, Convert::default(), sender, of, stop).await });
        Self { applied: Applied::new(receiver), health, cancel, task }
    }

    async fn until(&mut self, right: impl Fn(&Applied) -> bool) {
        self.applied.until(right).await;
    }

    async fn until_phase(&self, right: impl Fn(&WatchPhase) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !right(&self.health.status(Resource::Imports).phase) {
            assert!(Instant::now() < end, "{:?}", self.health.status(Resource::Imports));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn an_edit_is_taken_up_and_what_is_gone_is_gone() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.yaml"), WEB).unwrap();
    let mut running = Running::on(dir.path());
    running.until(|a| a.synced() && a.imports() == ["shop/web"]).await;
    fs::write(dir.path().join("b.yaml"), DB).unwrap();
    running.until(|a| a.imports() == ["shop/db", "shop/web"] && a.slices() == ["shop/db-east"]).await;
    fs::remove_file(dir.path().join("a.yaml")).unwrap();
    running.until(|a| a.imports() == ["shop/db"]).await;
    // Same length, and soon after: only the contents tell.
    for address in ["10.0.0.2", "10.0.0.3", "10.0.0.4"] {
        fs::write(dir.path().join("b.yaml"), DB.replace("10.0.0.1", address)).unwrap();
        running.until(|a| a.addresses("shop/db-east") == [address]).await;
    }
    running.cancel.cancel();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_broken_edit_keeps_the_last_good_state_says_so_once_and_heals() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a.yaml");
    fs::write(&file, WEB).unwrap();
    let mut running = Running::on(dir.path());
    running.until(Applied::synced).await;
    running.until_phase(|phase| *phase == WatchPhase::Live).await;
    fs::write(&file, "kind: [").unwrap();
    running
        .until_phase(
            |phase| matches!(phase, WatchPhase::Down(Trouble::BrokenFile { message }) if message.contains("a.yaml:1")),
        )
        .await;
    // Stays as it is over several looks, and is counted once.
    let errors = running.health.status(Resource::Imports).errors();
    let quiet = running.applied.quiet_for(Duration::from_millis(800)).await;
    assert!(quiet, "a broken edit sent updates");
    assert_eq!(running.health.status(Resource::Imports).errors(), errors);
    assert_eq!(running.applied.imports(), ["shop/web"]);
    fs::write(&file, format!("{WEB}---\n{DB}")).unwrap();
    running.until(|a| a.imports() == ["shop/db", "shop/web"]).await;
    running.until_phase(|phase| *phase == WatchPhase::Live).await;
}

#[tokio::test]
async fn a_folder_that_is_gone_and_comes_back_as_it_was_heals() {
    let dir = TempDir::new().unwrap();
    let (here, away) = (dir.path().join("here"), dir.path().join("away"));
    fs::create_dir(&here).unwrap();
    fs::write(here.join("a.yaml"), WEB).unwrap();
    let mut running = Running::on(&here);
    running.until(Applied::synced).await;
    fs::rename(&here, &away).unwrap();
    running.until_phase(|phase| matches!(phase, WatchPhase::Down(Trouble::BrokenFile { .. }))).await;
    assert_eq!(running.applied.imports(), ["shop/web"]);
    fs::rename(&away, &here).unwrap();
    running.until_phase(|phase| *phase == WatchPhase::Live).await;
}

#[tokio::test]
async fn the_symlink_swap_of_a_configmap_is_seen() {
    let dir = TempDir::new().unwrap();
    let at = |path: &str| dir.path().join(path);
    for (version, text) in [("..2026_1", WEB.to_owned()), ("..2026_2", WEB.replace("10.1.0.1", "10.1.0.2"))] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("web.yaml"), text).unwrap();
    }
    symlink("..2026_1", at("..data")).unwrap();
    symlink("..data/web.yaml", at("web.yaml")).unwrap();
    let mut running = Running::on(dir.path());
    running.until(|a| a.synced() && a.ips("shop/web") == ["10.1.0.1"]).await;
    symlink("..2026_2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    running.until(|a| a.ips("shop/web") == ["10.1.0.2"]).await;
}

#[tokio::test]
async fn a_quiet_folder_is_proved_fresh_and_sends_nothing() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.yaml"), WEB).unwrap();
    let mut running = Running::on(dir.path());
    running.until(Applied::synced).await;
    assert!(running.applied.quiet_for(Duration::from_millis(900)).await);
    // Proved fresh after all this, so by a look at a folder in which nothing is new.
    let quiet = Instant::now();
    let end = quiet + Duration::from_secs(20);
    loop {
        let age = quiet.elapsed();
        if running.health.staleness() < age {
            break;
        }
        assert!(Instant::now() < end, "{:?}", running.health.staleness());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_folder_missing_at_the_start_ends_the_run() {
    let dir = TempDir::new().unwrap();
    let running = Running::on(&dir.path().join("none"));
    assert_eq!(running.task.await.unwrap().unwrap_err().problem, FileProblem::NoFolder);
}
