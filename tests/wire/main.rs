//! Real sockets and foreign clients against `dns::Bound` and `dns::Running`: `dns.md` T19 to T21, L1, L15, 2.6, and
//! the cases of `cases.md` that happen between a client and a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod zones;

mod bind;
mod clients;
mod drain;
mod flood;
mod served;
mod support;
mod tcp;
mod udp;
