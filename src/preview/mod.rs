//! A clusterset in memory: what the controller would make of some clusters, carried out where nobody is hurt, and told to
//! people. Behind `namesake sandbox` and `namesake plan`.
//!
//! ```text
//!  source::clusters ─► Clusterset ─► reconcile ─► simulated clusters ─┬─► differences ─► lines for people
//!                                        ▲             │              ├─► objects ─► YAML
//!                                        └─────────────┘              └─► one cluster's view ─► DNS
//! ```

mod clusterset;
mod describe;
mod differences;
mod edits;
mod endpoints;
mod live;
mod loss;
mod sandbox;
mod told;
mod view;
mod yaml;

pub use clusterset::{Clusterset, Settled};
pub use differences::{Line, Sign, Telling, differences};
pub use edits::edits;
pub use live::{Live, LiveError, live};
pub use loss::{Loss, loss};
pub(crate) use sandbox::now;
pub use sandbox::{Sandbox, SandboxError};
pub use view::view;
pub use yaml::{YamlError, documents};
