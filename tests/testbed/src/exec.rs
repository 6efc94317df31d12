//! Commands in pods, as `kubectl exec` runs them: through the API server, the kubelet and the container runtime.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};

/// What a command in a pod has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutput {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Whether it ended with 0.
    pub ok: bool,
}

impl Cluster {
    /// Runs a command in a container of a pod (the only or the first one if none is named). An error says that it could
    /// not be run, or has not ended in time; a command that fails is no error.
    pub async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        command: &[&str],
        within: Duration,
    ) -> Result<ExecOutput> {
        let what = format!("{}: {namespace}/{pod}: {command:?}", self.name());
        let run = run(self, namespace, pod, container, command);
        match tokio::time::timeout(within, run).await {
            Ok(outcome) => outcome.doing(what),
            Err(_) => Err(Error::new(format!("{what}: has not ended within {within:?}"))),
        }
    }
}

async fn run(
    cluster: &Cluster,
    namespace: &str,
    pod: &str,
    container: Option<&str>,
    command: &[&str],
) -> Result<ExecOutput> {
    let pods: Api<Pod> = Api::namespaced(cluster.admin(), namespace);
    let mut params = AttachParams::default().stdin(false).stdout(true).stderr(true);
    if let Some(container) = container {
        params = params.container(container);
    }
    let mut process = pods.exec(pod, command.iter().copied(), &params).await.doing("exec")?;
    let (stdout, stderr, status) = (process.stdout(), process.stderr(), process.take_status());
    let status = status.ok_or_else(|| Error::new("exec gives no status"))?;
    let (stdout, stderr, status) = tokio::join!(text(stdout), text(stderr), status);
    process.join().await.doing("exec")?;
    let ok = status.is_some_and(|status| status.status.as_deref() == Some("Success"));
    Ok(ExecOutput { stdout: stdout?, stderr: stderr?, ok })
}

async fn text(stream: Option<impl AsyncRead + Unpin>) -> Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes).await.doing("reading what the command says")?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
