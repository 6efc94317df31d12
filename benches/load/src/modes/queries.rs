//! What a query costs, of every server beside the others: CPU time, latency, memory, lost queries.

use testbed::{Bed, Cluster};
use tokio::runtime::Runtime;

use super::Settings;
use crate::cluster::{self, Result, doing};
use crate::machine;
use crate::query::{Asked, Kind as Question, Mix};
use crate::rounds::{Figures, Sample, Scenario, Spread, Transport, measure};
use crate::servers::{Kind, Place, Server};
use crate::set::Set;
use crate::udp::Pace;
use crate::{plot, report};

/// Queries outstanding where a server is saturated: more than a batch of any of them, and less than a receive buffer.
const WINDOW: usize = 256;

/// The ways of asking, of one set.
#[must_use]
pub fn scenarios(set: Set, smoke: bool) -> Vec<Scenario> {
    let plain = Asked { set, mix: Mix::Mix, edns: false, skew: false };
    let of = |name: &str, asked: Asked, transport: Transport, pace: Pace| Scenario {
        name: format!("{set} {name}"),
        asked,
        transport,
        pace,
    };
    let saturated = |name: &str, asked, transport| of(name, asked, transport, Pace::Window(WINDOW));
    let paced = |rate: f64, burst| Pace::Rate { rate, burst };
    let edns = Asked { edns: true, ..plain };
    let headless = Asked { mix: Mix::Only(Question::HeadlessA), ..edns };
    let mut all = vec![
        saturated("saturated", plain, Transport::Udp4),
        saturated("EDNS", edns, Transport::Udp4),
        saturated("IPv6", plain, Transport::Udp6),
        saturated("skewed", Asked { skew: true, ..plain }, Transport::Udp4),
        saturated("headless", headless, Transport::Udp4),
        saturated("TCP", plain, Transport::Tcp),
        of("paced 10k", plain, Transport::Udp4, paced(10_000.0, 1)),
        of("paced 100k", plain, Transport::Udp4, paced(100_000.0, 1)),
        // A hundred pods that start at once and look ten names up each.
        of("bursts", plain, Transport::Udp4, paced(10_000.0, 1_000)),
    ];
    if smoke {
        all.retain(|scenario| ["saturated", "TCP", "bursts"].iter().any(|name| scenario.name.ends_with(name)));
    }
    all
}

/// Servers of one set that run side by side, and what they read from.
pub struct Side {
    /// The servers; the first that were asked for come first.
    pub servers: Vec<Server>,
    // Held for as long as its readers run.
    _cluster: Option<Cluster>,
}

/// Starts them, with the API server if one of them reads from it.
///
/// # Errors
/// Where one does not start.
pub fn start(runtime: &Runtime, bed: &Bed, settings: &Settings, kinds: &[Kind], set: Set) -> Result<Side> {
    let live = kinds.iter().any(|kind| kind.is_live());
    let cluster = if live { Some(runtime.block_on(cluster::start(bed, set))?) } else { None };
    machine::beside_the_client();
    let kubeconfig = cluster.as_ref().map(Cluster::kubeconfig);
    let place = Place { bed, namesake: &settings.namesake, set, kubeconfig };
    let mut servers = Vec::new();
    for &kind in kinds {
        let server = Server::start(kind, &place)?;
        eprintln!("{kind} answers after {:.2} s", server.started.ready);
        servers.push(server);
    }
    Ok(Side { servers, _cluster: cluster })
}

/// Measures every set.
///
/// # Errors
/// Where a server does not start or can't be asked.
pub fn run(runtime: &Runtime, settings: &Settings) -> Result<()> {
    for &set in &settings.sets {
        let bed = Bed::new().map_err(doing("a folder for the servers"))?;
        let side = start(runtime, &bed, settings, &settings.servers, set)?;
        for scenario in scenarios(set, settings.smoke) {
            let figures = measure(&scenario, &side.servers, settings.effort)?;
            tell(settings, &figures)?;
        }
    }
    Ok(())
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
