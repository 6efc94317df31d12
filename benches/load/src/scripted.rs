//! An API server that does nothing but to list a set and to tell its watches of changes, at a rate that a real one on
//! the same two cores could not write. Both Namesake and CoreDNS take it for real: lists in pages, watches in lines,
//! slices in protobuf for those who ask for that, bookmarks, errors for what it does not have.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{Bed, protobuf};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use crate::cluster::{Result, doing};
use crate::objects;
use crate::rendered::{Rendered, rendered};
use crate::set::{SLICE, Set};

/// Events that a watch may be behind before it is cut off.
const BEHIND: usize = 1 << 16;

/// Events that are kept for watches that begin anew.
const KEPT: usize = 1 << 14;

/// The end of a body in chunks.
const END: &[u8] = b"0\r\n\r\n";

/// How often a quiet watch gets a bookmark.
const BOOKMARK: Duration = Duration::from_secs(10);

/// A running one; it takes no more connections when this value ends, and forgets the set with the last of them.
pub struct Scripted {
    /// The kubeconfig that leads to it.
    pub kubeconfig: PathBuf,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Shared {
    set: Set,
    namespaces: Vec<String>,
    imports: Vec<String>,
    /// Some slices as they are when moved and when back, rendered: what is measured beside them must not wait for it.
    moves: Vec<[Rendered; 2]>,
    sent: AtomicU64,
    /// Changes of slices.
    events: broadcast::Sender<Arc<Rendered>>,
    /// Locked while a change is made and sent, so that no list and no watch that begins then misses it.
    now: Mutex<Now>,
}

/// What changes.
struct Now {
    version: u64,
    slices: Vec<Rendered>,
    /// The last changes, with their versions.
    history: VecDeque<(u64, Arc<Rendered>)>,
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a slice, there or back, and tells all watches.
    fn change(&self, n: usize, turn: usize) {
        let mut now = self.now();
        now.version += 1;
        let version = now.version;
        let slice = self.moves[n][turn].versioned(version);
        let event = Arc::new(slice.modified());
        now.slices[n] = slice;
        if now.history.len() == KEPT {
            now.history.pop_front();
        }
        now.history.push_back((version, Arc::clone(&event)));
        // Without watches nobody hears of it, which the caller sees by what is served.
        let _ = self.events.send(event);
    }
}

impl Scripted {
    /// Starts one on the loopback.
    pub async fn start(bed: &Bed, set: Set) -> Result<Self> {
        let versioned = |object| rendered(object, "1");
        let shared = Arc::new(Shared {
            set,
            namespaces: objects::namespaces(set).map(versioned).collect(),
            imports: objects::imports(set).map(versioned).collect(),
            moves: moves(set),
            sent: AtomicU64::new(0),
            events: broadcast::Sender::new(BEHIND),
            now: Mutex::new(Now {
                version: 1,
                slices: objects::slices(set).map(|object| Rendered::slice(object).versioned(1)).collect(),
                history: VecDeque::new(),
            }),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(doing("the scripted API server"))?;
        let address = listener.local_addr().map_err(doing("the scripted API server"))?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "scripted",
            "clusters": [{"name": "scripted", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": "nobody"}}],
            "users": [{"name": "nobody", "user": {}}],
        });
        let kubeconfig = bed.file("scripted.kubeconfig", &config.to_string()).map_err(doing("its kubeconfig"))?;
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, Arc::clone(&serving)));
            }
        });
        Ok(Self { kubeconfig, shared, accepting })
    }

    /// Moves the addresses of one slice after the other, so many a second, for so long: how many were moved. Each
    /// moves there and back, so that every event is a change.
    pub async fn update(&self, rate: f64, span: Duration) -> u64 {
        let shared = &self.shared;
        let some = shared.moves.len();
        let begin = Instant::now();
        let first = shared.sent.load(Relaxed);
        let mut sent = 0;
        while begin.elapsed() < span {
            let due = (begin.elapsed().as_secs_f64() * rate) as u64;
            while sent < due {
                let (n, turn) = turn(first + sent, some);
                shared.change(n, turn);
                sent += 1;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shared.sent.fetch_add(sent, Relaxed);
        sent
    }

    /// An endpoint that the last change moved, and where to: headless service, number, address.
    #[must_use]
    pub fn last(&self) -> Option<(u32, u32, Ipv4Addr)> {
        let set = self.shared.set;
        let (n, turn) = turn(self.shared.sent.load(Relaxed).checked_sub(1)?, self.shared.moves.len());
        let each = objects::slices_of_each(set);
        let (i, endpoint) = (n as u32 / each, n as u32 % each * SLICE);
        let [a, b, c, d] = set.endpoint_address(i, endpoint).octets();
        Some((i, endpoint, Ipv4Addr::new(a + u8::from(turn == 0), b, c, d)))
    }
}

/// The slices that change, one after the other, there and back.
fn moves(set: Set) -> Vec<[Rendered; 2]> {
    let each = objects::slices_of_each(set);
    let slice = |n: u32, turn| Rendered::slice(objects::slice(set, n / each, n % each, turn));
    (0..(set.headless * each).min(4_096)).map(|n| [slice(n, 1), slice(n, 0)]).collect()
}

/// Of the change with this number: which of so many slices it is, and whether it moves there (0) or back (1).
fn turn(number: u64, slices: usize) -> (usize, usize) {
    (number as usize % slices, number as usize / slices % 2)
}

/// Answers one request after the other; a watch that is cut off is the last one.
async fn connection(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut target = String::new();
        let mut line = String::new();
        let mut protobuf = false;
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if target.is_empty() {
                target = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            protobuf |= line.to_ascii_lowercase().starts_with("accept:") && line.contains(protobuf::MEDIA);
        }
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        match answer(&shared, path, query, protobuf) {
            Answer::Body(code, media, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 {code}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await?;
            }
            Answer::Watch(of) => {
                if !watch(&mut stream, &shared, of, query, protobuf).await? {
                    return Ok(());
                }
            }
        }
    }
}

