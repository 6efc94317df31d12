//! Candidates, and whoever watches that no two of them lead.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use namesake::controller::status::Writing;
use namesake::controller::{LeaseSettings, Status, lease};
use namesake::source::kube::{Access, Connection};
use serde_json::Value;
use testbed::Cluster;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a machine under load gets.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a Lease of these tests lasts: a machine that stands still for some seconds does not lose it.
pub const LASTS: Duration = Duration::from_secs(8);

/// One that is given up or left in time, as against one that expires.
pub const LONG: Duration = Duration::from_secs(20);

/// How long one that ends waits for the hub to take the Lease back; after that it leaves it to expire.
const RELEASE: Duration = Duration::from_secs(1);

/// Where it is.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/namesake-controller";

/// All candidates of a test by name, with what each believes.
type Believed = Arc<Mutex<Vec<(String, watch::Receiver<bool>)>>>;

/// The candidates of a test.
pub struct Election {
    believed: Believed,
    overlap: Arc<Mutex<Option<String>>>,
    over: Arc<AtomicBool>,
}

impl Election {
    pub fn new() -> Self {
        let (believed, overlap) = (Believed::default(), Arc::new(Mutex::new(None)));
        let over = Arc::new(AtomicBool::new(false));
        let (all, found, end) = (believed.clone(), overlap.clone(), over.clone());
        std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let all = all.lock().unwrap().clone();
                let lead = |of: &[(String, watch::Receiver<bool>)]| -> Vec<(String, watch::Receiver<bool>)> {
                    of.iter().filter(|(_, leading)| *leading.borrow()).cloned().collect()
                };
                let first = lead(&all);
                // Twice, since one may follow the other between two looks.
                let still = lead(&first);
                if first.len() > 1 && still.len() > 1 {
                    let names: Vec<_> = still.into_iter().map(|(name, _)| name).collect();
                    *found.lock().unwrap() = Some(names.join(" and "));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { believed, overlap, over }
    }

    /// A candidate that reaches the hub by this kubeconfig.
    pub async fn candidate(&self, name: &str, kubeconfig: &Path) -> Candidate {
        self.candidate_in("default", name, kubeconfig, LASTS).await
    }

    /// The same with a Lease that lasts [`LONG`].
    pub async fn long(&self, name: &str, kubeconfig: &Path) -> Candidate {
        self.candidate_in("default", name, kubeconfig, LONG).await
    }

    /// The same for a Lease in another namespace.
    pub async fn candidate_in(&self, namespace: &str, name: &str, kubeconfig: &Path, duration: Duration) -> Candidate {
        let access = Access::Kubeconfig { file: kubeconfig.to_owned(), context: None };
        let connection = Connection::new(access, Arc::new(())).await.unwrap();
        let settings = LeaseSettings {
            namespace: namespace.to_owned(),
            name: "namesake-controller".to_owned(),
            identity: name.to_owned(),
            duration,
        };
        let (status, stop) = (Arc::new(Status::default()), CancellationToken::new());
        let (sender, leading) = watch::channel(false);
        self.believed.lock().unwrap().push((name.to_owned(), leading.clone()));
        let task = tokio::spawn(lease::run(connection, settings, status.clone(), sender, stop.clone()));
        Candidate { name: name.to_owned(), status, leading, stop, task, believed: self.believed.clone() }
    }

    pub fn assert_never_two(&self) {
        assert_eq!(*self.overlap.lock().unwrap(), None, "two lead at the same time");
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.assert_never_two();
        }
    }
}

/// A controller, as far as it is a candidate.
pub struct Candidate {
    pub name: String,
    pub status: Arc<Status>,
    pub leading: watch::Receiver<bool>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    believed: Believed,
}

impl Candidate {
    pub fn leads(&self) -> bool {
        *self.leading.borrow()
    }

    pub fn writing(&self) -> Writing {
        self.status.lock().writing.clone()
    }

    /// What is wrong with the Lease.
    pub fn trouble(&self) -> Option<String> {
        self.status.lock().lease.clone()
    }

    fn out(&self) {
        self.believed.lock().unwrap().retain(|(name, _)| *name != self.name);
    }

    /// As a power cut: it says nothing any more.
    pub fn kill(self) {
        self.task.abort();
        self.out();
    }

    /// In order. Whether it must have given the Lease up: on a busy machine the hub may not take it back in time.
    pub async fn end(mut self) -> bool {
        let began = Instant::now();
        self.stop.cancel();
        (&mut self.task).await.unwrap();
        self.out();
        began.elapsed() < RELEASE
    }

    pub async fn until_leading(&self) {
        until(&format!("{} leads", self.name), || self.leads()).await;
    }

    pub async fn until_standing_by(&self, leader: &str) {
        let wanted = Writing::Standby(Some(leader.to_owned()));
        until(&format!("{} stands by {leader}", self.name), || self.writing() == wanted).await;
    }

    /// Waits until all of these words say what is wrong, and it does not lead.
    pub async fn until_trouble(&self, words: &[&str]) {
        until(&format!("{} does not lead, and says {words:?}", self.name), || {
            let said = self.trouble().unwrap_or_default();
            !self.leads() && words.iter().all(|words| said.contains(words))
        })
        .await;
    }
}

pub async fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The Lease's spec.
pub async fn spec(hub: &Cluster) -> Value {
    hub.request("GET", LEASE, None).await.unwrap()["spec"].clone()
}
