//! The program on a scripted API server.

use std::ops::Deref;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::Bed;

use crate::product::{Namesake, PATIENCE};
use crate::scripted::Scripted;

/// Writes a kubeconfig that leads to a port, with whatever else its user has.
pub(crate) fn kubeconfig(bed: &Bed, name: &str, port: u16, user: &serde_json::Value) -> String {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    });
    bed.file(name, &text.to_string()).unwrap().to_string_lossy().into_owned()
}

/// A scripted API server and a program that watches it.
pub(crate) struct Watching {
    pub(crate) api: Scripted,
    pub(crate) server: Namesake,
    _bed: Bed,
}

impl Watching {
    /// Starts the program on `api`. Does not wait.
    pub(crate) fn start(api: Scripted, args: &[&str]) -> Self {
        let bed = Bed::new().unwrap();
        let file = kubeconfig(&bed, "kubeconfig", api.port, &json!({"token": "first"}));
        let all: Vec<&str> = ["--kubeconfig", &file].into_iter().chain(args.iter().copied()).collect();
        let server = Namesake::start(&bed, &all).unwrap();
        Self { api, server, _bed: bed }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn ready(api: Scripted, args: &[&str]) -> Self {
        let watching = Self::start(api, args);
        watching.server.wait_ready().await;
        watching
    }

    /// Waits until the API server was asked so often.
    pub(crate) async fn asked(&self, verb: &str, resource: &str, times: usize) {
        until(&format!("{times} × {verb} {resource}"), async || self.api.count(verb, resource) >= times).await;
    }
}

impl Deref for Watching {
    type Target = Namesake;

    fn deref(&self) -> &Namesake {
        &self.server
    }
}

/// The value of a metric, with its labels as they are written.
pub(crate) async fn metric(server: &Namesake, series: &str) -> f64 {
    let (code, text) = server.get("/metrics").await;
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("no {series} in {code}:\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Waits until a condition holds, and says how long that took.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "not after {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

/// A folder of these files, in the bed.
pub(crate) fn folder(bed: &Bed, files: &[(&str, &str)]) -> String {
    for (name, text) in files {
        bed.file(&format!("objects/{name}"), text).unwrap();
    }
    bed.dir().join("objects").to_string_lossy().into_owned()
}

/// Puts a file in the place of another in one step, as a careful editor does.
pub(crate) fn replace(bed: &Bed, name: &str, text: &str) {
    let fresh = bed.file("fresh", text).unwrap();
    let place: &Path = &bed.dir().join("objects").join(name);
    std::fs::rename(fresh, place).unwrap();
}
