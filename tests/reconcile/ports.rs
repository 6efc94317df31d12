//! Ports (controller.md 2.4) and IP families (2.5).

use crate::set::*;
use namesake::reconcile::Settings;
use namesake::reconcile::objects::*;
use namesake::reconcile::plan::Importing;
use namesake::reconcile::settings::FamilyRule;

/// `a` (older) and `b` export these ports with a pod each, which listens on 8000 + the number.
fn two<const N: usize, const M: usize>(older: [&str; N], younger: [&str; M]) -> Set {
    two_with(Settings::default(), cluster_ip(older), cluster_ip(younger))
}

fn two_with(settings: Settings, older: ServiceSpec, younger: ServiceSpec) -> Set {
    let mut set = Set::with(settings, ["a", "b", "c"]);
    for (cluster, spec, created, pod) in [("a", older, 0, "10.1.0.1"), ("b", younger, 10, "10.2.0.1")] {
        source_of(&mut set, cluster, &spec, pod);
        set.service(cluster, "shop/web", spec);
        set.export(cluster, "shop/web", created);
    }
    set.run();
    set
}

/// The slice that kube-controller-manager would make of a Service.
fn source_of(set: &mut Set, cluster: &str, spec: &ServiceSpec, pod: &str) {
    set.source(cluster, "shop/web", "abc", [], endpoints([pod]));
    let name = namesake::model::SliceKey { namespace: label("shop"), name: "web-abc".into() };
    let mut slice = set.local(cluster, "shop/web").expect("filed").sources["web-abc"].clone();
    slice.content.ports = spec
        .ports
        .iter()
        .map(|p| SlicePort {
            name: p.name.clone(),
            protocol: p.protocol,
            port: 8000 + p.port,
            app_protocol: p.app_protocol.clone(),
        })
        .collect();
    set.sim.world.set_slice(&id(cluster), &name, Some(slice));
}

/// The ports of the slices that `c` holds of `cluster`.
fn mirrored(set: &Set, cluster: &str) -> Vec<String> {
    let slices = set.mirrored("c", "shop/web");
    let of = slices.into_iter().filter(|(_, slice)| slice.source() == Some(id(cluster)));
    of.flat_map(|(_, slice)| describe_slice(&slice.content.ports)).collect()
}

fn merged(set: &Set) -> Vec<String> {
    let import = describe(&set.imported("c", "shop/web").spec.ports);
    let derived = describe(&set.derived("c", "shop/web").expect("derived").spec.ports);
    assert_eq!(import, derived, "R45: the derived Service has the import's ports");
    import
}

#[test]
fn mcs_r38_names_first_then_protocol_and_number() {
    let set = two(["tcp 42", "udp 42/UDP"], ["tcp 42", "stcp 142/SCTP"]);
    assert_eq!(merged(&set), ["tcp 42/Tcp", "udp 42/Udp", "stcp 142/Sctp"]);
    let set = two(["tcp 42"], ["tcp 43"]);
    assert_eq!(merged(&set), ["tcp 42/Tcp"]);
    let set = two(["tcp 42"], ["other 42"]);
    assert_eq!(merged(&set), ["tcp 42/Tcp"]);
    let set = two(["tcp 42"], ["other 42/UDP"]);
    assert_eq!(merged(&set), ["tcp 42/Tcp", "other 42/Udp"]);
}

#[test]
fn mcs_r39_any_difference_in_the_lists_is_a_conflict_but_target_ports() {
    let conflicts = |set: &Set| set.says("a", "shop/web", "Conflict") == "True/PortConflict";
    assert!(conflicts(&two(["http 80"], ["http 80", "admin 90"])), "a port is missing");
    assert!(conflicts(&two(["http 80", "admin 90"], ["http 80"])), "a port is missing");
    assert!(conflicts(&two(["http 80"], ["http 81"])), "another number");
    assert!(conflicts(&two(["http 80"], ["http 80/UDP"])), "another protocol");
    assert!(conflicts(&two(["http 80"], ["web 80"])), "another name");
    assert!(!conflicts(&two(["http 80", "admin 90"], ["admin 90", "http 80"])), "another order");
    let mut app = cluster_ip(["http 80"]);
    app.ports[0].app_protocol = Some("h2c".into());
    assert!(conflicts(&two_with(Settings::default(), cluster_ip(["http 80"]), app)), "another appProtocol");
    let mut target = cluster_ip(["http 80"]);
    target.ports[0].target = Some(TargetPort::Name("web".into()));
    assert!(!conflicts(&two_with(Settings::default(), cluster_ip(["http 80"]), target)), "another target port");
}

