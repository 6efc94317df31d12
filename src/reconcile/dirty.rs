//! What a change makes dirty.

use crate::model::{Label, ServiceKey};

/// Which services a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dirty {
    /// None: nothing that a plan reads has changed, or nothing that anybody exports.
    Nothing,
    /// These, and no more than two.
    Services(Vec<ServiceKey>),
    /// Those of [`World::keys_in`](super::World::keys_in) this namespace.
    Namespace(Label),
    /// All of [`World::keys`](super::World::keys).
    All,
}
