//! What went wrong for users of such systems (`cases.md`, chapters 1 to 4, and what replies and the feed show of 5, 10, 11, 13 and 14):
//! a test per case, named after it, against `namesake::dns::respond` and the feed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod headless;
mod negative;
mod protocol;
mod scale;
mod srv;