#[test]
fn mcs_r40_traffic_to_a_port_goes_only_where_it_is_exposed() {
    // The same name, another number: nothing of it in b.
    let set = two(["tcp 42", "udp 42/UDP"], ["tcp 43", "udp 42/UDP"]);
    assert_eq!(mirrored(&set, "a"), ["tcp 8042/Tcp", "udp 8042/Udp"]);
    assert_eq!(mirrored(&set, "b"), ["udp 8042/Udp"]);
    // All of its ports are others': no slice.
    let set = two(["tcp 42"], ["tcp 43"]);
    assert_eq!(mirrored(&set, "b"), [""; 0]);
    assert_eq!(set.slice_names("c", "shop/web").len(), 1);
    assert_eq!(set.clusters("c", "shop/web"), ["a", "b"], "it is an exporter all the same");
    // Each port where it is.
    let set = two(["tcp 42"], ["tcp2 4242"]);
    assert_eq!(
        (mirrored(&set, "a"), mirrored(&set, "b")),
        (vec!["tcp 8042/Tcp".into()], vec!["tcp2 12242/Tcp".into()])
    );
}

#[test]
fn mcs_r40_one_number_under_two_names_is_renamed_or_dropped_by_option() {
    let set = two(["http 80"], ["web 80"]);
    assert_eq!(mirrored(&set, "b"), ["http 8080/Tcp"]);
    assert_eq!(set.says("b", "shop/web", "Conflict"), "True/PortConflict");
    let settings = Settings { rename_ports: false, ..Settings::default() };
    let set = two_with(settings, cluster_ip(["http 80"]), cluster_ip(["web 80"]));
    assert_eq!(mirrored(&set, "b"), [""; 0]);
    // Its own name stands for another number already: not the same port, whatever the number.
    let set = two(["http 80", "admin 8080"], ["http 8080"]);
    assert_eq!(mirrored(&set, "b"), [""; 0]);
}

#[test]
fn mcs_r41_slices_carry_the_resolved_target_port() {
    let set = two(["http 80"], ["http 80"]);
    assert_eq!(mirrored(&set, "a"), ["http 8080/Tcp"]);
    assert_eq!(merged(&set), ["http 80/Tcp"]);
}

#[test]
fn mcs_r41_pods_that_listen_on_different_numbers_have_slices_of_their_own() {
    let mut set = two(["http 80"], ["http 80"]);
    set.source("a", "shop/web", "def", ["http 9090"], endpoints(["10.1.0.2", "10.1.0.3"]));
    set.run();
    let slices = set.mirrored("c", "shop/web");
    let of_a: Vec<_> = slices
        .iter()
        .filter(|(_, slice)| slice.source() == Some(id("a")))
        .map(|(name, slice)| (name.rsplit('-').next(), describe_slice(&slice.content.ports)))
        .collect();
    assert_eq!(of_a, [(Some("a"), vec!["http 8080/Tcp".to_owned()]), (Some("2"), vec!["http 9090/Tcp".to_owned()])]);
}

#[test]
fn mcs_r42_unnamed_ports_get_a_name_where_there_are_several() {
    let set = two(["80"], ["80"]);
    assert_eq!(merged(&set), [" 80/Tcp"], "fine alone");
    assert_eq!(mirrored(&set, "b"), [" 8080/Tcp"]);
    let set = two(["80"], ["admin 90"]);
    assert_eq!(merged(&set), ["tcp-80 80/Tcp", "admin 90/Tcp"]);
    assert_eq!(
        (mirrored(&set, "a"), mirrored(&set, "b")),
        (vec!["tcp-80 8080/Tcp".into()], vec!["admin 8090/Tcp".into()])
    );
    // No name counts as a name: the older wins.
    let set = two(["80"], ["81"]);
    assert_eq!((merged(&set), mirrored(&set, "b")), (vec![" 80/Tcp".to_owned()], vec![]));
    // Somebody has that name.
    let set = two(["80"], ["tcp-80 81"]);
    assert_eq!(merged(&set), ["tcp-80-2 80/Tcp", "tcp-80 81/Tcp"]);
    // The older has none, the younger has one.
    let set = two(["80"], ["http 80"]);
    assert_eq!((merged(&set), mirrored(&set, "b")), (vec![" 80/Tcp".to_owned()], vec![" 8080/Tcp".to_owned()]));
}

#[test]
fn mcs_r43_ports_are_in_precedence_order_with_the_winners_app_protocol() {
    let mut older = cluster_ip(["z 2", "a 1"]);
    older.ports[0].app_protocol = Some("h2c".into());
    let mut younger = cluster_ip(["z 2", "m 3"]);
    younger.ports[0].app_protocol = Some("other".into());
    let set = two_with(Settings::default(), older, younger);
    assert_eq!(merged(&set), ["z 2/Tcp", "a 1/Tcp", "m 3/Tcp"]);
    let app: Vec<_> = set.imported("c", "shop/web").spec.ports.iter().map(|p| p.app_protocol.as_deref()).collect();
    assert_eq!(app, [Some("h2c"), None, None]);
}

