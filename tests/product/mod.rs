//! The real program in a bed: started with flags, waited for, asked.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testbed::{Bed, Process, Result, http};

/// How long anything here may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The program that is tested.
pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_namesake"))
}

/// The top of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The example clusterset.
pub fn example() -> PathBuf {
    root().join("config/example")
}

/// A running `namesake dns` on loopback ports of its own.
pub struct Namesake {
    pub dns: SocketAddr,
    pub admin: SocketAddr,
    pub process: Process,
}

impl Namesake {
    /// Starts it; `args` say where imports come from, and more. Does not wait.
    pub fn start(bed: &Bed, args: &[&str]) -> Result<Self> {
        Self::run(bed, "dns", args)
    }

    /// Starts `namesake sandbox` on a folder of clusters and waits until it is ready.
    pub async fn sandbox(bed: &Bed, dir: &Path, args: &[&str]) -> Result<Self> {
        let server = Self::run(bed, "sandbox", &[&[&*dir.to_string_lossy()], args].concat())?;
        server.wait_ready().await;
        Ok(server)
    }

    fn run(bed: &Bed, command: &str, args: &[&str]) -> Result<Self> {
        let (dns, admin) = (bed.port()?, bed.port()?);
        let [dns, admin] = [dns, admin].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let process = bed
            .process(&format!("namesake-{}", dns.port()), binary())
            .arg(command)
            .args(args)
            .args([format!("--listen={dns}"), format!("--admin={admin}")])
            .spawn()?;
        Ok(Self { dns, admin, process })
    }

    /// Starts it on the example clusterset and waits until it is ready.
    pub async fn with_example(bed: &Bed) -> Result<Self> {
        let server = Self::start(bed, &["--from", &example().to_string_lossy()])?;
        server.wait_ready().await;
        Ok(server)
    }

    /// The status and body of a path of the admin address; status 0 where nothing answers.
    pub async fn get(&self, path: &str) -> (u16, String) {
        http::get(self.admin, path, Duration::from_secs(20)).await.unwrap_or_default()
    }

    /// Waits until `/ready` says so.
    pub async fn wait_ready(&self) {
        self.wait_for("/ready", |code, _| code == 200).await;
    }

    /// Waits until a path of the admin address answers what `holds` wants, and returns the body.
    pub async fn wait_for(&self, path: &str, holds: impl Fn(u16, &str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (code, body) = self.get(path).await;
            if holds(code, &body) {
                return body;
            }
            let log = self.process.log_tail(20);
            assert!(self.process.exited().unwrap().is_none(), "namesake has ended:\n{log}");
            assert!(Instant::now() < deadline, "{path} says {code} {body}\n{log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
