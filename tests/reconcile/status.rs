//! Conditions and events (controller.md 2.8, 2.9, 2.16).

use crate::set::*;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::{Action, Subject};

fn one() -> Set {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    set
}

#[test]
fn mcs_r70_status_clusters_are_the_valid_exporters_in_precedence_order_everywhere() {
    let mut set = Set::new(["a", "b", "c", "d"]);
    for (cluster, created) in [("a", 30), ("b", 10), ("c", 20)] {
        set.exported(cluster, "shop/web", created, ["10.1.0.1"]);
    }
    set.export("d", "shop/web", 0);
    set.run();
    for cluster in ["a", "b", "c", "d"] {
        assert_eq!(set.clusters(cluster, "shop/web"), ["b", "c", "a"]);
    }
}

#[test]
fn mcs_r71_an_import_is_pending_until_it_has_its_address() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    // The derived Service is refused: only the import gets through.
    let plan = set.plan("shop/web").plan;
    let import = plan.changes.iter().find(|change| verb(change) == "apply import").expect("an import");
    set.sim.change(import, set.now).expect("accepted");
    let status = set.plan("shop/web").plan.changes.into_iter().find_map(|change| match change.action {
        Action::ApplyImportStatus(_, status) if change.cluster.as_str() == "a" => Some(status),
        _ => None,
    });
    let status = status.expect("a status");
    assert_eq!(status.conditions[0].status, Status::False);
    assert_eq!(status.conditions[0].reason, "Pending".into());
    assert_eq!(status.conditions[0].message, "Waiting for the clusterset IP of the derived Service.".into());
    set.run();
    assert_eq!(set.import_says("a", "shop/web"), "True/Ready");
    let import = set.imported("a", "shop/web");
    assert_eq!(import.status.conditions[0].generation, import.meta.generation);
}

#[test]
fn mcs_r72_endpoint_slice_objects_is_sent_where_the_crd_has_it() {
    let mut set = Set::new(["a", "b"]);
    let features = Features { endpoint_slice_objects: false, families: Some(vec![Family::V4]) };
    set.sim.world.set_features(&id("b"), features);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.run();
    assert!(set.imported("a", "shop/web").status.slices_present);
    assert!(!set.imported("b", "shop/web").status.slices_present);
}

#[test]
fn mcs_r73_status_is_written_on_change_and_times_move_when_it_flips() {
    let mut set = one();
    let times = |set: &Set| {
        let export = &set.local("a", "shop/web").expect("local").export.as_ref().expect("export").conditions;
        let import = &set.imported("a", "shop/web").status.conditions;
        export.iter().chain(import).map(|c| (c.kind.to_string(), c.since.0 - START)).collect::<Vec<_>>()
    };
    set.wait(100);
    assert_eq!(set.run(), []);
    let before = times(&set);
    assert!(before.iter().all(|(_, since)| *since == 0), "{before:?}");
    // Another exporter disagrees: the message of Conflict changes and it flips, the others don't.
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.service("b", "shop/web", cluster_ip(["http 81"]));
    set.run();
    for (kind, since) in times(&set) {
        assert_eq!(since, if kind == "Conflict" { 100 } else { 0 }, "{kind}");
    }
    // A second reason: the message changes, the status does not.
    set.wait(100);
    set.service("b", "shop/web", headless(["http 81"]));
    set.run();
    assert_eq!(set.says("a", "shop/web", "Conflict"), "True/PortConflict,TypeConflict");
    assert_eq!(set.condition("a", "shop/web", "Conflict").expect("c").since, Time(START + 100));
}

#[test]
fn mcs_r74_three_conditions_of_a_valid_export_two_of_an_invalid_one() {
    let mut set = one();
    let kinds = |set: &Set| -> Vec<String> {
        let export = set.local("a", "shop/web").expect("local").export.clone().expect("export");
        assert!(export.conditions.iter().all(|c| c.generation == export.meta.generation));
        export.conditions.iter().map(|c| c.kind.to_string()).collect()
    };
    assert_eq!(kinds(&set), ["Valid", "Ready", "Conflict"]);
    set.export_with("a", "shop/web", 0, map([("x", "y")]), Map::new());
    set.run();
    assert_eq!(kinds(&set), ["Valid", "Ready", "Conflict"], "at the new generation");
    set.no_service("a", "shop/web");
    set.run();
    assert_eq!(kinds(&set), ["Valid", "Ready"]);
    assert_eq!(set.says("a", "shop/web", "Ready"), "False/Pending");
}

