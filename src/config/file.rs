//! The settings file, format v1: what was written, with lines.
//!
//! ```yaml
//! version: 1
//! zone: [clusterset.local]
//! ttl: 5
//! ```

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Error, Spanned};

use super::error::{ConfigError, Problem, nearest};
use super::keys::{Keyed, Shape};
use super::raw::{Given, Place};

/// The one version of the format.
const VERSION: &str = "1";

/// A file larger than this is no settings file.
const LARGEST: u64 = 1 << 20;

/// The settings in a file.
pub(super) fn read<K: Keyed>(path: &Path) -> Result<Vec<(K, Given)>, ConfigError> {
    let shown = path.display().to_string();
    let unreadable = |why: String| ConfigError::one(&shown, why, "give a readable file to --config");
    let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > LARGEST {
        return Err(unreadable(format!("{size} bytes are more than a settings file has")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    parse(path, &text)
}

/// The settings in the text of a file.
pub(super) fn parse<K: Keyed>(path: &Path, text: &str) -> Result<Vec<(K, Given)>, ConfigError> {
    let shared: Arc<Path> = path.into();
    let place = |line: u64| format!("{}:{line}", path.display());
    let entries: Entries<K> = serde_saphyr::from_str(text)
        .map_err(|error| ConfigError { problems: vec![broken(path, &error, K::COMMAND)] })?;

    let mut problems = Vec::new();
    let mut settings = Vec::new();
    let mut seen = HashSet::new();
    let mut version = None;
    for (name, line, value) in entries.pairs {
        let mut problem = |why: String, remedy: String| {
            problems.push(Problem { place: format!("{}: {name}", place(line)), why, remedy });
        };
        if !seen.insert(name.clone()) {
            problem("given twice".to_owned(), "keep one of them".to_owned());
            continue;
        }
        if name == "version" {
            version = Some((line, value));
            continue;
        }
        let Some(spec) = K::named(&name) else {
            let remedy = match nearest(&name, K::TABLE.iter().map(|spec| spec.name).chain(["version"])) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("`namesake {} --help` has them all, with _ for -", K::COMMAND),
            };
            problem("no such key".to_owned(), remedy);
            continue;
        };
        let values = match value {
            // `key:` and nothing more: the default.
            Value::Nothing => continue,
            Value::One(value) if spec.shape == Shape::Many => super::raw::split(&value),
            Value::One(value) => vec![value],
            Value::Many(values) => values,
            Value::Map => {
                problem("a mapping".to_owned(), format!("give a value or a list of values: {}", spec.value));
                continue;
            }
        };
        settings.push((spec.key, Given { values, place: Place::File(shared.clone(), line) }));
    }
    match version {
        Some((_, Value::One(value))) if value == VERSION => {}
        Some((line, value)) => {
            let text = if let Value::One(text) = value { text } else { String::new() };
            // Another version has other keys: complaints about them would mislead.
            problems = vec![Problem {
                place: format!("{}: version {text}", place(line)),
                why: "not a format that this namesake reads".to_owned(),
                remedy: format!("write `version: {VERSION}` and the keys of `namesake {} --help`", K::COMMAND),
            }];
        }
        None => problems.push(Problem {
            place: place(1),
            why: "no version".to_owned(),
            remedy: format!("put `version: {VERSION}` in the first line"),
        }),
    }
    if problems.is_empty() { Ok(settings) } else { Err(ConfigError { problems }) }
}

/// What the YAML reader found, in our words.
fn broken(path: &Path, error: &Error, command: &str) -> Problem {
    let place = match error.location() {
        Some(at) if at.line() > 0 => format!("{}:{}", path.display(), at.line()),
        _ => path.display().to_string(),
    };
    let error = error.without_snippet();
    let (why, remedy) = match error {
        Error::DuplicateMappingKey { key, .. } => {
            (format!("{} is given twice", key.as_deref().unwrap_or("a key")), "keep one of them".to_owned())
        }
        Error::MultipleDocuments { .. } => ("more than one document".to_owned(), "keep one, without ---".to_owned()),
        Error::Eof { .. } => ("empty".to_owned(), "start with `version: 1`".to_owned()),
        other => {
            let text = other.to_string();
            (
                text.lines().next().unwrap_or("no YAML").to_owned(),
                format!("write `key: value` lines, as in config/{command}.example.yaml"),
            )
        }
    };
    Problem { place, why, remedy }
}

/// The pairs of the file in order, each with the line of its key.
struct Entries<K> {
    pairs: Vec<(String, u64, Value)>,
    table: PhantomData<K>,
}

/// What stands behind a key.
enum Value {
    Nothing,
    One(String),
    Many(Vec<String>),
    Map,
}

impl<'de, K: Keyed> Deserialize<'de> for Entries<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<K>(PhantomData<K>);
        impl<'de, K: Keyed> Visitor<'de> for Pairs<K> {
            type Value = Entries<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`key: value` lines")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<K>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<Spanned<String>>()? {
                    let list = K::named(&key.value).is_some_and(|spec| spec.shape == Shape::Many);
                    let value = if list {
                        map.next_value_seed(List)?
                    } else if key.value == "version" || K::named(&key.value).is_some() {
                        // As text, so that `dns_version: 1.10` stays what was typed.
                        map.next_value::<Option<String>>()?.map_or(Value::Nothing, Value::One)
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        Value::Nothing
                    };
                    pairs.push((key.value, key.referenced.line(), value));
                }
                Ok(Entries { pairs, table: PhantomData })
            }
        }
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

/// Reads one value or a list of values.
struct List;

impl<'de> DeserializeSeed<'de> for List {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::One(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::One(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::One(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::One(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::One(v.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element::<String>()? {
            values.push(value);
        }
        Ok(Value::Many(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Map)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
