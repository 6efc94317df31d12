//! DNS load, an echo as the floor, and the comparison of servers on the same data. What is measured, and how to read
//! it, is in `benches/README.md`.
//!
//! | module | subject |
//! |---|---|
//! | [`set`], [`query`], [`zone`], [`objects`] | the data: what is served and asked, as a zone and as Kubernetes objects |
//! | [`udp`], [`tcp`], [`slots`], [`tally`], [`histogram`] | the load |
//! | [`echo`] | the floor |
//! | [`hickory`] | a peer that has no program of its own: hickory-server |
//! | [`machine`], [`servers`], `setup` | what runs: cores, CPU time, memory; how each server is set up and started |
//! | [`cluster`], [`scripted`] | where live servers read the set: a real API server, and one that brings changes fast |
//! | [`rounds`], [`report`], [`plot`] | measuring in turns, and the figures as tables and pictures |
//! | [`modes`] | the measurements, one a file |

pub mod cluster;
pub mod echo;
pub mod hickory;
pub mod histogram;
#[path = "../../../tests/support/kinds.rs"]
mod kinds;
pub mod machine;
pub mod modes;
pub mod objects;
pub mod plot;
pub mod query;
mod rendered;
pub mod report;
pub mod rounds;
pub mod scripted;
pub mod servers;
pub mod set;
mod setup;
pub mod slots;
pub mod tally;
pub mod tcp;
pub mod udp;
pub mod zone;
