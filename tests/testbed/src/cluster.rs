//! One cluster: its own etcd, a real kube-apiserver with RBAC on, a real kube-controller-manager.

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
use crate::pki::{self, Pki};
use crate::ports;
use crate::process::Process;

/// The controllers that matter without nodes.
const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,serviceaccount-token-controller,\
    root-ca-certificate-publisher-controller,garbage-collector-controller,endpoints-controller,\
    endpointslice-controller,endpointslice-mirroring-controller,deployment-controller,replicaset-controller,\
    statefulset-controller,clusterrole-aggregation-controller,service-cidr-controller";

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
}

/// The programs of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The store of the API server.
    Etcd,
    /// kube-apiserver.
    Api,
    /// kube-controller-manager.
    Controllers,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::Api => "kube-apiserver",
            Part::Controllers => "kube-controller-manager",
        }
    }
}

/// A running cluster. Clones are handles of the same cluster; it ends with the last of them.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    parts: [Mutex<Option<Process>>; 3],
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
struct Ports {
    etcd: u16,
    peer: u16,
    api: u16,
    controllers: u16,
}

impl Cluster {
    pub(crate) async fn start(bed: Bed, name: String, number: u32, options: ClusterOptions) -> Result<Cluster> {
        let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(label) || name.starts_with('-') {
            return Err(Error::new(format!("cluster name {name:?}: use lower-case letters, digits and hyphens")));
        }
        if number > 99 {
            return Err(Error::new("a bed has networks for 99 clusters; make another bed"));
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
        let pki = pki::make(dir, name, &format!("10.{}.0.1", 100 + number))?;
        let admin_token = ports::random_hex()?;
        let controllers_token = ports::random_hex()?;
        let tokens = format!(
            "{admin_token},admin,admin,\"system:masters\"\n{controllers_token},system:kube-controller-manager,controllers\n"
        );
        fs::write(dir.join("tokens.csv"), tokens).doing(dir.display())?;
        fs::write(dir.join("audit-policy.yaml"), AUDIT_POLICY).doing(dir.display())?;
        let server = format!("https://127.0.0.1:{}", ports.api);
        for (user, token) in [("admin", &admin_token), ("controllers", &controllers_token)] {
            let config = access::kubeconfig(name, user, &server, &pki.ca_pem, token);
            access::write_json(&dir.join(format!("{user}.kubeconfig")), &config)?;
        }
        let inner = Inner {
            parts: [Mutex::new(None), Mutex::new(None), Mutex::new(None)],
            bed: bed.clone(),
            name: name.to_owned(),
            number,
            options: options.clone(),
            dir: dir.to_owned(),
            ports,
            pki,
            admin_token,
            ready_after: Duration::ZERO,
        };
        inner.start(Part::Etcd)?;
        inner.start(Part::Api)?;
        let cluster = Cluster(Arc::new(inner));
        cluster.wait_ready().await?;
        cluster.0.start(Part::Controllers)?;
        // They have run when the namespace `default` has its ServiceAccount.
        cluster.wait_for(Part::Controllers, "/api/v1/namespaces/default/serviceaccounts/default").await?;
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
        let within = Duration::from_secs(5);
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
        let args = match part {
            Part::Etcd => self.etcd_args(),
            Part::Api => self.api_args(),
            Part::Controllers => self.controllers_args(),
        };
        let program = binaries()?.join(part.name());
        *slot = Some(self.bed.process(part.name(), program).args(args).current_dir(&self.dir).spawn()?);
        Ok(())
    }

    fn etcd_args(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.peer);
        vec![
            "--name=bed".into(),
            "--data-dir=etcd".into(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=bed={peer}"),
            // A bed lives for minutes; nothing in it must survive the machine.
            "--unsafe-no-fsync".into(),
            "--snapshot-count=5000".into(),
            "--log-level=warn".into(),
        ]
    }

    fn api_args(&self) -> Vec<String> {
        let mut args = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.api),
            // A loopback address may not be advertised, and without nodes nobody needs the Endpoints of `kubernetes`.
            format!("--advertise-address=203.0.113.{}", self.number),
            "--endpoint-reconciler-type=none".into(),
            "--tls-cert-file=api.crt".into(),
            "--tls-private-key-file=api.key".into(),
            "--cert-dir=certs".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            "--service-account-key-file=sa.pub".into(),
            "--service-account-signing-key-file=sa.key".into(),
            format!("--service-cluster-ip-range={}", self.service_networks()),
            "--authorization-mode=Node,RBAC".into(),
            "--token-auth-file=tokens.csv".into(),
            "--allow-privileged=true".into(),
            "--profiling=false".into(),
            "--audit-policy-file=audit-policy.yaml".into(),
            "--audit-log-path=audit.log".into(),
            // One file: a rotated part would be missing from the counts.
            "--audit-log-maxsize=100000".into(),
        ];
        args.extend(self.options.api_args.iter().cloned());
        args
    }

    fn controllers_args(&self) -> Vec<String> {
        let kubeconfig = "controllers.kubeconfig";
        let mut args = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--controllers={CONTROLLERS}"),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=true".into(),
            "--service-account-private-key-file=sa.key".into(),
            "--root-ca-file=ca.crt".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.controllers),
            "--cert-dir=certs-controllers".into(),
            format!("--service-cluster-ip-range={}", self.service_networks()),
            "--concurrent-namespace-syncs=10".into(),
            "--profiling=false".into(),
            "--kube-api-qps=200".into(),
            "--kube-api-burst=400".into(),
        ];
        args.extend(self.options.controllers_args.iter().cloned());
        args
    }

    fn service_networks(&self) -> String {
        let n = 100 + self.number;
        if self.options.dual_stack { format!("10.{n}.0.0/16,fd00:{n}::/108") } else { format!("10.{n}.0.0/16") }
    }
}
