//! Validated settings, and the three layers they come from.
//!
//! What was typed ([`Raw`], with the place of each value) and what it means ([`dns::Settings`],
//! [`controller::Settings`]) are separate types; the only way from one to the other is a check, which reports every
//! problem at once, each with its place, its reason and a remedy.
//!
//! ```text
//!  dns.yaml ─► file ──┐
//!  NAMESAKE_* ────────┼─► Raw ─► check ─► Settings
//!  flags (cli) ───────┘  later wins
//! ```
//!
//! [`Keyed::TABLE`] is the one definition of every setting of a command: the flags and their help, the variables, the
//! keys of the file, `config/<command>.example.yaml` and the README's tables all come from it.

mod check;
pub mod controller;
pub mod dns;
mod duration;
mod error;
mod example;
mod file;
mod keys;
mod parse;
mod raw;
mod shared;

pub(crate) use duration::parse as duration;
pub use error::{ConfigError, Problem};
pub use example::example;
pub use keys::{Keyed, Section, Shape, Spec};
pub use raw::{Given, Place, Raw, unknown_variables};
pub use shared::{Admin, Log};
