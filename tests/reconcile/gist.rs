//! What matters of a clusterset, to compare how two stories ended.

use std::collections::BTreeMap;

use namesake::reconcile::objects::Condition;

use crate::generate::{CLUSTERS, SERVICES};
use crate::set::Set;

impl Set {
    /// All that matters of what the clusters hold: no uids, no versions, no times, and endpoints without the slice in
    /// which they happen to stand.
    pub fn gist(&self) -> BTreeMap<String, String> {
        let mut gist = BTreeMap::new();
        for cluster in CLUSTERS {
            for name in SERVICES {
                let Some(local) = self.local(cluster, name) else { continue };
                let mut tell = |what: &str, text: String| gist.insert(format!("{cluster} {name} {what}"), text);
                if let Some(import) = &local.import {
                    let meta = (&import.meta.owned_labels, &import.meta.annotations);
                    tell("import", format!("{:?} {meta:?} {:?}", import.spec, import.status.clusters));
                    tell("import status", texts(&import.status.conditions));
                }
                if let Some(export) = &local.export {
                    tell("export status", texts(&export.conditions));
                }
                if let Some(derived) = self.derived(cluster, name) {
                    // A server-side apply keeps the order in which a Service got its ports.
                    let mut spec = derived.spec.clone();
                    spec.ports.sort();
                    tell("derived", format!("{spec:?} {:?}", derived.meta.labels));
                }
                let mut all: Vec<_> = local
                    .mirrored
                    .values()
                    .flat_map(|slice| {
                        let content = &slice.content;
                        let of = (slice.source(), &content.ports, &slice.meta.labels);
                        content.endpoints.iter().map(move |endpoint| format!("{of:?} {endpoint:?}"))
                    })
                    .collect();
                all.sort();
                tell("endpoints", all.join("\n"));
            }
        }
        gist
    }
}

fn texts(conditions: &[Condition]) -> String {
    let mut texts: Vec<_> =
        conditions.iter().map(|c| format!("{}={}/{}: {}", c.kind, c.status.as_str(), c.reason, c.message)).collect();
    texts.sort();
    texts.join("\n")
}
