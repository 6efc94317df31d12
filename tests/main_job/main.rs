//! The main job, from end to end: a real API server with RBAC on → `namesake dns` as its own ServiceAccount → a real
//! CoreDNS with `forward clusterset.local` → `dig` at CoreDNS.
//!
//! Each test has a cluster of its own (`tests/testbed`), so they run side by side and break what they like.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod changes;
mod crds;
mod objects;
mod outage;
mod permissions;
mod relist;
mod rig;
