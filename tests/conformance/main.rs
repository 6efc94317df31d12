//! Scenarios of the official conformance suite of the Multi-Cluster Services API, written anew: those that need only the
//! API (`controller.md` 5.2), with the suite's waits, and the suite's labels in the comment of each test.
//!
//! Its program can't be had as a Go module. Where a scenario needs pods, their kubelet is played by the test. The
//! suite's "stays so" is 5 s, and so it is here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]
#![allow(clippy::print_stderr, reason = "what was measured, and the controller's log where a test fails")]

#[path = "../clusterset/mod.rs"]
mod clusterset;

mod imports;
mod merging;
mod slices;
mod spec;
