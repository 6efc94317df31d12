//! Which IP families a service has, in the clusterset and in one cluster (controller.md 2.5).

use super::objects::Family;
use super::settings::FamilyRule;

/// The families of all exports together, and whether clients may miss some backends.
pub(super) fn merge(lists: &[&[Family]], rule: FamilyRule) -> (Vec<Family>, bool) {
    let Some((oldest, others)) = lists.split_first() else { return (Vec::new(), false) };
    let oldest = &once_each(oldest);
    let merged = match rule {
        FamilyRule::Intersection => {
            let common: Vec<_> = oldest.iter().filter(|f| others.iter().all(|l| l.contains(f))).copied().collect();
            // Nothing in common: the oldest's, so that something works (R49).
            if common.is_empty() { oldest.to_vec() } else { common }
        }
        FamilyRule::Union => {
            let mut all = oldest.to_vec();
            for family in others.iter().copied().flatten() {
                if !all.contains(family) {
                    all.push(*family);
                }
            }
            all
        }
    };
    let conflict = lists.iter().any(|list| differs(list, &merged));
    (merged, conflict)
}

/// The families of a list, each in its first place (R47).
fn once_each(list: &[Family]) -> Vec<Family> {
    let mut families = Vec::with_capacity(2);
    for family in list {
        if !families.contains(family) {
            families.push(*family);
        }
    }
    families
}

/// Whether two lists hold different families; their order does not matter.
pub(super) fn differs(a: &[Family], b: &[Family]) -> bool {
    a.iter().any(|f| !b.contains(f)) || b.iter().any(|f| !a.contains(f))
}

/// For a message: `IPv4, IPv6`.
pub(super) fn describe(families: &[Family]) -> String {
    families.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ")
}
