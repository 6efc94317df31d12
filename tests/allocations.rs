//! An answer of the common shape allocates nothing, whatever its kind and transport.

#[path = "support/mix.rs"]
mod mix;

use fastrand::Rng;
use mix::{Kind, SMALL};
use namesake::answers::Options;
use namesake::dns::{Outcome, Transport, respond};
use namesake::feed::load;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// How often each kind is asked.
const EACH: usize = 2_000;

#[test]
fn answers_of_the_common_shape_allocate_nothing() {
    let store = load(Options::default(), SMALL.imports(0).chain(SMALL.slices(0)).collect());
    let mut rng = Rng::with_seed(7);
    let mut out = vec![0; 65535];
    let mut queries = Vec::new();
    for kind in Kind::ALL {
        for _ in 0..EACH {
            let query = kind.query(SMALL, &mut rng);
            queries.push((kind, mix::with_opt(query.clone())));
            queries.push((kind, query));
        }
    }
    let _profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get();
    let mut records = 0;
    for transport in [Transport::Udp, Transport::Tcp] {
        for (kind, query) in &queries {
            let outcome = respond(&store, query, transport, &mut out, &mut rng);
            let answers = usize::from(u16::from_be_bytes([out[6], out[7]]));
            // What answers nothing allocates nothing either: see that the answers are the ones that were meant.
            let due = match (kind, transport) {
                (Kind::ServiceA | Kind::EndpointA | Kind::ServiceSrv, _) => answers == 1,
                (Kind::HeadlessA, _) => answers == 20,
                (Kind::NxDomain | Kind::NoData, _) => answers == 0,
                (Kind::HeadlessSrv, Transport::Tcp) => answers == 20,
                (Kind::HeadlessSrv, Transport::Udp) => (5..20).contains(&answers),
            };
            assert!(due && matches!(outcome, Outcome::Reply(_)), "{kind:?} over {transport:?}: {answers} answers");
            records += answers;
        }
    }
    let after = dhat::HeapStats::get();
    let count = 2 * queries.len();
    println!("{count} queries, {records} records, {} allocations", after.total_blocks - before.total_blocks);
    assert_eq!(after.total_blocks, before.total_blocks, "allocations in {count} queries");
    // The counter works: it sees one where there is one.
    drop(std::hint::black_box(vec![1u8]));
    assert_eq!(dhat::HeapStats::get().total_blocks, after.total_blocks + 1);
}
