//! Which manifests an edit of the folder changed.

use crate::source::clusters::Clusters;

/// One line for each: `east: Pod shop/web-0 changed`.
#[must_use]
pub fn edits(before: &Clusters, after: &Clusters) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, cluster) in &after.0 {
        let Some(old) = before.0.get(id) else {
            lines.push(format!("{id}: the cluster is new"));
            continue;
        };
        for (manifest, hash) in &cluster.written {
            match old.written.get(manifest) {
                None => lines.push(format!("{id}: {manifest} is new")),
                Some(before) if before != hash => lines.push(format!("{id}: {manifest} changed")),
                Some(_) => {}
            }
        }
        let gone = old.written.keys().filter(|manifest| !cluster.written.contains_key(*manifest));
        lines.extend(gone.map(|manifest| format!("{id}: {manifest} is gone")));
    }
    let gone = before.0.keys().filter(|id| !after.0.contains_key(*id));
    lines.extend(gone.map(|id| format!("{id}: the cluster is gone")));
    lines
}
