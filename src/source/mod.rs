//! Where objects come from: each source turns the outside world into a stream of [`Update`]s.

pub mod clusters;
mod convert;
pub mod folder;
mod health;
pub mod kube;

pub use convert::{Convert, member};
pub use health::{Health, Trouble, WatchPhase, WatchStatus};

use crate::model::Update;

/// The bounded queue that a source writes to and [`feed`](crate::feed) reads. A full queue slows the source down.
pub type Updates = tokio::sync::mpsc::Sender<Update>;

/// How many updates may wait between a source and the feed.
pub const QUEUE: usize = 4096;
