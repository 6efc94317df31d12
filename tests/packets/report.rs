//! What came of a run: the same for the table, for the page and, as YAML, for programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::jiff::{Timestamp, Unit};
use serde::Serialize;

use crate::beds::{self, Facts};
use crate::grid::{self, Column};
use crate::play::Played;
use crate::{page, scenarios};

/// A run and all that was played in it.
#[derive(Serialize)]
pub struct Report {
    /// What this is.
    pub about: &'static str,
    /// When it ended.
    pub date: String,
    pub namesake: Namesake,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coredns: Option<String>,
    pub beds: Vec<Facts>,
    /// Whether all was played that there is. If not, a filter was given, and the rest says nothing of what is missing.
    pub complete: bool,
    pub passed: usize,
    pub failed: usize,
    /// From the first cluster's start to the last outcome.
    pub seconds: f64,
    pub scenarios: Vec<OfScenario>,
}

/// What was tried.
#[derive(Serialize)]
pub struct Namesake {
    pub version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A scenario and what came of it wherever it was played.
#[derive(Serialize)]
pub struct OfScenario {
    pub id: String,
    pub name: &'static str,
    pub title: String,
    /// The file of the suite that it stands in.
    pub file: &'static str,
    pub labels: &'static [&'static str],
    pub required: bool,
    /// The section of the specification.
    pub kep_1645: Section,
    pub runs: Vec<Run>,
}

/// A section of KEP-1645.
#[derive(Serialize)]
pub struct Section {
    pub title: &'static str,
    pub url: String,
}

/// A scenario in one column.
#[derive(Serialize)]
pub struct Run {
    pub family: &'static str,
    pub arrangement: &'static str,
    pub outcome: &'static str,
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Run {
    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.error.is_none()
    }
}

impl OfScenario {
    /// What came of it in a column, if it was played there.
    pub fn in_column(&self, column: Column) -> Option<&Run> {
        let is_it = |run: &&Run| run.family == column.family.name() && run.arrangement == column.arrangement.name();
        self.runs.iter().find(is_it)
    }
}

impl Report {
    /// The report of a run in which so many trials could have been played.
    pub fn new(played: Vec<Played>, trials: usize, beds: Vec<Facts>, took: Duration) -> Self {
        let failed = played.iter().filter(|played| played.error.is_some()).count();
        let (passed, complete) = (played.len() - failed, played.len() == trials);
        let scenarios = scenarios::ALL.iter().filter_map(|scenario| {
            let runs: Vec<_> = grid::columns().filter_map(|column| run_in(&played, scenario.name, column)).collect();
            (!runs.is_empty()).then(|| OfScenario {
                id: scenario.id(),
                name: scenario.name,
                title: scenario.title(),
                file: scenario.file,
                labels: scenario.labels,
                required: scenario.is_required(),
                kep_1645: Section { title: scenario.section, url: scenario.section_url() },
                runs,
            })
        });
        Self {
            about: "Scenarios of the conformance suite of the Multi-Cluster Services API (KEP-1645), written anew",
            date: Timestamp::now().round(Unit::Second).unwrap_or_default().to_string(),
            namesake: Namesake { version: env!("CARGO_PKG_VERSION"), commit: commit() },
            coredns: beds::coredns_version(),
            beds,
            complete,
            passed,
            failed,
            seconds: tenths(took.as_secs_f64()),
            scenarios: scenarios.collect(),
        }
    }

    /// Writes it as YAML and as a page into the target folder; the folder they are in.
    pub fn write(&self) -> io::Result<PathBuf> {
        // Where cargo builds, by whatever setting: it has given the folder `tmp` there.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is a folder of the target folder");
        let folder = target.join("conformance");
        std::fs::create_dir_all(&folder)?;
        let yaml = serde_saphyr::to_string(self).map_err(io::Error::other)?;
        std::fs::write(folder.join("report.yaml"), yaml)?;
        std::fs::write(folder.join("report.html"), page::of(self))?;
        Ok(folder)
    }
}

fn run_in(played: &[Played], scenario: &str, column: Column) -> Option<Run> {
    let is_it = |played: &&Played| played.cell.scenario.name == scenario && played.cell.column == column;
    let played = played.iter().find(is_it)?;
    Some(Run {
        family: column.family.name(),
        arrangement: column.arrangement.name(),
        outcome: if played.error.is_none() { "passed" } else { "failed" },
        seconds: tenths(played.seconds),
        error: played.error.clone(),
    })
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// The commit that was tried, if this is a clone, and whether there was more than it.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, and changes") })
}
