//! EndpointSlices in Kubernetes' protobuf, which client-go asks for where it can get it: as `generated.proto` of
//! `k8s.io/api/discovery/v1` and of `k8s.io/apimachinery` has it.
//!
//! ```text
//!  object   "k8s\0", Unknown { typeMeta = 1 { apiVersion = 1, kind = 2 }, raw = 2 }
//!  watch    for each event its length in 4 octets, big-endian, and WatchEvent { type = 1, object = 2 { raw = 1: an object } }
//! ```

use serde_json::Value;

/// The media type of objects; that of a watch has `;stream=watch` behind it.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// A field of octets: text, or a message.
fn field(out: &mut Vec<u8>, number: u8, value: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

/// A field of a number or a truth.
fn number(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(number << 3);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, number: u8, value: &Value) {
    value.as_str().into_iter().for_each(|value| field(out, number, value.as_bytes()));
}

fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// An EndpointSlice of a set: of its fields those that sets have, without `resourceVersion`, which [`versioned`] adds.
pub(crate) fn slice(object: &Value) -> Vec<u8> {
    message(|out| {
        let meta = &object["metadata"];
        field(
            out,
            1,
            &message(|out| {
                for (number, name) in [(1, "name"), (3, "namespace"), (5, "uid")] {
                    text(out, number, &meta[name]);
                }
                for (key, value) in meta["labels"].as_object().into_iter().flatten() {
                    let entry = message(|out| {
                        field(out, 1, key.as_bytes());
                        text(out, 2, value);
                    });
                    field(out, 11, &entry);
                }
            }),
        );
        for endpoint in entries(&object["endpoints"]) {
            let endpoint = message(|out| {
                entries(&endpoint["addresses"]).for_each(|address| text(out, 1, address));
                let ready = endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
                field(out, 2, &message(|out| number(out, 1, u64::from(ready))));
                text(out, 3, &endpoint["hostname"]);
            });
            field(out, 2, &endpoint);
        }
        for port in entries(&object["ports"]) {
            let port = message(|out| {
                text(out, 1, &port["name"]);
                text(out, 2, &port["protocol"]);
                number(out, 3, port["port"].as_u64().unwrap_or_default());
            });
            field(out, 3, &port);
        }
        text(out, 4, &object["addressType"]);
    })
}

/// A slice with this version: a message that comes twice is the sum of both.
pub(crate) fn versioned(slice: &[u8], version: u64) -> Vec<u8> {
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
pub(crate) fn list<'a>(slices: impl Iterator<Item = &'a [u8]>, version: u64, next: &str) -> Vec<u8> {
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
pub(crate) fn event(kind: &str, slice: &[u8]) -> Vec<u8> {
    framed(kind, &object(API, "EndpointSlice", slice))
}

/// The event that ends a watch whose version is too old.
pub(crate) fn expired() -> Vec<u8> {
    let status = message(|out| {
        field(out, 2, b"Failure");
        field(out, 4, b"Expired");
        number(out, 6, 410);
    });
    framed("ERROR", &object("v1", "Status", &status))
}

fn framed(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = message(|out| {
        field(out, 1, kind.as_bytes());
        field(out, 2, &message(|out| field(out, 1, object)));
    });
    let mut out = (event.len() as u32).to_be_bytes().to_vec();
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
        assert_eq!(message(|out| field(out, 1, b"ab")), [10, 2, b'a', b'b']);
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
        assert_eq!(slice(&object), parts.concat());
        assert!(versioned(&slice(&object), 12).ends_with(b"\x0a\x04\x32\x0212"));
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
