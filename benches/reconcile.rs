//! How long the pure half of the controller takes: to merge the exports of one service; to take one pod's change in and
//! plan its service, among few and among many other services; and to plan everything, as after a start. See README.md
//! beside this file.

#[path = "../tests/support/clusterset.rs"]
mod clusterset;

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Duration;

use clusterset::{Clusterset, NOW, Size};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use namesake::model::{ClusterId, ImportKind, Protocol};
use namesake::reconcile::exports::Contribution;
use namesake::reconcile::objects::{Family, Map, ServicePort, Time, Traffic};
use namesake::reconcile::{Settings, merge, plan_all};

/// How many services of a set are changed in turns.
const CHANGED: usize = 1000;

/// One service of as many exports as there are clusters, which agree, or all of which want another port.
fn merging(criterion: &mut Criterion) {
    let port = |name: &str, port| {
        let (name, target) = (name.into(), None);
        ServicePort { name, protocol: Protocol::Tcp, port, app_protocol: None, target }
    };
    let mut group = criterion.benchmark_group("merge");
    for clusters in [2_u16, 10, 100] {
        for (name, differ) in [("agree", 0), ("differ", 1)] {
            let export = |n: u16| Contribution {
                cluster: Cow::Owned(ClusterId::new(&format!("cluster-{n}")).expect("a label")),
                created: Time(i64::from(n)),
                kind: ImportKind::ClusterSetIp,
                ports: Cow::Owned(vec![port("http", 80 + n * differ), port("metrics", 9090)]),
                families: Cow::Owned(vec![Family::V4]),
                traffic: Cow::Owned(Traffic::default()),
                labels: Cow::Owned(Map::new()),
                annotations: Cow::Owned(Map::new()),
                selector: Cow::Owned(Map::new()),
                publish_not_ready: false,
                remembered: false,
            };
            let exports: Vec<Contribution<'_>> = (0..clusters).map(export).collect();
            let settings = Settings::default();
            group.bench_function(format!("{clusters} exports that {name}"), |b| {
                b.iter(|| merge(black_box(&exports), &settings).expect("a service"));
            });
        }
    }
    group.finish();
}

/// One pod becomes unready, then ready again: nothing is applied in between, so each plan is the same work.
fn one_change(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, set: &mut Clusterset, size: Size) {
    // One service after the other, all over the set, and of each another pod than before: nothing that was told already.
    let changed = size.services.min(CHANGED);
    let service = |n: usize| n * 7 % changed * (size.services / changed);
    let pod = |n: usize| (n * 31 + n / changed * 17) % size.endpoints;
    let changes: Vec<_> = (0..2000).map(|n| set.change(service(n), pod(n), false)).collect();
    let mut next = changes.iter().cycle();
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |b| {
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

/// All services are planned, one after the other.
fn everything(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, set: &Clusterset, size: Size) {
    group.sample_size(10).throughput(Throughput::Elements(size.services as u64));
    group.bench_function(name, |b| {
        b.iter(|| {
            let plans = plan_all(&set.sim.world, &set.settings, NOW);
            plans.map(|plan| black_box(plan).plan.changes.len()).sum::<usize>()
        });
    });
}

/// Three clusters that export all services, with many endpoints of each.
fn everywhere(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan 3 clusters x 100 endpoints");
    for services in [10, 100, 1000] {
        let size = Size::everywhere(services, 100);
        let mut set = Clusterset::new(size);
        if services == 1000 {
            everything(&mut group, "all of 1000 services, nothing to do", &set, size);
        }
        one_change(&mut group, &format!("one pod's change among {services} services"), &mut set, size);
    }
    group.finish();
}

/// Ten clusters, two of which export each service.
fn pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan 10 clusters");
    let size = Size::pairs(10, 10_000);
    let mut set = Clusterset::exported(size);
    everything(&mut group, "all of 10000 services, nothing imported yet", &set, size);
    set.settle();
    everything(&mut group, "all of 10000 services, nothing to do", &set, size);
    one_change(&mut group, "one pod's change among 10000 services", &mut set, size);
    group.finish();
}

/// How the two grow with the services: among three clusters, so that the largest set fits into memory.
fn growth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("growth, 3 clusters");
    for services in [100, 1000, 10_000, 100_000] {
        let size = Size::pairs(3, services);
        let mut set = Clusterset::new(size);
        everything(&mut group, &format!("all of {services} services, nothing to do"), &set, size);
        one_change(&mut group, &format!("one pod's change among {services} services"), &mut set, size);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = merging, everywhere, pairs, growth
}
criterion_main!(benches);
