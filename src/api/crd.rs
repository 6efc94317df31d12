//! The CRDs of ServiceExport and ServiceImport, and what is to be done where some are installed already.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{GROUP, SERVICE_EXPORT_CRD, SERVICE_EXPORTS, SERVICE_IMPORT_CRD, SERVICE_IMPORTS, Schema};
use super::{ServiceExport, ServiceImport};

/// The release of mcs-api whose schema ours equals.
pub const RELEASE: &str = "v0.5.2";

/// The revision of the schema within that release.
pub const REVISION: u32 = 0;

/// Label of a CRD: the release of mcs-api that its schema is of.
pub const LABEL_RELEASE: &str = "multicluster.x-k8s.io/release-version";

/// Label of a CRD: the revision of the schema within that release.
pub const LABEL_REVISION: &str = "multicluster.x-k8s.io/crd-schema-revision";

/// Both CRDs, ServiceExport's first.
#[must_use]
pub fn all() -> [Value; 2] {
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let exports = crd(
        SERVICE_EXPORT_CRD,
        &json!({
            "kind": "ServiceExport", "plural": SERVICE_EXPORTS, "singular": "serviceexport",
            "shortNames": ["svcex", "svcexport"],
        }),
        &json!([age]),
        ServiceExport::schema(),
    );
    let imports = crd(
        SERVICE_IMPORT_CRD,
        &json!({
            "kind": "ServiceImport", "plural": SERVICE_IMPORTS, "singular": "serviceimport",
            "shortNames": ["svcim", "svcimport"],
        }),
        &json!([
            {"name": "Type", "type": "string", "jsonPath": ".spec.type",
             "description": "ClusterSetIP or Headless"},
            {"name": "IP", "type": "string", "jsonPath": ".spec.ips",
             "description": "The addresses in this cluster"},
            age,
        ]),
        ServiceImport::schema(),
    );
    [exports, imports]
}

fn crd(name: &str, names: &Value, columns: &Value, mut schema: Value) -> Value {
    // An API server refuses a CRD that says anything of it.
    schema["properties"]["metadata"] = json!({"type": "object"});
    let version = |version: &str, storage: bool| {
        json!({
            "name": version, "served": true, "storage": storage, "subresources": {"status": {}},
            "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": {LABEL_RELEASE: RELEASE, LABEL_REVISION: REVISION.to_string()}},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": names,
            "versions": [version("v1alpha1", false), version("v1beta1", true)],
        },
    })
}

/// How an installed CRD stands to ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    /// It has our schema, or one that has all that we need and does not say of which release it is.
    Same,
    /// Its schema is older, so ours takes its place. What it calls itself.
    Older(String),
    /// Its schema is newer and is left alone. What it calls itself.
    Newer(String),
}

/// Compares an installed CRD with ours, by the labels that mcs-api made for this: nobody is to be downgraded.
///
/// A CRD without them (mcs-api before v0.5.0, or somebody's own) is older where it lacks what ours has: the version
/// v1beta1, or the field that came last.
#[must_use]
pub fn compare(installed: &Value) -> Installed {
    let label = |key: &str| installed["metadata"]["labels"][key].as_str();
    let revision = label(LABEL_REVISION).and_then(|text| text.parse::<u32>().ok()).unwrap_or_default();
    let ours = release(RELEASE).map(|release| (release, REVISION));
    match label(LABEL_RELEASE).and_then(|text| release(text).map(|release| (text, (release, revision)))) {
        Some((text, theirs)) => {
            let name = format!("{text}, schema revision {revision}");
            match Some(theirs).cmp(&ours) {
                Ordering::Less => Installed::Older(name),
                Ordering::Equal => Installed::Same,
                Ordering::Greater => Installed::Newer(name),
            }
        }
        None if complete(installed) => Installed::Same,
        None => Installed::Older("no release label".to_owned()),
    }
}

/// The numbers of `v1.2.3`; what follows a dash is left out.
fn release(text: &str) -> Option<[u32; 3]> {
    let text = text.strip_prefix('v')?;
    let mut numbers = text.split(['-', '+']).next()?.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn complete(installed: &Value) -> bool {
    let versions = installed["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    versions.iter().any(|version| {
        let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        let exports = installed["metadata"]["name"] == SERVICE_EXPORT_CRD;
        version["name"] == "v1beta1"
            && version["served"] == true
            && (exports || status["endpointSliceObjects"].is_object())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(release: &str, revision: &str) -> Value {
        json!({"metadata": {"labels": {LABEL_RELEASE: release, LABEL_REVISION: revision}}})
    }

    #[test]
    fn releases_compare_as_numbers() {
        assert_eq!(compare(&labelled("v0.5.2", "0")), Installed::Same);
        for (release, revision) in [("v0.5.1", "9"), ("v0.4.10", "0"), ("v0.5.0-rc1", "0")] {
            assert!(matches!(compare(&labelled(release, revision)), Installed::Older(_)), "{release} {revision}");
        }
        for (release, revision) in [("v0.5.2", "1"), ("v0.5.10", "0"), ("v1.0.0", "0")] {
            assert!(matches!(compare(&labelled(release, revision)), Installed::Newer(_)), "{release} {revision}");
        }
    }

    #[test]
    fn a_crd_without_labels_is_judged_by_what_it_has() {
        for mut crd in all() {
            assert_eq!(compare(&crd), Installed::Same);
            crd["metadata"]["labels"] = Value::Null;
            assert_eq!(compare(&crd), Installed::Same);
            crd["spec"]["versions"] = json!([{"name": "v1alpha1", "served": true}]);
            assert_eq!(compare(&crd), Installed::Older("no release label".to_owned()));
        }
        assert!(matches!(compare(&labelled("a release", "0")), Installed::Older(_)));
    }
}
