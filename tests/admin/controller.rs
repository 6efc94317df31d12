//! The routes of the controller: what readiness hangs on, and how a person is told of every member.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use namesake::admin::{Admin, AdminState, ControllerParts};
use namesake::controller::Status;
use namesake::controller::members::{Convention, Origin, Watch};
use namesake::controller::status::{ClusterView, Totals, Writing};
use namesake::metrics::ControllerMetrics;
use namesake::model::ClusterId;
use namesake::reconcile::objects::Time;
use namesake::reconcile::observed::Reach;
use namesake::reconcile::world::Kind;
use namesake::source::{Health, Trouble};
use namesake::systemd::Notifier;

use crate::http::{ages_from, get, one, until};

/// The routes of a controller, and what they look at.
struct Bed {
    admin: Admin,
    status: Arc<Status>,
    state: Arc<AdminState>,
    metrics: Arc<ControllerMetrics>,
    began: Instant,
}

impl Bed {
    /// Waits so long for members.
    fn waiting(patience: Duration) -> Self {
        let (status, state) = (Arc::new(Status::default()), Arc::new(AdminState::new()));
        let metrics = Arc::new(ControllerMetrics::new());
        let parts = ControllerParts::new(status.clone(), state.clone(), metrics.clone(), Notifier::default());
        let admin = Admin::start(&one(), parts.patience(patience)).unwrap();
        // Nothing but contexts.
        status.lock().registries = Some(Arc::new(Health::of(&[])));
        Self { admin, status, state, metrics, began: Instant::now() }
    }

    fn new() -> Self {
        Self::waiting(Duration::from_secs(600))
    }

    fn at(&self) -> SocketAddr {
        self.admin.addresses().ready.unwrap()
    }

    fn ready(&self) -> (u16, String) {
        let answer = get(self.at(), "/ready");
        (answer.code, answer.body)
    }

    /// The long text, with ages as of the moment when the bed began.
    fn verbose(&self) -> String {
        let body = get(self.at(), "/ready?verbose").body;
        ages_from(self.began, &body)
    }

    fn put(&self, name: &str, cluster: ClusterView) {
        self.status.lock().clusters.insert(ClusterId::new(name).unwrap(), cluster);
    }
}

fn ok() -> (u16, String) {
    (200, "OK".to_owned())
}

fn lacks(what: &str) -> (u16, String) {
    (503, what.to_owned())
}

fn ago(seconds: i64) -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Time(i64::try_from(now).unwrap() - seconds)
}

/// Watches that deliver.
fn health() -> Arc<Health<Kind>> {
    let health = Health::of(&Kind::ALL);
    for kind in Kind::ALL {
        health.alive(kind);
        health.mark_synced(kind);
    }
    Arc::new(health)
}

fn live(name: &str) -> ClusterView {
    ClusterView {
        origin: format!("Secret namesake/{name}"),
        unusable: None,
        leaving: false,
        reach: Reach::Live,
        health: Some(health()),
        version: Some("v1beta1"),
        waiting: 0,
        failing: 0,
        last_error: None,
    }
}

fn unheard(name: &str) -> ClusterView {
    let reach = Reach::Unheard { since: ago(150) };
    ClusterView { reach, health: Some(Arc::new(Health::of(&Kind::ALL))), version: None, ..live(name) }
}

fn secret(name: &str) -> Origin {
    Origin::Secret {
        convention: Convention::Labelled,
        namespace: "namesake".to_owned(),
        name: name.to_owned(),
        key: None,
    }
}

