//! The two forms in which an API server writes objects, and an object as it came in one of them.
//!
//! Kubernetes' protobuf is several times quicker to write there and to read here, and half as long; of custom resources
//! there is JSON alone. Whoever asks for protobuf takes JSON too: something in between may not know better.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The media type of Kubernetes' protobuf (`k8s.io/apimachinery`, `runtime.ContentTypeProtobuf`).
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Protobuf,
}

impl Media {
    /// The `Accept` of whoever takes this.
    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf, application/json;q=0.9",
        }
    }

    /// That of an answer. A watch's has `;stream=watch` behind it.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let said = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
        if said.starts_with(PROTOBUF.as_bytes()) { Self::Protobuf } else { Self::Json }
    }
}

/// An object as it came, not decoded yet.
#[derive(Debug)]
pub enum Encoded<'a> {
    /// Its JSON.
    Json(&'a str),
    /// Its message, without the envelope that says what kind of object it is.
    Protobuf(Bytes),
}

impl<'a> Encoded<'a> {
    /// The JSON: always there for whoever asks for nothing else.
    #[must_use]
    pub fn json(&self) -> Option<&'a str> {
        match self {
            Self::Json(json) => Some(json),
            Self::Protobuf(_) => None,
        }
    }
}

/// The answer to a request, whole.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) media: Media,
    pub(super) octets: Bytes,
}