enum Answer {
    Body(&'static str, &'static str, Vec<u8>),
    Watch(Resource),
}

impl Answer {
    fn json(code: &'static str, text: String) -> Self {
        Self::Body(code, "application/json", text.into_bytes())
    }
}

/// What is listed and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resource {
    kind: &'static str,
    version: &'static str,
    /// Those of the set; else there are none.
    is_ours: bool,
}

impl Resource {
    fn of(path: &str) -> Option<Self> {
        let resource = path.rsplit('/').next().unwrap_or_default();
        let imports = |version| Self { kind: "ServiceImport", version, is_ours: true };
        let empty = |kind| Self { kind, version: "v1", is_ours: false };
        Some(match resource {
            // CoreDNS asks for the older version, Namesake for the newer where it is there.
            "serviceimports" if path.contains("/v1beta1/") => imports("multicluster.x-k8s.io/v1beta1"),
            "serviceimports" if path.contains("/v1alpha1/") => imports("multicluster.x-k8s.io/v1alpha1"),
            // CoreDNS follows all slices of its own cluster as well, of which these are some.
            "endpointslices" => Self { kind: "EndpointSlice", version: "discovery.k8s.io/v1", is_ours: true },
            "services" => empty("Service"),
            // For CoreDNS, names in a namespace that is not there do not exist.
            "namespaces" => Self { kind: "Namespace", version: "v1", is_ours: true },
            "pods" => empty("Pod"),
            _ => return None,
        })
    }

    fn is_slice(self) -> bool {
        self.kind == "EndpointSlice"
    }

    fn bookmark(self, version: u64) -> Rendered {
        let meta = json!({"resourceVersion": version.to_string()});
        let object = json!({"kind": self.kind, "apiVersion": self.version, "metadata": meta});
        let json = json!({"type": "BOOKMARK", "object": object}).to_string() + "\n";
        Rendered { json, protobuf: protobuf::event("BOOKMARK", &protobuf::versioned(&[], version)) }
    }

    /// All there are but slices.
    fn items(self, shared: &Shared) -> &[String] {
        match self {
            Self { is_ours: false, .. } => &[],
            Self { kind: "Namespace", .. } => &shared.namespaces,
            _ => &shared.imports,
        }
    }
}

