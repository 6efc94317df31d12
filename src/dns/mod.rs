//! Whole messages in, whole messages out; and the sockets they come through.
//!
//! [`respond`] has no I/O. [`Bound`] takes the addresses, [`Running`] serves on them: over UDP a thread and a socket
//! per core ([`ServerConfig::udp_workers`]), over TCP a bounded loop on the caller's runtime. Both call one
//! [`Responder`], so what a client is told never depends on how it came.

mod handler;
mod limits;
mod listen;
mod packet;
mod query_log;
mod respond;
mod scan;
mod server;
mod slow;
mod tcp;
mod udp;

use crate::answers::Store;

pub use crate::answers::{Reply, Transport};
pub use limits::TcpLimits;
pub use listen::{BindError, Bound, ServerConfig, probe};
pub use query_log::{LineFormat, LineLog, QueryLog, QueryRecord};
pub use respond::{DropReason, Outcome, respond};
pub use server::{Drained, Running, ServeError};
#[doc(hidden)] // for the test that holds both paths to the same answers
pub use slow::respond_slow;

/// What answers a message: [`Store`] in the product, anything smaller in a test of the sockets.
pub trait Responder: Send + Sync + 'static {
    /// Answers `query` into the start of `out`; see [`respond`], which is this for a [`Store`].
    fn respond(&self, query: &[u8], transport: Transport, out: &mut [u8], rng: &mut fastrand::Rng) -> Outcome;
}

impl Responder for Store {
    #[inline]
    fn respond(&self, query: &[u8], transport: Transport, out: &mut [u8], rng: &mut fastrand::Rng) -> Outcome {
        respond(self, query, transport, out, rng)
    }
}
