//! How the controller is installed: the manifests of the hub, the members' accounts, the policies that hold them to what
//! is ours, samples, and the README's first answer, all on real API servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

#[path = "../product/mod.rs"]
mod product;

mod admission;
mod first;
mod inventories;
mod manifests;
mod rig;
mod roles;
mod samples;
mod taken;
