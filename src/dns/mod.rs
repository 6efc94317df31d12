//! Whole messages in, whole messages out; and the sockets they come through.
//!
//! [`respond`] has no I/O. [`Bound`] takes the addresses, [`Running`] serves on them: over UDP a thread and a socket
//! per core ([`ServerConfig::udp_workers`]), over TCP a bounded loop on the caller's runtime. Both call one
//! [`Responder`], so what a client is told never depends on how it came.

mod handler;
mod limits;
mod listen;
mod overflow;
mod packet;
mod query_log;
mod respond;
mod scan;
mod server;
mod slow;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::time::Duration;

pub use limits::TcpLimits;
pub use listen::{BindError, Bound, ServerConfig, probe};
pub use overflow::queue_drops;
pub use query_log::{LineFormat, LineLog};
pub use respond::{DropReason, Outcome, respond};
pub use server::{Drained, Running, ServeError};

pub use crate::answers::{Reply, Transport};
#[doc(hidden)] // for the test that holds both paths to the same answers
pub use slow::respond_slow;

use crate::answers::Store;

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

/// Where one line per answered query may go.
///
/// It is called on the thread that answers, so it must neither wait nor allocate without a bound: queue or drop.
pub trait QueryLog: Send + Sync + 'static {
    /// Takes note of a query and its reply.
    fn record(&self, record: &QueryRecord<'_>);
}

/// A query and what was said to it, in the bytes that were on the wire.
#[derive(Debug, Clone, Copy)]
pub struct QueryRecord<'a> {
    /// Who asked; an IPv4 client of an IPv6 socket has its IPv4 address.
    pub peer: SocketAddr,
    /// What carried it.
    pub transport: Transport,
    /// The query as it came.
    pub query: &'a [u8],
    /// The reply as it leaves.
    pub reply: &'a [u8],
    /// From the query's arrival in our hands to the finished reply.
    pub duration: Duration,
}
