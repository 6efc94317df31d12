//! The name, type, help and labels of every metric of the controller.

use crate::metrics::histogram::{PROGRAMMING, REQUEST, TIME};
use crate::metrics::table::{Metric, counter, gauge, histogram, table};

table! {
    /// Every metric that the controller shows besides `namesake_build_info` and those of the process. `cluster` is a
    /// member's id, and `(hub)` for the hub; when a member leaves, its series end.
    CONTROLLER_TABLE;
    LEADER = gauge("namesake_controller_leader", &[],
        "1 while this process may write, since it holds the lease or needs none; 0 while it stands by.");
    MEMBERS_COMPLETE = gauge("namesake_controller_members_complete", &[],
        "1 while every place of registration has been read and the id of each candidate is known.");
    MEMBERS_REFUSED = gauge("namesake_controller_members_refused", &[],
        "Clusters that are registered and no members; /ready?verbose says why.");
    REGISTRY_UP = gauge("namesake_controller_registry_up", &["registry"],
        "1 while this place of registration (an inventory in the hub, or the folder) is followed, else 0.");
    SERVICES = gauge("namesake_controller_services", &[], "Services that some cluster exports.");
    EXPORTS = gauge("namesake_controller_exports", &["cluster"], "Valid ServiceExports, by exporting cluster.");
    IMPORTS = gauge("namesake_controller_imports", &["cluster"],
        "Services that have all they should have in an importing cluster.");
    NOT_IMPORTED = gauge("namesake_controller_not_imported", &["cluster", "reason"],
        "Services that are exported somewhere and not imported in this cluster.");
    CONFLICTS = gauge("namesake_controller_conflicts", &["reason"],
        "Services whose exports disagree, by the reason in the condition Conflict.");
    PLANNING = gauge("namesake_controller_planning_queue", &[], "Services that wait to be planned.");
    PLAN_DURATION = histogram("namesake_controller_plan_duration_seconds", TIME, &[],
        "How long it took to plan a service.");
    PROPAGATION = histogram("namesake_controller_propagation_seconds", PROGRAMMING, &[],
        "From seeing a change in a member until the last importer that is reachable was written.");
    CLUSTER_UP = gauge("namesake_controller_cluster_up", &["cluster"],
        "1 while everything in this member is listed and followed, else 0.");
    SYNC_AGE = gauge("namesake_controller_cluster_sync_age_seconds", &["cluster"],
        "Seconds since this member last proved that what is known of it is up to date; absent until it was listed.");
    WATCH_UP = gauge("namesake_controller_cluster_watch_up", &["cluster", "resource"],
        "1 while the watch delivers, else 0.");
    WATCH_ERRORS = counter("namesake_controller_cluster_watch_errors_total", &["cluster", "resource", "reason"],
        "How often a watch or list of this member was in trouble.");
    QUEUE = gauge("namesake_controller_cluster_queue", &["cluster"],
        "Services for which something is to be written into this member.");
    FAILING = gauge("namesake_controller_cluster_failing", &["cluster"],
        "Services for which the last write into this member failed; it is tried again.");
    WRITES = counter("namesake_controller_writes_total", &["cluster", "resource", "verb"],
        "Writes that this member's API server carried out.");
    WRITE_ERRORS = counter("namesake_controller_write_errors_total", &["cluster", "reason"],
        "Writes that this member's API server refused or did not answer.");
    WRITE_DURATION = histogram("namesake_controller_write_duration_seconds", REQUEST, &["cluster"],
        "How long writes into this member took, whatever came of them.");
    REQUESTS = counter("namesake_controller_requests_total", &["cluster", "verb", "code"],
        "Requests to a member's or the hub's API server, by HTTP status; `<error>` where no answer came.");
    REQUEST_DURATION = histogram("namesake_controller_request_duration_seconds", REQUEST, &["cluster", "verb"],
        "How long those requests took; watches, which last, are not in it.");
}
