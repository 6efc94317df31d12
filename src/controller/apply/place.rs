//! Where objects are: their paths, and how people and metrics call them.

use std::fmt;

use crate::api;
use crate::model::ServiceKey;
use crate::reconcile::plan::Action;
use crate::reconcile::world::Kind;

/// One object's place at an API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Its kind.
    pub(super) kind: Kind,
    /// Its namespace; empty for a Namespace.
    pub(super) namespace: Box<str>,
    /// Its name.
    pub(super) name: Box<str>,
}

impl Place {
    /// The object that an action writes.
    pub(super) fn of(action: &Action) -> Self {
        let at = |kind, key: &ServiceKey, name: &str| Self {
            kind,
            namespace: key.namespace.as_str().into(),
            name: name.into(),
        };
        match action {
            Action::CreateNamespace(name) | Action::DeleteNamespace(name, _) => {
                Self { kind: Kind::Namespaces, namespace: "".into(), name: name.as_str().into() }
            }
            Action::CreateExport(key) | Action::DeleteExport(key, _) | Action::ApplyExportStatus(key, _) => {
                at(Kind::Exports, key, key.name.as_str())
            }
            Action::ApplyImport(object) => at(Kind::Imports, &object.key, object.key.name.as_str()),
            Action::ApplyImportStatus(key, _) | Action::DeleteImport(key, _) => {
                at(Kind::Imports, key, key.name.as_str())
            }
            Action::ApplyService(object) => at(Kind::Services, &object.key, object.name.as_str()),
            Action::DeleteService(key, _) => at(Kind::Services, key, key.name.as_str()),
            Action::ApplySlice(object) => at(Kind::Slices, &object.key, &object.name),
            Action::DeleteSlice(key, name, _) => at(Kind::Slices, key, name),
        }
    }

    /// The path of the collection that it is in.
    pub(super) fn collection(&self, version: &str) -> String {
        let namespace = &self.namespace;
        match self.kind {
            Kind::Namespaces => "/api/v1/namespaces".to_owned(),
            Kind::Services => format!("/api/v1/namespaces/{namespace}/services"),
            Kind::Slices => {
                format!("/apis/{}/v1/namespaces/{namespace}/{}", api::DISCOVERY_GROUP, api::ENDPOINT_SLICES)
            }
            Kind::Exports => format!("/apis/{}/{version}/namespaces/{namespace}/{}", api::GROUP, api::SERVICE_EXPORTS),
            Kind::Imports => format!("/apis/{}/{version}/namespaces/{namespace}/{}", api::GROUP, api::SERVICE_IMPORTS),
        }
    }

    /// Its path.
    pub(super) fn path(&self, version: &str) -> String {
        format!("{}/{}", self.collection(version), self.name)
    }

    /// The plural of its kind, for metrics.
    pub(super) fn resource(&self, status: bool) -> &'static str {
        match (self.kind, status) {
            (Kind::Namespaces, _) => "namespaces",
            (Kind::Services, _) => "services",
            (Kind::Slices, _) => "endpointslices",
            (Kind::Exports, false) => "serviceexports",
            (Kind::Exports, true) => "serviceexports/status",
            (Kind::Imports, false) => "serviceimports",
            (Kind::Imports, true) => "serviceimports/status",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = crate::source::member::kind_name(self.kind);
        if self.namespace.is_empty() {
            write!(f, "{kind} {}", self.name)
        } else {
            write!(f, "{kind} {}/{}", self.namespace, self.name)
        }
    }
}