#[test]
fn mcs_r44_a_headless_service_may_have_no_ports() {
    let set = two_with(Settings::default(), headless([]), headless([]));
    assert_eq!(set.imported("c", "shop/web").spec.ports, []);
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    assert!(set.mirrored("c", "shop/web").iter().all(|(_, slice)| slice.content.ports.is_empty()));
    // Endpoints without a port of a ClusterSetIP service can't be reached.
    let mut set = two(["http 80"], ["http 80"]);
    set.source("a", "shop/web", "abc", [], endpoints(["10.1.0.1"]));
    set.run();
    assert_eq!(set.addresses("c", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn mcs_r45_derived_ports_always_say_their_protocol() {
    let set = two(["tcp 42", "udp 42/UDP"], ["tcp 42", "udp 42/UDP"]);
    assert_eq!(merged(&set), ["tcp 42/Tcp", "udp 42/Udp"]);
    assert!(set.derived("c", "shop/web").expect("derived").spec.ports.iter().all(|p| p.target.is_none()));
}

const V4: &[Family] = &[Family::V4];
const V6: &[Family] = &[Family::V6];
const BOTH: &[Family] = &[Family::V4, Family::V6];
const BOTH_6: &[Family] = &[Family::V6, Family::V4];

/// `a` and `b` export with these families, each with a pod of each; `c` has `importer`.
fn families(rule: FamilyRule, older: &[Family], younger: &[Family], importer: &[Family], is_headless: bool) -> Set {
    let mut set = Set::unjoined(Settings { families: rule, ..Settings::default() });
    for (cluster, has) in [("a", BOTH), ("b", BOTH), ("c", importer)] {
        set.join_with(cluster, has);
        set.namespace(cluster, "shop");
    }
    for (cluster, families, created) in [("a", older, 0), ("b", younger, 10)] {
        let spec = if is_headless { headless(["http 80"]) } else { cluster_ip(["http 80"]) };
        set.service(cluster, "shop/web", ServiceSpec { families: families.to_vec(), ..spec });
        let n = if cluster == "a" { 1 } else { 2 };
        set.source(cluster, "shop/web", "v4", ["http 8080"], endpoints([&format!("10.{n}.0.1")]));
        set.source(cluster, "shop/web", "v6", ["http 8080"], endpoints([&format!("fd00:{n}::1")]));
        set.export(cluster, "shop/web", created);
    }
    set.run();
    set
}

#[test]
fn mcs_r46_families_are_never_empty_headless_or_not() {
    for is_headless in [false, true] {
        for importer in [V4, V6, BOTH] {
            let set = families(FamilyRule::Intersection, V4, V4, importer, is_headless);
            for cluster in ["a", "c"] {
                assert!(!set.imported(cluster, "shop/web").spec.families.is_empty());
            }
        }
    }
}

#[test]
fn mcs_r47_every_ip_is_of_the_family_in_its_place() {
    for (older, importer, wanted) in [(BOTH, BOTH, BOTH), (BOTH_6, BOTH, BOTH_6), (BOTH_6, V4, V4), (V6, BOTH, V6)] {
        let set = families(FamilyRule::Intersection, older, older, importer, false);
        let spec = &set.imported("c", "shop/web").spec;
        assert_eq!(spec.families, wanted);
        assert_eq!(spec.ips.iter().map(|ip| Family::of(*ip)).collect::<Vec<_>>(), wanted);
        assert_eq!(set.import_says("c", "shop/web"), "True/Ready");
    }
}

#[test]
fn mcs_r28_r48_families_are_the_intersection_in_the_oldests_order() {
    let merged = |rule, older, younger| {
        let set = families(rule, older, younger, BOTH, false);
        (set.imported("c", "shop/web").spec.families.clone(), set.says("a", "shop/web", "Conflict"))
    };
    let intersection = FamilyRule::Intersection;
    assert_eq!(merged(intersection, BOTH_6, BOTH), (BOTH_6.to_vec(), "False/NoConflicts".into()));
    assert_eq!(merged(intersection, BOTH, V6), (V6.to_vec(), "True/IPFamilyConflict".into()));
    assert_eq!(merged(intersection, V4, BOTH), (V4.to_vec(), "True/IPFamilyConflict".into()));
    assert_eq!(merged(FamilyRule::Union, V6, V4), (BOTH_6.to_vec(), "True/IPFamilyConflict".into()));
    assert_eq!(merged(FamilyRule::Union, BOTH, BOTH), (BOTH.to_vec(), "False/NoConflicts".into()));
}

#[test]
fn mcs_r49_nothing_in_common_is_the_oldests_families_and_a_conflict() {
    let set = families(FamilyRule::Intersection, V6, V4, BOTH, false);
    assert_eq!(set.imported("c", "shop/web").spec.families, V6);
    assert_eq!(
        set.message("b", "shop/web", "Conflict"),
        "Conflicting IP families. Using \"IPv6\" from oldest service export in \"a\". 1/2 clusters disagree."
    );
    assert_eq!(set.addresses("c", "shop/web"), ["fd00:1::1", "fd00:2::1"], "no slice of a dropped family");
}

#[test]
fn mcs_r49_an_importer_without_the_family_says_so_and_holds_nothing_else() {
    for is_headless in [false, true] {
        let set = families(FamilyRule::Intersection, V6, V6, V4, is_headless);
        let import = set.imported("c", "shop/web");
        assert_eq!(set.import_says("c", "shop/web"), "False/IPFamilyNotSupported");
        assert_eq!(import.status.conditions[0].message, "The service has IPv6, this cluster has IPv4.".into());
        assert_eq!((&import.spec.families[..], &import.spec.ips[..]), (V6, &[][..]));
        assert!(set.derived("c", "shop/web").is_none());
        assert!(set.mirrored("c", "shop/web").is_empty());
        assert_eq!(set.clusters("c", "shop/web"), ["a", "b"]);
        assert_eq!(set.importing("c", "shop/web"), Some(Importing::FamilyNotSupported));
        assert_eq!(set.says("a", "shop/web", "Ready"), "True/Exported");
        assert!(set.message("a", "shop/web", "Ready").contains("Not usable for want of its IP families: c."));
    }
}

#[test]
fn mcs_r49_where_the_families_are_not_known_the_derived_service_shows_them() {
    let mut set = families(FamilyRule::Intersection, V6, V6, V4, false);
    set.sim.world.set_features(&id("c"), Default::default());
    set.run();
    assert_eq!(set.import_says("c", "shop/web"), "False/IPFamilyNotSupported");
    assert!(set.derived("c", "shop/web").is_some(), "without it nobody would know");
    assert!(set.mirrored("c", "shop/web").is_empty());
    assert_eq!(set.run(), []);
}

#[test]
fn mcs_r50_a_derived_service_takes_what_families_it_can_get() {
    let set = families(FamilyRule::Intersection, V4, V4, BOTH, false);
    let derived = &set.derived("c", "shop/web").expect("derived").spec;
    assert!(derived.dual_stack);
    assert_eq!(derived.families, BOTH);
    assert_eq!(set.imported("c", "shop/web").spec.families, V4, "only the wanted ones are published");
    assert_eq!(set.imported("c", "shop/web").spec.ips, derived.ips[..1]);
}

#[test]
fn mcs_r50_a_headless_derived_service_says_its_families_itself() {
    for (merged, importer, wanted) in [(V4, BOTH, V4), (BOTH, BOTH, BOTH), (BOTH, V6, V6)] {
        let set = families(FamilyRule::Intersection, merged, merged, importer, true);
        let derived = &set.derived("c", "shop/web").expect("derived").spec;
        assert_eq!((&derived.families[..], derived.dual_stack), (wanted, wanted.len() == 2));
    }
}

#[test]
fn mcs_r51_headless_has_no_ips_ever() {
    let set = families(FamilyRule::Intersection, BOTH, BOTH, BOTH, true);
    let imports = set.log.iter().flat_map(|plan| &plan.plan.changes).filter_map(|change| match &change.action {
        namesake::reconcile::plan::Action::ApplyImport(import) => Some(import),
        _ => None,
    });
    let ips: Vec<_> = imports.map(|import| import.spec.ips.len()).collect();
    assert!(!ips.is_empty() && ips.iter().all(|n| *n == 0), "{ips:?}");
    assert_eq!(set.import_says("c", "shop/web"), "True/Ready");
}

#[test]
fn mcs_r66_slices_of_an_unwanted_family_are_skipped_and_two_families_are_two_slices() {
    let set = families(FamilyRule::Intersection, V4, V4, BOTH, true);
    assert_eq!(set.addresses("c", "shop/web"), ["10.1.0.1", "10.2.0.1"]);
    let set = families(FamilyRule::Intersection, BOTH, BOTH, BOTH, true);
    let derived = namesake::reconcile::naming::derived(&key("shop/web"));
    assert_eq!(
        set.slice_names("c", "shop/web"),
        [format!("{derived}-a"), format!("{derived}-a-ipv6"), format!("{derived}-b"), format!("{derived}-b-ipv6")]
    );
    for (_, slice) in set.mirrored("c", "shop/web") {
        let content = &slice.content;
        assert!(content.endpoints.iter().all(|e| e.addresses.iter().all(|ip| Family::of(*ip) == content.family)));
    }
}