fn answer(shared: &Shared, path: &str, query: &str, protobuf: bool) -> Answer {
    let status = |code: u16, http: &'static str, reason: &str| {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code});
        Answer::json(http, body.to_string())
    };
    // Streamed lists are an offer that a server may turn down; clients then list in pages.
    if parameter(query, "sendInitialEvents") == Some("true") {
        return status(422, "422 Unprocessable Entity", "Invalid");
    }
    if path.ends_with("/multicluster.x-k8s.io/v1beta1") {
        let verbs = ["create", "get", "list", "watch"];
        let import = json!({"name": "serviceimports", "namespaced": true, "kind": "ServiceImport", "verbs": verbs});
        let version = "multicluster.x-k8s.io/v1beta1";
        let list = json!({"kind": "APIResourceList", "groupVersion": version, "resources": [import]});
        return Answer::json("200 OK", list.to_string());
    }
    let Some(resource) = Resource::of(path) else {
        return status(404, "404 Not Found", "NotFound");
    };
    if matches!(parameter(query, "watch"), Some("true" | "1")) {
        return Answer::Watch(resource);
    }
    let now = shared.now();
    let Resource { kind, version, .. } = resource;
    let count = if resource.is_slice() { now.slices.len() } else { resource.items(shared).len() };
    let from: usize = parameter(query, "continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    // Whoever takes any version gets all from a real one's cache in one piece, as client-go's informers do.
    let whole = parameter(query, "resourceVersion") == Some("0");
    let limit = parameter(query, "limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0 && !whole);
    let end = limit.map_or(count, |limit: usize| count.min(from + limit));
    let next = if end < count { end.to_string() } else { String::new() };
    let current = now.version;
    let slices = now.slices.get(from..end).unwrap_or_default();
    if protobuf && resource.is_slice() {
        let list = protobuf::list(slices.iter().map(|slice| &slice.protobuf[..]), current, &next);
        return Answer::Body("200 OK", protobuf::MEDIA, list);
    }
    let page = match resource.is_slice() {
        true => slices.iter().map(|slice| &slice.json[..]).collect::<Vec<_>>().join(","),
        false => resource.items(shared).get(from..end).unwrap_or_default().join(","),
    };
    Answer::json(
        "200 OK",
        format!(
            r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{{"resourceVersion":"{current}","continue":"{next}"}},"items":[{page}]}}"#
        ),
    )
}

/// From a version on, for as long as was asked for: whether it came to that end.
async fn watch(
    stream: &mut BufReader<TcpStream>,
    shared: &Shared,
    of: Resource,
    query: &str,
    protobuf: bool,
) -> io::Result<bool> {
    let number = |name| parameter(query, name).and_then(|number| number.parse::<u64>().ok());
    let (from, seconds) = (number("resourceVersion").unwrap_or(0), number("timeoutSeconds").unwrap_or(1_800));
    let ends = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let slices = of.is_slice();
    let protobuf = protobuf && slices;
    let (forgotten, missed, mut events) = {
        let now = shared.now();
        let forgotten = slices && now.history.front().is_some_and(|(oldest, _)| *oldest > from + 1);
        let missed = now.history.iter().filter(|(version, _)| slices && *version > from);
        (forgotten, missed.map(|(_, event)| Arc::clone(event)).collect::<Vec<_>>(), shared.events.subscribe())
    };
    let media = if protobuf { protobuf::MEDIA.to_owned() + ";stream=watch" } else { "application/json".to_owned() };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    if forgotten {
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
        let line = json!({"type": "ERROR", "object": status}).to_string() + "\n";
        let gone = Rendered { json: line, protobuf: protobuf::error(410, "too old resource version") };
        chunk(stream, gone.octets(protobuf)).await?;
        stream.write_all(END).await?;
        return Ok(true);
    }
    for event in missed {
        chunk(stream, event.octets(protobuf)).await?;
    }
    loop {
        let next = tokio::time::timeout(BOOKMARK, async {
            if slices { events.recv().await } else { std::future::pending().await }
        });
        let next = tokio::select! {
            next = next => next,
            () = tokio::time::sleep_until(ends) => {
                stream.write_all(END).await?;
                return Ok(true);
            }
        };
        match next {
            Ok(Ok(event)) => chunk(stream, event.octets(protobuf)).await?,
            // Who is so far behind lists anew, as at a real one.
            Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return Ok(false),
            Err(_) => {
                let bookmark = {
                    let now = shared.now();
                    if !events.is_empty() {
                        continue; // a bookmark must not be ahead of them
                    }
                    of.bookmark(now.version)
                };
                chunk(stream, bookmark.octets(protobuf)).await?;
            }
        }
    }
}

async fn chunk(stream: &mut BufReader<TcpStream>, octets: &[u8]) -> io::Result<()> {
    let head = format!("{:x}\r\n", octets.len());
    stream.write_all(&[head.as_bytes(), octets, b"\r\n"].concat()).await
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
