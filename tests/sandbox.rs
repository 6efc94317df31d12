//! `namesake sandbox`: the folder is edited, and what it prints and what DNS answers follow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;
mod product;

use std::process::Command;
use std::time::Instant;

use clusters::{Folder, exported, must_be, pod};
use product::{Namesake, PATIENCE, binary};
use testbed::Bed;

const PORTS: &str = "ports: [{name: http, port: 80}]";

/// A running sandbox and its folder.
struct Running {
    folder: Folder,
    server: Namesake,
    /// How much of what it printed was looked at.
    seen: usize,
    _bed: Bed,
}

impl Running {
    async fn new(folder: Folder, args: &[&str]) -> Self {
        let bed = Bed::new().unwrap();
        let server = Namesake::sandbox(&bed, folder.path(), args).await.unwrap();
        let mut running = Self { folder, server, seen: 0, _bed: bed };
        running.until("DNS on ").await;
        running
    }

    fn printed(&self) -> Vec<String> {
        let log = self.server.process.log().unwrap().replace(&*self.folder.path().to_string_lossy(), "DIR");
        // The bed's mark in the environment, our own asking for /ready too early, and a machine that stood still.
        let other = ["NAMESAKE_TESTBED", "Plugins not ready", "took more than 1s"];
        log.lines().filter(|line| !other.iter().any(|words| line.contains(words))).map(str::to_owned).collect()
    }

