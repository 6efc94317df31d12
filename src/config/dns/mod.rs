//! The settings of `namesake dns`, and of the commands that serve or explain DNS.

mod check;
mod keys;
mod settings;
mod table;

pub use keys::Key;
pub use settings::{Machine, Settings, Source, TcpLimits};