#[test]
fn mcs_r75_pending_then_exported_with_the_number_of_clusters() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    let plan = set.plan("shop/web").plan;
    set.sim.apply(&plan, set.now).expect("accepted");
    assert_eq!(set.says("a", "shop/web", "Ready"), "False/Pending");
    assert_eq!(set.message("a", "shop/web", "Ready"), "Being written to a, b.");
    set.run();
    assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
    assert_eq!(set.message("a", "shop/web", "Ready"), "The service has been exported to 2 clusters.");
}

#[test]
fn mcs_r75_ready_stays_through_writes_and_retries_and_fails_after_the_grace() {
    let mut set = one();
    let before = set.condition("a", "shop/web", "Ready").cloned();
    // A change is under way everywhere.
    set.service("a", "shop/web", cluster_ip(["http 80", "admin 90"]));
    let plan = set.plan("shop/web").plan;
    assert!(!plan.changes.iter().any(|c| verb(c) == "export status"), "{:?}", verbs(&plan.changes));
    // It fails in b.
    let failure = Failure { since: set.now, message: "etcdserver: request timed out".into() };
    let mut sim = set.sim.clone();
    sim.world.set_failure(&id("b"), &key("shop/web"), Some(failure.clone()));
    set.sim = sim;
    assert_eq!(set.plan("shop/web").plan.again, Some(set.now + set.settings.failure_grace));
    assert_eq!(set.condition("a", "shop/web", "Ready").cloned(), before);
    set.wait(60);
    let conditions = set.plan("shop/web").plan.changes.into_iter().find_map(|change| match change.action {
        Action::ApplyExportStatus(_, conditions) => Some(conditions),
        _ => None,
    });
    let ready = conditions.expect("a status").into_iter().find(|c| *c.kind == *"Ready").expect("Ready");
    assert_eq!((ready.status, &*ready.reason), (Status::False, "Failed"));
    assert_eq!(&*ready.message, "Not written everywhere: b: etcdserver: request timed out.");
    // It gets through after all: what was told about the failure does not outlive it.
    set.run();
    assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
}

