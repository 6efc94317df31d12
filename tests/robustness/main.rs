//! Hostile input: no packet and no document makes us panic, and no reply is one that a foreign parser refuses.
//!
//! ```text
//!  packets ─► respond ─► reply ─► hickory_proto, and rules of the protocol   (10 million)
//!          └► respond and respond_slow: equal answers                        (1 million)
//!  documents ─► read_text ─► an error, or changes that can be served         (100,000)
//! ```
//!
//! Deterministic unless told otherwise: `NAMESAKE_FUZZ_SEED` starts elsewhere, `NAMESAKE_FUZZ_COUNT` multiplies the
//! work. Every failure is printed with the bytes that led to it. Built for release: `tests/run` says how.

mod agree;
mod documents;
mod packets;
#[path = "../support/rich.rs"]
mod rich;
mod rules;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Where a run starts, and how much it does.
fn plan(base: u64) -> (u64, u64) {
    let of = |name| std::env::var(name).ok().map(|v| v.parse().expect("a number"));
    let seed = of("NAMESAKE_FUZZ_SEED").unwrap_or(20_261_129);
    // Without optimisation the same work takes an hour, and proves no more.
    let count = base * of("NAMESAKE_FUZZ_COUNT").unwrap_or(1) / if cfg!(debug_assertions) { 100 } else { 1 };
    println!("NAMESAKE_FUZZ_SEED={seed}, {count} runs");
    (seed, count)
}

/// What went wrong, once for each way of going wrong: how often, and the shortest input that led to it.
#[derive(Debug, Default)]
struct Failures(BTreeMap<String, (u64, Vec<u8>)>);

impl Failures {
    /// Runs one check on `input`; a panic is a failure too.
    fn check(&mut self, input: &[u8], check: impl FnOnce() -> Result<(), String>) {
        let why = match catch_unwind(AssertUnwindSafe(check)) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                format!("panic: {}", text.or(panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
            }
        };
        let (count, shortest) = self.0.entry(why).or_insert_with(|| (0, input.to_vec()));
        *count += 1;
        if input.len() < shortest.len() {
            *shortest = input.to_vec();
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (why, (count, input)) in other.0 {
            let (sum, shortest) = self.0.entry(why).or_insert_with(|| (0, input.clone()));
            *sum += count;
            if input.len() < shortest.len() {
                *shortest = input;
            }
        }
        self
    }

    /// Ends the test if there are any.
    fn none(self) {
        let mut report = String::new();
        for (why, (count, input)) in self.0.iter().take(100) {
            let hex = input.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let _ = writeln!(report, "{why}\n  {count} times, for example with {hex}");
        }
        assert!(report.is_empty(), "{} ways to fail\n{report}", self.0.len());
    }
}

/// Runs `part` in two threads with seeds of their own, and puts their failures together.
fn in_two_threads(seed: u64, count: u64, part: impl Fn(fastrand::Rng, u64) -> Failures + Sync) -> Failures {
    std::thread::scope(|scope| {
        let part = &part;
        let other = scope.spawn(move || part(fastrand::Rng::with_seed(seed.wrapping_add(1)), count / 2));
        let own = part(fastrand::Rng::with_seed(seed), count - count / 2);
        own.merge(other.join().expect("failures are collected, not thrown"))
    })
}
