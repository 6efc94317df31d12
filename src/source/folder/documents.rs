//! Texts → changes: documents, lists, kinds, and objects that are there twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use tracing::debug;

use super::error::{FileError, FileProblem};
use crate::api;
use crate::model::{Change, Resource};
use crate::source::Convert;

/// What several files say together.
#[derive(Debug)]
pub(super) struct Collected<'a> {
    convert: &'a Convert,
    seen: HashMap<(Resource, String, String), String>,
    pub(super) changes: Vec<Change>,
}

impl<'a> Collected<'a> {
    pub(super) fn new(convert: &'a Convert) -> Self {
        Self { convert, seen: HashMap::new(), changes: Vec::new() }
    }

    /// Takes in everything that `text` holds.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let known = |group: &str, kind: &str| resource(group, kind).is_some();
        let ignored = each_object(file, text, &known, &mut |place, kind, object| {
            let Some(resource) = resource(&kind.group, &kind.kind) else { return Ok(()) };
            self.object(place, resource, object)
        })?;
        if ignored > 0 {
            debug!(file, objects = ignored, "objects of other kinds are left alone");
        }
        Ok(())
    }

    fn object(&mut self, place: Place<'_>, resource: Resource, object: Map<String, Value>) -> Result<(), FileError> {
        let meta = object.get("metadata").and_then(Value::as_object);
        let name = meta.and_then(|meta| text(meta, "name"));
        let Some(name) = name else {
            return Err(place.error(FileProblem::NoName(kind_name(resource))));
        };
        let namespace = meta.and_then(|meta| text(meta, "namespace")).unwrap_or("default");
        match self.seen.entry((resource, namespace.to_owned(), name.to_owned())) {
            Entry::Vacant(entry) => {
                entry.insert(place.to_string());
            }
            Entry::Occupied(entry) => {
                let object = format!("{} {namespace}/{name}", kind_name(resource));
                return Err(place.error(FileProblem::Duplicate { object, first: entry.get().clone() }));
            }
        }
        let json = Value::Object(object).to_string();
        let mut change = self.convert.present(resource, &json);
        if let Some(Change::Unreadable { skipped, .. }) = &mut change {
            skipped.what = format!("{place}: {}", skipped.what).into();
        }
        self.changes.extend(change);
        Ok(())
    }
}

/// Where in the folder something stands.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct Place<'a> {
    file: &'a str,
    line: u64,
    item: Option<usize>,
}

impl Place<'_> {
    pub(in crate::source) fn error(&self, problem: FileProblem) -> FileError {
        let file = match self.item {
            None => self.file.to_owned(),
            // The line stays the list's: its items have none of their own.
            Some(i) => format!("{} (item {} of the list)", self.file, i + 1),
        };
        FileError::new(file, self.line, problem)
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.item {
            None => Ok(()),
            Some(i) => write!(f, " (item {} of the list)", i + 1),
        }
    }
}

/// What an object says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct ApiKind {
    /// The group of `apiVersion`; empty for the core group.
    pub(in crate::source) group: String,
    /// The version of `apiVersion`.
    pub(in crate::source) version: String,
    /// `kind`.
    pub(in crate::source) kind: String,
}

impl ApiKind {
    fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }
}

/// Gives `take` every object of `text` that is `known` by group and kind, also those in lists, and returns how many
/// others there are.
pub(in crate::source) fn each_object(
    file: &str,
    text: &str,
    known: &dyn Fn(&str, &str) -> bool,
    take: &mut dyn FnMut(Place<'_>, &ApiKind, Map<String, Value>) -> Result<(), FileError>,
) -> Result<usize, FileError> {
    let mut walk = Walk { known, take, ignored: 0 };
    for (line, document) in documents(file, text)? {
        walk.document(Place { file, line, item: None }, document, None)?;
    }
    Ok(walk.ignored)
}

struct Walk<'a> {
    known: &'a dyn Fn(&str, &str) -> bool,
    take: &'a mut dyn FnMut(Place<'_>, &ApiKind, Map<String, Value>) -> Result<(), FileError>,
    ignored: usize,
}

