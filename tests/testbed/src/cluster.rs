//! One cluster: its own etcd, a real kube-apiserver with RBAC on, a real kube-controller-manager; with a node also
//! kube-scheduler, kube-proxy, containerd and a kubelet.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::access;
use crate::bed::Bed;
use crate::binaries::binaries;
use crate::error::{Doing, Error, Result};
use crate::http;
use crate::node::{self, NodeOptions};
use crate::parts::{Arguments, Part};
use crate::pki::{self, Pki};
use crate::place;
use crate::process::Process;
use crate::site::Site;

/// Every request at the level of its metadata: enough to count who asked what.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
 "rules": [{"level": "Metadata"}]}
"#;

/// How long a cluster may take to become ready. It takes 3 to 4 seconds; a machine under load gets its time.
const PATIENCE: Duration = Duration::from_secs(90);

/// What may differ between clusters.
#[derive(Clone, Default)]
pub struct ClusterOptions {
    /// Give Services addresses of both families.
    pub dual_stack: bool,
    /// More flags for kube-apiserver, such as `--min-request-timeout=5`.
    pub api_args: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controllers_args: Vec<String>,
    /// With a node on which pods run, in network namespaces: needs root, and Debian packages that an error names.
    pub node: Option<NodeOptions>,
}

/// A running cluster. Clones are handles of the same cluster; it ends with the last of them.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    parts: [Mutex<Option<Process>>; Part::ALL.len()],
    /// Where it stands if it has a node; else on the machine's loopback.
    site: Option<Site>,
    bed: Bed,
    name: String,
    number: u32,
    options: ClusterOptions,
    dir: PathBuf,
    ports: Ports,
    pki: Pki,
    admin_token: String,
    ready_after: Duration,
}

#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) peer: u16,
    pub(crate) api: u16,
    pub(crate) controllers: u16,
}

impl Cluster {
    pub(crate) async fn start(bed: Bed, name: String, number: u32, options: ClusterOptions) -> Result<Cluster> {
        let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(label) || name.starts_with('-') {
            return Err(Error::new(format!("cluster name {name:?}: use lower-case letters, digits and hyphens")));
        }
        // The third number of their services' addresses, and with nodes of their pods'.
        let most = if options.node.is_some() { 55 } else { 99 };
        if number > most {
            return Err(Error::new(format!("a bed has networks for {most} clusters; make another bed")));
        }
        let dir = bed.dir().join(&name);
        fs::create_dir(&dir).doing(format!("cluster {name}: {}", dir.display()))?;
        // A port can be lost to another program between its choice and its use; then another set is tried.
        for attempt in 1.. {
            match Cluster::start_once(&bed, &name, number, &options, &dir).await {
                Err(e) if attempt < 4 && e.to_string().contains("address already in use") => {
                    fs::remove_dir_all(&dir).and_then(|()| fs::create_dir(&dir)).doing(dir.display())?;
                }
                other => return other.doing(format!("cluster {name}")),
            }
        }
        unreachable!("the loop above ends by returning")
    }

    async fn start_once(bed: &Bed, name: &str, number: u32, options: &ClusterOptions, dir: &Path) -> Result<Cluster> {
        let began = Instant::now();
        let ports = Ports { etcd: bed.port()?, peer: bed.port()?, api: bed.port()?, controllers: bed.port()? };
        let site = options.node.as_ref().map(|_| Site::new(bed, name, number, dir, ports.api)).transpose()?;
        let addresses = [node::service_ip(number, 1), node::node_ip(number)].map(|ip| ip.to_string());
        let pki = pki::make(dir, name, &addresses)?;
        let users = access::write_users(dir, name, options.node.is_some(), ports.api, &pki.ca_pem)?;
        fs::write(dir.join("audit-policy.yaml"), AUDIT_POLICY).doing(dir.display())?;
        let inner = Inner {
            parts: [const { Mutex::new(None) }; Part::ALL.len()],
            site,
            bed: bed.clone(),
            name: name.to_owned(),
            number,
            options: options.clone(),
            dir: dir.to_owned(),
            ports,
            pki,
            admin_token: users.admin_token,
            ready_after: Duration::ZERO,
        };
        inner.start(Part::Etcd)?;
        inner.start(Part::Api)?;
        let cluster = Cluster(Arc::new(inner));
        cluster.wait_ready().await?;
        cluster.0.start(Part::Controllers)?;
        if options.node.is_some() {
            cluster.site()?.files(name, options, dir).write()?;
            for part in [Part::Node, Part::Scheduler, Part::Proxy] {
                cluster.0.start(part)?;
            }
        }
        // They have run when the namespace `default` has its ServiceAccount.
        cluster.wait_for(Part::Controllers, "/api/v1/namespaces/default/serviceaccounts/default").await?;
        if options.node.is_some() {
            cluster.wait_node().await?;
        }
        let mut inner =
            Arc::into_inner(cluster.0).ok_or_else(|| Error::new("a cluster was cloned while it started"))?;
        inner.ready_after = began.elapsed();
        Ok(Cluster(Arc::new(inner)))
    }

