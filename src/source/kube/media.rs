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

    /// That of an answer to whoever asked for `asked`. There is no protobuf for those who asked for JSON, whatever the
    /// answer calls itself: they can't read it, and must say so.
    pub(super) fn of(asked: Self, headers: &HeaderMap) -> Self {
        let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // A watch's has `;stream=watch` behind it. Case means nothing (RFC 9110 §8.3.1).
        let said = said.split(';').next().unwrap_or_default().trim();
        if asked == Self::Protobuf && said.eq_ignore_ascii_case(PROTOBUF) { Self::Protobuf } else { Self::Json }
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
pub(super) struct Reply {
    pub(super) media: Media,
    pub(super) octets: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: Media, said: Option<&str>) -> Media {
        Media::of(asked, &said.map(|said| (CONTENT_TYPE, said.parse().unwrap())).into_iter().collect())
    }

    #[test]
    fn protobuf_is_what_says_so_to_who_asked_for_it() {
        for said in [PROTOBUF, "Application/VND.Kubernetes.Protobuf ; stream=watch"] {
            assert_eq!(of(Media::Protobuf, Some(said)), Media::Protobuf, "{said}");
            assert_eq!(of(Media::Json, Some(said)), Media::Json, "{said}");
        }
        for said in ["application/json", "text/html; charset=utf-8", "application/vnd.kubernetes.protobuffer", ""] {
            assert_eq!(of(Media::Protobuf, Some(said)), Media::Json, "{said}");
        }
        assert_eq!(of(Media::Protobuf, None), Media::Json);
        assert!(Media::Protobuf.accept().starts_with(PROTOBUF));
    }
}
