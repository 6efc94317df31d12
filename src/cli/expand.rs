//! Short names: what a person types to `explain` → the full name.

/// The full name, with final dot, of what a person typed, where `zone` (without final dot) is the zone they mean.
///
/// A final dot makes a name absolute. So does ending in the zone, or having a label `svc` before the last one:
/// `web.shop.svc.cluster.local` is asked as it stands, and explained as outside the zone. All else is relative:
/// `web.shop` and `_http._tcp.web.shop` to `svc.<zone>`, `web.shop.svc` and single labels to the zone.
pub(super) fn expand(typed: &str, zone: &str) -> String {
    if typed.ends_with('.') {
        return typed.to_owned();
    }
    let lower = typed.to_ascii_lowercase();
    if lower == zone || lower.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.')) {
        return format!("{typed}.");
    }
    let labels: Vec<&str> = lower.split('.').collect();
    match labels.iter().rposition(|label| *label == "svc") {
        Some(at) if at + 1 == labels.len() => format!("{typed}.{zone}."),
        Some(_) => format!("{typed}."),
        None if labels.len() == 1 => format!("{typed}.{zone}."),
        None => format!("{typed}.svc.{zone}."),
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn short_names_are_completed_and_full_names_left_alone() {
        for (typed, full) in [
            ("web.shop", "web.shop.svc.clusterset.local."),
            ("web.shop.svc", "web.shop.svc.clusterset.local."),
            ("web.shop.svc.clusterset.local", "web.shop.svc.clusterset.local."),
            ("Web.Shop.svc.ClusterSet.local", "Web.Shop.svc.ClusterSet.local."),
            ("web.shop.svc.clusterset.local.", "web.shop.svc.clusterset.local."),
            ("_http._tcp.web.shop", "_http._tcp.web.shop.svc.clusterset.local."),
            ("db-0.east.db.shop", "db-0.east.db.shop.svc.clusterset.local."),
            ("web.shop.svc.cluster.local", "web.shop.svc.cluster.local."),
            ("dns-version", "dns-version.clusterset.local."),
            ("svc", "svc.clusterset.local."),
            ("clusterset.local", "clusterset.local."),
            (".", "."),
            ("notclusterset.local", "notclusterset.local.svc.clusterset.local."),
        ] {
            assert_eq!(expand(typed, "clusterset.local"), full, "{typed}");
        }
    }
}
