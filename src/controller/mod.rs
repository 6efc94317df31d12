//! What the controller half writes, and how.
//!
//! ```text
//!  reconcile::Plan ─► objects ─► an API server, or YAML
//! ```

pub mod objects;
