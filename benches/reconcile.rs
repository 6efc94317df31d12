//! How long the pure half of the controller takes: to take one pod's change in and plan its service, among few and
//! among many other services; and to plan everything, as after a start. See README.md beside this file.

#[path = "../tests/support/clusterset.rs"]
mod clusterset;

use std::hint::black_box;
use std::time::Duration;

use clusterset::{Clusterset, NOW, Size};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use namesake::reconcile::plan_all;

/// One pod becomes unready, then ready again: nothing is applied in between, so each plan is the same work.
fn one_change(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan one pod's change");
    for services in [10, 100, 1000] {
        let mut set = Clusterset::new(Size { services, endpoints: 100 });
        // One service after the other, and of each another pod than before: nothing that was told already.
        let pod = |n: usize| (n * 31 + n / services * 17) % 100;
        let changes: Vec<_> = (0..2000).map(|n| set.change(n * 7 % services, pod(n), false)).collect();
        let mut next = changes.iter().cycle();
        group.bench_function(format!("among {services} services x 100 endpoints x 3 clusters"), |b| {
            b.iter_batched(
                || next.next().cloned(),
                |change| {
                    let plans = change.map(|change| black_box(set.take(change))).unwrap_or_default();
                    assert_eq!(plans.len(), 1, "something to plan");
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Everything is as it should be, and that is found out.
fn everything(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan all");
    group.sample_size(10);
    let set = Clusterset::new(Size { services: 1000, endpoints: 100 });
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1000 services x 100 endpoints x 3 clusters, nothing to do", |b| {
        b.iter(|| {
            let plans = plan_all(&set.sim.world, &set.settings, NOW);
            plans.map(|plan| black_box(plan).plan.changes.len()).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = one_change, everything
}
criterion_main!(benches);
