//! What counting and logging a query cost: no allocation. The times are printed, never asserted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use namesake::dns::{LineFormat, LineLog, QueryLog, QueryRecord, Transport};
use namesake::metrics::{Answered, Metrics};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const ROUNDS: u32 = 100_000;

/// A writer that says when it has come to its first write, and stays there until it is let go.
struct Held {
    arrived: Option<SyncSender<()>>,
    go: Receiver<()>,
}

impl std::io::Write for Held {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(arrived) = self.arrived.take() {
            arrived.send(()).unwrap();
            let _ = self.go.recv();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn counting_and_queueing_a_query_allocate_nothing() {
    let metrics = Arc::new(Metrics::new(&["clusterset.local".to_owned()], "multicluster"));
    let answered = Answered {
        zone: Some(0),
        qtype: 1,
        rcode: 0,
        ipv6: false,
        query_len: 60,
        reply_len: 96,
        dnssec_ok: false,
        cut: false,
        duration: Duration::from_nanos(213_417),
    };
    let shards = [("udp", metrics.dns_shard("dns://:53", false)), ("tcp", metrics.dns_shard("dns://:53", true))];

    let (arrived, here) = sync_channel(1);
    let (let_go, go) = sync_channel(1);
    let log = LineLog::start(LineFormat::Text, Held { arrived: Some(arrived), go }, Arc::clone(&metrics)).unwrap();
    let record = QueryRecord {
        peer: "10.0.0.9:1".parse().unwrap(),
        transport: Transport::Udp,
        query: &[0; 60],
        reply: &[0; 96],
        duration: Duration::from_nanos(1),
    };
    // The writer formats one line, which allocates, and is held; from then on only this thread is at work.
    log.record(&record);
    here.recv().unwrap();

    let _profiler = dhat::Profiler::builder().testing().build();
    let mut times = Vec::with_capacity(4);
    let work: [(&str, u32, &dyn Fn()); 4] = [
        ("udp", ROUNDS, &|| shards[0].1.answered(std::hint::black_box(&answered))),
        ("tcp", ROUNDS, &|| shards[1].1.answered(std::hint::black_box(&answered))),
        // Ten times as many fit into the queue.
        ("query log", 400, &|| log.record(std::hint::black_box(&record))),
        ("query log, full", ROUNDS, &|| log.record(std::hint::black_box(&record))),
    ];
    // All threads are counted, and the harness's own may allocate meanwhile: then once more. What allocates for each
    // query does so every time.
    let clean = work.map(|(name, rounds, once)| {
        (0..10).any(|_| {
            let start = dhat::HeapStats::get().total_blocks;
            let begin = Instant::now();
            for _ in 0..rounds {
                once();
            }
            let time = begin.elapsed();
            let clean = dhat::HeapStats::get().total_blocks == start;
            if clean {
                times.push((name, time, rounds));
            }
            clean
        })
    });
    let seen = dhat::HeapStats::get().total_blocks;
    drop(std::hint::black_box(Box::new(1)));
    let allocations_are_seen = dhat::HeapStats::get().total_blocks > seen;
    let _ = let_go.send(());
    assert!(allocations_are_seen);
    assert_eq!(clean, [true; 4], "counting or queueing a query allocates");
    for (name, time, rounds) in times {
        println!("{name}: {:.1} ns a query", time.as_nanos() as f64 / f64::from(rounds));
    }
}
