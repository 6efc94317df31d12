//! The scrape: names, labels and buckets of CoreDNS (`dns.md` 2.4), bounded labels, exact sums.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod controller;
mod counting;
mod scrape;