    /// Waits for a line that has `end` in it, and returns all lines up to it since the last time.
    async fn until(&mut self, end: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.printed();
            if let Some(at) = lines.iter().skip(self.seen).position(|line| line.contains(end)) {
                let new = lines[self.seen..=self.seen + at].join("\n");
                self.seen += at + 1;
                return new + "\n";
            }
            assert!(Instant::now() < deadline, "{end:?} is not printed: {:#?}", &lines[self.seen..]);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// What `dig` gets for a name, sorted.
    fn dig(&self, name: &str, kind: &str) -> Vec<String> {
        let dns = self.server.dns;
        let ran = Command::new("dig")
            .args([&format!("@{}", dns.ip()), "-p", &dns.port().to_string(), "+short", name, kind])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let mut lines: Vec<_> = String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Waits until a name has these answers.
    async fn answers(&self, name: &str, kind: &str, wanted: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.dig(name, kind);
            if found == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{name} {kind}: {found:?}, not {wanted:?}\n{:#?}", self.printed());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

const LOYALTY: &str = "loyalty-accrual.loyalty.svc.clusterset.local";

/// W53: exported from two clusters, consumed in a third; a conflict comes and goes.
#[tokio::test]
async fn the_loyalty_story_is_told_as_it_happens() {
    let mut sandbox = Running::new(Folder::example(), &[]).await;
    let ready = format!("DNS on {}", sandbox.server.dns);
    let begin = sandbox.printed().join("\n");
    assert!(begin.contains(&ready), "{begin}");
    let begin: String =
        begin.lines().filter(|line| !line.starts_with("[INFO]")).map(|line| format!("{line}\n")).collect();
    let mut told = begin;

    // berlin, which runs nothing, asks; the address is berlin's own.
    let ip = sandbox.dig(LOYALTY, "A");
    assert_eq!(ip.len(), 1);
    assert!(told.contains(&format!("berlin {}", ip[0])), "{told}");
    sandbox.answers(&format!("_grpc._tcp.{LOYALTY}"), "SRV", &[&format!("0 100 9443 {LOYALTY}.")]).await;

    sandbox.folder.replace("paris/loyalty.yaml", "port: 9443", "port: 9444");
    told.push_str(&sandbox.until("no endpoints of paris").await);
    sandbox.folder.replace("paris/loyalty.yaml", "  # sessionAffinity", "  sessionAffinity");
    told.push_str(&sandbox.until("! loyalty/loyalty-accrual: SessionAffinityConfigConflict").await);
    let back = [("port: 9444", "port: 9443"), ("  sessionAffinity", "  # sessionAffinity")];
    sandbox.folder.replace_all("paris/loyalty.yaml", &back);
    told.push_str(&sandbox.until("endpoint of paris").await);
    assert_eq!(sandbox.dig(LOYALTY, "A"), ip, "a conflict does not touch the address");

    // A pod that is not ready, as the comment tells to do it.
    let text = std::fs::read_to_string(sandbox.folder.path().join("london/loyalty.yaml")).unwrap();
    let at = text.find("# status:").unwrap();
    sandbox.folder.write("london/loyalty.yaml", &(text[..at].to_owned() + &text[at..].replace("# ", "")));
    told.push_str(&sandbox.until("is not ready, was ready").await);

    sandbox.folder.remove("london/ledger.yaml");
    told.push_str(&sandbox.until("EndpointSlices in berlin, london, paris: no endpoints of london any more").await);
    sandbox.answers("ledger.loyalty.svc.clusterset.local", "A", &[]).await;
    sandbox.folder.remove("berlin");
    told.push_str(&sandbox.until("as seen from london").await);
    must_be("loyalty.txt", &told);
}

#[tokio::test]
async fn a_headless_service_follows_its_pods() {
    let unready = |pod: &str| pod.replace("status:", "status:\n  conditions: [{type: Ready, status: \"False\"}]");
    let (one, two) = (pod("db", "db-0", "10.1.0.1"), pod("db", "db-1", "10.1.0.2"));
    let named =
        |pod: &str, name: &str| pod.replace("status:", &format!("spec: {{hostname: {name}, subdomain: db}}\nstatus:"));
    let (one, two) = (named(&one, "db-0"), named(&two, "db-1"));
    let service = exported("db", &format!("{PORTS}\nclusterIP: None"), "");
    let sandbox = Running::new(Folder::new(&[("east/db.yaml", &format!("{service}{one}{two}"))]), &[]).await;
    sandbox.answers("db.shop.svc.clusterset.local", "A", &["10.1.0.1", "10.1.0.2"]).await;
    sandbox.answers("db-1.east.db.shop.svc.clusterset.local", "A", &["10.1.0.2"]).await;
    sandbox.folder.write("east/db.yaml", &format!("{service}{one}{}", unready(&two)));
    sandbox.answers("db.shop.svc.clusterset.local", "A", &["10.1.0.1"]).await;
    sandbox.answers("db-1.east.db.shop.svc.clusterset.local", "A", &[]).await;
    sandbox.folder.write("west/db.yaml", &format!("{service}{}", pod("db", "db-0", "10.2.0.1")));
    sandbox.answers("db.shop.svc.clusterset.local", "A", &["10.1.0.1", "10.2.0.1"]).await;
}

#[tokio::test]
async fn a_broken_edit_keeps_what_was_good_and_the_next_good_one_heals_it() {
    let mut sandbox = Running::new(Folder::example(), &[]).await;
    let ip = sandbox.dig(LOYALTY, "A");
    sandbox.folder.write("paris/more.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: [\n");
    let told = sandbox.until("ERROR").await;
    assert_eq!(
        told,
        "[ERROR] preview: DIR/paris/more.yaml:3: this is not valid YAML: unclosed bracket '[' at line 3, column 18; \
         correct it here or a few lines above (the last good state goes on)\n"
    );
    assert_eq!(sandbox.dig(LOYALTY, "A"), ip);
    let body = sandbox.server.wait_for("/ready?verbose", |_, body| body.contains("more.yaml:3")).await;
    assert!(body.contains("paris/more.yaml"), "{body}");
    // While it is broken, other edits wait; once it is mended, all are taken in.
    sandbox.folder.remove("london/ledger.yaml");
    sandbox.folder.write("paris/more.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n");
    let told = sandbox.until("EndpointSlices in berlin, london, paris: no endpoints of london any more").await;
    let edits: Vec<_> = told.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        edits,
        [
            "# london: Service loyalty/ledger is gone",
            "# london: ServiceExport loyalty/ledger is gone",
            "# london: StatefulSet loyalty/ledger is gone",
            "# paris: Namespace more is new"
        ]
    );
    // The log has a writer of its own, so its line may come a moment later.
    let deadline = Instant::now() + PATIENCE;
    while !sandbox.printed().iter().any(|line| line.starts_with("[INFO] preview: the folder can be read again")) {
        assert!(Instant::now() < deadline, "{:#?}", sandbox.printed());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_edit_without_consequences_says_so() {
    let mut sandbox = Running::new(Folder::example(), &[]).await;
    sandbox.folder.write(
        "paris/more.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: own}\nspec: {ports: [{port: 80}]}\n",
    );
    assert_eq!(
        sandbox.until("nothing changes").await,
        "# paris: Service default/own is new\nnothing changes for the clusterset\n"
    );
}

#[tokio::test]
async fn every_cluster_has_addresses_of_its_own_and_the_view_chooses() {
    let folder = || {
        Folder::new(&[("east/web.yaml", &exported("web", PORTS, "")), ("west/web.yaml", &exported("web", PORTS, ""))])
    };
    let east = Running::new(folder(), &[]).await;
    let west = Running::new(folder(), &["--view", "west"]).await;
    let name = "web.shop.svc.clusterset.local";
    let (first, other) = (east.dig(name, "A"), west.dig(name, "A"));
    assert_eq!((first.len(), other.len()), (1, 1));
    assert_ne!(first, other);
    let printed = west.printed().join("\n");
    assert!(printed.starts_with("2 clusters in DIR: east, west; DNS answers as seen from west\n"), "{printed}");
    assert!(printed.contains(&format!("ServiceImport in east {}, west {}", first[0], other[0])), "{printed}");
    // A view that was asked for is not another one when it is gone.
    west.folder.remove("west");
    west.answers(name, "A", &[]).await;
    west.folder.write("west/web.yaml", &exported("web", PORTS, ""));
    west.answers(name, "A", &[&other[0]]).await;
}

#[tokio::test]
async fn imports_that_others_wrote_are_answered_too() {
    let import = "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\nmetadata: {name: theirs, namespace: shop}\n\
                  spec: {type: ClusterSetIP, ips: [10.9.9.9], ports: [{port: 80}]}\n";
    let sandbox = Running::new(Folder::new(&[("east/theirs.yaml", import)]), &[]).await;
    sandbox.answers("theirs.shop.svc.clusterset.local", "A", &["10.9.9.9"]).await;
}

fn refused(args: &[&str]) -> (i32, String) {
    let ran = Command::new(binary()).arg("sandbox").args(args).output().unwrap();
    assert!(ran.stdout.is_empty(), "{ran:?}");
    (ran.status.code().unwrap(), String::from_utf8(ran.stderr).unwrap())
}

#[test]
fn what_keeps_it_from_starting_is_said_with_a_remedy() {
    let folder = Folder::example();
    let dir = folder.path().to_str().unwrap();
    assert_eq!(
        refused(&[dir, "--view", "brelin"]),
        (1, format!("namesake: --view brelin: there is no such cluster in {dir}; there are berlin, london, paris\n"))
    );
    folder.write("loyalty.yaml", "");
    assert_eq!(
        refused(&[dir]),
        (
            1,
            format!(
                "namesake: {dir}/loyalty.yaml: this file is in no cluster: move it into the sub-folder of its cluster\n"
            )
        )
    );
    assert_eq!(
        refused(&["/nonexistent"]),
        (
            1,
            "namesake: /nonexistent: there is no such folder; create it with a sub-folder for each cluster, or name \
             another one\n"
                .to_owned()
        )
    );
    let (code, error) = refused(&[dir, "--listen", "nowhere"]);
    assert_eq!(code, 2, "{error}");
}
