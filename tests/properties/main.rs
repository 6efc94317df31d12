//! What holds for every clusterset, not only for those somebody thought of.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod index;
mod sizes;
mod world;

use proptest::test_runner::Config;

/// So many cases; a failure is printed whole, so no file of seeds is kept.
fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() }
}
