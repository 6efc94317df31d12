//! Objects of a cluster: server-side apply and delete of YAML, the MCS CRDs, plain requests.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};

use crate::binaries::binaries;
use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};

/// How long one request may take before it counts as failed.
const REQUEST: Duration = Duration::from_secs(30);

/// How many objects of one kind are applied side by side.
const SIDE_BY_SIDE: usize = 16;

impl Cluster {
    /// One request as the administrator, with a JSON body and answer. An answer of 400 or more is an error that quotes
    /// the server.
    pub async fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        send(&self.admin(), method, path, "application/json", body).await
    }

    /// What the authorizer says of a ServiceAccount (namespace and name): the status of a SubjectAccessReview with these
    /// `resourceAttributes`. It learns of roles by a watch of its own, so what was granted or taken away holds a moment later.
    pub async fn authorizes(&self, account: (&str, &str), attributes: Value) -> Result<Value> {
        let user = format!("system:serviceaccount:{}:{}", account.0, account.1);
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        Ok(self.request("POST", path, Some(&review)).await?["status"].take())
    }

    /// Server-side apply of any number of YAML documents, in their order; runs of one kind go side by side. A `status`
    /// is applied too where the kind has one as a subresource. Objects without a namespace go to `default`.
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        self.apply_values(documents(yaml)?).await
    }

    /// As [`apply`](Cluster::apply), of objects that a test has built.
    pub async fn apply_values(&self, objects: Vec<Value>) -> Result<()> {
        let client = self.admin();
        let mut kinds = Kinds::default();
        let mut waiting: Vec<(String, tokio::task::JoinHandle<Result<()>>)> = Vec::new();
        for object in objects {
            let target = kinds.target(&client, &object).await?;
            let barrier = waiting.len() >= SIDE_BY_SIDE || waiting.last().is_some_and(|(kind, _)| *kind != target.kind);
            if barrier {
                finish(&mut waiting).await?;
            }
            let (client, kind) = (client.clone(), target.kind.clone());
            waiting.push((kind, tokio::spawn(async move { apply_one(&client, &target, object).await })));
        }
        finish(&mut waiting).await
    }

    /// Deletes every object that the YAML documents name, in their order; what is not there is no error. Does not wait
    /// for finalizers.
    pub async fn delete(&self, yaml: &str) -> Result<()> {
        let client = self.admin();
        let mut kinds = Kinds::default();
        for object in documents(yaml)? {
            let target = kinds.target(&client, &object).await?;
            match send(&client, "DELETE", &target.path, "application/json", None).await {
                Err(e) if !e.to_string().contains("(404)") => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs the `kubectl` that was built with the cluster, as the administrator; its output, or its error.
    pub fn kubectl(&self, args: &[&str]) -> Result<String> {
        let out = Command::new(binaries()?.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .arg("--request-timeout=30s")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .doing("running kubectl")?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        Err(Error::new(format!("kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim())))
    }

    /// Installs the ServiceExport and ServiceImport CRDs of a release of `sigs.k8s.io/mcs-api`, such as `v0.5.2`, and
    /// waits until their objects can be applied.
    pub async fn install_crds(&self, version: &str) -> Result<()> {
        let crds = mcs_crds(version)?;
        self.apply_values(crds.clone()).await?;
        self.until_served(&crds).await.doing(format!("CRDs of mcs-api {version}"))
    }

    /// Waits until objects of the CRDs among these YAML documents, applied before, can be applied too.
    pub async fn wait_for_crds(&self, yaml: &str) -> Result<()> {
        let mut crds = documents(yaml)?;
        crds.retain(|object| object["kind"] == "CustomResourceDefinition");
        self.until_served(&crds).await
    }

    /// Lists are served before the CRD is established, and discovery, where [`apply`](Cluster::apply) looks the kind up,
    /// learns of it later still.
    async fn until_served(&self, crds: &[Value]) -> Result<()> {
        let deadline = Instant::now() + REQUEST;
        let client = self.admin();
        for path in crds.iter().flat_map(served_paths) {
            loop {
                let lacks = match is_served(&client, &path).await {
                    Ok(true) => break,
                    Ok(false) => Error::new(format!("discovery has no objects to be made at {path}")),
                    Err(e) => e,
                };
                if Instant::now() > deadline {
                    return Err(lacks).doing(format!("{path} is not served in time"));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Removes the CRDs of a release, and with them all their objects, and waits until they are no longer served.
    pub async fn uninstall_crds(&self, version: &str) -> Result<()> {
        let client = self.admin();
        let deadline = Instant::now() + REQUEST;
        for crd in mcs_crds(version)? {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            match send(&client, "DELETE", &path, "application/json", None).await {
                Err(e) if !e.to_string().contains("(404)") => return Err(e),
                _ => {}
            }
            for path in std::iter::once(path).chain(served_paths(&crd)) {
                while !matches!(send(&client, "GET", &path, "application/json", None).await,
                                Err(e) if e.to_string().contains("(404)"))
                {
                    if Instant::now() > deadline {
                        return Err(Error::new(format!("{path} is still served after {REQUEST:?}")));
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        Ok(())
    }
}

/// The CRDs of a release of mcs-api, read from its Go module, which `go` caches itself.
pub fn mcs_crds(version: &str) -> Result<Vec<Value>> {
    let module = format!("sigs.k8s.io/mcs-api@{version}");
    let out = Command::new("go")
        .args(["mod", "download", "-json", &module])
        // Away from any go.mod and any vendoring or workspace of the surroundings.
        .current_dir(std::env::temp_dir())
        .env("GOFLAGS", "-mod=mod")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .output()
        .doing("running `go mod download` (is Go installed?)")?;
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    let Some(dir) = answer["Dir"].as_str() else {
        let why =
            answer["Error"].as_str().map_or_else(|| String::from_utf8_lossy(&out.stderr).into_owned(), str::to_owned);
        return Err(Error::new(format!("go mod download {module}: {}", why.trim())));
    };
    let dir = PathBuf::from(dir).join("config/crd");
    let mut files: Vec<_> = fs::read_dir(&dir)
        .doing(dir.display())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .collect();
    files.sort();
    let mut crds = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).doing(file.display())?;
        let all = documents(&text).doing(file.display())?;
        crds.extend(all.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition"));
    }
    if crds.is_empty() { Err(Error::new(format!("no CRDs in {}", dir.display()))) } else { Ok(crds) }
}

/// The lists that a CRD makes the API server serve.
fn served_paths(crd: &Value) -> Vec<String> {
    let (group, plural) = (&crd["spec"]["group"], &crd["spec"]["names"]["plural"]);
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("/apis/{}/{}/{}", text(group), text(&version["name"]), text(plural))
        })
        .collect()
}

/// Whether a list is served, and discovery says that what it lists can be made.
async fn is_served(client: &Client, path: &str) -> Result<bool> {
    send(client, "GET", path, "application/json", None).await?;
    let (root, plural) = path.rsplit_once('/').unwrap_or_default();
    let found = send(client, "GET", root, "application/json", None).await?;
    let resources = found["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let verbs = resources.iter().find(|resource| resource["name"] == *plural).and_then(|r| r["verbs"].as_array());
    Ok(verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "create")))
}

/// The documents of a YAML text; empty ones are left out.
pub(crate) fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).doing("YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// Where an object lives.
struct Target {
    kind: String,
    path: String,
    has_status: bool,
}

/// What discovery said, once per group and version.
#[derive(Default)]
struct Kinds(HashMap<String, Value>);

impl Kinds {
    async fn target(&mut self, client: &Client, object: &Value) -> Result<Target> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (Some(version), Some(kind), Some(name)) =
            (text(&object["apiVersion"]), text(&object["kind"]), text(&object["metadata"]["name"]))
        else {
            return Err(Error::new(format!("an object without apiVersion, kind or metadata.name: {object}")));
        };
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        if !self.0.contains_key(&version) {
            let found = send(client, "GET", &root, "application/json", None).await;
            self.0.insert(version.clone(), found.doing(format!("{kind} {name}: discovery of {version}"))?);
        }
        let resources = self.0[&version]["resources"].as_array().cloned().unwrap_or_default();
        let plain = |r: &&Value| r["kind"] == *kind && r["name"].as_str().is_some_and(|n| !n.contains('/'));
        let resource = resources.iter().find(plain);
        let resource = resource.ok_or_else(|| {
            Error::new(format!("{kind} {name}: the API server has no {kind} in {version}; is its CRD installed?"))
        })?;
        let plural = resource["name"].as_str().unwrap_or_default();
        let status = format!("{plural}/status");
        let place = if resource["namespaced"] == true {
            let namespace = text(&object["metadata"]["namespace"]).unwrap_or_else(|| "default".to_owned());
            format!("{root}/namespaces/{namespace}/{plural}/{name}")
        } else {
            format!("{root}/{plural}/{name}")
        };
        Ok(Target { kind, path: place, has_status: resources.iter().any(|r| r["name"] == *status) })
    }
}

async fn apply_one(client: &Client, target: &Target, object: Value) -> Result<()> {
    const APPLY: &str = "application/apply-patch+yaml";
    let query = "fieldManager=testbed&force=true";
    send(client, "PATCH", &format!("{}?{query}", target.path), APPLY, Some(&object)).await?;
    if target.has_status && object.get("status").is_some_and(|status| !status.is_null()) {
        let mut meta = json!({"name": object["metadata"]["name"]});
        if let Some(namespace) = object["metadata"].get("namespace") {
            meta["namespace"] = namespace.clone();
        }
        let status = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": meta, "status": object["status"],
        });
        send(client, "PATCH", &format!("{}/status?{query}", target.path), APPLY, Some(&status)).await?;
    }
    Ok(())
}

async fn finish(waiting: &mut Vec<(String, tokio::task::JoinHandle<Result<()>>)>) -> Result<()> {
    let mut first_error = None;
    for (_, task) in waiting.drain(..) {
        if let Err(e) = task.await.doing("applying an object").flatten() {
            first_error.get_or_insert(e);
        }
    }
    first_error.map_or(Ok(()), Err)
}

async fn send(client: &Client, method: &str, path: &str, content: &str, body: Option<&Value>) -> Result<Value> {
    let what = format!("{method} {path}");
    let bytes = body.map(serde_json::to_vec).transpose().doing(&what)?.unwrap_or_default();
    let request = ::http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .header("accept", "application/json")
        .body(bytes)
        .doing(&what)?;
    match tokio::time::timeout(REQUEST, client.request_text(request)).await {
        Ok(Ok(text)) => serde_json::from_str(&text).doing(&what),
        Ok(Err(kube::Error::Api(status))) => Err(Error::new(format!("{what}: {} ({})", status.message, status.code))),
        Ok(Err(e)) => Err(Error::new(format!("{what}: {e}"))),
        Err(_) => Err(Error::new(format!("{what}: no answer within {REQUEST:?}"))),
    }
}
