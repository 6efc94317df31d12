//! What the DNS half follows: ServiceImports and multi-cluster EndpointSlices.

use std::sync::Arc;

use super::media::Encoded;
use super::subject::{Collection, Presence, Subject};
use crate::api;
use crate::model::{Resource, Update};
use crate::source::{Convert, Health, Trouble};

/// One of the two resources.
pub(super) struct ForDns {
    resource: Resource,
    collection: Collection,
    convert: Arc<Convert>,
    health: Arc<Health>,
}

impl ForDns {
    pub(super) fn new(resource: Resource, convert: Arc<Convert>, health: Arc<Health>) -> Self {
        let collection = match resource {
            Resource::Imports => Collection {
                group: api::GROUP,
                versions: &api::VERSIONS,
                plural: api::SERVICE_IMPORTS,
                presence: Presence::Crd(api::SERVICE_IMPORT_CRD),
                namespace: None,
                labels: None,
                page: 250,
                protobuf: false,
            },
            Resource::Slices => Collection {
                group: api::DISCOVERY_GROUP,
                versions: &["v1"],
                plural: api::ENDPOINT_SLICES,
                presence: Presence::BuiltIn { since: "Kubernetes 1.21 is the oldest that does" },
                namespace: None,
                // It must be there, whatever its value.
                labels: Some(api::LABEL_SERVICE_NAME),
                // A slice has a hundred endpoints, and is as long as forty imports.
                page: 50,
                // They are most of what comes, and change most.
                protobuf: true,
            },
        };
        Self { resource, collection, convert, health }
    }
}

impl Subject for ForDns {
    type Item = Update;

    fn collection(&self) -> &Collection {
        &self.collection
    }

    fn present(&self, object: &Encoded<'_>) -> Option<Update> {
        let change = match object {
            Encoded::Json(json) => self.convert.present(self.resource, json),
            Encoded::Protobuf(octets) => self.convert.slice_in_protobuf(octets),
        };
        change.map(Update::Change)
    }

    fn absent(&self, object: &Encoded<'_>) -> Option<Update> {
        let change = match object {
            Encoded::Json(json) => self.convert.absent(self.resource, json),
            Encoded::Protobuf(octets) => self.convert.absent_in_protobuf(octets),
        };
        change.map(Update::Change)
    }

    fn begin(&self) -> Update {
        Update::ResyncBegin(self.resource)
    }

    fn end(&self) -> Update {
        Update::ResyncEnd(self.resource)
    }

    fn alive(&self) {
        self.health.alive(self.resource);
    }

    fn down(&self, trouble: Trouble) {
        self.health.down(self.resource, trouble);
    }
}
