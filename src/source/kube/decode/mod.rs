//! Pages of lists and events of watches, opened no further than is needed to hand single objects on.

mod json;
mod protobuf;

pub(super) use json::name;
pub(crate) use json::version;

use super::media::{Encoded, Media, Reply};
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
pub(super) fn page(reply: &Reply) -> Result<Page<'_>, Failure> {
    let page = match reply.media {
        Media::Json => json::page(&reply.octets),
        Media::Protobuf => protobuf::page(&reply.octets),
    };
    let page = page.and_then(|page| match page.version.as_str() {
        "" => Err("it has no resourceVersion".to_owned()),
        _ => Ok(page),
    });
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

/// The message of the Status that came in the place of what was asked for. What is no Status, such as the page of a
/// proxy, speaks for itself: as much of it as fits into a line.
pub(super) fn status(reply: &Reply) -> String {
    const SHOWN: usize = 200;
    let message = match reply.media {
        Media::Json => json::status(&reply.octets),
        Media::Protobuf => protobuf::status(&reply.octets),
    };
    message.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&reply.octets);
        text.trim().chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
    })
}
