//! Whole messages in, whole messages out; and the sockets they come through.

mod query_log;
mod respond;

pub use query_log::{LineFormat, LineLog, QueryLog, QueryRecord};
pub use respond::{DropReason, Outcome, Reply, Transport, respond};
