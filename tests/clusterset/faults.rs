//! A reverse proxy in front of an API server that answers some requests itself: with errors, as a server in trouble does.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::{Bed, Cluster};

/// Which requests are refused, and how: by method and path.
type Refuses = dyn Fn(&str, &str) -> Option<u16> + Send + Sync;

/// The proxy. It passes requests on with the token it was made with, and ends with the runtime of the test.
pub struct Faults {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    upstream: Client,
    refuses: Mutex<Arc<Refuses>>,
    refused: AtomicUsize,
    /// Requests of this method find their object changed by this merge patch of somebody else.
    meddling: Mutex<Option<(String, Value)>>,
    somebody: Client,
}

impl Faults {
    pub async fn start(bed: &Bed, cluster: &Cluster, token: &str) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap()));
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let state = Arc::new(State {
            upstream: cluster.client(token).unwrap(),
            refuses: Mutex::new(Arc::new(|_: &str, _: &str| None)),
            refused: AtomicUsize::new(0),
            meddling: Mutex::new(None),
            somebody: cluster.admin(),
        });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                let serve = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move { drop(serve.await) });
            }
        });
        Self { address, state }
    }

    /// A kubeconfig that leads here, with one context of this name.
    pub fn kubeconfig(&self, bed: &Bed, name: &str) -> PathBuf {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        bed.file(&format!("faults-{}.kubeconfig", self.address.port()), &config.to_string()).unwrap()
    }

    /// From now on these requests are refused.
    pub fn refuse(&self, which: impl Fn(&str, &str) -> Option<u16> + Send + Sync + 'static) {
        *self.state.refuses.lock().unwrap() = Arc::new(which);
    }

    /// From now on writes are refused with this code.
    pub fn refuse_writes(&self, code: u16) {
        self.refuse(move |method, _| (method != "GET").then_some(code));
    }

    /// From now on, somebody changes each object by this merge patch just before a request of this method reaches it.
    pub fn before(&self, method: &str, patch: Value) {
        *self.state.meddling.lock().unwrap() = Some((method.to_owned(), patch));
    }

    /// Everything passes again.
    pub fn heal(&self) {
        self.refuse(|_, _| None);
    }

    /// How many requests were refused so far.
    pub fn refused(&self) -> usize {
        self.state.refused.load(Ordering::Relaxed)
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let refuses = Arc::clone(&state.refuses.lock().unwrap());
    if let Some(code) = refuses(request.method().as_str(), request.uri().path()) {
        state.refused.fetch_add(1, Ordering::Relaxed);
        return Ok(refusal(code));
    }
    let meddling = state.meddling.lock().unwrap().clone();
    if let Some((_, patch)) = meddling.filter(|(method, _)| *method == request.method().as_str()) {
        let meddle = Request::patch(request.uri().path()).header("content-type", "application/merge-patch+json");
        let meddle = meddle.body(patch.to_string().into_bytes()).unwrap();
        drop(state.somebody.request_text(meddle).await);
    }
    let (mut parts, body) = request.into_parts();
    // The client towards the server sets its own.
    for header in ["host", "connection", "authorization"] {
        parts.headers.remove(header);
    }
    let Ok(bytes) = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await else {
        return Ok(refusal(502));
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    Ok(state.upstream.send(request).await.unwrap_or_else(|_| refusal(502)))
}

fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
                        "message": format!("the test refuses this with {code}")});
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    if code == 429 {
        response.headers_mut().insert("retry-after", "1".parse().unwrap());
    }
    response
}
