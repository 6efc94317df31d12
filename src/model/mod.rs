//! The vocabulary of Namesake: plain values that know of no Kubernetes, DNS library or runtime.

mod change;
mod endpoint;
mod name;
mod port;
mod service;
mod skip;

pub use change::{Change, Resource, Update};
pub use endpoint::{Endpoint, EndpointList, EndpointRef, Readiness, Slice, usable_address};
pub use name::{ClusterId, Label, ServiceKey, SliceKey, dashed_address};
pub use port::{Port, Protocol};
pub use service::{EndpointObjects, Import, ImportKind};
pub use skip::{SkipReason, Skipped};
