//! What a change of one pod, and planning everything, cost the pure half of the controller: counted, so that it comes out
//! the same on any machine. The work is that of the service the pod belongs to, however many others there are
//! (controller.md 2.13).

#[path = "support/clusterset.rs"]
mod clusterset;

use std::collections::BTreeMap;
use std::hint::black_box;

use clusterset::{Clusterset, NOW, Size};
use namesake::reconcile::plan::Action;
use namesake::reconcile::plan_all;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Most bytes that the observed clusters may hold for one endpoint: in its source, or mirrored.
const MOST_BYTES: u64 = 400;

/// Most allocations of one pod's change in a service of three times 100 endpoints that three clusters import: three
/// slices are written anew, with two allocations an endpoint.
const MOST_ALLOCATIONS: u64 = 1300;

/// Most allocations of planning a service that two of ten clusters export, from ten pods each, where nothing is left to
/// do: looked at, not built. Some twenty in each importing cluster.
const MOST_IDLE_ALLOCATIONS: u64 = 300;

/// The same where nothing is imported yet: in each of the ten an import, a derived Service and two slices are written.
const MOST_FIRST_ALLOCATIONS: u64 = 1900;

/// Allocations of planning everything, a service, and how many changes come out.
fn cost_of_all(set: &Clusterset, services: usize) -> (u64, usize) {
    let before = dhat::HeapStats::get();
    let changes = plan_all(&set.sim.world, &set.settings, NOW).map(|plan| black_box(plan).plan.changes.len()).sum();
    let after = dhat::HeapStats::get();
    ((after.total_blocks - before.total_blocks) / services as u64, changes)
}

/// Allocations and bytes of taking in that a pod of service 3 has become unready, and of the plan that follows.
fn cost(size: Size) -> (u64, u64) {
    let mut set = Clusterset::new(size);
    let change = set.change(3, size.endpoints / 2, false);
    let before = dhat::HeapStats::get();
    let plans = black_box(set.take(change));
    let after = dhat::HeapStats::get();
    let [plan] = &plans[..] else { panic!("one service is dirty, not {}", plans.len()) };
    // What is measured is what is meant: one slice of that cluster in every importer, and nothing else.
    let mut written = BTreeMap::new();
    for change in &plan.plan.changes {
        assert!(matches!(change.action, Action::ApplySlice(_)), "{change:?}");
        *written.entry(change.cluster.to_string()).or_insert(0) += 1;
    }
    assert_eq!(
        written.into_iter().collect::<Vec<_>>(),
        clusterset::CLUSTERS[..3].iter().map(|c| ((*c).to_owned(), 1)).collect::<Vec<_>>()
    );
    (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes)
}

#[test]
fn scl_02_mcs_w25_planning_one_change_costs_the_same_however_many_services_there_are() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let endpoints = 100;
    let few = cost(Size::everywhere(10, endpoints));
    let many = cost(Size::everywhere(60, endpoints));
    println!(
        "one pod of 3 x {endpoints} endpoints: {few:?} allocations and bytes among 10 services, {many:?} among 60"
    );
    assert_eq!(few.0, many.0, "allocations");
    // Numbers in made-up names are longer among many.
    assert!(many.1.abs_diff(few.1) * 50 < few.1, "bytes");

    assert!(few.0 <= MOST_ALLOCATIONS, "{} allocations", few.0);

    // Of a service ten times as large only one slice of a hundred is copied: the others are looked at.
    let large = cost(Size::everywhere(4, 1000));
    println!("one pod of 3 x 1,000 endpoints: {large:?}");
    assert!(large.0 < 4 * few.0, "allocations of a service ten times as large");

    // Everything at once, as after a start: so much a service, however many there are.
    let [few, many] = [20, 200].map(|services| {
        let mut set = Clusterset::exported(Size::pairs(10, services));
        let (first, changes) = cost_of_all(&set, services);
        // An import, a Service and two slices for each cluster, and what each exporter is told.
        assert_eq!(changes, services * (10 * 4 + 2));
        set.settle();
        let (idle, changes) = cost_of_all(&set, services);
        assert_eq!(changes, 0);
        println!(
            "of 2 x 10 endpoints, 10 clusters, {services} services: {first} allocations a service, {idle} if idle"
        );
        (first, idle)
    });
    assert!(many.0.abs_diff(few.0) <= 1 && many.1.abs_diff(few.1) <= 1, "grows with the services: {few:?}, {many:?}");
    assert!(many.0 <= MOST_FIRST_ALLOCATIONS, "{} allocations a service", many.0);
    assert!(many.1 <= MOST_IDLE_ALLOCATIONS, "{} allocations a service with nothing to do", many.1);

    // Memory, of what is held when nothing is left to do: each endpoint once at home and once in each importer.
    let size = Size::everywhere(30, endpoints);
    let before = dhat::HeapStats::get();
    let set = Clusterset::new(size);
    let held = dhat::HeapStats::get().curr_bytes - before.curr_bytes;
    let count = size.services * size.endpoints * 3 * 4;
    let each = held as u64 / count as u64;
    println!("{each} bytes an endpoint");
    assert!(each <= MOST_BYTES, "{each} bytes an endpoint");
    drop(set);
}
