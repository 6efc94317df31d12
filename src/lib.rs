//! **Namesake**: one name for a service, in every cluster.
//!
//! An authoritative DNS server for `clusterset.local` (KEP-1645, multicluster DNS specification 1.0.0) that watches
//! ServiceImports and multi-cluster EndpointSlices. Data flows one way, and nothing below imports anything above it
//! (`tests/architecture.rs` holds the arrows):
//!
//! ```text
//!  source ─► index ─► answers ─► dns
//!  what is    joined    what the   how it
//!  there      views     zone says  is asked
//! ```
//!
//! | module | subject | knows of |
//! |---|---|---|
//! | [`model`] | the vocabulary: keys, imports, slices, endpoints, changes | nothing |
//! | [`api`] | the group, labels and values that users see, once | nothing |
//! | [`reconcile`] | observed clusters → merge → what each should hold → plan | `model`, `api` |
//! | [`source`] | kube watches and YAML folders → a stream of updates, or a world | `model`, `api`, `reconcile` |
//! | [`controller`] | member clusters; plans → Kubernetes objects | `source`, `reconcile` |
//! | [`index`] | imports × slices → one view per service; what is dirty | `model` |
//! | [`answers`] | view → records; the name tree; lookup; the wire fast path | `model`, `index` |
//! | [`dns`] | whole messages, sockets, limits, drain | `answers` |
//! | [`feed`] | the one writer: updates → index → answers | `source`, `index`, `answers` |
//! | [`preview`] | a clusterset in memory: carried out, told to people | `source`, `reconcile`, `controller`, `feed` |
//! | [`metrics`] | every metric, registered once | – |
//! | [`telemetry`] | log lines: format, filter, escaping | – |
//! | [`systemd`] | readiness and watchdog for the service manager | – |
//! | [`config`] | validated settings and the file format v1 | `answers`, `dns`, `controller` |
//! | [`admin`] | health, ready, metrics, explain | all but `cli` |
//! | [`serve`] | the running DNS half: start, watch, stop | all but `cli` |
//! | [`cli`] | one file per command | all |

// What must not happen on data from outside; a test may.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

pub mod admin;
pub mod answers;
pub mod api;
pub mod cli;
pub mod config;
pub mod controller;
pub mod dns;
pub mod feed;
pub mod index;
pub mod metrics;
pub mod model;
pub mod preview;
pub mod reconcile;
pub mod serve;
pub mod source;
pub mod systemd;
pub mod telemetry;
