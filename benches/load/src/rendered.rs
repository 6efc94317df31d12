//! Objects as the scripted API server sends them: in JSON, and slices in protobuf too.

use serde_json::{Value, json};
use testbed::protobuf;

/// A slice, or an event about one, in both forms.
pub(crate) struct Rendered {
    pub(crate) json: String,
    pub(crate) protobuf: Vec<u8>,
}

impl Rendered {
    /// A slice, whose version is to be put in the place of `VERSION`.
    pub(crate) fn slice(object: Value) -> Self {
        let protobuf = protobuf::slice(&whole(object.clone(), None)).expect("a slice of a set has what it must have");
        Self { protobuf, json: whole(object, Some("VERSION")).to_string() }
    }

    pub(crate) fn versioned(&self, version: u64) -> Self {
        let json = self.json.replacen("VERSION", &version.to_string(), 1);
        Self { json, protobuf: protobuf::versioned(&self.protobuf, version) }
    }

    /// The event about this slice.
    pub(crate) fn modified(&self) -> Self {
        let json = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", self.json);
        Self { json, protobuf: protobuf::event("MODIFIED", &self.protobuf) }
    }

    pub(crate) fn octets(&self, protobuf: bool) -> &[u8] {
        if protobuf { &self.protobuf } else { self.json.as_bytes() }
    }
}

/// An object in JSON, with what an API server gives it.
pub(crate) fn rendered(object: Value, version: &str) -> String {
    whole(object, Some(version)).to_string()
}

fn whole(mut object: Value, version: Option<&str>) -> Value {
    object["metadata"]["uid"] = json!(format!("uid-of-{}", object["metadata"]["name"].as_str().unwrap_or_default()));
    if let Some(version) = version {
        object["metadata"]["resourceVersion"] = json!(version);
    }
    object
}
