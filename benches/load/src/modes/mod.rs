//! The measurements, one a file: what each starts, asks and prints.

pub mod growth;
pub mod live;
pub mod propagation;
pub mod queries;
pub mod updates;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::{Result, doing};
use crate::rounds::Effort;
use crate::servers::Kind;
use crate::set::Set;

/// What all measurements are told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Our binary.
    pub namesake: PathBuf,
    /// The servers, in the order of the tables.
    pub servers: Vec<Kind>,
    /// The sets of the measurement that has one figure for each.
    pub sets: Vec<Set>,
    /// The ways of asking; none for those that suit a set.
    pub scenarios: Vec<String>,
    /// How often and how long.
    pub effort: Effort,
    /// Where tables, lines and pictures go.
    pub out: PathBuf,
    /// Where Criterion keeps what `cargo bench` has measured.
    pub criterion: PathBuf,
    /// Only what a few seconds can show: that everything runs, not what it costs.
    pub smoke: bool,
}

/// The servers that read from an API server, without variants.
const LIVE: [Kind; 2] = [Kind::Namesake, Kind::CoreDns];

impl Settings {
    /// Those of [`LIVE`] that are to be measured.
    pub(crate) fn live(&self) -> Vec<Kind> {
        LIVE.into_iter().filter(|kind| self.servers.contains(kind)).collect()
    }

    /// Prints a text, and keeps it.
    pub(crate) fn tell(&self, file: &str, text: &str) -> Result<()> {
        println!("{text}");
        self.keep(file, text)
    }

    /// Keeps a text.
    pub(crate) fn keep(&self, file: &str, text: &str) -> Result<()> {
        let path: &Path = &self.out.join(file);
        fs::create_dir_all(&self.out).and_then(|()| fs::write(path, text)).map_err(doing(path.display()))
    }
}
