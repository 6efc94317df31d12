//! The same figures for ten times as many services, and ten times again: what grows with the size, and how.

use std::fs;

use serde_json::Value;
use testbed::Bed;
use tokio::runtime::Runtime;

use super::{Settings, queries, updates};
use crate::cluster::{Result, doing};
use crate::plot;
use crate::report::Table;
use crate::rounds::{Sample, Spread, measure};
use crate::servers::Kind;
use crate::set::Set;

/// Services of each step.
const SIZES: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// What is compared; the echo tells how the machine is.
const KINDS: [Kind; 3] = [Kind::Echo, Kind::Namesake, Kind::CoreDns];

/// What `cargo bench --bench reconcile` has measured of the controller's plans, in nanoseconds: its name there, in the
/// picture, and how many of the unit are one.
const PLANS: [(&str, &str, f64); 2] = [
    ("all of {} services, nothing to do", "controller: plan all s", 1e9),
    ("one pod's change among {} services", "controller: plan one µs", 1e3),
];

/// And of the largest set of many clusters, in the same way.
const TEN: [&str; 3] = [
    "one pod's change among 10000 services",
    "all of 10000 services, nothing to do",
    "all of 10000 services, nothing imported yet",
];

/// Measures every size.
///
/// # Errors
/// Where a server does not start or can't be asked, or nothing is known of the controller's plans.
pub fn run(runtime: &Runtime, settings: &Settings) -> Result<()> {
    let sizes = if settings.smoke { &SIZES[..2] } else { &SIZES[..] };
    // First of all: where they are missing nothing need be measured.
    let mut plans = Vec::new();
    for &size in sizes {
        for (of, name, unit) in PLANS {
            let of = of.replace("{}", &size.to_string());
            plans.push((size, name, planned(settings, "growth, 3 clusters", &of, unit)?));
        }
    }
    let mut table =
        Table::new(&["services", "server", "CPU µs/answer", "PSS MB", "start s", "start CPU s", "CPU µs a change"]);
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut point = |name: String, size: u32, value: f64| match lines.iter_mut().find(|(known, _)| *known == name) {
        Some((_, points)) => points.push((f64::from(size), value)),
        None => lines.push((name, vec![(f64::from(size), value)])),
    };
    let mut disturbed = String::new();
    for &size in sizes {
        let set = Set::of(size);
        let bed = Bed::new().map_err(doing("a folder for the servers"))?;
        let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| settings.servers.contains(kind)).collect();
        // The scripted one, which is as fast for each size: a real one would take its own part in what grows.
        let side = queries::start(runtime, &bed, settings, &kinds, set, true)?;
        if !side.missing.is_empty() {
            return Err(side.missing.join("\n"));
        }
        let figures = measure(&queries::scenario(set, "saturated"), &side.servers, settings.effort)?;
        if figures.wrong() > 0 {
            return Err(format!("{size} services: {} wrong answers", figures.wrong()));
        }
        if figures.disturbed > 0 {
            disturbed.push_str(&format!("; DISTURBED while {size} services were asked"));
        }
        let starts: Vec<_> = side.servers.iter().map(|server| server.started).collect();
        drop(side);
        let changes = updates::shares(runtime, settings, set)?;
        for (row, started) in figures.rows.iter().zip(starts) {
            let of = |figure: &dyn Fn(&Sample) -> f64| Spread::of(row.samples.iter().map(figure)).median;
            let (cost, pss) = (of(&Sample::cost), of(&|sample| sample.memory.pss as f64 / 1e6));
            let change = changes.kinds.iter().position(|kind| *kind == row.kind).map(|i| {
                let each = changes.rounds[i].iter().map(|(idle, busy)| (busy - idle) * 1e6 / changes.rate);
                Spread::of(each).median
            });
            if row.kind != Kind::Echo {
                point(format!("{}: µs/answer", row.kind), size, cost);
                point(format!("{}: PSS MB", row.kind), size, pss);
                point(format!("{}: start s", row.kind), size, started.ready);
                change.into_iter().for_each(|change| point(format!("{}: µs/change", row.kind), size, change));
            }
            table.row(vec![
                size.to_string(),
                row.kind.to_string(),
                format!("{cost:.2}"),
                format!("{pss:.1}"),
                format!("{:.2}", started.ready),
                format!("{:.2}", started.cpu),
                change.map_or(String::new(), |change| format!("{change:.1}")),
            ]);
        }
    }
    let mut planning = Table::new(&["services", PLANS[0].1, PLANS[1].1]);
    for of_size in plans.chunks(PLANS.len()) {
        let mut row = vec![of_size[0].0.to_string()];
        for &(size, name, value) in of_size {
            point(name.to_owned(), size, value);
            row.push(format!("{value:.4}"));
        }
        planning.row(row);
    }
    let mut tables = vec![table, planning];
    if !settings.smoke {
        let mut ten = Table::new(&["10,000 services, 10 clusters", "ms"]);
        for of in TEN {
            ten.row(vec![of.to_owned(), format!("{:.3}", planned(settings, "plan 10 clusters", of, 1e6)?)]);
        }
        tables.push(ten);
    }
    let heading = "## Growth: an eleventh of the services is headless with 20 endpoints each";
    let tables: Vec<String> = tables.iter().map(Table::render).collect();
    settings.tell("growth.md", &format!("{heading}{disturbed}\n\n{}", tables.join("\n")))?;
    let picture = plot::growth("What grows with the number of services", "services", "by line", &lines);
    settings.keep("growth.svg", &picture)
}

/// The median of what Criterion keeps of a benchmark.
fn planned(settings: &Settings, group: &str, of: &str, unit: f64) -> Result<f64> {
    let file = settings.criterion.join(group).join(of).join("new/estimates.json");
    let text = fs::read(&file).map_err(|e| format!("{}: {e}; run cargo bench --bench reconcile", file.display()))?;
    let estimates: Value = serde_json::from_slice(&text).map_err(doing(file.display()))?;
    let nanoseconds = estimates["median"]["point_estimate"].as_f64();
    nanoseconds.map(|ns| ns / unit).ok_or_else(|| format!("{}: no median", file.display()))
}
