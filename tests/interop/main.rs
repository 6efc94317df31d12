//! Beside others: ServiceImports, derived Services and EndpointSlices in the very form that other implementations of the
//! Multi-Cluster Services API write, in the cluster of a real API server that is a member of ours.
//!
//! One module an implementation. Each says where its source shows the form, and asserts two things: what the DNS half
//! answers from such objects, or why it can't; and that the controller, with an export of another and of the same name,
//! touches none of them and says whose import is in the way. None of these implementations runs here: their objects do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]
#![allow(clippy::print_stderr, reason = "the controller's log where a test fails")]

#[path = "../clusterset/mod.rs"]
mod clusterset;

mod antrea;
mod cilium;
mod cloud_map;
mod karmada;
mod rig;
mod submariner;
