//! What is exported and imported, counted as services are planned.

use std::collections::{BTreeMap, HashMap};

use crate::controller::status::Totals;
use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::ServicePlan;
use crate::reconcile::plan::Importing;

/// The last word on each service, and the sums.
#[derive(Debug, Default)]
pub(super) struct Tally {
    services: HashMap<ServiceKey, Summary>,
    totals: Totals,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    exporters: Vec<ClusterId>,
    conflicts: Vec<&'static str>,
    importers: Vec<(ClusterId, Option<&'static str>)>,
}

impl Tally {
    /// A service was planned.
    pub(super) fn planned(&mut self, plan: &ServicePlan) {
        let mut conflicts: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.property.reason()).collect();
        conflicts.dedup();
        let new = Summary {
            exporters: plan.exporters.clone(),
            conflicts,
            importers: plan.importers.iter().map(|(id, importing)| (id.clone(), reason(importing))).collect(),
        };
        let gone = new.exporters.is_empty() && new.importers.is_empty();
        let old = if gone { self.services.remove(&plan.key) } else { None };
        if gone {
            if let Some(old) = old {
                self.add(&old, false);
            }
            return;
        }
        if self.services.get(&plan.key) == Some(&new) {
            return;
        }
        self.add(&new, true);
        if let Some(old) = self.services.insert(plan.key.clone(), new) {
            self.add(&old, false);
        }
    }

    /// The sums.
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    fn add(&mut self, summary: &Summary, more: bool) {
        let totals = &mut self.totals;
        if !summary.exporters.is_empty() {
            totals.services = if more { totals.services + 1 } else { totals.services.saturating_sub(1) };
        }
        for cluster in &summary.exporters {
            count(&mut totals.exports, cluster, more);
        }
        for reason in &summary.conflicts {
            count(&mut totals.conflicts, reason, more);
        }
        for (cluster, reason) in &summary.importers {
            match reason {
                None => count(&mut totals.imports, cluster, more),
                Some(reason) => count(&mut totals.not_imported, &(cluster.clone(), *reason), more),
            }
        }
    }
}

fn count<K: Ord + Clone>(counts: &mut BTreeMap<K, u64>, key: &K, more: bool) {
    let count = counts.entry(key.clone()).or_default();
    *count = if more { *count + 1 } else { count.saturating_sub(1) };
    if *count == 0 {
        counts.remove(key);
    }
}

/// The label value of a cluster that does not have what it should; `None` of one that has.
fn reason(importing: &Importing) -> Option<&'static str> {
    Some(match importing {
        Importing::Done => return None,
        Importing::Pending => "pending",
        Importing::NamespaceMissing => "namespace_missing",
        Importing::NamespaceTerminating => "namespace_terminating",
        Importing::Denied => "denied",
        Importing::Unreachable => "unreachable",
        Importing::FamilyNotSupported => "family_not_supported",
        Importing::Foreign(_) => "foreign",
        Importing::Failed(_) => "failed",
    })
}
