//! What the zone says: views become records when a service changes, and are looked up when someone asks.

mod options;
mod store;

pub use options::{Chaos, EmptyHeadless, EndpointNames, EndpointPolicy, Options};
pub use store::Store;