    /// Its name, which is also the name of the context in its kubeconfigs.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its folder in the bed: logs, certificates, kubeconfigs.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The bed it stands in.
    pub fn bed(&self) -> &Bed {
        &self.0.bed
    }

    /// The URL of its API server.
    pub fn server(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The address of its API server.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.0.ports.api))
    }

    /// How long it took from nothing to ready.
    pub fn ready_after(&self) -> Duration {
        self.0.ready_after
    }

    /// Its number in the bed, from 1: a part of its addresses.
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Where it stands, if it has a node.
    pub(crate) fn site(&self) -> Result<&Site> {
        let none = || Error::new(format!("cluster {} has no node; ask for one by ClusterOptions::node", self.name()));
        self.0.site.as_ref().ok_or_else(none)
    }

    pub(crate) fn api_port(&self) -> u16 {
        self.0.ports.api
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.0.pki.ca_pem
    }

    pub(crate) fn ca_der(&self) -> &[u8] {
        &self.0.pki.ca_der
    }

    pub(crate) fn admin_token(&self) -> &str {
        &self.0.admin_token
    }

    /// Ends the API server as a power cut would (SIGKILL). Its data stays in etcd.
    pub fn kill_api(&self) -> Result<()> {
        self.kill(Part::Api)
    }

    /// Starts the API server again, on the same port and data, and waits until it is ready.
    pub async fn start_api(&self) -> Result<()> {
        self.0.start(Part::Api)?;
        self.wait_ready().await
    }

    /// Hangs the API server (SIGSTOP): connections stay open and nothing answers.
    pub fn stop(&self) -> Result<()> {
        self.signal(Part::Api, "STOP")
    }

    /// Lets a hung API server go on (SIGCONT).
    pub fn cont(&self) -> Result<()> {
        self.signal(Part::Api, "CONT")
    }

    /// Ends one part at once (SIGKILL).
    pub fn kill(&self, part: Part) -> Result<()> {
        let process = self.0.part(part).take();
        process.ok_or_else(|| self.not_running(part))?.kill()
    }

    /// Starts one part that was killed. Does not wait.
    pub fn start_part(&self, part: Part) -> Result<()> {
        self.0.start(part)
    }

    /// Sends one part a signal by name.
    pub fn signal(&self, part: Part, signal: &str) -> Result<()> {
        self.0.part(part).as_ref().ok_or_else(|| self.not_running(part))?.signal(signal)
    }

    /// The process id of one part.
    pub fn pid(&self, part: Part) -> Result<u32> {
        Ok(self.0.part(part).as_ref().ok_or_else(|| self.not_running(part))?.pid())
    }

    /// Fails if a part has ended by itself.
    pub(crate) fn must_run(&self, part: Part) -> Result<()> {
        let guard = self.0.part(part);
        let process = guard.as_ref().ok_or_else(|| self.not_running(part))?;
        match process.exited()? {
            Some(status) => Err(process.error(&format!("ended ({status}) while it was starting"))),
            None => Ok(()),
        }
    }

    /// The log of one part since its last start.
    pub fn log(&self, part: Part) -> Result<String> {
        self.0.part(part).as_ref().ok_or_else(|| self.not_running(part))?.log()
    }

    /// Waits until the API server says it is ready.
    pub async fn wait_ready(&self) -> Result<()> {
        self.wait_for(Part::Api, "/readyz").await
    }

    /// Waits until `path` is answered with success, while `part` and what it stands on live.
    async fn wait_for(&self, part: Part, path: &str) -> Result<()> {
        // One client for all probes: each probe is a request, not a TLS handshake.
        let client = self.client(self.admin_token())?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let request = ::http::Request::get(path).body(Vec::new()).doing(path)?;
            let answer = match tokio::time::timeout(Duration::from_secs(2), client.request_text(request)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(e)) => e.to_string(),
                Err(_) => "no answer within 2 s".to_owned(),
            };
            for part in [Part::Etcd, Part::Api, part] {
                let guard = self.0.part(part);
                let process = guard.as_ref().ok_or_else(|| self.not_running(part))?;
                if let Some(status) = process.exited()? {
                    return Err(process.error(&format!("ended ({status}) while it was starting")));
                }
                if Instant::now() > deadline && part != Part::Etcd {
                    return Err(process.error(&format!("is not ready after {PATIENCE:?} ({path}: {answer})")));
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Forgets all history in etcd, so that watches and lists from an older resourceVersion get 410 Gone once the API
    /// server's own cache does not reach back either (restart it for that).
    pub async fn compact(&self) -> Result<()> {
        let etcd = SocketAddr::from(([127, 0, 0, 1], self.0.ports.etcd));
        let within = Duration::from_secs(30);
        let (_, body) = http::post(etcd, "/v3/kv/range", r#"{"key": "AA==", "limit": "1"}"#, within).await?;
        let answer: serde_json::Value = serde_json::from_str(&body).doing("etcd's answer")?;
        let revision = answer["header"]["revision"].as_str();
        let revision = revision.ok_or_else(|| Error::new(format!("etcd gave no revision: {body}")))?;
        let compaction = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
        let (code, body) = http::post(etcd, "/v3/kv/compaction", &compaction, within).await?;
        if code == 200 { Ok(()) } else { Err(Error::new(format!("etcd does not compact: {code} {body}"))) }
    }

    fn not_running(&self, part: Part) -> Error {
        Error::new(format!("{} of cluster {} is not running", part.name(), self.name()))
    }
}

impl Inner {
    fn part(&self, part: Part) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.parts[part as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, part: Part) -> Result<()> {
        let mut slot = self.part(part);
        if let Some(process) = slot.as_ref()
            && process.exited()?.is_none()
        {
            return Err(Error::new(format!("{} of cluster {} runs already", part.name(), self.name)));
        }
        let arguments = Arguments { number: self.number, ports: self.ports, options: &self.options };
        let args = match part {
            Part::Etcd => arguments.etcd(),
            Part::Api => arguments.api(),
            Part::Controllers => arguments.controllers(),
            Part::Scheduler => arguments.scheduler(),
            Part::Proxy => vec!["--config=proxy.yaml".to_owned()],
            Part::Node => return self.start_node(&mut slot),
        };
        let program = binaries()?.join(part.name());
        let process = self.bed.process(part.name(), program).args(args).current_dir(&self.dir);
        *slot = Some(process.in_network(self.site.as_ref().map(Site::network)).spawn()?);
        Ok(())
    }

    /// The node has PID and mount namespaces of its own, and ends with the first process in them.
    fn start_node(&self, slot: &mut Option<Process>) -> Result<()> {
        let site = self.site.as_ref().ok_or_else(|| Error::new(format!("cluster {} has no node", self.name)))?;
        let init = self.dir.join("node.sh");
        let process = self
            .bed
            .process(Part::Node.name(), "/usr/bin/unshare")
            .args(["--pid", "--mount", "--propagation", "private", "--fork", "--kill-child=KILL", "--mount-proc", "--"])
            .args(["dash".as_ref(), init.as_os_str()])
            .args(site.files(&self.name, &self.options, &self.dir).kubelet_args())
            .env("KUBELET", binaries()?.join("kubelet"))
            .env("CGROUP", format!("{}/{}", place::cgroup(self.bed.dir()), self.name))
            .current_dir(&self.dir);
        *slot = Some(process.in_network(Some(site.network())).spawn()?);
        Ok(())
    }
}
