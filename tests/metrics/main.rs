//! The scrape: names, labels and buckets of CoreDNS (`dns.md` 2.4), bounded labels, exact sums.

mod contract;
mod counting;
mod scrape;
