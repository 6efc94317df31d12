//! The controller half: which clusters are members, and what is written to them, and how.
//!
//! ```text
//!  members ─► engine: reconcile::World ─► reconcile::Plan ─► apply ─► objects ─► API servers
//! ```

mod apply;
pub mod engine;
pub mod enrol;
pub mod lease;
pub mod members;
pub mod objects;
pub mod settings;
pub mod source_leases;
pub mod status;

pub use engine::Engine;
pub use settings::{ControllerSettings, LeaseSettings, SourceLeases, WriteLimits};
pub use status::Status;
