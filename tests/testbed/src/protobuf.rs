//! EndpointSlices in Kubernetes' protobuf, made of their JSON, for API servers that are played: as `generated.proto` of
//! `k8s.io/api/discovery/v1` and of `k8s.io/apimachinery` has it.
//!
//! ```text
//!  object   "k8s\0", Unknown { typeMeta = 1 { apiVersion = 1, kind = 2 }, raw = 2 }
//!  watch    for each event its length in 4 octets, big-endian, and WatchEvent { type = 1, object = 2 { raw = 1: an object } }
//! ```

use serde_json::{Map, Value};

/// The media type of objects; that of a watch has `;stream=watch` behind it.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// A field of octets: text, or a message.
fn field(out: &mut Vec<u8>, number: u8, value: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

/// A field of a number or a truth. A negative one has ten octets, as if it had 64 bits.
fn number(out: &mut Vec<u8>, number: u8, value: i64) {
    varint(out, u64::from(number) << 3);
    varint(out, value.cast_unsigned());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// What `object` has of these texts. Null is as if it were not there.
fn texts(out: &mut Vec<u8>, object: &Value, names: &[(u8, &str)]) -> Option<()> {
    for (number, name) in names {
        match &object[*name] {
            Value::Null => {}
            value => field(out, *number, value.as_str()?.as_bytes()),
        }
    }
    Some(())
}

/// A list, each entry as a message of its own.
fn messages(
    out: &mut Vec<u8>,
    number: u8,
    list: &Value,
    fill: impl Fn(&mut Vec<u8>, &Value) -> Option<()>,
) -> Option<()> {
    if list.is_null() {
        return Some(());
    }
    for entry in list.as_array()? {
        let mut message = Vec::new();
        fill(&mut message, entry.is_object().then_some(entry)?)?;
        field(out, number, &message);
    }
    Some(())
}

/// A `map<string, string>`.
fn map(out: &mut Vec<u8>, number: u8, map: &Value) -> Option<()> {
    let none = Map::new();
    for (key, value) in if map.is_null() { &none } else { map.as_object()? } {
        let value = value.as_str()?;
        let entry = message(|out| {
            field(out, 1, key.as_bytes());
            field(out, 2, value.as_bytes());
        });
        field(out, number, &entry);
    }
    Some(())
}

fn metadata(out: &mut Vec<u8>, meta: &Value) -> Option<()> {
    texts(out, meta, &[(1, "name"), (3, "namespace"), (5, "uid"), (6, "resourceVersion")])?;
    map(out, 11, &meta["labels"])?;
    map(out, 12, &meta["annotations"])?;
    messages(out, 17, &meta["managedFields"], |out, managed| {
        texts(out, managed, &[(1, "manager"), (2, "operation"), (3, "apiVersion"), (6, "fieldsType")])?;
        let fields = managed["fieldsV1"].to_string();
        field(out, 7, &message(|out| field(out, 1, fields.as_bytes())));
        Some(())
    })
}

fn endpoint(out: &mut Vec<u8>, endpoint: &Value) -> Option<()> {
    if !endpoint["addresses"].is_null() {
        for address in endpoint["addresses"].as_array()? {
            field(out, 1, address.as_str()?.as_bytes());
        }
    }
    let conditions = &endpoint["conditions"];
    if !conditions.is_null() {
        conditions.as_object()?;
        let mut message = Vec::new();
        for (at, name) in [(1, "ready"), (2, "serving"), (3, "terminating")] {
            match &conditions[name] {
                Value::Null => {}
                value => number(&mut message, at, i64::from(value.as_bool()?)),
            }
        }
        field(out, 2, &message);
    }
    texts(out, endpoint, &[(3, "hostname"), (6, "nodeName"), (7, "zone")])?;
    let target = &endpoint["targetRef"];
    if !target.is_null() {
        let mut message = Vec::new();
        target.as_object()?;
        texts(&mut message, target, &[(1, "kind"), (2, "namespace"), (3, "name"), (4, "uid")])?;
        field(out, 4, &message);
    }
    Some(())
}

fn port(out: &mut Vec<u8>, port: &Value) -> Option<()> {
    texts(out, port, &[(1, "name"), (2, "protocol"), (4, "appProtocol")])?;
    match &port["port"] {
        Value::Null => {}
        value => number(out, 3, i64::from(i32::try_from(value.as_i64()?).ok()?)),
    }
    Some(())
}

/// The message of an EndpointSlice; `None` of what no message can hold, such as a number where a text belongs.
#[must_use]
pub fn slice(object: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let meta = &object["metadata"];
    let mut message = Vec::new();
    metadata(&mut message, if meta.is_null() { meta } else { meta.is_object().then_some(meta)? })?;
    field(&mut out, 1, &message);
    messages(&mut out, 2, &object["endpoints"], endpoint)?;
    messages(&mut out, 3, &object["ports"], port)?;
    texts(&mut out, object, &[(4, "addressType")])?;
    Some(out)
}

/// A slice with this version: a message that comes twice is the sum of both.
#[must_use]
pub fn versioned(slice: &[u8], version: u64) -> Vec<u8> {
    let mut out = slice.to_vec();
    field(&mut out, 1, &message(|out| field(out, 6, version.to_string().as_bytes())));
    out
}

/// A whole object: of a kind of some version of its API.
fn object(api: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = b"k8s\0".to_vec();
    let of = message(|out| {
        field(out, 1, api.as_bytes());
        field(out, 2, kind.as_bytes());
    });
    field(&mut out, 1, &of);
    field(&mut out, 2, raw);
    out
}

const API: &str = "discovery.k8s.io/v1";

/// A list of slices.
#[must_use]
pub fn list<'a>(slices: impl Iterator<Item = &'a [u8]>, version: u64, next: &str) -> Vec<u8> {
    let raw = message(|out| {
        let meta = message(|out| {
            field(out, 2, version.to_string().as_bytes());
            field(out, 3, next.as_bytes());
        });
        field(out, 1, &meta);
        slices.for_each(|slice| field(out, 2, slice));
    });
    object(API, "EndpointSliceList", &raw)
}

/// An event about a slice.
#[must_use]
pub fn event(kind: &str, slice: &[u8]) -> Vec<u8> {
    framed(kind, &object(API, "EndpointSlice", slice))
}

/// A Status that says what went wrong.
#[must_use]
pub fn status(code: u16, said: &str) -> Vec<u8> {
    let status = message(|out| {
        field(out, 2, b"Failure");
        field(out, 3, said.as_bytes());
        number(out, 6, i64::from(code));
    });
    object("v1", "Status", &status)
}

/// The event that ends a watch with a Status.
#[must_use]
pub fn error(code: u16, message: &str) -> Vec<u8> {
    framed("ERROR", &status(code, message))
}

fn framed(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = message(|out| {
        field(out, 1, kind.as_bytes());
        field(out, 2, &message(|out| field(out, 1, object)));
    });
    let mut out = u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend(event);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_take_seven_bits_an_octet_and_a_field_says_how_long_it_is() {
        assert_eq!(message(|out| number(out, 3, 8080)), [24, 0x90, 0x3f]);
        assert_eq!(message(|out| number(out, 3, -1)).len(), 11);
        assert_eq!(message(|out| field(out, 1, b"ab")), [10, 2, b'a', b'b']);
        assert_eq!(message(|out| field(out, 17, b""))[..2], [0x8a, 1]);
        assert_eq!(message(|out| field(out, 2, &[7; 300]))[..4], [18, 0xac, 2, 7]);
    }

    #[test]
    fn a_slice_is_octet_for_octet_what_the_proto_file_says() {
        let object = json!({
            "metadata": {"name": "n", "namespace": "s", "labels": {"k": "v"}}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["1.2.3.4"], "hostname": "h", "conditions": {"ready": true}}],
            "ports": [{"name": "p", "protocol": "TCP", "port": 80}],
        });
        let meta = b"\x0a\x01n\x1a\x01s\x5a\x06\x0a\x01k\x12\x01v";
        let endpoint = b"\x0a\x071.2.3.4\x12\x02\x08\x01\x1a\x01h";
        let port = b"\x0a\x01p\x12\x03TCP\x18\x50";
        let parts = [&b"\x0a\x0e"[..], meta, b"\x12\x10", endpoint, b"\x1a\x0a", port, b"\x22\x04IPv4"];
        let made = slice(&object).unwrap();
        assert_eq!(made, parts.concat());
        assert!(versioned(&made, 12).ends_with(b"\x0a\x04\x32\x0212"));
    }

    #[test]
    fn what_no_message_holds_has_none() {
        for wrong in [
            json!({"addressType": 4}),
            json!({"endpoints": [null]}),
            json!({"endpoints": [{"addresses": [4]}]}),
            json!({"ports": [{"port": "http"}]}),
            json!({"ports": [{"port": 1_i64 << 40}]}),
            json!({"metadata": []}),
        ] {
            assert_eq!(slice(&wrong), None, "{wrong}");
        }
        assert!(slice(&json!({"endpoints": null, "ports": [{"name": null}]})).is_some());
    }

    #[test]
    fn a_frame_begins_with_its_length_and_holds_a_whole_object() {
        let frame = event("MODIFIED", b"\x0a\x00");
        let length = u32::from_be_bytes(*frame.first_chunk().unwrap());
        assert_eq!(length as usize, frame.len() - 4);
        assert_eq!(frame[4..14], *b"\x0a\x08MODIFIED");
        assert!(frame.windows(4).any(|part| part == b"k8s\0"));
    }
}
