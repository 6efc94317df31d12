//! The admin routes over real sockets: bodies and codes as CoreDNS's (`dns.md` 2.3), readiness in words, and what a
//! hostile or slow client can't do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod controller;
mod http;
mod limits;
mod readiness;
mod routes;
mod systemd;
