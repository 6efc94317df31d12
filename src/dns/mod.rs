//! Whole messages in, whole messages out; and the sockets they come through.

mod query_log;
mod respond;
mod scan;
mod slow;

pub use crate::answers::{Reply, Transport};
pub use query_log::{LineFormat, LineLog, QueryLog, QueryRecord};
pub use respond::{DropReason, Outcome, respond};
#[doc(hidden)] // for the test that holds both paths to the same answers
pub use slow::respond_slow;
