//! Whose word counts first (controller.md 2.2).

use crate::set::*;
use namesake::model::ImportKind;

#[test]
fn mcs_r14_the_oldest_service_export_leads_not_the_oldest_service() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 20, ["10.1.0.1"]);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.service("b", "shop/web", headless(["http 80"]));
    set.run();
    assert_eq!(set.clusters("a", "shop/web"), ["b", "a"]);
    assert_eq!(set.imported("a", "shop/web").spec.kind, ImportKind::Headless);
}

#[test]
fn mcs_r15_a_tie_is_the_smaller_cluster_ids() {
    let mut set = Set::new(["b", "a", "a-1"]);
    for cluster in ["b", "a-1", "a"] {
        set.exported(cluster, "shop/web", 7, ["10.1.0.1"]);
    }
    set.run();
    assert_eq!(set.clusters("b", "shop/web"), ["a", "a-1", "b"]);
}

#[test]
fn mcs_r16_invalid_exports_are_not_constituents() {
    let mut set = Set::new(["a", "b"]);
    set.export("a", "shop/web", 0);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    assert_eq!(set.clusters("a", "shop/web"), ["b"]);
    assert_eq!(set.addresses("a", "shop/web"), ["10.2.0.1"]);
}

#[test]
fn mcs_r17_a_recreated_export_is_the_youngest() {
    let mut set = Set::new(["a", "b"]);
    set.exported("a", "shop/web", 0, ["10.1.0.1"]);
    set.exported("b", "shop/web", 10, ["10.2.0.1"]);
    set.run();
    assert_eq!(set.clusters("a", "shop/web"), ["a", "b"]);
    set.unexport("a", "shop/web");
    set.export("a", "shop/web", 20);
    set.run();
    assert_eq!(set.clusters("a", "shop/web"), ["b", "a"]);
}

#[test]
fn mcs_r18_the_oldest_keeps_winning_and_after_it_the_result_is_computed_anew() {
    for oldest_first in [true, false] {
        let mut set = Set::new(["a", "b"]);
        let young = |set: &mut Set| {
            set.exported("b", "shop/web", 10, ["10.2.0.1"]);
            set.service("b", "shop/web", cluster_ip(["http 81"]));
        };
        if !oldest_first {
            young(&mut set);
            set.run();
        }
        set.exported("a", "shop/web", 0, ["10.1.0.1"]);
        set.run();
        if oldest_first {
            young(&mut set);
            set.run();
        }
        assert_eq!(set.imported("b", "shop/web").spec.ports, ports(["http 80"]));
        for cluster in ["a", "b"] {
            assert_eq!(set.says(cluster, "shop/web", "Conflict"), "True/PortConflict");
        }
        set.unexport("a", "shop/web");
        set.run();
        assert_eq!(set.imported("b", "shop/web").spec.ports, ports(["http 81"]));
        assert_eq!(set.says("b", "shop/web", "Conflict"), "False/NoConflicts");
    }
}
