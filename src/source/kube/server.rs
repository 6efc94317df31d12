//! The API server: one client, renewed when its credentials are; requests, and what their failures mean.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use futures_util::io::AsyncBufRead;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::{Client, Error};
use tracing::{info, warn};

use super::Observer;
use super::access::{Access, KubeError, Stamp, chain};
use super::connect::connect;
use super::decode;
use super::media::{Media, Reply};

/// How often at most the files of the credentials are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why there is no answer. What it means for a watch depends on what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// 410: too old a version, or an expired page token.
    #[error("410 Gone")]
    Gone,
    /// 404.
    #[error("not found")]
    NotFound,
    /// 403, with what the API server said.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// 401, or credentials that can't be had.
    #[error("the credentials are not accepted: {0}")]
    Unauthorized(String),
    /// Everything else: no connection, no answer in time, 429, 5xx, an answer that makes no sense.
    #[error("{0}")]
    Unreachable(String),
}

impl Failure {
    /// The failure of an HTTP status or of an ERROR event, which say the same.
    pub(super) fn of_code(code: u16, message: &str) -> Self {
        let message = message.trim().to_owned();
        match code {
            410 => Self::Gone,
            404 => Self::NotFound,
            403 => Self::Forbidden(message),
            401 => Self::Unauthorized(if message.is_empty() { "401 Unauthorized".to_owned() } else { message }),
            _ => Self::Unreachable(format!("HTTP status {code}: {message}")),
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Auth(error) => Self::Unauthorized(chain(error)),
            Error::Service(error) => Self::Unreachable(chain(error.as_ref())),
            error => Self::Unreachable(chain(error)),
        }
    }
}

/// The API server, shared by the watches of a source.
pub(super) struct Server {
    access: Access,
    observer: Arc<dyn Observer>,
    current: Mutex<Current>,
}

struct Current {
    client: Client,
    host: Arc<str>,
    /// Counts the servers that the credentials led to.
    place: u64,
    stamp: Stamp,
    looked: Instant,
    /// Whether the files could not be used when they were last read; said once.
    broken: bool,
}

