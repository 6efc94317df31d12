//! ServiceImports, ours and others'.

use super::super::object::entries;
use super::super::{quoted, skip};
use super::meta::{self, Keep};
use super::{object, service};
use crate::api;
use crate::model::{ClusterId, ImportKind, SkipReason, Skipped};
use crate::reconcile::objects::{ImportSpec, ImportStatus};
use crate::reconcile::observed::Import;

pub(super) fn convert(from: object::ServiceImport, skipped: &mut Vec<Skipped>) -> Import {
    let kind = match from.spec.kind.as_deref() {
        Some(api::TYPE_HEADLESS) => ImportKind::Headless,
        Some(api::TYPE_CLUSTERSET_IP) => ImportKind::ClusterSetIp,
        other => {
            let (text, ips, headless) =
                (quoted(other.unwrap_or_default()), api::TYPE_CLUSTERSET_IP, api::TYPE_HEADLESS);
            let what = format!("spec.type: {text} is neither {ips} nor {headless}; taken as {ips}");
            skipped.push(skip(SkipReason::UnknownType, what));
            ImportKind::ClusterSetIp
        }
    };
    let ips = entries(from.spec.ips).map(|(_, ip)| ip).collect();
    Import {
        meta: meta::convert(from.metadata, Keep::All),
        spec: ImportSpec {
            kind,
            ports: service::ports(from.spec.ports, skipped),
            ips: service::addresses("spec.ips", ips, skipped),
            families: service::families(from.spec.ip_families, skipped),
            traffic: service::traffic(from.spec.traffic),
        },
        status: ImportStatus {
            clusters: entries(from.status.clusters)
                .filter_map(|(_, status)| ClusterId::new(status.cluster.as_deref()?))
                .collect(),
            slices_present: from.status.endpoint_slice_objects.as_deref() == Some("Present"),
            conditions: meta::conditions(from.status.conditions),
        },
    }
}
