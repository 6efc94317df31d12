//! The controller as a process, and how its effects are waited for.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use testbed::{Bed, Process, http};

use super::PATIENCE;

/// How long a controller may take to be ready: members that it does not hear it awaits for 30 seconds.
const READY: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(40);

/// A running `namesake controller`.
pub struct Controller {
    pub process: Process,
    pub admin: SocketAddr,
    bed: Bed,
    args: Vec<String>,
}

impl Controller {
    /// Starts it and waits until it is ready.
    pub async fn start(bed: &Bed, args: Vec<String>) -> Self {
        let controller = Self::launch(bed, args);
        controller.wait_ready().await;
        controller
    }

    /// Starts it. Does not wait.
    pub fn launch(bed: &Bed, args: Vec<String>) -> Self {
        let admin = SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap()));
        let process = spawn(bed, admin, &args);
        Self { process, admin, bed: bed.clone(), args }
    }

    /// Ends it as a power cut would, and starts it anew. Does not wait.
    pub fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process = spawn(&self.bed, self.admin, &self.args);
    }

    pub async fn wait_ready(&self) {
        until("the controller is ready", READY, async || {
            let log = || self.process.log_tail(30);
            assert!(self.process.exited().unwrap().is_none(), "the controller has ended:\n{}", log());
            match self.get("/ready?verbose").await {
                (200, _) => Ok(()),
                (code, body) => Err(format!("{code} {body}\n{}", log())),
            }
        })
        .await;
    }

    /// The status and body of a path of the admin address; status 0 where nothing answers.
    pub async fn get(&self, path: &str) -> (u16, String) {
        http::get(self.admin, path, Duration::from_secs(5)).await.unwrap_or_default()
    }

    /// All metrics, of one that runs: a scrape without an answer must not pass for one that counts nothing.
    pub async fn metrics(&self) -> String {
        let (code, body) = http::get(self.admin, "/metrics", PATIENCE).await.unwrap();
        assert_eq!(code, 200, "{body}");
        body
    }

    /// The sum of a metric's samples whose labels contain all of `labels`.
    pub async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let body = self.metrics().await;
        let samples = body.lines().filter(|line| {
            line.split(['{', ' ']).next() == Some(name) && labels.iter().all(|label| line.contains(label))
        });
        samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

/// A test that fails shows what the controllers said last.
fn show_when_failing(log: PathBuf) {
    static HOOK: Once = Once::new();
    static LOGS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    if !logs.contains(&log) {
        logs.push(log);
    }
    drop(logs);
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            before(info);
            // The one that everybody uses, and that of the test in question.
            let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
            for log in logs.iter().rev().take(2) {
                let Ok(text) = fs::read_to_string(log) else { continue };
                let lines: Vec<_> = text.lines().collect();
                eprintln!("--- {}\n{}", log.display(), lines[lines.len().saturating_sub(25)..].join("\n"));
            }
        }));
    });
}

fn spawn(bed: &Bed, admin: SocketAddr, args: &[String]) -> Process {
    let name = format!("controller-{}", admin.port());
    let program = env!("CARGO_BIN_EXE_namesake");
    let command = bed.process(&name, program).arg("controller").args(args).arg(format!("--admin={admin}"));
    let process = command.spawn().unwrap();
    show_when_failing(process.log_path().to_owned());
    process
}

/// Looks until it is so, and fails with the last look.
pub async fn until<T>(what: &str, within: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let (begin, end) = (Instant::now(), Instant::now() + within);
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < end, "not within {within:?}: {what}; instead: {seen}"),
        }
        // What takes longer is looked at less often: the looks are not to be what makes it slow.
        let is_long = begin.elapsed() > Duration::from_secs(1);
        tokio::time::sleep(if is_long { LOOK * 4 } else { LOOK }).await;
    }
}

/// Looks for a while, and fails as soon as it is not so.
pub async fn stays(what: &str, time: Duration, mut look: impl AsyncFnMut() -> Result<(), String>) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let looked = look().await;
        // What a look has seen that ended too late may have been so only then.
        if let Err(seen) = looked
            && Instant::now() < end
        {
            panic!("it does not stay so: {what}; instead: {seen}");
        }
        tokio::time::sleep(LOOK * 3).await;
    }
}
