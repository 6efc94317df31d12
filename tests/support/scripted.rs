//! A scripted API server, for what a real one can't be made to do: to answer 410 in either form when told to, to
//! fall silent, to let page tokens expire, to hold back its discovery. Everything else is like the real one: lists in
//! pages, watches from a version on, bookmarks, selectors, ERROR events, and Status bodies; slices in protobuf for whoever
//! asks for that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use namesake::model::Resource;
use serde_json::{Value, json};
use testbed::protobuf;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::form::{Form, json_of};

/// The next watch does something else than to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every test binary plays them all")]
pub(crate) enum Prank {
    /// HTTP 410.
    GoneStatus,
    /// HTTP 200, then an ERROR event with code 410.
    GoneEvent,
    /// An ERROR event with another code.
    ErrorEvent,
    /// Begins, and then is silent for ever, without an end.
    Silent,
    /// Ends at once.
    EndsAtOnce,
}

/// The state of the ServiceImport CRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every test binary plays them all")]
pub(crate) enum Crd {
    Missing,
    /// Serves this version alone.
    Only(&'static str),
    /// Serves both.
    Both,
    /// Is being deleted: still there, but nothing can be made.
    Terminating,
}

/// What the server does, and what it was asked.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) crd: Crd,
    /// Discovery of the CRD's group answers with this.
    pub(crate) discovery: StatusCode,
    /// All answers are 503, and running watches are cut.
    pub(crate) down: bool,
    /// Requests are taken and not answered for as long as this holds; running watches go on.
    pub(crate) silent: bool,
    /// When it changes, running watches are cut.
    pub(crate) cut: usize,
    /// Verbs that are refused.
    pub(crate) forbidden: Vec<(&'static str, Resource)>,
    /// The only token that is accepted.
    pub(crate) token: Option<String>,
    /// Pranks for the next watches of a resource.
    pub(crate) pranks: BTreeMap<&'static str, Vec<Prank>>,
    /// So many page tokens expire.
    pub(crate) expiring: usize,
    /// How often a quiet watch gets a bookmark.
    pub(crate) bookmarks: Duration,
    /// It has nothing but JSON, whatever is asked for.
    pub(crate) json_alone: bool,
    /// It sends lists in protobuf to those who asked for JSON.
    pub(crate) unasked: bool,
    /// These octets go out before the next event of a watch in protobuf.
    pub(crate) garbled: Option<Vec<u8>>,
    /// In which forms slices were asked for and sent.
    pub(crate) forms: Vec<(&'static str, Form)>,
    /// Every request: verb, resource, path and query.
    pub(crate) asked: Vec<(&'static str, &'static str, String)>,
    version: u64,
    objects: BTreeMap<(&'static str, String), Value>,
    events: Vec<(u64, &'static str, &'static str, Value)>,
}

/// A running server.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    script: Mutex<Script>,
    /// Changes whenever watches should look.
    tick: watch::Sender<u64>,
}

#[allow(dead_code, reason = "not every test binary asks everything")]
impl Scripted {
    pub(crate) async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn on(listener: TcpListener) -> Self {
        let script = Script {
            crd: Crd::Both,
            discovery: StatusCode::OK,
            down: false,
            silent: false,
            cut: 0,
            forbidden: Vec::new(),
            token: None,
            pranks: BTreeMap::new(),
            expiring: 0,
            bookmarks: Duration::from_secs(3600),
            json_alone: false,
            unasked: false,
            garbled: None,
            forms: Vec::new(),
            asked: Vec::new(),
            version: 100,
            objects: BTreeMap::new(),
            events: Vec::new(),
        };
        let shared = Arc::new(Shared { script: Mutex::new(script), tick: watch::Sender::new(0) });
        let port = listener.local_addr().unwrap().port();
        let app = axum::Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, shared, task }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.shared.script.lock().unwrap()
    }

    /// Changes the script, and lets running watches see it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script());
        self.shared.tick.send_modify(|n| *n += 1);
    }

    /// How often `verb` was asked of `resource`.
    pub(crate) fn count(&self, verb: &str, resource: &str) -> usize {
        self.script().asked.iter().filter(|(v, r, _)| *v == verb && *r == resource).count()
    }

    pub(crate) fn queries(&self, verb: &str, resource: &str) -> Vec<String> {
        let script = self.script();
        script.asked.iter().filter(|(v, r, _)| *v == verb && *r == resource).map(|(_, _, q)| q.clone()).collect()
    }

    pub(crate) fn import(&self, name: &str, ip: &str) {
        self.put("serviceimports", name, json!({"spec": {"type": "ClusterSetIP", "ips": [ip]}}));
    }

