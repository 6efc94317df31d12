//! Types that know their schema: [`object!`] writes a struct for serde and its OpenAPI v3 schema (as a structural
//! schema of apiextensions.k8s.io/v1) from the same lines, so the two can't differ; and descriptions are the doc comments.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A type with a schema.
pub trait Schema {
    /// Whether a field of this type may be left out.
    const OPTIONAL: bool = false;

    /// The schema, with a description where the type has one.
    fn schema() -> Value;

    /// Whether a field with this value is left out.
    fn absent(&self) -> bool {
        false
    }
}

impl Schema for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Schema for i32 {
    fn schema() -> Value {
        json!({"type": "integer", "format": "int32"})
    }
}

impl Schema for i64 {
    fn schema() -> Value {
        json!({"type": "integer", "format": "int64"})
    }
}

impl<T: Schema> Schema for Option<T> {
    const OPTIONAL: bool = true;

    fn schema() -> Value {
        T::schema()
    }

    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// One field: name, description, whether it may be left out, schema of its type, and what is asked beyond the type.
pub(super) type Field = (&'static str, &'static str, bool, Value, Value);

/// The schema of an object with these fields.
pub(super) fn object_schema(description: &str, fields: Vec<Field>) -> Value {
    let mut schema = json!({"type": "object", "description": text(description)});
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, description, optional, mut property, more) in fields {
        if let Value::Object(property) = &mut property {
            // What a field is says more than what its type is.
            property.insert("description".to_owned(), text(description));
            if let Value::Object(more) = more {
                property.extend(more);
            }
        }
        properties.insert(name.to_owned(), property);
        if !optional {
            required.push(name);
        }
    }
    required.sort_unstable();
    if let Value::Object(schema) = &mut schema {
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
    }
    schema
}

/// A doc comment as a description: without the space that each line begins with, and paragraphs on one line each.
fn text(doc: &str) -> Value {
    let mut paragraphs = vec![String::new()];
    for line in doc.lines().map(str::trim) {
        match paragraphs.last_mut() {
            _ if line.is_empty() => paragraphs.push(String::new()),
            Some(last) => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(&line.replace('`', ""));
            }
            None => {}
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    Value::String(paragraphs.join("\n"))
}

/// Defines a struct with public fields and its [`Schema`]. A field is written `name ("jsonName"): Type`, and behind it,
/// in braces, what the schema asks beyond the type. Fields of type `Option` may be left out, all others must be there.
macro_rules! object {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])+
                $field:ident ($json:literal) : $type:ty $({ $($more:tt)* })?,
            )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(
                $(#[doc = $field_doc])+
                #[serde(rename = $json, skip_serializing_if = "crate::api::schema::Schema::absent")]
                pub $field: $type,
            )+
        }

        impl $crate::api::schema::Schema for $name {
            fn schema() -> serde_json::Value {
                let fields = vec![$((
                    $json,
                    concat!($($field_doc, "\n"),+),
                    <$type as $crate::api::schema::Schema>::OPTIONAL,
                    <$type as $crate::api::schema::Schema>::schema(),
                    serde_json::json!({$($($more)*)?}),
                )),+];
                $crate::api::schema::object_schema(concat!($($doc, "\n"),+), fields)
            }
        }
    };
}

/// Defines an enum whose values are written as they are named, and its [`Schema`]. The first value is the default.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $(#[doc = $first_doc:literal])+ $first:ident ($first_json:literal),
            $($(#[doc = $value_doc:literal])+ $value:ident ($json:literal),)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $first_doc])+
            #[default]
            #[serde(rename = $first_json)]
            $first,
            $(
                $(#[doc = $value_doc])+
                #[serde(rename = $json)]
                $value,
            )+
        }

        impl $name {
            /// The value as it is written.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::$first => $first_json,
                    $(Self::$value => $json,)+
                }
            }
        }

        impl $crate::api::schema::Schema for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$first_json $(, $json)+]})
            }
        }
    };
}

pub(super) use {choice, object};
