//! Pages of lists and events of watches, opened no further than is needed to hand single objects on.

mod json;
mod protobuf;

pub(crate) use json::version;

use super::media::{Body, Encoded, Media};
use super::server::Failure;

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The version of the list.
    pub(super) version: String,
    /// The token of the next page; empty at the last.
    pub(super) next: String,
    /// The objects, not decoded: one that does not decode must hide no other.
    pub(super) items: Vec<Encoded<'a>>,
}

/// What an event of a watch says.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// ADDED or MODIFIED.
    Present(Encoded<'a>),
    /// DELETED, with the last state.
    Deleted(Encoded<'a>),
    /// Nothing happened up to a version.
    Bookmark,
    /// ERROR.
    Failed(Failure),
}

impl<'a> Event<'a> {
    fn new(kind: &[u8], object: Encoded<'a>) -> Self {
        match kind {
            b"ADDED" | b"MODIFIED" => Self::Present(object),
            b"DELETED" => Self::Deleted(object),
            // A kind of event that we do not know tells us no more than that the watch is alive.
            _ => Self::Bookmark,
        }
    }
}

/// Opens a page.
pub(super) fn page(body: &Body) -> Result<Page<'_>, Failure> {
    let page = match body.media {
        Media::Json => json::page(&body.octets),
        Media::Protobuf => protobuf::page(&body.octets),
    };
    page.map_err(|what| Failure::Unreachable(format!("the answer to a list request is no list: {what}")))
}

/// Opens an event; with it comes the version it leads to, where it says one.
pub(super) fn event(media: Media, frame: &[u8]) -> Result<(Event<'_>, Option<String>), Failure> {
    let event = match media {
        Media::Json => json::event(frame),
        Media::Protobuf => protobuf::event(frame),
    };
    event.map_err(|what| Failure::Unreachable(format!("what the watch sent is no event: {what}")))
}

/// What the Status says that came in the place of what was asked for: its code, where it has one, and its message.
/// What is no Status speaks for itself.
pub(super) fn status(body: &Body) -> (Option<u16>, String) {
    let status = match body.media {
        Media::Json => json::status(&body.octets),
        Media::Protobuf => protobuf::status(&body.octets),
    };
    status.unwrap_or_else(|| (None, String::from_utf8_lossy(&body.octets).trim().to_owned()))
}

/// Namespace and name of an object, as far as it says.
pub(super) fn name(object: &Encoded<'_>) -> (String, String) {
    match object {
        Encoded::Json(json) => json::name(json),
        Encoded::Protobuf(octets) => protobuf::name(octets),
    }
}