impl Server {
    pub(super) async fn new(access: Access, observer: Arc<dyn Observer>) -> Result<Self, KubeError> {
        let stamp = access.stamp();
        let (client, host) = connect(&access).await?;
        let current = Current { client, host, place: 0, stamp, looked: Instant::now(), broken: false };
        Ok(Self { access, observer, current: Mutex::new(current) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which server the credentials lead to, as they are now on disk. It changes when they lead to another: versions
    /// of one mean nothing to the other.
    pub(super) async fn place(&self) -> u64 {
        let due = {
            let mut current = self.lock();
            let due = current.looked.elapsed() >= LOOK;
            if due {
                current.looked = Instant::now();
            }
            due
        };
        if due && self.access.stamp() != self.lock().stamp {
            self.renew().await;
        }
        self.lock().place
    }

    /// The client as it is now.
    pub(super) fn client(&self) -> Client {
        self.lock().client.clone()
    }

    fn connection(&self) -> (Client, Arc<str>) {
        let current = self.lock();
        (current.client.clone(), current.host.clone())
    }

    /// Reads the credentials again and connects anew. Where that fails the old client stays.
    pub(super) async fn renew(&self) {
        let stamp = self.access.stamp();
        let fresh = connect(&self.access).await;
        let mut current = self.lock();
        current.looked = Instant::now();
        match fresh {
            Ok((client, host)) => {
                if current.stamp != stamp || current.broken {
                    info!("took up the renewed credentials of {}", self.access.describe());
                }
                let place = current.place + u64::from(current.host != host);
                *current = Current { client, host, place, stamp, looked: Instant::now(), broken: false };
            }
            // The stamp stays the old one, so it is tried again: the file may be half written.
            Err(error) if !current.broken => {
                current.broken = true;
                warn!("{error} (the credentials read before stay in use)");
            }
            Err(_) => {}
        }
    }

    /// The JSON at `uri`.
    pub(super) async fn get(&self, verb: &'static str, uri: &str, within: Duration) -> Result<String, Failure> {
        text(uri, self.reply(verb, uri, Media::Json, within).await?)
    }

    /// The reply at `uri`, at best in the form `media`.
    pub(super) async fn reply(
        &self,
        verb: &'static str,
        uri: &str,
        media: Media,
        within: Duration,
    ) -> Result<Reply, Failure> {
        let (client, host) = self.connection();
        let reply = async { sent(&client, Request::get(uri), Vec::new(), media).await?.whole().await };
        self.observed("GET", verb, &host, within, reply).await
    }

    /// The answer to `body` at `uri`.
    pub(super) async fn post(&self, uri: &str, body: String, within: Duration) -> Result<String, Failure> {
        let (client, host) = self.connection();
        let request = Request::post(uri).header(CONTENT_TYPE, "application/json");
        let reply = async { sent(&client, request, body.into_bytes(), Media::Json).await?.whole().await };
        text(uri, self.observed("POST", "create", &host, within, reply).await?)
    }

    /// What comes at `uri`, at best in the form `media`, once the API server has begun to answer.
    pub(super) async fn stream(
        &self,
        uri: &str,
        media: Media,
        within: Duration,
    ) -> Result<(Media, impl AsyncBufRead + use<>), Failure> {
        let (client, host) = self.connection();
        let answer = sent(&client, Request::get(uri), Vec::new(), media);
        let Answer { media, body } = self.observed("GET", "watch", &host, within, answer).await?;
        Ok((media, body.into_data_stream().map_err(std::io::Error::other).into_async_read()))
    }

    /// A request that was not sent by one of these methods was answered.
    pub(super) fn observe(&self, method: &str, code: &str, took: Duration, verb: &str) {
        let host = self.lock().host.clone();
        self.observer.request(method, &host, code, took.as_secs_f64(), verb);
    }

    async fn observed<T>(
        &self,
        method: &str,
        verb: &'static str,
        host: &str,
        within: Duration,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let answer = tokio::time::timeout(within, answer)
            .await
            .unwrap_or_else(|_| Err(Failure::Unreachable(format!("no answer within {} s", within.as_secs()))));
        let code = match &answer {
            Ok(_) => "200",
            Err(Failure::Gone) => "410",
            Err(Failure::NotFound) => "404",
            Err(Failure::Forbidden(_)) => "403",
            Err(Failure::Unauthorized(_)) => "401",
            Err(Failure::Unreachable(message)) => status_in(message).unwrap_or("<error>"),
        };
        self.observer.request(method, host, code, start.elapsed().as_secs_f64(), verb);
        answer
    }
}

/// The code in the message of [`Failure::of_code`].
fn status_in(message: &str) -> Option<&str> {
    let code = message.strip_prefix("HTTP status ")?.split(':').next()?;
    (code.len() == 3).then_some(code)
}

/// An answer that has begun.
struct Answer {
    media: Media,
    body: kube::client::Body,
}

impl Answer {
    async fn whole(self) -> Result<Reply, Failure> {
        let octets = self.body.collect().await.map_err(|e| Failure::of(&e))?.to_bytes();
        Ok(Reply { media: self.media, octets })
    }
}

/// The answer to a request for `media`, unless it is an error. Which one says the HTTP status, whoever wrote the body.
async fn sent(
    client: &Client,
    request: http::request::Builder,
    body: Vec<u8>,
    media: Media,
) -> Result<Answer, Failure> {
    let request = request.header(ACCEPT, media.accept()).body(body.into());
    let request = request.map_err(|e| Failure::Unreachable(chain(&e)))?;
    let (head, body) = client.send(request).await.map_err(|e| Failure::of(&e))?.into_parts();
    let answer = Answer { media: Media::of(media, &head.headers), body };
    if !(head.status.is_client_error() || head.status.is_server_error()) {
        return Ok(answer);
    }
    // Also where it breaks off: that it was refused is known.
    let message = answer.whole().await.map(|reply| decode::status(&reply)).unwrap_or_default();
    Err(Failure::of_code(head.status.as_u16(), &message))
}

fn text(uri: &str, reply: Reply) -> Result<String, Failure> {
    let text = String::from_utf8(reply.octets.into());
    text.map_err(|e| Failure::Unreachable(format!("the answer to {uri} is no text: {e}")))
}
