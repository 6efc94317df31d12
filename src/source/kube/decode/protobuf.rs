//! In Kubernetes' protobuf: the messages of `generated.proto` in `k8s.io/apimachinery`, with the fields that are read.
//!
//! ```text
//!  object   "k8s\0", runtime.Unknown { typeMeta = 1 { kind = 2 }, raw = 2: the object's message }
//!  event    meta.WatchEvent { type = 1, object = 2 { raw = 1: an object } }
//! ```

use bytes::Bytes;
use prost::Message;

use super::{Encoded, Event, Page};
use crate::source::kube::server::Failure;

/// What a whole object begins with.
const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    next: String,
}

#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(bytes = "bytes", tag = "1")]
    kind: Bytes,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "3")]
    message: String,
    #[prost(int32, optional, tag = "6")]
    code: Option<i32>,
}

/// Any object.
#[derive(Clone, PartialEq, Message)]
struct Anonymous {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "6")]
    resource_version: String,
}

/// Kind and message of a whole object.
fn opened(octets: &Bytes) -> Result<(String, Bytes), String> {
    if !octets.starts_with(MAGIC) {
        return Err(format!("Kubernetes' protobuf begins with \"k8s\\0\", this with {:?}", head(octets)));
    }
    let Unknown { type_meta, raw } = decoded(octets.slice(MAGIC.len()..))?;
    Ok((type_meta.unwrap_or_default().kind, raw))
}

fn head(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets.get(..octets.len().min(8)).unwrap_or_default()).into_owned()
}

fn decoded<T: Message + Default>(octets: Bytes) -> Result<T, String> {
    T::decode(octets).map_err(|error| error.to_string())
}

pub(super) fn page(octets: &Bytes) -> Result<Page<'static>, String> {
    let (kind, list) = opened(octets)?;
    if !kind.ends_with("List") {
        return Err(format!("its kind is {kind:?}"));
    }
    let List { metadata, items } = decoded(list)?;
    let ListMeta { resource_version, next } = metadata.unwrap_or_default();
    Ok(Page { version: resource_version, next, items: items.into_iter().map(Encoded::Protobuf).collect() })
}

pub(super) fn event(frame: &[u8]) -> Result<(Event<'static>, Option<String>), String> {
    let WatchEvent { kind, object } = decoded(Bytes::copy_from_slice(frame))?;
    let (_, object) = opened(&object.unwrap_or_default().raw)?;
    if kind == "ERROR" {
        let Status { message, code } = decoded(object)?;
        let code = code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
        return Ok((Event::Failed(Failure::of_code(code, &message)), None));
    }
    let version = version(&object).filter(|version| !version.is_empty());
    Ok((Event::new(&kind, Encoded::Protobuf(object)), version))
}

pub(super) fn status(octets: &Bytes) -> Option<String> {
    match opened(octets).ok()? {
        (kind, status) if kind == "Status" => Some(decoded::<Status>(status).ok()?.message),
        _ => None,
    }
}

/// The version of an object. Metadata come first, so it says so even if it breaks off behind them.
fn version(octets: &Bytes) -> Option<String> {
    let mut object = Anonymous::default();
    let _ = object.merge(octets.clone());
    Some(object.metadata?.resource_version)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testbed::protobuf as made;

    use super::*;
    use crate::source::kube::decode::{Media, page as any_page, status as any_status};
    use crate::source::kube::media::Reply;

    fn slice(name: &str, version: &str) -> Vec<u8> {
        made::slice(&json!({
            "metadata": {"namespace": "shop", "name": name, "resourceVersion": version, "labels": {"a": "b"},
                         "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}]},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
        }))
        .unwrap()
    }

    fn reply(octets: Vec<u8>) -> Reply {
        Reply { media: Media::Protobuf, octets: octets.into() }
    }

    #[test]
    fn a_page_hands_out_objects_unseen_also_one_that_is_broken() {
        let items = [slice("a", "5"), vec![0xff; 3], slice("b", "6")];
        let list = reply(made::list(items.iter().map(|item| &item[..]), 7, "t"));
        let page = any_page(&list).unwrap();
        assert_eq!((page.version.as_str(), page.next.as_str()), ("7", "t"));
        let same =
            page.items.iter().zip(&items).all(|(item, sent)| matches!(item, Encoded::Protobuf(came) if came == sent));
        assert!(same && page.items.len() == 3, "{page:?}");
    }

    #[test]
    fn what_is_no_list_says_what_it_begins_with() {
        let error = any_page(&reply(b"<html>no</html>".to_vec())).unwrap_err();
        assert!(error.to_string().contains("this with \"<html>no\""), "{error}");
        assert!(any_page(&reply(b"k8s\0\xff".to_vec())).is_err());
        assert!(any_page(&reply(Vec::new())).is_err());
        let said = |octets| any_page(&reply(octets)).unwrap_err().to_string();
        assert!(said(b"k8s\0".to_vec()).ends_with("no list: its kind is \"\""));
        assert!(said(made::status(200, "well")).ends_with("no list: its kind is \"Status\""));
        let list = made::list(std::iter::empty(), 7, "");
        assert!(any_page(&reply(list)).is_ok());
        let without = b"k8s\0\x0a\x06\x12\x04List\x12\0".to_vec();
        assert!(said(without).ends_with("no list: it has no resourceVersion"));
    }

    #[test]
    fn events_carry_their_object_and_its_version() {
        for (kind, present) in [("ADDED", true), ("MODIFIED", true), ("DELETED", false)] {
            let framed = made::event(kind, &slice("a", "9"));
            let (event, version) = event(&framed[4..]).unwrap();
            let (Event::Present(object) | Event::Deleted(object)) = &event else { panic!("{event:?}") };
            assert_eq!(matches!(event, Event::Present(_)), present, "{kind}");
            let Encoded::Protobuf(octets) = object else { panic!("{object:?}") };
            assert_eq!((octets, version.as_deref()), (&slice("a", "9").into(), Some("9")));
        }
        let bookmark = made::event("BOOKMARK", &made::versioned(&[], 12));
        assert!(matches!(event(&bookmark[4..]), Ok((Event::Bookmark, Some(v))) if v == "12"));
        let unknown = made::event("NEWS", &slice("a", "9"));
        assert!(matches!(event(&unknown[4..]), Ok((Event::Bookmark, Some(_)))));
    }

    #[test]
    fn wch_03_an_error_event_is_a_failure_like_a_status() {
        let failed = |code, message| match event(&made::error(code, message)[4..]) {
            Ok((Event::Failed(failure), None)) => failure,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(410, "too old"), Failure::Gone);
        assert_eq!(failed(500, "etcd"), Failure::Unreachable("HTTP status 500: etcd".to_owned()));
        assert_eq!(any_status(&reply(made::status(403, "no"))), "no");
        assert_eq!(any_status(&reply(b" bad\ngateway\n".to_vec())), "bad gateway");
        assert_eq!(any_status(&reply(made::list(std::iter::empty(), 7, ""))).get(..3), Some("k8s"));
    }

    #[test]
    fn nothing_that_comes_makes_it_panic() {
        let good = made::event("MODIFIED", &slice("a", "9")).split_off(4);
        for at in 0..good.len() {
            let _ = event(&good[..at]);
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let _ = event(&bad);
            }
        }
    }
}
