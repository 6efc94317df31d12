//! Whole messages in, whole messages out; and the sockets they come through.

mod respond;

pub use respond::{DropReason, Outcome, Reply, Transport, respond};
