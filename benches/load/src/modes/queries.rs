//! What a query costs, of every server beside the others: CPU time, latency, memory, lost queries.

use testbed::{Bed, Cluster};
use tokio::runtime::Runtime;

use super::Settings;
use crate::cluster::{self, Result, doing};
use crate::machine;
use crate::query::{Asked, Kind as Question, Mix};
use crate::rounds::{CONNECTIONS, Figures, Sample, Scenario, Spread, Transport, measure};
use crate::scripted::Scripted;
use crate::servers::{Kind, Place, Server};
use crate::set::Set;
use crate::udp::Pace;
use crate::{plot, report, setup};

/// Queries outstanding where a server is saturated: several batches of any of them, so that none ever waits.
const WINDOW: usize = 256;

/// Sets of more imports than this are asked in fewer ways, and come from the scripted API server: writing them into a
/// real one takes minutes, and what a query costs does not depend on where its answer was read.
const LARGE: u32 = 25_000;

/// The ways of asking of a large set: those in which it differs from a small one, by its cold caches.
const OF_LARGE: [&str; 3] = ["saturated", "skewed", "paced 100k"];

/// The ways of asking where it is only to be shown that all runs.
const SMOKE: [&str; 3] = ["saturated", "TCP", "bursts"];

/// The names of all ways of asking.
pub const SCENARIOS: [&str; 10] =
    ["saturated", "EDNS", "IPv6", "skewed", "headless", "TCP", "TCP singly", "paced 10k", "paced 100k", "bursts"];

/// The way of asking with this name, of one set.
#[must_use]
pub fn scenario(set: Set, name: &str) -> Scenario {
    let plain = Asked { set, mix: Mix::Mix, edns: false, skew: false };
    let edns = Asked { edns: true, ..plain };
    let paced = |rate: f64, burst| Pace::Rate { rate, burst };
    let window = Pace::Window(WINDOW);
    let (asked, transport, pace) = match name {
        "EDNS" => (edns, Transport::Udp4, window),
        "IPv6" => (plain, Transport::Udp6, window),
        "skewed" => (Asked { skew: true, ..plain }, Transport::Udp4, window),
        "headless" => (Asked { mix: Mix::Only(Question::HeadlessA), ..edns }, Transport::Udp4, window),
        "TCP" => (plain, Transport::Tcp, window),
        "TCP singly" => (plain, Transport::Tcp, Pace::Window(CONNECTIONS)),
        "paced 10k" => (plain, Transport::Udp4, paced(10_000.0, 1)),
        "paced 100k" => (plain, Transport::Udp4, paced(100_000.0, 1)),
        // A hundred pods that start at once and look ten names up each.
        "bursts" => (plain, Transport::Udp4, paced(10_000.0, 1_000)),
        _ => (plain, Transport::Udp4, window),
    };
    // A log costs the same for each answer, and the wildcard address the same for each reply of one family.
    let variants = matches!(name, "saturated" | "IPv6");
    Scenario { name: format!("{set} {name}"), asked, transport, pace, variants }
}

/// The ways of asking of one set: those that were asked for, or those that suit it.
fn scenarios(settings: &Settings, set: Set) -> Vec<Scenario> {
    let names: Vec<&str> = match &settings.scenarios[..] {
        [] if settings.smoke => SMOKE.to_vec(),
        [] if set.imports() > LARGE => OF_LARGE.to_vec(),
        [] => SCENARIOS.to_vec(),
        asked => asked.iter().map(String::as_str).collect(),
    };
    names.into_iter().map(|name| scenario(set, name)).collect()
}

/// Where live servers read a set; it ends with this value.
enum Source {
    Real(Cluster),
    Scripted(Scripted),
}

/// Servers of one set that run side by side, and what they read from.
pub struct Side {
    /// The servers; the first that were asked for come first.
    pub servers: Vec<Server>,
    /// Why others are not among them.
    pub missing: Vec<String>,
    // Held for as long as its readers run.
    _source: Option<Source>,
}