    pub(crate) fn slice(&self, name: &str, service: &str, address: &str) {
        let labels = json!({"multicluster.kubernetes.io/service-name": service,
                            "multicluster.kubernetes.io/source-cluster": "east"});
        let endpoints = json!([{"addresses": [address], "conditions": {"ready": true}}]);
        let slice = json!({"metadata": {"labels": labels}, "addressType": "IPv4", "endpoints": endpoints});
        self.put("endpointslices", name, slice);
    }

    /// Writes an object into namespace `shop`.
    pub(crate) fn put(&self, resource: &'static str, name: &str, mut object: Value) {
        self.change(|script| {
            script.version += 1;
            object["metadata"]["namespace"] = json!("shop");
            object["metadata"]["name"] = json!(name);
            object["metadata"]["resourceVersion"] = json!(script.version.to_string());
            let known = script.objects.insert((resource, name.to_owned()), object.clone()).is_some();
            script.event(resource, if known { "MODIFIED" } else { "ADDED" }, &object);
        });
    }

    pub(crate) fn delete(&self, resource: &'static str, name: &str) {
        self.change(|script| script.delete(resource, name));
    }

    /// Deletes without an event: as during an outage, or at an API server that forgot.
    pub(crate) fn lose(&self, resource: &'static str, name: &str) {
        self.change(|script| drop(script.objects.remove(&(resource, name.to_owned()))));
    }

    /// Forgets what happened so far: watches from now on begin here, as after a compaction that nobody notices.
    pub(crate) fn forget_events(&self) {
        self.script().events.clear();
    }

    /// How long an object is on the wire.
    pub(crate) fn size(&self, resource: &'static str, name: &str) -> usize {
        self.script().objects.get(&(resource, name.to_owned())).map_or(0, |object| object.to_string().len())
    }

