//! The two forms of what a scripted API server sends: JSON, and for slices Kubernetes' protobuf.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use testbed::protobuf;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

impl Form {
    pub(crate) fn event(self, kind: &str, object: &Value) -> Vec<u8> {
        match self {
            Self::Json => (json!({"type": kind, "object": object}).to_string() + "\n").into_bytes(),
            Self::Protobuf => protobuf::event(kind, &message(object)),
        }
    }

    pub(crate) fn list(self, items: &[&Value], version: u64, next: &str) -> Response {
        if self == Self::Protobuf {
            let items: Vec<_> = items.iter().map(|item| message(item)).collect();
            let list = protobuf::list(items.iter().map(|item| &item[..]), version, next);
            return ([("content-type", protobuf::MEDIA)], list).into_response();
        }
        let meta = json!({"resourceVersion": version.to_string(), "continue": next});
        json_of(&json!({"kind": "List", "metadata": meta, "items": items}))
    }

    pub(crate) fn watch(self, body: Body) -> Response {
        match self {
            Self::Json => ([("content-type", "application/json".to_owned())], body).into_response(),
            Self::Protobuf => ([("content-type", format!("{};stream=watch", protobuf::MEDIA))], body).into_response(),
        }
    }

    pub(crate) fn error(self, code: u16, message: &str) -> Response {
        let octets = match self {
            Self::Json => self.event("ERROR", &json!({"kind": "Status", "code": code, "message": message})),
            Self::Protobuf => protobuf::error(code, message),
        };
        self.watch(Body::from(octets))
    }

    pub(crate) fn status(self, code: u16, message: &str) -> Response {
        let status = StatusCode::from_u16(code).unwrap();
        match self {
            Self::Json => {
                let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code});
                (status, json_of(&body)).into_response()
            }
            Self::Protobuf => {
                (status, [("content-type", protobuf::MEDIA)], protobuf::status(code, message)).into_response()
            }
        }
    }
}

fn message(slice: &Value) -> Vec<u8> {
    protobuf::slice(slice).unwrap_or_else(|| panic!("no message holds this, let the server have `json_alone`: {slice}"))
}

pub(crate) fn json_of(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}
