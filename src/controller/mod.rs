//! The controller half: which clusters are members, and what is written to them, and how.
//!
//! ```text
//!  members ─► reconcile::World ─► reconcile::Plan ─► objects ─► an API server, or YAML
//! ```

pub mod enrol;
pub mod members;
pub mod objects;