#[test]
fn mcs_r96_ready_when_the_registries_are_read_the_members_heard_and_the_lease_known() {
    let bed = Bed::new();
    assert_eq!(get(bed.at(), "/health").body, "OK");
    bed.status.lock().registries = None;
    assert_eq!(bed.ready(), lacks("registries"));
    assert!(bed.verbose().starts_with("[-] hub: there is no connection to it yet\n"), "{}", bed.verbose());
    let registries = Arc::new(Health::of(&[Watch::Secrets(Convention::Labelled)]));
    {
        let mut view = bed.status.lock();
        view.writing = Writing::Standby(None);
        view.registries = Some(registries.clone());
    }
    assert_eq!(bed.ready(), lacks("registries"));
    assert_eq!(
        bed.verbose(),
        "[-] registry labelled: not synced, waiting for the first list\n\
         [-] members: 0, not all known yet, so nothing is deleted for having left; see the registries and what is refused\n\
         [-] lease: not read yet\n\
         [+] planning: nothing waits\n\
         [+] process: running\n\
         not ready: registries\n"
    );
    registries.alive(Watch::Secrets(Convention::Labelled));
    registries.mark_synced(Watch::Secrets(Convention::Labelled));
    assert_eq!(bed.ready(), lacks("members"));
    bed.put("east", live("east"));
    bed.put("west", unheard("west"));
    bed.status.lock().complete = true;
    assert_eq!(bed.ready(), lacks("members"));
    assert!(
        bed.verbose()
            .contains("\n[-] cluster west: not heard yet, for 2 min, nothing to write (Secret namesake/west)\n"),
        "{}",
        bed.verbose()
    );
    bed.put("west", live("west"));
    assert_eq!(bed.ready(), lacks("lease"));
    bed.status.lock().writing = Writing::Standby(Some("namesake-1".to_owned()));
    assert_eq!(bed.ready(), ok(), "who stands by could take over");
    assert_eq!(
        bed.verbose(),
        "[+] registry labelled: synced, live, last event 0 s ago\n\
         [+] members: 2, all known\n\
         [+] cluster east: live, up to date as of 0 s ago, serves v1beta1, nothing to write (Secret namesake/east)\n\
         [+] cluster west: live, up to date as of 0 s ago, serves v1beta1, nothing to write (Secret namesake/west)\n\
         [+] lease: standing by, namesake-1 writes\n\
         [+] planning: nothing waits\n\
         [+] process: running\n\
         OK\n"
    );
}

#[test]
fn mcs_r95_one_dead_member_keeps_nobody_from_being_ready() {
    let bed = Bed::waiting(Duration::from_millis(300));
    bed.put("east", live("east"));
    bed.put("west", unheard("west"));
    // Its id is unknown too, so the set is not complete.
    bed.status.lock().refused.insert(secret("north"), "it can't be asked what its id is: no route".to_owned());
    let mut first = bed.ready();
    let begin = Instant::now();
    while first == lacks("members") {
        assert!(begin.elapsed() < Duration::from_secs(20));
        first = bed.ready();
    }
    assert_eq!(first, ok());
    let verbose = bed.verbose();
    assert!(verbose.contains("[!] members: 2, not all known yet"), "{verbose}");
    assert!(verbose.contains("\n[!] cluster west: not heard yet"), "{verbose}");
    assert!(
        verbose.contains("\n[!] refused Secret namesake/north: it can't be asked what its id is: no route\n"),
        "{verbose}"
    );
}

