//! Who leads, where several controllers run: elections by a Lease on a real API server. All through, a thread looks a
//! thousand times a second whether two lead at the same time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod elections;
mod rig;
mod trouble;
