//! A real API server that holds a set's objects, from which Namesake and CoreDNS read them.

use std::fmt;
use std::time::{Duration, Instant};

use futures_util::stream::{StreamExt, TryStreamExt, iter};
use kube::Client;
use serde_json::Value;
use testbed::{Bed, Cluster, ClusterOptions, Part};

use crate::machine::{self, Cpu};
use crate::objects;
use crate::set::Set;

/// Requests under way at a time while objects are written.
const SIDE_BY_SIDE: usize = 64;

/// The release of the CRDs.
const CRDS: &str = "v0.5.2";

/// How long the API server may take to serve them.
const PATIENCE: Duration = Duration::from_secs(60);

/// What went wrong, as text.
pub type Result<T> = std::result::Result<T, String>;

/// Turns any error into text that begins with what was being done.
pub(crate) fn doing<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Starts a cluster and writes the set into it. Its controllers are ended before that: nothing needs them, and they
/// would take CPU time from the writing and the measurement.
pub async fn start(bed: &Bed, set: Set) -> Result<Cluster> {
    let begin = Instant::now();
    machine::everywhere();
    // Without the audit log, which is not looked at here, and takes a part of every write.
    let options = ClusterOptions { api_args: vec!["--audit-log-path=".into()], ..ClusterOptions::default() };
    let cluster = bed.cluster_with(&format!("api-{set}"), options).await.map_err(doing("starting an API server"))?;
    install_crds(&cluster).await?;
    cluster.kill(Part::Controllers).map_err(doing("ending its controllers"))?;
    let client = cluster.admin();
    let started = begin.elapsed().as_secs_f64();
    let all = machine::tree(std::process::id());
    let (writing, before) = (Instant::now(), Cpu::of(&all));
    write(&client, objects::namespaces(set)).await?;
    write(&client, objects::imports(set)).await?;
    write(&client, objects::slices(set)).await?;
    let (took, cpu) = (writing.elapsed().as_secs_f64(), Cpu::of(&all).since(&before).all);
    let (imports, endpoints) = (set.imports(), set.all_endpoints());
    eprintln!("an API server after {started:.0} s; {imports} imports and {endpoints} endpoints written in {took:.0} s");
    eprintln!("(CPU time of writing, with the API server's and etcd's: {cpu:.0} s)");
    Ok(cluster)
}

/// The CRDs, without the subresource `status`: so one write brings a whole ServiceImport.
async fn install_crds(cluster: &Cluster) -> Result<()> {
    let mut crds = testbed::mcs_crds(CRDS).map_err(doing("reading the CRDs"))?;
    for version in crds.iter_mut().filter_map(|crd| crd["spec"]["versions"].as_array_mut()).flatten() {
        version.as_object_mut().map(|version| version.remove("subresources"));
    }
    cluster.apply_values(crds).await.map_err(doing("installing the CRDs"))?;
    let client = cluster.admin();
    let deadline = Instant::now() + PATIENCE;
    let path = "/apis/multicluster.x-k8s.io/v1beta1/serviceimports?limit=1";
    while let Err(error) = request(&client, "GET", path, None).await {
        if Instant::now() > deadline {
            return Err(format!("the CRDs are not served: {error}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Creates objects, many at a time.
async fn write(client: &Client, objects: impl Iterator<Item = Value>) -> Result<()> {
    let each = |object: Value| async move {
        request(client, "POST", &objects::collection(&object), Some(&object)).await.map(drop)
    };
    iter(objects).map(each).buffer_unordered(SIDE_BY_SIDE).try_collect::<()>().await
}

/// One request; the answer's text. Patches are merge patches.
pub async fn request(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<String> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let builder = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = builder.body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default());
    let request = request.map_err(doing(path))?;
    client.request_text(request).await.map_err(doing(format!("{method} {path}")))
}
