//! The rows of `dns.md` again, over real sockets: every query of the contract's tests also goes to a server on
//! loopback and must be answered the same there (`support/wire.rs`); and clients that we did not write, `dig` and
//! hickory's, ask what they can ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../contract/apex.rs"]
mod apex;
#[path = "../contract/clustersetip.rs"]
mod clustersetip;
#[path = "../contract/decisions.rs"]
mod decisions;
#[path = "../contract/edns.rs"]
mod edns;
#[path = "../contract/endpoints.rs"]
mod endpoints;
#[path = "../contract/examples.rs"]
mod examples;
#[path = "../contract/forward.rs"]
mod forward;
#[path = "../contract/header.rs"]
mod header;
#[path = "../contract/headless.rs"]
mod headless;
#[path = "../contract/levels.rs"]
mod levels;
#[path = "../contract/lifecycle.rs"]
mod lifecycle;
#[path = "../contract/other.rs"]
mod other;
#[path = "../contract/sizes.rs"]
mod sizes;
#[path = "../contract/srv.rs"]
mod srv;
#[path = "../contract/srv_names.rs"]
mod srv_names;
#[path = "../contract/transfer.rs"]
mod transfer;
#[path = "../contract/tree.rs"]
mod tree;

mod foreign_dig;
mod foreign_hickory;
