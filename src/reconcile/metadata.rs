//! Labels and annotations: ours, and those that exports bring (controller.md R26, R27, R30, R36, 1.6).

use super::objects::Map;
use super::settings::Settings;
use crate::api;
use crate::model::{ClusterId, ImportKind, Label, ServiceKey};

/// Prefixes of keys that belong to Kubernetes, to the API or to tools that prune what carries them.
const RESERVED_PREFIXES: [&str; 9] = [
    "kubernetes.io/",
    "k8s.io/",
    "multicluster.kubernetes.io/",
    "multicluster.x-k8s.io/",
    "endpointslice.kubernetes.io/",
    "service.kubernetes.io/",
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "namesake/",
];

/// Keys that say whose an object is. `instance` is Argo CD's tracking label by default: an import that carried it would
/// be pruned.
const RESERVED_KEYS: [&str; 3] = [api::LABEL_MANAGED_BY, "app.kubernetes.io/instance", api::LABEL_CLUSTER_API_NAME];

/// The most bytes of all exported labels or annotations together. The API takes 256 KiB of annotations; an import that
/// exceeds it would be refused as a whole, in every cluster.
const MOST_BYTES: usize = 200 * 1024;

/// Whether an exported key must not reach an import.
pub(super) fn is_reserved(key: &str) -> bool {
    RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Whether `text` is a key that the API accepts: an optional DNS subdomain with `/`, then 1 to 63 bytes.
fn is_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let subdomain = |text: &str| {
        let label = |l: &str| {
            !l.is_empty()
                && !l.starts_with('-')
                && !l.ends_with('-')
                && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        text.len() <= 253 && text.split('.').all(label)
    };
    prefix.is_none_or(subdomain) && is_name(name) && !name.is_empty()
}

/// Whether `text` is the value of a label (or the name part of a key): up to 63 bytes, letters or digits at both ends.
fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().last())
}

/// What of the exported labels (or annotations) may be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// What is written.
    pub kept: Map,
    /// Keys that the API server would refuse, or whose values it would, or that are too much together.
    pub invalid: Vec<Box<str>>,
    /// Keys that are not an export's to give.
    pub reserved: Vec<Box<str>>,
}

/// Sorts out exported labels.
pub(super) fn exported_labels(map: &Map) -> Exported {
    sort_out(map, |key, value| is_key(key) && is_name(value))
}

/// Sorts out exported annotations, whose values are free.
pub(super) fn exported_annotations(map: &Map) -> Exported {
    // The API lowers an annotation's key before it checks it.
    sort_out(map, |key, _| is_key(&key.to_ascii_lowercase()))
}

fn sort_out(map: &Map, valid: impl Fn(&str, &str) -> bool) -> Exported {
    let mut exported = Exported::default();
    let mut size = 0;
    for (key, value) in map {
        if is_reserved(key) {
            exported.reserved.push(key.clone());
        } else if valid(key, value) && size + key.len() + value.len() <= MOST_BYTES {
            size += key.len() + value.len();
            exported.kept.insert(key.clone(), value.clone());
        } else {
            exported.invalid.push(key.clone());
        }
    }
    exported
}

fn with(mut map: Map, ours: &[(&str, &str)]) -> Map {
    map.extend(ours.iter().map(|(key, value)| (Box::from(*key), Box::from(*value))));
    map
}

/// The labels of an import.
pub(super) fn import_labels(exported: &Map) -> Map {
    with(exported.clone(), &[(api::LABEL_MANAGED_BY, api::MANAGED_BY)])
}

/// The annotations of an import with a derived Service.
pub(super) fn import_annotations(exported: &Map, derived: &Label) -> Map {
    with(exported.clone(), &[(api::ANNOTATION_DERIVED_SERVICE, derived.as_str())])
}

/// The labels of a derived Service.
pub(super) fn service_labels(key: &ServiceKey, exported: &Map, settings: &Settings) -> Map {
    let exported = if settings.derived_labels { exported.clone() } else { Map::new() };
    with(
        exported,
        &[
            (api::LABEL_SERVICE_NAME, key.name.as_str()),
            (api::LABEL_SERVICE_IMPORTED, "true"),
            (api::LABEL_MANAGED_BY, api::MANAGED_BY),
        ],
    )
}

/// The labels of a mirrored slice. Never the source slice's own (R67).
pub(super) fn slice_labels(
    key: &ServiceKey,
    derived: &Label,
    source: &ClusterId,
    kind: ImportKind,
    settings: &Settings,
) -> Map {
    let mut labels = with(
        Map::new(),
        &[
            (api::LABEL_KUBERNETES_SERVICE_NAME, derived.as_str()),
            (api::LABEL_SERVICE_NAME, key.name.as_str()),
            (api::LABEL_SOURCE_CLUSTER, source.as_str()),
            (api::LABEL_SLICE_MANAGED_BY, api::MANAGED_BY),
        ],
    );
    if kind == ImportKind::Headless {
        labels.insert(api::LABEL_HEADLESS.into(), "".into());
    }
    if settings.cluster_api_label {
        labels.insert(api::LABEL_CLUSTER_API_NAME.into(), source.as_str().into());
    }
    labels
}
