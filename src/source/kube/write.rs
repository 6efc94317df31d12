//! Requests that change something, and what their refusals mean.

use std::time::Duration;

use http::Request;
use kube::Error;

use super::access::chain;
use super::{Connection, Failure};

/// How long a write may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that changes something.
#[derive(Debug, Clone)]
pub struct Write {
    /// The HTTP method.
    pub method: &'static str,
    /// The verb, as RBAC rules and metrics name it.
    pub verb: &'static str,
    /// Path and query.
    pub uri: String,
    /// The type of the body.
    pub content: &'static str,
    /// The body.
    pub body: String,
}

/// Why a write was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The API server refused it.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// It does not accept our credentials, or they can't be had.
    #[error("the credentials are not accepted: {0}")]
    Unauthorized(String),
    /// There was no answer. Whether it was done is not known.
    #[error("{0}")]
    Unreachable(String),
}

/// A refusal: `metav1.Status`, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
#[error("{message} (HTTP status {code})")]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// `reason`: `NotFound`, `Conflict`, `Invalid` …
    pub reason: String,
    /// `message`
    pub message: String,
    /// `details.kind`: the resource that it is about.
    pub kind: String,
    /// `details.causes`, each its reason and its field.
    pub causes: Vec<(String, String)>,
    /// `details.retryAfterSeconds`
    pub retry_after: Option<Duration>,
}

impl WriteError {
    fn of(error: Error) -> Self {
        match error {
            Error::Api(status) if status.code == 401 => Self::Unauthorized(status.message),
            Error::Api(status) => {
                let mut refusal = Refusal {
                    code: status.code,
                    reason: status.reason,
                    message: status.message.trim().to_owned(),
                    ..Refusal::default()
                };
                if let Some(details) = status.details {
                    let retry = Duration::from_secs(u64::from(details.retry_after_seconds));
                    refusal.kind = details.kind;
                    refusal.causes = details.causes.into_iter().map(|cause| (cause.reason, cause.field)).collect();
                    refusal.retry_after = Some(retry).filter(|time| !time.is_zero());
                }
                Self::Refused(Box::new(refusal))
            }
            Error::Auth(error) => Self::Unauthorized(chain(&error)),
            Error::Service(error) => Self::Unreachable(chain(error.as_ref())),
            error => Self::Unreachable(chain(&error)),
        }
    }
}

impl Connection {
    /// Sends it; the answer's JSON.
    ///
    /// # Errors
    /// What the API server said, or that it said nothing.
    pub async fn write(&self, write: Write) -> Result<String, WriteError> {
        self.server.place().await;
        let request = Request::builder()
            .method(write.method)
            .uri(write.uri)
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::CONTENT_TYPE, write.content)
            .body(write.body.into_bytes())
            .map_err(|error| WriteError::Unreachable(chain(&error)))?;
        let client = self.server.client();
        let begin = std::time::Instant::now();
        let answer = match tokio::time::timeout(PATIENCE, client.request_text(request)).await {
            Ok(answer) => answer.map_err(WriteError::of),
            Err(_) => Err(WriteError::Unreachable(format!("no answer within {} s", PATIENCE.as_secs()))),
        };
        let code = match &answer {
            Ok(_) => "200".to_owned(),
            Err(WriteError::Refused(refusal)) => refusal.code.to_string(),
            Err(WriteError::Unauthorized(_)) => "401".to_owned(),
            Err(WriteError::Unreachable(_)) => "<error>".to_owned(),
        };
        self.server.observe(write.method, &code, begin.elapsed(), write.verb);
        if matches!(answer, Err(WriteError::Unauthorized(_))) {
            self.server.renew().await;
        }
        answer
    }

    /// The object at `path`, or `None` where there is none.
    ///
    /// # Errors
    /// What the API server said, or that it said nothing.
    pub async fn find(&self, path: &str) -> Result<Option<String>, WriteError> {
        match self.get(path).await {
            Ok(text) => Ok(Some(text)),
            Err(Failure::NotFound) => Ok(None),
            Err(Failure::Unauthorized(message)) => Err(WriteError::Unauthorized(message)),
            Err(Failure::Forbidden(message)) => {
                Err(WriteError::Refused(Box::new(Refusal { code: 403, message, ..Refusal::default() })))
            }
            Err(failure) => Err(WriteError::Unreachable(failure.to_string())),
        }
    }
}
