//! The pure half of the controller: `(observed clusters, settings, clock) → plan` (controller.md, chapter 2).
//!
//! ```text
//!  World ─► exports ─► merge ─► desired, slices, status ─► compared with what is there ─► Plan
//!    ▲                                                                                   │
//!    └──────────────────── whoever applies it watches the clusters ◄─────────────────────┘
//! ```
//!
//! Nothing is remembered between two plans but what the clusters themselves hold, so a restart changes nothing. All
//! that reaches the plan of one service is that service's entries in the members: the work per change is proportional
//! to the change. A plan applied and observed again is empty.
//!
//! | file | subject |
//! |---|---|
//! | [`objects`], [`observed`], [`world`], `filing` | what the clusters hold, filed by service |
//! | [`settings`] | what the operator decides |
//! | [`exports`] | who exports a service, in precedence order |
//! | [`merge`](mod@merge), [`ports`], [`conflicts`] | one service of all exports |
//! | `desired`, `wanted`, `offers`, `slices`, `packing`, [`naming`] | what each importing cluster should hold |
//! | `standing` | whose silence holds up what, and for how long |
//! | `importer`, `mirrored`, [`compare`], `status` | the difference |
//! | [`planner`], [`plan`] | the result |
//! | [`simulate`] | clusters in memory that plans are applied to: tests and the sandbox |

pub mod compare;
pub mod conflicts;
mod desired;
mod dirty;
pub mod exports;
mod families;
mod filing;
mod importer;
mod member;
pub mod merge;
mod metadata;
mod mirrored;
pub mod naming;
pub mod objects;
pub mod observed;
mod offers;
mod packing;
pub mod plan;
pub mod planner;
pub mod ports;
pub mod settings;
pub mod simulate;
mod slices;
mod standing;
mod status;
mod wanted;
pub mod world;

pub use desired::{describe_ips, desired_value};
pub use merge::merge;
pub use plan::{Plan, ServicePlan};
pub use planner::{plan_all, plan_namespace, plan_service};
pub use settings::Settings;
pub use status::EXPORT_CONDITIONS;
pub use world::{Dirty, World};