    /// Deletes the CRD as the API server does: marked, emptied object by object, gone.
    pub(crate) fn delete_crd(&self) {
        self.change(|script| {
            script.crd = Crd::Terminating;
            let names: Vec<_> = script.objects.keys().filter(|(r, _)| *r == "serviceimports").cloned().collect();
            for (resource, name) in names {
                script.delete(resource, &name);
            }
        });
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Script {
    fn event(&mut self, resource: &'static str, kind: &'static str, object: &Value) {
        self.events.push((self.version, resource, kind, object.clone()));
    }

    fn delete(&mut self, resource: &'static str, name: &str) {
        let Some(mut object) = self.objects.remove(&(resource, name.to_owned())) else { return };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.event(resource, "DELETED", &object);
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let query = uri.query().unwrap_or_default().to_owned();
    let (resource, version) = match uri.path().split('/').collect::<Vec<_>>()[..] {
        ["", "apis", "multicluster.x-k8s.io", version] => (None, version.to_owned()),
        ["", "apis", "multicluster.x-k8s.io", version, "serviceimports"] => {
            (Some("serviceimports"), version.to_owned())
        }
        ["", "apis", "discovery.k8s.io", "v1", "endpointslices"] => (Some("endpointslices"), "v1".to_owned()),
        _ => return Form::Json.status(404, "no such path"),
    };
    let verb = match resource {
        None => "get",
        Some(_) if query.contains("watch=true") => "watch",
        Some(_) => "list",
    };
    shared.script.lock().unwrap().asked.push((verb, resource.unwrap_or("discovery"), uri.to_string()));
    let mut tick = shared.tick.subscribe();
    while shared.script.lock().unwrap().silent {
        let _ = tick.changed().await;
    }
    let mut script = shared.script.lock().unwrap();
    let accepted = headers.get("accept").and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let form = match resource {
        Some("endpointslices") if accepted.contains(protobuf::MEDIA) && !script.json_alone => Form::Protobuf,
        _ => Form::Json,
    };
    if form == Form::Json && !accepted.contains("application/json") {
        return form.status(406, "only the following media types are accepted: application/json");
    }
    if resource == Some("endpointslices") {
        script.forms.push((verb, form));
    }
    if script.down {
        return form.status(503, "apiserver is shutting down");
    }
    let sent = headers.get("authorization").and_then(|v| v.to_str().ok()).and_then(|v| v.strip_prefix("Bearer "));
    if script.token.as_deref().is_some_and(|token| sent != Some(token)) {
        return form.status(401, "Unauthorized");
    }
    let served = match script.crd {
        Crd::Missing => false,
        Crd::Only(only) => only == version,
        Crd::Both | Crd::Terminating => version == "v1beta1" || version == "v1alpha1",
    };
    let Some(resource) = resource else {
        if script.discovery != StatusCode::OK {
            return form.status(script.discovery.as_u16(), "discovery");
        }
        let mut verbs = vec!["delete", "get", "list", "watch"];
        if script.crd != Crd::Terminating {
            verbs.push("create");
        }
        // The group is there all the time, for the sake of the exports.
        let mut resources = vec![json!({"name": "serviceexports", "verbs": ["create", "get"]})];
        if served {
            resources.push(json!({"name": "serviceimports", "verbs": verbs}));
        }
        return json_of(&json!({"kind": "APIResourceList", "resources": resources}));
    };
    let kind = if resource == "serviceimports" { Resource::Imports } else { Resource::Slices };
    if script.forbidden.iter().any(|(v, r)| *v == verb && *r == kind) {
        return form
            .status(403, &format!("{resource} is forbidden: User \"dns\" cannot {verb} resource \"{resource}\""));
    }
    if kind == Resource::Imports && !served {
        return form.status(404, "the server could not find the requested resource");
    }
    match verb {
        "list" if script.unasked && form == Form::Json => Form::Protobuf.list(&[], script.version, ""),
        "list" => list(&mut script, resource, &query, form),
        _ => watch(&shared, &mut script, resource, &query, form),
    }
}

fn list(script: &mut Script, resource: &'static str, query: &str, form: Form) -> Response {
    let limit = match parameter(query, "limit").and_then(|l| l.parse().ok()) {
        None | Some(0) => usize::MAX,
        Some(limit) => limit,
    };
    let from = match parameter(query, "continue") {
        None => 0,
        Some(_) if script.expiring > 0 => {
            script.expiring -= 1;
            return form.status(410, "The provided continue parameter is too old");
        }
        Some(token) => token.parse::<usize>().unwrap(),
    };
    let all: Vec<_> = script.objects.iter().filter(|((r, _), _)| *r == resource).map(|(_, o)| o).collect();
    let page: Vec<_> = all.iter().copied().skip(from).take(limit).collect();
    let end = from + page.len();
    let next = if end < all.len() { end.to_string() } else { String::new() };
    form.list(&page, script.version, &next)
}

fn watch(shared: &Arc<Shared>, script: &mut Script, resource: &'static str, query: &str, form: Form) -> Response {
    let pranks = script.pranks.get_mut(resource);
    let prank = pranks.filter(|pranks| !pranks.is_empty()).map(|pranks| pranks.remove(0));
    match prank {
        Some(Prank::GoneStatus) => return form.status(410, "too old resource version"),
        Some(Prank::GoneEvent) => return form.error(410, "too old resource version"),
        Some(Prank::ErrorEvent) => return form.error(500, "etcd event received with PrevKv=nil"),
        Some(Prank::EndsAtOnce) => return form.watch(Body::empty()),
        Some(Prank::Silent) => {
            return form.watch(Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>()));
        }
        None => {}
    }
    let from: u64 = parameter(query, "resourceVersion").unwrap().parse().unwrap();
    let seconds: u64 = parameter(query, "timeoutSeconds").unwrap().parse().unwrap();
    let ends = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let state = (shared.clone(), shared.tick.subscribe(), from);
    let cut = script.cut;
    let stream = futures_util::stream::unfold(state, move |(shared, mut tick, from)| async move {
        loop {
            let pause = {
                let mut script = shared.script.lock().unwrap();
                let gone = resource == "serviceimports" && script.crd == Crd::Missing;
                if script.down || gone || script.cut != cut {
                    return Some((Err(std::io::Error::other("cut")), (shared.clone(), tick, from)));
                }
                if form == Form::Protobuf
                    && let Some(octets) = script.garbled.take()
                {
                    return Some((Ok(Bytes::from(octets)), (shared.clone(), tick, from)));
                }
                let news = script.events.iter().find(|(version, r, ..)| *version > from && *r == resource);
                if let Some((version, _, kind, object)) = news {
                    let event = form.event(kind, object);
                    return Some((Ok(Bytes::from(event)), (shared.clone(), tick, *version)));
                }
                script.bookmarks
            };
            tokio::select! {
                _ = tick.changed() => {}
                () = tokio::time::sleep(pause) => {
                    let version = shared.script.lock().unwrap().version;
                    let meta = json!({"resourceVersion": version.to_string()});
                    let event = form.event("BOOKMARK", &json!({"metadata": meta}));
                    return Some((Ok(Bytes::from(event)), (shared, tick, version)));
                }
                () = tokio::time::sleep_until(ends) => return None,
            }
        }
    });
    form.watch(Body::from_stream(stream))
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
