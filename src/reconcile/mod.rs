//! The pure half of the controller: `(observed clusters, settings, clock) → plan` (controller.md, chapter 2).
//!
//! ```text
//!  world::World    ─► merge ─► what each cluster should hold ─► compared with what it holds ─► plan::Plan
//!        ▲                                                                                      │
//!        └────────────────────── whoever applies it watches the clusters ◄──────────────────────┘
//! ```
//!
//! Nothing is remembered between two plans but what the clusters themselves hold, so a restart changes nothing. All
//! that reaches a plan of one service is that service's entries in the members: the work per change is proportional
//! to the change.

pub mod conflicts;
pub mod naming;
pub mod objects;
pub mod observed;
pub mod plan;
pub mod settings;
pub mod world;

pub use plan::{Plan, ServicePlan};
pub use settings::Settings;
pub use world::{Dirty, World};
