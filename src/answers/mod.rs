//! What the zone says: views become records when a service changes, and are looked up when someone asks.
//!
//! ```text
//!  index::View ─► build ─► ServiceAnswers ─┐ one immutable snapshot a service, swapped in whole
//!                                          ▼
//!  query bytes ─► name ─► Store ─► lookup ─► Verdict ─► wire    the common shape, without allocating
//!                                                  └──► dns     everything else, through hickory-proto
//! ```
//!
//! `lookup` walks the tree of names of `dns.md` 1.14 in the order of RFC 1034 §4.3.2: the zone, then the labels from
//! the right, then the type. Whether a name exists never depends on the type that is asked for (RFC 8020).

mod answer;
mod build;
mod edns;
mod explain;
mod lookup;
mod name;
mod node;
mod options;
mod query;
mod records;
mod serial;
mod service;
mod srv;
mod store;
mod text;
mod wire;
mod zone;

pub use answer::{Answered, MIN_OUT, Reply, Transport, UDP_PLAIN, answer, is_transfer, limit, rcode};
pub use build::{Built, build};
pub use edns::Ede;
pub use explain::explain;
pub use lookup::{Data, Scope, Verdict, lookup};
pub use name::{Folded, QueryName, is_name};
pub use options::{Chaos, EmptyHeadless, EndpointNames, EndpointPolicy, Options};
pub use query::{Opt, Query, Shape};
pub use records::{Rdata, Record, Records, negative_soa, records};
pub use serial::Serial;
pub use service::{Family, PortFilter, ServiceAnswers};
pub use store::{State, Store};
pub use text::{type_name, type_number};
pub use zone::Zone;

/// Record types that the zone holds or that are asked of it, by their numbers (IANA DNS parameters).
pub mod rrtype {
    /// RFC 1035 §3.4.1
    pub const A: u16 = 1;
    /// RFC 1035 §3.3.11
    pub const NS: u16 = 2;
    /// RFC 1035 §3.3.13
    pub const SOA: u16 = 6;
    /// RFC 1035 §3.3.2
    pub const HINFO: u16 = 13;
    /// RFC 1035 §3.3.14
    pub const TXT: u16 = 16;
    /// RFC 3596
    pub const AAAA: u16 = 28;
    /// RFC 2782
    pub const SRV: u16 = 33;
    /// RFC 6891
    pub const OPT: u16 = 41;
    /// RFC 2930
    pub const TKEY: u16 = 249;
    /// RFC 8945
    pub const TSIG: u16 = 250;
    /// RFC 1995
    pub const IXFR: u16 = 251;
    /// RFC 5936
    pub const AXFR: u16 = 252;
    /// RFC 1035 §3.2.3
    pub const MAILB: u16 = 253;
    /// RFC 1035 §3.2.3
    pub const MAILA: u16 = 254;
    /// RFC 1035 §3.2.3, RFC 8482
    pub const ANY: u16 = 255;
}
