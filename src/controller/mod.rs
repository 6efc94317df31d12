//! The controller half: which clusters are members, what they hold, and what is written to them.

pub mod members;