impl Walk<'_> {
    /// One object, or a list of them. `listed` is what an object without kind and version is: inside of a
    /// `ServiceImportList` they may be missing.
    fn document(&mut self, place: Place<'_>, value: Value, listed: Option<&ApiKind>) -> Result<(), FileError> {
        let mut object = match value {
            Value::Object(object) => object,
            other => return Err(place.error(FileProblem::NotAnObject(shape(&other)))),
        };
        let kind = match (self::text(&object, "apiVersion"), self::text(&object, "kind"), listed) {
            (Some(version), Some(kind), _) => ApiKind::new(version, kind),
            (_, _, Some(kind)) => kind.clone(),
            (_, None, None) => return Err(place.error(FileProblem::NoKind("kind"))),
            (None, Some(_), None) => return Err(place.error(FileProblem::NoKind("apiVersion"))),
        };
        if (self.known)(&kind.group, &kind.kind) {
            return (self.take)(place, &kind, object);
        }
        let of_items = match kind.kind.strip_suffix("List") {
            Some("") if kind.group.is_empty() => None,
            Some(item) if (self.known)(&kind.group, item) => Some(ApiKind { kind: item.to_owned(), ..kind }),
            _ => {
                self.ignored += 1;
                return Ok(());
            }
        };
        let items = match object.remove("items") {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        for (i, item) in items.into_iter().enumerate() {
            self.document(Place { item: Some(i), ..place }, item, of_items.as_ref())?;
        }
        Ok(())
    }
}

/// What of the world's objects is ours to serve.
fn resource(group: &str, kind: &str) -> Option<Resource> {
    match (group, kind) {
        (api::GROUP, "ServiceImport") => Some(Resource::Imports),
        (api::DISCOVERY_GROUP, "EndpointSlice") => Some(Resource::Slices),
        _ => None,
    }
}

fn kind_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Imports => "ServiceImport",
        Resource::Slices => "EndpointSlice",
    }
}

pub(in crate::source) fn text<'a>(object: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Null => "empty",
        _ => "a single value",
    }
}

/// The documents of a file, each with the line it begins at. Empty ones are left out.
fn documents(file: &str, text: &str) -> Result<Vec<(u64, Value)>, FileError> {
    if file.to_ascii_lowercase().ends_with(".json") { json(file, text) } else { yaml(file, text) }
}

fn yaml(file: &str, text: &str) -> Result<Vec<(u64, Value)>, FileError> {
    // These files are the operator's own, so only what is exponential (aliases) stays as bounded as the crate has it:
    // a file of a million endpoints is no attack.
    const MANY: usize = 1 << 30;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: MANY,
            max_nodes: MANY,
            max_documents: MANY,
            max_total_scalar_bytes: MANY,
            max_total_comment_bytes: MANY,
        },
        with_snippet: false,
    };
    let documents = serde_saphyr::from_multiple_with_options::<Spanned<Value>>(text, options).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line());
        let message = one_line(&error.without_snippet().to_string());
        FileError::new(file, line, FileProblem::Syntax { format: "YAML", message })
    })?;
    Ok(documents.into_iter().map(|document| (document.referenced.line(), document.value)).collect())
}

fn json(file: &str, text: &str) -> Result<Vec<(u64, Value)>, FileError> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let rest = text.get(stream.byte_offset()..).unwrap_or_default();
        let at = text.len() - rest.trim_start().len();
        let line = text.get(..at).unwrap_or_default().matches('\n').count() as u64 + 1;
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(value)) => documents.push((line, value)),
            Some(Err(error)) => {
                let problem = FileProblem::Syntax { format: "JSON", message: one_line(&error.to_string()) };
                return Err(FileError::new(file, error.line() as u64, problem));
            }
        }
    }
}

/// The first line of a parser's message, which is the one that says it.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}
