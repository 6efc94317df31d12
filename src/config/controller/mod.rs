//! The settings of `namesake controller`, and the policies of the commands that say what it would do.

mod check;
mod keys;
mod members;
mod policy;
mod settings;
mod table;

pub use keys::Key;
pub use policy::POLICIES;
pub use settings::{LiveClusters, Machine, Preview, Settings};
