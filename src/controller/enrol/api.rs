//! Single requests to a cluster, as the operator who runs the command.

use std::time::{Duration, Instant};

use http::Request;
use kube::{Client, Error};
use serde_json::Value;

use crate::source::kube::{Access, KubeError};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long until a request is repeated that the API server was not ready for.
const AGAIN: Duration = Duration::from_millis(200);

/// The field manager of what these commands write; the controller has one of its own.
const MANAGER: &str = "namesake-join";

/// Why it could not be done. `Display` says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// No client.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// A request was refused, or not answered.
    #[error("{cluster}: {doing}: {message}; {remedy}")]
    Request {
        /// The context.
        cluster: String,
        /// What was asked.
        doing: String,
        /// The HTTP status; 0 where there was no answer.
        code: u16,
        /// What was said.
        message: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It can't be done.
    #[error("{cluster}: {message}")]
    Refused {
        /// The context.
        cluster: String,
        /// Why, and what to do.
        message: String,
    },
}

impl EnrolError {
    pub(super) fn refused(cluster: &Cluster, message: impl Into<String>) -> Self {
        Self::Refused { cluster: cluster.name.clone(), message: message.into() }
    }

    /// The HTTP status, where there was one.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Request { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// What came of writing an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Changed,
    Unchanged,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A cluster, and the name that the operator knows it by.
pub struct Cluster {
    /// The context.
    pub name: String,
    client: Client,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects; nothing is asked yet.
    ///
    /// # Errors
    /// Where there can be no client.
    pub async fn connect(name: &str, access: &Access) -> Result<Self, EnrolError> {
        Ok(Self { name: name.to_owned(), client: access.client().await? })
    }

    /// The object at `path`, or `None` where there is none.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, EnrolError> {
        match self.request("GET", path, None, "application/json").await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects of a list, in pages; none where the kind is not served.
    pub(super) async fn list(&self, path: &str, query: &str) -> Result<Vec<Value>, EnrolError> {
        let (mut items, mut next) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit=500{query}{next}")).await?.unwrap_or_default();
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={}", escaped(token)),
                None => return Ok(items),
            }
        }
    }

    /// Server-side apply, in the command's own name.
    pub(super) async fn apply(&self, path: &str, object: &Value) -> Result<Outcome, EnrolError> {
        let before = self.get(path).await?;
        let after = self.apply_as(MANAGER, path, object).await?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        Ok(match before {
            None => Outcome::Created,
            Some(before) if version(&before) == version(&after) => Outcome::Unchanged,
            Some(_) => Outcome::Changed,
        })
    }

    /// Server-side apply in the name of `manager`.
    pub(super) async fn apply_as(&self, manager: &str, path: &str, object: &Value) -> Result<Value, EnrolError> {
        let uri = format!("{path}?fieldManager={manager}&force=true");
        self.request("PATCH", &uri, Some(object), "application/apply-patch+yaml").await
    }

    /// Deletes an object, if it is still the one that was seen; whether it was there. A change in between is an error
    /// with the code 409.
    pub(super) async fn delete(&self, path: &str, seen: &Value) -> Result<bool, EnrolError> {
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {
                "uid": seen["metadata"]["uid"], "resourceVersion": seen["metadata"]["resourceVersion"],
            },
        });
        match self.request("DELETE", path, Some(&options), "application/json").await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One request; again where the API server says that it is not ready for it just now, as it does of a new CRD.
    pub(super) async fn request(
        &self,
        method: &str,
        uri: &str,
        body: Option<&Value>,
        content: &str,
    ) -> Result<Value, EnrolError> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.once(method, uri, body, content).await {
                Err(error) if matches!(error.code(), Some(429 | 503 | 504)) && Instant::now() < end => {
                    tokio::time::sleep(AGAIN).await;
                }
                answer => return answer,
            }
        }
    }

    async fn once(&self, method: &str, uri: &str, body: Option<&Value>, content: &str) -> Result<Value, EnrolError> {
        let path = uri.split('?').next().unwrap_or_default();
        let failed = |code: u16, message: String| EnrolError::Request {
            cluster: self.name.clone(),
            doing: format!("{method} {path}"),
            code,
            message,
            remedy: remedy(code),
        };
        let bytes = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::CONTENT_TYPE, content)
            .body(bytes)
            .map_err(|error| failed(0, error.to_string()))?;
        match tokio::time::timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(Ok(text)) => serde_json::from_str(&text).map_err(|error| failed(0, error.to_string())),
            Ok(Err(Error::Api(status))) => Err(failed(status.code, status.message.trim().to_owned())),
            Ok(Err(error)) => Err(failed(0, crate::source::kube::chain(&error))),
            Err(_) => Err(failed(0, format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

fn remedy(code: u16) -> &'static str {
    match code {
        0 => "check the address and the network, and repeat the command",
        401 => "renew the credentials of this context, and repeat the command",
        403 => "use a context that may do this, such as a cluster administrator's, and repeat the command",
        409 => "somebody changed it meanwhile: repeat the command",
        _ => "repeat the command when this is mended",
    }
}

/// `text` as part of a query (RFC 3986 §2.1).
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
