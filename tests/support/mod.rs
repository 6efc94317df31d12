//! What the contract tests stand on: queries as bytes, replies decoded by hand and by hickory-proto, manifests in one
//! line, and a zone that checks what holds for every reply each time it is asked.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test binary uses its part of the support")]

mod answer;
mod live;
mod manifest;
mod message;
mod query;
mod types;
mod wire;
mod zone;

pub use answer::Answer;
pub use live::Live;
pub use manifest::{F1, F2, clustersetip, headless, import, replace, slice};
pub use message::{Message, Record};
pub use query::{Ask, Edns, labels, record};
pub use types::*;
pub use wire::Wire;
pub use zone::{Zone, changes, options, zone, zone_with};