#[test]
fn mcs_r95_once_ready_it_stays_so_and_trouble_is_told_with_its_remedy() {
    let bed = Bed::new();
    let registries = Arc::new(Health::of(&[Watch::Folder, Watch::Profiles]));
    for watch in [Watch::Folder, Watch::Profiles] {
        registries.alive(watch);
        registries.mark_synced(watch);
    }
    {
        let mut view = bed.status.lock();
        (view.complete, view.writing, view.registries) = (true, Writing::Leader, Some(registries.clone()));
    }
    assert_eq!(bed.ready(), ok());

    let broken = health();
    for kind in Kind::ALL {
        broken.down(kind, Trouble::Unreachable { message: "no route\nto host".to_owned() });
    }
    let reach = Reach::Unreachable { since: ago(300) };
    let last_error = Some("serviceimports is forbidden".to_owned());
    bed.put("east", ClusterView { health: Some(broken), reach, waiting: 12, failing: 2, last_error, ..live("east") });
    let crds = health();
    for kind in [Kind::Exports, Kind::Imports] {
        crds.down(kind, Trouble::CrdMissing { crd: "serviceexports.multicluster.x-k8s.io" });
    }
    bed.put("west", ClusterView { health: Some(crds), waiting: 1, ..live("west") });
    let unusable = Some("key \"kubeconfig\" is no kubeconfig".to_owned());
    bed.put("south", ClusterView { unusable, health: None, version: None, ..live("south") });
    bed.put("gone", ClusterView { leaving: true, ..live("gone") });
    registries.down(Watch::Profiles, Trouble::CrdMissing { crd: "clusterprofiles.multicluster.x-k8s.io" });
    {
        let mut view = bed.status.lock();
        view.writing = Writing::Standby(None);
        view.lease = Some("PUT /apis answers 403: no; grant it".to_owned());
        view.complete = false;
        view.planning = 3;
        let context = Origin::Context { file: PathBuf::from("/etc/k"), context: "dev".to_owned() };
        view.refused.insert(context, "the id east is that of Secret namesake/east already".to_owned());
    }
    assert_eq!(bed.ready(), ok());
    assert_eq!(
        bed.verbose(),
        "[+] registry folder: synced, live, last event 0 s ago\n\
         [!] registry cluster-profile: synced, the CRD clusterprofiles.multicluster.x-k8s.io is not installed; install it, it is picked up by itself, last event 0 s ago\n\
         [!] members: 4, not all known yet, so nothing is deleted for having left; see the registries and what is refused\n\
         [!] cluster east: unreachable for 5 min, the API server can't be reached: no route to host, up to date as of 0 s ago, serves v1beta1, 12 services to write, 2 of them failing: serviceimports is forbidden (Secret namesake/east)\n\
         [+] cluster gone: left the clusterset, what is ours is being removed, live, up to date as of 0 s ago, serves v1beta1, nothing to write (Secret namesake/gone)\n\
         [!] cluster south: can't be used: key \"kubeconfig\" is no kubeconfig, nothing to write (Secret namesake/south)\n\
         [!] cluster west: live, serviceexports and serviceimports: the CRD serviceexports.multicluster.x-k8s.io is not installed; install the CRDs of mcs-api, it is picked up by itself, up to date as of 0 s ago, serves v1beta1, 1 service to write (Secret namesake/west)\n\
         [!] refused context \"dev\" of /etc/k: the id east is that of Secret namesake/east already\n\
         [!] lease: standing by, nobody is known to write, PUT /apis answers 403: no; grant it\n\
         [+] planning: 3 services wait\n\
         [+] process: running\n\
         OK\n"
    );

    bed.state.set_shutting_down();
    assert_eq!(bed.ready(), lacks("Shutting down"));
    assert!(bed.verbose().ends_with("[-] process: shutting down\nShutting down\n"), "{}", bed.verbose());
    assert_eq!(get(bed.at(), "/health").code, 200);
}

#[test]
fn mcs_r96_the_scrape_says_what_the_status_and_the_counters_say() {
    let bed = Bed::new();
    let east = ClusterId::new("east").unwrap();
    bed.put("east", ClusterView { waiting: 7, failing: 1, ..live("east") });
    bed.put("west", unheard("west"));
    bed.metrics.write("east", "serviceimports", "apply", "ok", 0.01);
    {
        let mut view = bed.status.lock();
        view.writing = Writing::Leader;
        view.totals = Totals {
            services: 5,
            exports: [(east.clone(), 4)].into(),
            imports: [(east.clone(), 3)].into(),
            not_imported: [((east, "namespace_missing"), 2)].into(),
            conflicts: [("TypeConflict", 1)].into(),
        };
    }
    let text = get(bed.at(), "/metrics").body;
    for line in [
        "namesake_controller_leader 1",
        "namesake_controller_members_complete 0",
        "namesake_controller_services 5",
        r#"namesake_controller_exports{cluster="east"} 4"#,
        r#"namesake_controller_imports{cluster="east"} 3"#,
        r#"namesake_controller_not_imported{cluster="east",reason="namespace_missing"} 2"#,
        r#"namesake_controller_conflicts{reason="TypeConflict"} 1"#,
        r#"namesake_controller_cluster_up{cluster="east"} 1"#,
        r#"namesake_controller_cluster_up{cluster="west"} 0"#,
        r#"namesake_controller_cluster_watch_up{cluster="east",resource="endpointslices"} 1"#,
        r#"namesake_controller_cluster_queue{cluster="east"} 7"#,
        r#"namesake_controller_cluster_failing{cluster="east"} 1"#,
        r#"namesake_controller_writes_total{cluster="east",resource="serviceimports",verb="apply"} 1"#,
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    assert!(!text.contains("coredns_"), "{text}");
    // A leader whose time has run out is none, whatever its tasks have noticed.
    bed.status.lock().until = Instant::now().checked_sub(Duration::from_millis(1));
    until("it leads no more", || get(bed.at(), "/metrics").body.contains("\nnamesake_controller_leader 0\n"));
}

#[test]
fn what_the_controller_has_not_is_not_offered() {
    let bed = Bed::new();
    let missing = get(bed.at(), "/explain?name=x");
    assert_eq!(missing.code, 404);
    assert_eq!(missing.body, "/explain is not here. What is:\n/health\n/ready\n/ready?verbose\n/metrics\n");
}
