//! Counts of what the index holds, kept as changes come so that a scrape never walks a million endpoints.

use std::collections::BTreeMap;

use crate::model::{ClusterId, Import, ImportKind, SkipReason, Skipped, Slice};

/// How much of what is there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Imports of type ClusterSetIP.
    pub clusterset_ip: usize,
    /// Headless imports.
    pub headless: usize,
    /// Slices.
    pub slices: usize,
    /// Endpoint addresses in slices, ready or not.
    pub endpoints: usize,
    /// Ready ones.
    pub ready: usize,
    skipped: BTreeMap<(SkipReason, Option<ClusterId>), usize>,
}

impl Tally {
    /// What is skipped now: reason, source cluster where one is known, and how often.
    pub fn skips(&self) -> impl Iterator<Item = (SkipReason, Option<&ClusterId>, usize)> {
        self.skipped.iter().map(|((reason, cluster), count)| (*reason, cluster.as_ref(), *count))
    }

    pub(super) fn import(&mut self, import: &Import, add: bool) {
        match import.kind {
            ImportKind::ClusterSetIp => adjust(&mut self.clusterset_ip, 1, add),
            ImportKind::Headless => adjust(&mut self.headless, 1, add),
        }
        for skipped in &import.skipped {
            self.skipped(None, skipped, add);
        }
    }

    pub(super) fn slice(&mut self, slice: &Slice, add: bool) {
        adjust(&mut self.slices, 1, add);
        adjust(&mut self.endpoints, slice.endpoints.len(), add);
        adjust(&mut self.ready, slice.endpoints.ready().count(), add);
        for skipped in &slice.skipped {
            self.skipped(slice.cluster.as_ref(), skipped, add);
        }
    }

    pub(super) fn skipped(&mut self, cluster: Option<&ClusterId>, skipped: &Skipped, add: bool) {
        let key = (skipped.reason, cluster.cloned());
        let count = self.skipped.entry(key.clone()).or_default();
        adjust(count, 1, add);
        if *count == 0 {
            self.skipped.remove(&key);
        }
    }
}

fn adjust(count: &mut usize, by: usize, add: bool) {
    *count = if add { count.saturating_add(by) } else { count.saturating_sub(by) };
}
