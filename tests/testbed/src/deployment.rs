//! Namesake in the clusters of a bed as its README tells users to install it: `kubectl apply -k` of `deploy/kustomize`,
//! and `namesake join`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::access::merge_kubeconfigs;
use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::clusterdns::wait_answer;
use crate::error::{Doing, Error, Result};
use crate::own_image::{NAMESAKE, repository};

/// Where Namesake lives in each cluster.
pub const NAMESPACE: &str = "namesake";

/// The last number of the address of Namesake's DNS Service.
pub(crate) const DNS_SERVICE: u8 = 53;

/// How long pods may take to be ready. They take some 3 seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is applied, in the bed's folder, and the program that joins clusters.
#[derive(Clone)]
pub(crate) struct Deployment {
    folder: PathBuf,
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Deployment {
    /// Copies `deploy/kustomize` into the bed: an overlay names its base by a relative path.
    pub(crate) fn new(bed: &Bed, program: &Path, clusters: &[Cluster]) -> Result<Deployment> {
        let folder = bed.dir().join("deploy");
        copy(&repository().join("deploy/kustomize"), &folder.join("kustomize"))?;
        let kubeconfig = bed.file("kubeconfig", &merge_kubeconfigs(clusters.iter().map(Cluster::kubeconfig))?)?;
        Ok(Deployment { folder, program: program.to_owned(), kubeconfig })
    }

    /// The kubeconfig with a context of each cluster's name.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The controller, in the hub.
    pub(crate) fn apply_controller(&self, hub: &Cluster) -> Result<()> {
        self.apply(hub, "controller", "")
    }

    /// The DNS half, with a Service at the address that the cluster's DNS forwards to.
    pub(crate) fn apply_dns(&self, cluster: &Cluster) -> Result<()> {
        let address = format!(
            "patches:
  - target: {{kind: Service, name: namesake-dns}}
    patch: |
      - op: add
        path: /spec/clusterIP
        value: {}
",
            cluster.service_ip(DNS_SERVICE)
        );
        self.apply(cluster, "dns", &address)
    }

    /// `kubectl apply -k` of an overlay with the image that is here.
    fn apply(&self, cluster: &Cluster, base: &str, more: &str) -> Result<()> {
        let (image, tag) = NAMESAKE.rsplit_once(':').unwrap_or((NAMESAKE, "latest"));
        let overlay = self.folder.join(format!("{}-{base}", cluster.name()));
        fs::create_dir_all(&overlay).doing(overlay.display())?;
        let text = format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../kustomize/{base}]
images: [{{name: namesake, newName: {image}, newTag: {tag}}}]
{more}"
        );
        let file = overlay.join("kustomization.yaml");
        fs::write(&file, text).doing(file.display())?;
        let applied = cluster.kubectl(&["apply", "-k", &overlay.to_string_lossy()]);
        applied.map(drop).doing(format!("cluster {}", cluster.name()))
    }

    /// `namesake join`: CRDs, the account of the controller, the registration in the hub.
    pub(crate) fn join(&self, hub: &Cluster, cluster: &Cluster) -> Result<()> {
        let what = format!("namesake join {}", cluster.name());
        let out = Command::new(&self.program)
            .args(["join", cluster.name(), "--hub", hub.name(), "--id", cluster.name()])
            // The hub reaches it there; we reach it on the machine's loopback.
            .args(["--server", &cluster.server_from_nodes()])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .stdin(Stdio::null())
            .output()
            .doing(&what)?;
        if out.status.success() {
            return Ok(());
        }
        let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Err(Error::new(format!("{what}: {}\n{said}", out.status)))
    }

    /// Waits until the controller runs, one of its pods leads, and it follows every cluster.
    pub(crate) async fn wait_controller(&self, hub: &Cluster, clusters: &[Cluster]) -> Result<()> {
        wait_available(hub, "namesake-controller").await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = match follows(hub, clusters).await {
                Ok(()) => return Ok(()),
                Err(e) => e,
            };
            if Instant::now() > deadline {
                return Err(Error::new(format!("the controller is not at work after {PATIENCE:?}: {said}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the DNS half runs and answers at its Service.
    pub(crate) async fn wait_dns(&self, cluster: &Cluster) -> Result<()> {
        wait_available(cluster, "namesake-dns").await?;
        let server = cluster.service_ip(DNS_SERVICE);
        let answered = wait_answer(cluster, server, "clusterset.local", "SOA", || Ok(()));
        answered.await.doing(format!("cluster {}: Namesake's Service", cluster.name()))
    }
}

/// Whether every controller's pod says that it follows these clusters, and one of them that it writes.
async fn follows(hub: &Cluster, clusters: &[Cluster]) -> Result<()> {
    let controllers = "labelSelector=app.kubernetes.io/component%3Dcontroller";
    let pods = hub.request("GET", &format!("/api/v1/namespaces/{NAMESPACE}/pods?{controllers}"), None).await?;
    let mut writes = false;
    for pod in pods["items"].as_array().into_iter().flatten() {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let said = text(hub, &format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}:8081/proxy/ready?verbose")).await?;
        let says = |line: &str| said.lines().any(|said| said.starts_with(line));
        for cluster in clusters {
            if !says(&format!("[+] cluster {}: live", cluster.name())) {
                return Err(Error::new(format!("{name} does not follow {}:\n{said}", cluster.name())));
            }
        }
        writes |= says("[+] lease: ours");
    }
    if writes { Ok(()) } else { Err(Error::new("no pod of the controller writes")) }
}

/// A plain text from the API server, or through it.
async fn text(cluster: &Cluster, path: &str) -> Result<String> {
    let request = ::http::Request::get(path).body(Vec::new()).doing(path)?;
    let asked = tokio::time::timeout(Duration::from_secs(5), cluster.admin().request_text(request)).await;
    asked.doing(path)?.doing(path)
}

/// Waits until all pods of a Deployment of ours are available.
async fn wait_available(cluster: &Cluster, name: &str) -> Result<()> {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let deployment = cluster.request("GET", &path, None).await?;
        if is_available(&deployment) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let pods = cluster.kubectl(&["get", "pods,events", "-n", NAMESPACE, "-o", "wide"]).unwrap_or_default();
            return Err(Error::new(format!(
                "cluster {}: {name} is not available after {PATIENCE:?}: {}\n{pods}",
                cluster.name(),
                deployment["status"]
            )));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_available(deployment: &Value) -> bool {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let seen = status["observedGeneration"].as_i64() >= deployment["metadata"]["generation"].as_i64();
    let wanted = spec["replicas"].as_i64();
    seen && status["availableReplicas"].as_i64() == wanted && status["updatedReplicas"].as_i64() == wanted
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).doing(to.display())?;
    for entry in fs::read_dir(from).doing(from.display())?.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to).doing(from.display())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_available;

    #[test]
    fn a_deployment_is_available_when_its_present_generation_is() {
        let deployment = |generation: i64, updated: i64, available: i64| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {
                "observedGeneration": generation, "updatedReplicas": updated, "availableReplicas": available}})
        };
        assert!(is_available(&deployment(2, 2, 2)));
        assert!(!is_available(&deployment(1, 2, 2)) && !is_available(&deployment(2, 1, 2)));
        assert!(!is_available(&deployment(2, 2, 1)));
        assert!(!is_available(&json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}})));
    }
}
