//! The controller half: which clusters are members, and what is written to them, and how.
//!
//! ```text
//!  members ─► reconcile::World ─► reconcile::Plan ─► objects ─► an API server, or YAML
//! ```

pub mod enrol;
pub mod lease;
pub mod members;
pub mod objects;
pub mod settings;
pub mod status;

pub use settings::{ControllerSettings, LeaseSettings, WriteLimits};
pub use status::Status;