/// Starts them, with an API server if one of them reads from it: a real one or the scripted one.
///
/// # Errors
/// Where that does not start.
pub fn start(
    runtime: &Runtime,
    bed: &Bed,
    settings: &Settings,
    kinds: &[Kind],
    set: Set,
    scripted: bool,
) -> Result<Side> {
    let source = match kinds.iter().any(|kind| kind.is_live()) {
        true if scripted => Some(Source::Scripted(runtime.block_on(Scripted::start(bed, set))?)),
        true => Some(Source::Real(runtime.block_on(cluster::start(bed, set))?)),
        false => None,
    };
    machine::beside_the_client();
    let kubeconfig = source.as_ref().map(|source| match source {
        Source::Real(cluster) => cluster.kubeconfig(),
        Source::Scripted(scripted) => scripted.kubeconfig.clone(),
    });
    let place = Place { bed, namesake: &settings.namesake, set, kubeconfig };
    let (mut servers, mut missing) = (Vec::new(), Vec::new());
    for &kind in kinds {
        match Server::start(kind, &place) {
            Ok(server) => {
                eprintln!("{kind} answers after {:.2} s", server.started.ready);
                servers.push(server);
            }
            Err(error) => {
                eprintln!("{kind} is left out: {error}");
                missing.push(format!("{set}: {error}"));
            }
        }
    }
    Ok(Side { servers, missing, _source: source })
}

/// Measures every set. What goes wrong with one server or one way of asking leaves the others as they are.
///
/// # Errors
/// All that went wrong: a server that did not start or could not be asked, and wrong answers.
pub fn run(runtime: &Runtime, settings: &Settings) -> Result<()> {
    settings.tell("servers.md", &setup::versions(&settings.servers, &settings.namesake))?;
    let mut wrong = Vec::new();
    for &set in &settings.sets {
        let bed = Bed::new().map_err(doing("a folder for the servers"))?;
        let mut side = match start(runtime, &bed, settings, &settings.servers, set, set.imports() > LARGE) {
            Ok(side) => side,
            Err(error) => {
                wrong.push(format!("{set}: {error}"));
                continue;
            }
        };
        wrong.append(&mut side.missing);
        for scenario in scenarios(settings, set) {
            wrong.extend(one(settings, &mut side.servers, &scenario)?);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Measures one way of asking, once more without those servers that have ended. What went wrong.
fn one(settings: &Settings, servers: &mut Vec<Server>, scenario: &Scenario) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    loop {
        match measure(scenario, servers, settings.effort) {
            Ok(figures) => {
                tell(settings, &figures)?;
                let count = figures.wrong();
                wrong.extend((count > 0).then(|| format!("{}: {count} wrong answers", scenario.name)));
                return Ok(wrong);
            }
            Err(error) => {
                eprintln!("{error}");
                wrong.push(error);
                let count = servers.len();
                servers.retain(|server| matches!(server.process.exited(), Ok(None)));
                if servers.len() == count {
                    return Ok(wrong);
                }
            }
        }
    }
}

/// Prints a scenario's tables and keeps them, its lines and its pictures.
fn tell(settings: &Settings, figures: &Figures) -> Result<()> {
    let heading = report::heading(figures, settings.effort.rounds, settings.effort.span.as_secs_f64());
    let text = format!("## {heading}\n\n{}\n{}", report::servers(figures), report::ratios(figures));
    let file = format!("queries-{}", figures.scenario.name.replace(' ', "-").to_lowercase());
    settings.tell(&format!("{file}.md"), &text)?;
    settings.keep(&format!("{file}.tsv"), &report::lines(figures))?;
    let bars = |figure: &dyn Fn(&Sample) -> f64| -> Vec<(String, Spread)> {
        let bar = |row: &crate::rounds::Row| (row.kind.to_string(), Spread::of(row.samples.iter().map(figure)));
        figures.rows.iter().map(bar).collect()
    };
    let name = &figures.scenario.name;
    let cost = plot::bars(&format!("CPU time of an answer: {name}"), "µs", &bars(&Sample::cost));
    settings.keep(&format!("{file}-cpu.svg"), &cost)?;
    let p99 = bars(&|sample| sample.tally.latency.quantile(0.99).as_secs_f64() * 1e6);
    settings.keep(&format!("{file}-p99.svg"), &plot::bars(&format!("99th percentile of latency: {name}"), "µs", &p99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_asking_is_another_one() {
        let set = Set::of(100);
        let all = SCENARIOS.map(|name| scenario(set, name));
        for (i, one) in all.iter().enumerate() {
            assert!(one.name.ends_with(SCENARIOS[i]), "{}", one.name);
            let same = |other: &Scenario| format!("{:?}", (other.asked, other.transport, other.pace));
            assert_eq!(all.iter().filter(|other| same(other) == same(one)).count(), 1, "{}", one.name);
        }
        assert!(OF_LARGE.iter().chain(&SMOKE).all(|name| SCENARIOS.contains(name)));
    }
}
