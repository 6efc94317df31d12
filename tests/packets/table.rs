//! The table at the end of a run.

use std::fmt::Write;

use crate::grid::{Family, columns};
use crate::report::Report;

/// How wide a title may be.
const TITLE: usize = 63;

/// One row a scenario, one column a family and arrangement; at last the counts.
pub fn of(report: &Report) -> String {
    let mut text = String::from("\n");
    let families: Vec<_> = Family::ALL.iter().map(|family| format!("{:<28}", family.name())).collect();
    let _ = writeln!(text, "{:<TITLE$}  {:<8}  {}", "", "", families.join(" ").trim_end());
    let heads: Vec<_> = columns().map(|column| format!("{:<9}", column.arrangement.name())).collect();
    let _ = writeln!(text, "{:<TITLE$}  {:<8}  {}", "scenario", "suite", heads.join(" ").trim_end());
    for scenario in &report.scenarios {
        let title = format!("{:<3} {}", scenario.id, scenario.title);
        let label = if scenario.required { "required" } else { "optional" };
        let cells: Vec<_> = columns()
            .map(|column| match scenario.in_column(column) {
                None => format!("{:<9}", "–"),
                Some(run) => format!("{:<9}", if run.passed() { "ok" } else { "FAILED" }),
            })
            .collect();
        let _ = writeln!(text, "{title:<TITLE$}  {label:<8}  {}", cells.join(" ").trim_end());
    }
    let what = if report.complete { "all that there is" } else { "a part only, by the filter" };
    let (passed, failed, seconds) = (report.passed, report.failed, report.seconds);
    let _ = writeln!(text, "{passed} passed, {failed} failed: {what}; {seconds:.0} s with the start of the clusters");
    text
}
