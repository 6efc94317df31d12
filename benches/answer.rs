//! How long things take: an answer of each kind, a rebuild of one service, a change in the index, and the first
//! build of everything. See README.md beside this file for what the figures can and can't say.

#[path = "../tests/support/mix.rs"]
mod mix;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use mix::{Kind, LARGE, SMALL, Size};
use namesake::answers::{Options, Store, build};
use namesake::dns::{Transport, respond};
use namesake::feed::{Feed, Now, load, resync};
use namesake::index::{Effects, Index};
use namesake::model::{Change, ServiceKey, Update};
use namesake::source::Health;

/// Bytes to bytes, no sockets: over the mix, with and without EDNS, and by kind.
fn answers(criterion: &mut Criterion) {
    let store = load(Options::default(), changes(SMALL));
    let mut rng = Rng::with_seed(7);
    let mut out = vec![0; 65535];
    let mut group = criterion.benchmark_group("answer");
    group.throughput(Throughput::Elements(1));
    let mut measure = |name: &str, transport, queries: &[Vec<u8>], rng: &mut Rng| {
        let mut next = queries.iter().cycle();
        group.bench_function(name, |b| {
            b.iter(|| next.next().map(|query| respond(&store, black_box(query), transport, &mut out, rng)));
        });
    };
    let pool = |rng: &mut Rng, kind: fn(&mut Rng) -> Kind| -> Vec<_> {
        (0..20_000).map(|_| kind(rng).query(SMALL, rng)).collect()
    };
    let mixed = pool(&mut rng, Kind::of_the_mix);
    measure("mix", Transport::Udp, &mixed, &mut rng);
    measure("mix, EDNS", Transport::Udp, &mixed.into_iter().map(mix::with_opt).collect::<Vec<_>>(), &mut rng);
    for kind in Kind::ALL {
        let queries: Vec<_> = (0..20_000).map(|_| kind.query(SMALL, &mut rng)).collect();
        measure(&format!("{kind:?}"), Transport::Udp, &queries, &mut rng);
        if kind == Kind::HeadlessSrv {
            measure("HeadlessSrv, TCP", Transport::Tcp, &queries, &mut rng);
        }
    }
    group.finish();
}

/// One headless service of 100 endpoints: a change taken into the index, and the service built anew and swapped in.
fn updates(criterion: &mut Criterion) {
    let size = Size { services: 1, headless: 1, endpoints: 100, namespaces: 1 };
    let key = ServiceKey::new("ns-0", "db-0").expect("a key");
    let mut index = Index::new();
    for change in changes(size) {
        index.apply(Update::Change(change), &mut Effects::default());
    }
    let store = Store::new(Options::default());
    let mut group = criterion.benchmark_group("update");
    group.bench_function("build 100 endpoints", |b| {
        b.iter(|| store.put(&key, index.view(&key).and_then(|view| build(&view, store.options()).answers)));
    });
    let versions: Vec<Change> = size.slices(0).chain(size.slices(1)).collect();
    let mut next = versions.iter().cycle();
    group.bench_function("index a slice of 100 endpoints", |b| {
        b.iter_batched(
            || next.next().cloned().expect("a slice"),
            |change| index.apply(Update::Change(change), &mut Effects::default()),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// The first build: 100,000 services, 1,000,000 endpoints, from decoded objects to answers.
fn everything(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    group.bench_function("100,000 services, 1,000,000 endpoints", |b| {
        b.iter_batched(
            || changes(LARGE),
            |changes| {
                let store = Arc::new(Store::new(Options::default()));
                let mut feed = Feed::new(Arc::clone(&store), Arc::new(Health::new(true)), None, Now::read());
                feed.take(resync(changes), Now::read());
                (store, feed)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn changes(size: Size) -> Vec<Change> {
    size.imports(0).chain(size.slices(0)).collect()
}

criterion_group!(benches, answers, updates, everything);
criterion_main!(benches);
