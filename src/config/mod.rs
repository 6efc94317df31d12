//! Validated settings, and the three layers they come from.
//!
//! What was typed ([`Raw`], with the place of each value) and what it means ([`Settings`]) are separate types; the only
//! way from one to the other is [`Settings::check`], which reports every problem at once, each with its place, its
//! reason and a remedy.
//!
//! ```text
//!  dns.yaml ─► file ──┐
//!  NAMESAKE_* ────────┼─► Raw ─► check ─► Settings
//!  flags (cli) ───────┘  later wins
//! ```
//!
//! [`KEYS`] is the one definition of every setting: the flags and their help, the variables, the keys of the file,
//! `config/dns.example.yaml` and the README's table all come from it.

mod check;
mod duration;
mod error;
mod example;
mod file;
mod keys;
mod parse;
mod raw;
mod settings;
mod table;

pub use error::{ConfigError, Problem};
pub use example::example;
pub use keys::{Key, Section, Shape, Spec};
pub use raw::{FILE_VARIABLE, Given, Place, Raw, unknown_variables};
pub use settings::{Admin, Log, Machine, Settings, Source, TcpLimits};
pub use table::KEYS;
