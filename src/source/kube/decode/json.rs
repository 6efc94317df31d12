//! In JSON: an event is a line.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Encoded, Event, Page};
use crate::source::kube::server::Failure;

#[derive(Deserialize)]
struct RawPage<'a> {
    metadata: Option<ListMeta>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Names {
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
    message: Option<String>,
}

pub(super) fn page(octets: &[u8]) -> Result<Page<'_>, String> {
    let text = std::str::from_utf8(octets).map_err(|error| error.to_string())?;
    let page: RawPage<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let meta = page.metadata.unwrap_or_default();
    Ok(Page {
        version: meta.resource_version.unwrap_or_default(),
        next: meta.next.unwrap_or_default(),
        items: page.items.unwrap_or_default().into_iter().map(|item| Encoded::Json(item.get())).collect(),
    })
}

pub(super) fn event(line: &[u8]) -> Result<(Event<'_>, Option<String>), String> {
    let raw: RawEvent<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if raw.kind == "ERROR" {
        let status: Status = serde_json::from_str(raw.object.get()).map_err(|error| error.to_string())?;
        let message = status.message.unwrap_or_default();
        return Ok((Event::Failed(Failure::of_code(status.code.unwrap_or_default(), &message)), None));
    }
    let version = metadata::<ListMeta>(raw.object.get()).and_then(|meta| meta.resource_version);
    let version = version.filter(|version| !version.is_empty());
    Ok((Event::new(raw.kind.as_bytes(), Encoded::Json(raw.object.get())), version))
}

pub(super) fn status(octets: &[u8]) -> Option<String> {
    serde_json::from_slice::<Status>(octets).ok()?.message
}

/// The version of an object as a number; 0 where it says none. They can be compared (Kubernetes 1.35, KEP-5504).
pub(crate) fn version(object: &str) -> u64 {
    let version = metadata::<ListMeta>(object).and_then(|meta| meta.resource_version);
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Namespace and name of an object, as far as it says.
pub(in crate::source::kube) fn name(object: &str) -> (String, String) {
    let names = metadata::<Names>(object);
    names.map(|n| (n.namespace.unwrap_or_default(), n.name.unwrap_or_default())).unwrap_or_default()
}

/// The metadata of an object. What comes behind it, which is most of a slice, is not looked at.
fn metadata<'a, T: Deserialize<'a>>(object: &'a str) -> Option<T> {
    let mut found = None;
    // Ends with an error in any case but that of an object without metadata, for reading stops where they end.
    let _ = Metadata(&mut found).deserialize(&mut serde_json::Deserializer::from_str(object));
    found
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Metadata,
    #[serde(other)]
    Other,
}

struct Metadata<'f, T>(&'f mut Option<T>);

impl<'a, T: Deserialize<'a>> DeserializeSeed<'a> for Metadata<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

impl<'a, T: Deserialize<'a>> Visitor<'a> for Metadata<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key()? {
            match field {
                Field::Metadata => {
                    *self.0 = fields.next_value()?;
                    return Err(A::Error::custom("that is all that is wanted"));
                }
                Field::Other => fields.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kube::decode::{page as any_page, status as any_status};
    use crate::source::kube::media::{Media, Reply};

    #[test]
    fn a_page_hands_out_objects_unseen() {
        let text = r#"{"kind":"List","metadata":{"resourceVersion":"7","continue":"t"},"items":[{"a":1},5,"x"]}"#;
        let page = page(text.as_bytes()).unwrap();
        assert_eq!((page.version.as_str(), page.next.as_str()), ("7", "t"));
        let items: Vec<_> = page.items.iter().filter_map(Encoded::json).collect();
        assert_eq!(items, [r#"{"a":1}"#, "5", "\"x\""]);
    }

    #[test]
    fn a_page_may_be_bare_but_must_be_one() {
        let bare = |text: &'static str| {
            any_page(&Reply { media: Media::Json, octets: text.into() }).map(|page| page.items.len())
        };
        assert_eq!(bare(r#"{"items":null,"metadata":{"resourceVersion":"7"}}"#), Ok(0));
        let none = bare("{}").unwrap_err().to_string();
        assert_eq!(none, "the answer to a list request is no list: it has no resourceVersion");
        assert!(page(b"<html>").is_err());
        assert!(page(b"{\"items\":[\"\xff\"]}").is_err());
    }

    #[test]
    fn wch_03_an_error_event_is_a_failure_like_a_status() {
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(matches!(event(gone), Ok((Event::Failed(Failure::Gone), None))));
        let odd = br#"{"type":"ERROR","object":{"code":500,"message":"etcd"}}"#;
        assert!(matches!(event(odd), Ok((Event::Failed(Failure::Unreachable(m)), None)) if m.contains("etcd")));
    }

    #[test]
    fn what_is_no_status_speaks_for_itself() {
        let said = |text: &'static str| any_status(&Reply { media: Media::Json, octets: text.into() });
        assert_eq!(said(r#"{"kind":"Status","message":"no","code":403}"#), "no");
        assert_eq!(said(r#"{"error":"upstream down"}"#), r#"{"error":"upstream down"}"#);
        assert_eq!(said("<html>\r\n<b>502</b>\n"), "<html>  <b>502</b>");
        assert_eq!(said(""), "");
        let long: &'static str = "x".repeat(1_000).leak();
        assert_eq!(said(long).len(), 200);
    }

    #[test]
    fn metadata_are_found_wherever_they_stand_and_what_follows_is_not_looked_at() {
        assert_eq!(version(r#"{"metadata":{"resourceVersion":"7"},"endpoints":[{"addresses":"#), 7);
        assert_eq!(
            version(r#"{"endpoints":[{"metadata":{"resourceVersion":"1"}}],"metadata":{"resourceVersion":"7"}}"#),
            7
        );
        for none in [r#"{"endpoints":[]}"#, r#"{"metadata":null}"#, r#"{"metadata":{}}"#, "[]", "7", ""] {
            assert_eq!((version(none), name(none)), (0, (String::new(), String::new())), "{none}");
        }
        let named = r#"{"kind":"X","metadata":{"name":"db\u002da","namespace":"shop"}}"#;
        assert_eq!(name(named), ("shop".to_owned(), "db-a".to_owned()));
    }

    #[test]
    fn events_carry_their_version() {
        let line = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(matches!(event(line), Ok((Event::Bookmark, Some(v))) if v == "9"));
        let line = br#"{"type":"DELETED","object":{"metadata":{"name":"x"}}}"#;
        assert!(matches!(event(line), Ok((Event::Deleted(_), None))));
        assert!(event(b"{\"type\":\"ADDED\",").is_err());
    }
}
