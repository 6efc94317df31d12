//! What counting and logging a query cost: no allocation. The times are printed, never asserted.

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
    let none = dhat::HeapStats::get().total_blocks;
    let mut times = Vec::with_capacity(4);
    let start = dhat::HeapStats::get().total_blocks;
    assert!(start > none, "the profiler sees allocations at all");
    for (name, shard) in &shards {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            shard.answered(std::hint::black_box(&answered));
        }
        times.push((*name, begin.elapsed(), ROUNDS));
    }
    // As many as fit, then as many as do not.
    for (name, rounds) in [("query log", 2_000), ("query log, full", ROUNDS)] {
        let begin = Instant::now();
        for _ in 0..rounds {
            log.record(std::hint::black_box(&record));
        }
        times.push((name, begin.elapsed(), rounds));
    }
    assert_eq!(dhat::HeapStats::get().total_blocks - start, 0, "counting or queueing a query allocates");
    for (name, time, rounds) in times {
        println!("{name}: {:.1} ns a query", time.as_nanos() as f64 / f64::from(rounds));
    }
    let_go.send(()).unwrap();
}
