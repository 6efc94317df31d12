//! Member clusters on real API servers with RBAC on: how they join, are found, identified, followed, and leave.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod bad;
mod identity;
mod leave;
mod reader;
mod rig;
mod sources;
mod story;
