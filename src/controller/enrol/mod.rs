//! Registering a member cluster in a hub, and taking it out again.
//!
//! ```text
//!  join:   CRDs, account, RBAC in the member ─► its token ─► labelled Secret in the hub
//!  leave:  the Secret ─► the account (so nothing is written any more) ─► everything of ours in the member
//! ```
//!
//! Both may be repeated: what is as it should be is left alone. Neither deletes a CRD or anything that is not ours.

mod api;
mod crds;
mod join;
mod leave;
pub mod manifests;
mod sweep;

pub use api::{Cluster, EnrolError};
pub use join::{Join, join};
pub use leave::{Leave, leave};

/// Where a step is told, line by line.
pub type Say<'a> = dyn FnMut(&str) + Send + 'a;
