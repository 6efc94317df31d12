//! The routes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, RawQuery, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::Half;
use crate::metrics;

/// What every route may look at.
pub(super) struct Shared {
    pub(super) half: Box<dyn Half>,
    said: Mutex<Option<(&'static str, Instant)>>,
}

impl Shared {
    pub(super) fn new(half: Box<dyn Half>) -> Self {
        Self { half, said: Mutex::default() }
    }

    /// Not for every probe: those of a pod that waits a night for a CRD would be 40,000.
    fn log_not_ready(&self, body: &'static str) {
        if due(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner), body, Instant::now()) {
            tracing::info!("{}", self.half.unready_line(body));
        }
    }
}

/// How often the same is logged at most.
const SAID: Duration = Duration::from_secs(60);

/// Whether `body` is news, or was last said long ago.
fn due(said: &mut Option<(&'static str, Instant)>, body: &'static str, now: Instant) -> bool {
    let due = said.is_none_or(|(last, at)| last != body || now.saturating_duration_since(at) >= SAID);
    if due {
        *said = Some((body, now));
    }
    due
}

/// What a path says where nothing else is.
const PLAIN: [(axum::http::HeaderName, &str); 2] =
    [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")];

/// The routes of these parts of the admin address.
pub(super) fn router(parts: &[&'static str], shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    let mut paths = Vec::new();
    for part in parts {
        match *part {
            "health" => {
                router = router.route("/health", get(health));
                paths.push("/health");
            }
            "ready" => {
                router = router.route("/ready", get(ready));
                paths.extend(["/ready", "/ready?verbose"]);
            }
            "metrics" => {
                router = router.route("/metrics", get(scrape));
                paths.push("/metrics");
            }
            _ if shared.half.explain().is_some() => {
                router = router.route("/explain", get(explain));
                paths.push("/explain?name=NAME&type=TYPE");
            }
            _ => {}
        }
    }
    let list = paths.join("\n");
    router
        .fallback(move |uri: Uri| async move {
            let text = format!("{} is not here. What is:\n{list}\n", uri.path());
            (StatusCode::NOT_FOUND, PLAIN, text)
        })
        .method_not_allowed_fallback(|| async {
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], "only GET and HEAD\n")
        })
        .with_state(shared)
}

async fn health() -> impl IntoResponse {
    (PLAIN, "OK")
}

async fn ready(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Response {
    let is_verbose = |pair: &str| pair == "verbose" || pair.starts_with("verbose=");
    let verbose = query.is_some_and(|query| query.split('&').any(is_verbose));
    let (ready, short) = shared.half.ready();
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if !ready {
        shared.log_not_ready(short);
    }
    if verbose {
        // Looked at again, so that code and text say the same.
        let (ready, text) = shared.half.verbose();
        let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        return (code, PLAIN, text).into_response();
    }
    (code, PLAIN, short).into_response()
}

async fn scrape(State(shared): State<Arc<Shared>>) -> Response {
    match tokio::task::spawn_blocking(move || shared.half.metrics()).await {
        Ok(Ok(text)) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Ok(Err(error)) => broken(&error),
        Err(error) => broken(&error.to_string()),
    }
}

#[derive(Deserialize)]
struct Question {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

async fn explain(State(shared): State<Arc<Shared>>, question: Result<Query<Question>, QueryRejection>) -> Response {
    let (Some(explain), Ok(Query(Question { name: Some(name), kind }))) = (shared.half.explain(), question) else {
        let text = "say which name: /explain?name=hello.demo.svc.clusterset.local&type=A\n";
        return (StatusCode::BAD_REQUEST, PLAIN, text).into_response();
    };
    let text = tokio::task::spawn_blocking(move || explain(&name, kind.as_deref().unwrap_or("A")));
    match text.await {
        Ok(Ok(text)) => (PLAIN, text).into_response(),
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, PLAIN, error).into_response(),
        Err(error) => broken(&error.to_string()),
    }
}

fn broken(error: &str) -> Response {
    tracing::error!(error, "a request could not be answered");
    (StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_ready_is_said_once_a_minute_and_when_it_changes() {
        let (mut said, begin) = (None, Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut due = |body, seconds| super::due(&mut said, body, at(seconds));
        assert!(due("multicluster", 0));
        assert!(!due("multicluster", 2) && !due("multicluster", 59), "a probe comes every two seconds");
        assert!(due("multicluster", 60) && !due("multicluster", 61));
        assert!(due("Shutting down", 62) && !due("Shutting down", 64));
    }
}
