//! A source that follows an API server, as tests see it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use namesake::model::Resource;
use namesake::source::kube::{Access, KubeSource, Observer};
use namesake::source::{Convert, Health, QUEUE, Trouble, WatchPhase};
use tokio_util::sync::CancellationToken;

use crate::applied::Applied;

/// The requests that an observer heard of.
#[derive(Debug, Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<(String, String, String, String)>>);

impl Observer for Heard {
    fn request(&self, method: &str, host: &str, code: &str, seconds: f64, verb: &str) {
        assert!(seconds >= 0.0);
        self.0.lock().unwrap().push((method.to_owned(), host.to_owned(), code.to_owned(), verb.to_owned()));
    }
}

/// A running source.
pub(crate) struct Following {
    pub(crate) applied: Applied,
    pub(crate) health: Arc<Health>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

#[allow(dead_code, reason = "not every test binary asks everything")]
impl Following {
    /// Follows the server of a kubeconfig.
    pub(crate) async fn with(kubeconfig: &Path, watch_seconds: u64) -> Self {
        let access = Access::Kubeconfig { file: kubeconfig.to_owned(), context: None };
        let heard = Arc::new(Heard::default());
        let source = KubeSource::new(access, Convert::default(), heard.clone()).await.unwrap();
        let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
        let (health, cancel) = (Arc::new(Health::new(true)), CancellationToken::new());
        let task = tokio::spawn(source.watch_seconds(watch_seconds).run(sender, health.clone(), cancel.clone()));
        Self { applied: Applied::new(receiver), health, heard, cancel, task }
    }

    pub(crate) async fn until(&mut self, right: impl Fn(&Applied) -> bool) {
        self.applied.until(right).await;
    }

    /// Takes updates until `right`, which need not have to do with them.
    pub(crate) async fn poll(&mut self, what: &str, right: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !right(self) {
            assert!(Instant::now() < end, "never: {what}; {:?} {:?}", self.health, self.applied);
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.applied.drain();
        }
    }

    pub(crate) fn phase(&self, resource: Resource) -> WatchPhase {
        self.health.status(resource).phase
    }

    pub(crate) async fn until_live(&mut self) {
        self.poll("both are live", |f| Resource::ALL.iter().all(|r| f.phase(*r) == WatchPhase::Live)).await;
    }

    pub(crate) async fn until_trouble(&mut self, resource: Resource, reason: &str) -> Trouble {
        let is = |phase| matches!(phase, WatchPhase::Down(trouble) if trouble.reason() == reason);
        self.poll(reason, |f| is(f.phase(resource))).await;
        match self.phase(resource) {
            WatchPhase::Down(trouble) => trouble,
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass while updates are taken.
    pub(crate) async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.applied.drain();
        }
    }
}