#[test]
fn mcs_r75_a_few_errors_are_named_and_cut_short() {
    let mut set = Set::new(["a", "b", "c", "d", "e"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    for cluster in ["b", "c", "d", "e"] {
        let message = "x".repeat(5000).into();
        let failure = Failure { since: Time(START - 1000), message };
        set.sim.world.set_failure(&id(cluster), &key("shop/web"), Some(failure));
    }
    let plan = set.plan("shop/web").plan;
    set.sim.apply(&plan, set.now).expect("accepted");
    let message = set.message("a", "shop/web", "Ready");
    assert!(message.len() < 1000, "{} bytes", message.len());
    assert!(message.ends_with("; and 1 more clusters."), "{message}");
}

#[test]
fn mcs_r75_an_unreachable_importer_is_named_and_fails_nothing() {
    let mut set = one();
    set.cut("b");
    assert_eq!(set.run(), [], "a moment of silence is no news");
    assert_eq!(set.plan("shop/web").plan.again, Some(set.now + set.settings.unreachable.grace));
    set.wait(31);
    set.run();
    assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
    assert_eq!(set.message("a", "shop/web", "Ready"), "The service has been exported to 1 cluster. Unreachable: b.");
}

#[test]
fn mcs_r76_conditions_of_other_types_stay() {
    let mut set = one();
    let mut export = set.local("a", "shop/web").expect("local").export.clone().expect("export");
    let theirs = Condition { kind: "Theirs".into(), ..export.conditions[0].clone() };
    export.conditions.push(theirs.clone());
    set.sim.world.set_export(&id("a"), &key("shop/web"), Some(export));
    assert_eq!(set.run(), []);
    set.no_service("a", "shop/web");
    set.run();
    assert_eq!(set.condition("a", "shop/web", "Theirs"), Some(&theirs));
}

#[test]
fn mcs_r77_events_tell_transitions_once() {
    let mut set = one();
    assert_eq!(set.told(), ["a Exported"]);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.service("b", "shop/web", headless(["http 80"]));
    set.run();
    assert_eq!(set.told()[1..], ["a TypeConflict", "b TypeConflict", "b Exported"]);
    let warnings: Vec<_> = set.events().map(|event| (event.warning, event.subject.clone())).collect();
    let export = Subject::Export(key("shop/web"));
    assert_eq!(warnings[..2], [(false, export.clone()), (true, export)]);
    let told = set.told().len();
    set.service("b", "shop/web", cluster_ip(["http 80"]));
    set.run();
    assert_eq!(set.told()[told..], ["a NoConflicts", "b NoConflicts"]);
    let told = set.told().len();
    set.no_service("b", "shop/web");
    set.run();
    assert_eq!(set.told()[told..], ["b NoService"]);
    set.run();
    assert_eq!(set.told().len(), told + 1);
}

#[test]
fn mcs_d16_a_conflict_is_a_condition_and_a_warning_event() {
    let mut set = one();
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.service("b", "shop/web", headless(["http 80"]));
    set.run();
    let event = set.events().find(|event| *event.reason == *"TypeConflict").expect("an event");
    assert!(event.warning);
    assert_eq!(
        &*event.message,
        "Conflicting type. Using \"ClusterSetIP\" from oldest service export in \"a\". 1/2 clusters disagree."
    );
}

#[test]
fn mcs_d7_the_requests_condition_is_added_by_option() {
    for legacy in [false, true] {
        let mut set = Set::with(Settings { legacy_conditions: legacy, ..Settings::default() }, ["a"]);
        set.service("a", "shop/db", ServiceSpec { kind: ServiceType::ExternalName, ..ServiceSpec::default() });
        set.export("a", "shop/db", 0);
        set.run();
        let wanted = if legacy { "True/UnsupportedServiceType" } else { "none" };
        assert_eq!(set.says("a", "shop/db", "InvalidService"), wanted);
        assert_eq!(set.says("a", "shop/db", "Valid"), "False/InvalidServiceType");
        set.service("a", "shop/db", cluster_ip(["http 80"]));
        set.run();
        assert_eq!(set.says("a", "shop/db", "InvalidService"), "none", "and goes with its cause");
    }
}

#[test]
fn mcs_d19_status_is_a_write_of_its_own() {
    let mut set = Set::new(["a"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    let changes = set.run();
    let status: Vec<_> = verbs(&changes).into_iter().filter(|verb| verb.ends_with("status")).collect();
    assert_eq!(status, ["a export status", "a import status", "a export status"]);
}

#[test]
fn mcs_2_16_reasons_and_messages_fit_the_api() {
    let mut set = Set::new(["a", "b"]);
    let labels: Map = (0..500).map(|n| (format!("key-{n}").into(), "v".repeat(63).into())).collect();
    for (cluster, created) in [("a", 0), ("b", 10)] {
        set.exported(cluster, "shop/web", created, ["10.1.0.1"]);
    }
    set.export_with("a", "shop/web", 0, labels, Map::new());
    let many: Vec<_> = (1..=2000).map(|n| port(&format!("p{n} {n}"))).collect();
    set.service("b", "shop/web", ServiceSpec { ports: many, ..cluster_ip([]) });
    set.run();
    for cluster in ["a", "b"] {
        let export = set.local(cluster, "shop/web").expect("local").export.as_ref().expect("export");
        for condition in &export.conditions {
            assert!(condition.message.len() <= 32768 && !condition.message.is_empty());
            assert!((1..=1024).contains(&condition.reason.len()));
            let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
            assert!(condition.reason.bytes().all(allowed), "{}", condition.reason);
        }
    }
}
