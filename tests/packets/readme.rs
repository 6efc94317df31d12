//! The table of the README is what a whole run has shown: a run that shows otherwise fails, and says what should stand there.

use std::fmt::Write;
use std::path::Path;

use crate::grid::{Family, columns};
use crate::report::Report;

/// What stands before and behind the table.
const MARKS: [&str; 2] = ["<!-- shown by tests/packets -->", "<!-- /shown by tests/packets -->"];

/// Compares the README with a whole run. A part of the scenarios shows nothing of it.
pub fn check(report: &Report) -> Result<(), String> {
    if !report.complete {
        return Ok(());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("README.md: {e}"))?;
    let stands =
        text.split_once(MARKS[0]).and_then(|(_, rest)| rest.split_once(MARKS[1])).map(|(stands, _)| stands.trim());
    let shown = table(report);
    if stands == Some(shown.trim()) {
        return Ok(());
    }
    Err(format!(
        "README.md says otherwise than this run; between {} and {} should stand\n\n{shown}",
        MARKS[0], MARKS[1]
    ))
}

/// One row a scenario, a column a family, and in it a word for each arrangement in which it was played.
fn table(report: &Report) -> String {
    let mut text = String::from("| Scenario | Suite | KEP-1645 | IPv4 | IPv4 and IPv6 |\n|---|---|---|---|---|\n");
    for scenario in &report.scenarios {
        let cells: Vec<_> = Family::ALL
            .into_iter()
            .map(|family| {
                let runs =
                    columns().filter(|column| column.family == family).filter_map(|column| scenario.in_column(column));
                runs.map(|run| if run.passed() { "ok" } else { "FAILED" }).collect::<Vec<_>>().join(", ")
            })
            .collect();
        let label = if scenario.required { "required" } else { "optional" };
        let (id, title, section) = (&scenario.id, &scenario.title, scenario.kep_1645.title);
        let _ = writeln!(text, "| {id} {title} | {label} | {section} | {} |", cells.join(" | "));
    }
    text
}
