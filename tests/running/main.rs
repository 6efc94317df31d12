//! The program as it runs, from its start to its end: the lifecycle rows of `dns.md` 1.11 and the cases of `cases.md`
//! that only a whole process shows, on folders and on a scripted API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/form.rs"]
mod form;
#[path = "../product/mod.rs"]
mod product;
#[path = "../support/scripted.rs"]
mod scripted;

mod api;
mod asking;
mod changes;
mod load;
mod memory;
mod rollout;
mod signals;
mod stale;
mod start;
mod trouble;
mod unread;
