//! The contract of `dns.md`: one test per row, in its **Take** column, against `namesake::dns::respond`.
//!
//! A test is named after its row (`dns_c7_…` is row C7). What holds for every reply (section 1.0) is checked by the
//! support each time anything is asked, in every shape a query may come.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod apex;
mod clustersetip;
mod decisions;
mod edns;
mod endpoints;
mod examples;
mod forward;
mod header;
mod headless;
mod levels;
mod lifecycle;
mod other;
mod sizes;
mod srv;
mod srv_names;
mod transfer;
mod tree;
