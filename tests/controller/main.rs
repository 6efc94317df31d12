//! The running controller on real API servers with RBAC on: what users see when they export, change and take back, and
//! what they don't see when clusters fail.
//!
//! Tests that harm nobody share three clusters and one controller (`calm`), each in namespaces of its own. Those that
//! kill, cut off or take away have clusters for themselves, one test at a time: five (`rough`) or three (`rough_three`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]
#![allow(clippy::print_stderr, reason = "what was measured, and the controller's log where a test fails")]

#[path = "../clusterset/mod.rs"]
mod clusterset;

mod bad_members;
mod beds;
mod care;
mod comings;
mod dns;
mod example;
mod foreign;
mod headless;
mod isolation;
mod kill;
mod loyalty;
mod namespaces;
mod outage;
mod partial;
mod replicas;
mod retype;
mod shapes;
mod soak;
mod sources;
mod told;
mod versions;
mod writes;
