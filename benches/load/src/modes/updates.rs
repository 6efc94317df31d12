//! What changes cost: so many slices a second move their endpoints, and nobody asks anything.

use std::time::{Duration, Instant};

use testbed::Bed;
use tokio::runtime::Runtime;

use super::Settings;
use crate::cluster::{Result, doing};
use crate::machine::{self, Cpu};
use crate::report::{Table, spread};
use crate::rounds::Spread;
use crate::scripted::Scripted;
use crate::servers::{Kind, Place, Server};
use crate::set::Set;

/// Changes a second.
const RATE: f64 = 1_000.0;

/// How long the last change may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is compared.
const KINDS: [Kind; 2] = [Kind::Namesake, Kind::CoreDns];

/// CPU time of each server in one round, as a share of a core: while nothing happens, and while changes come.
pub struct Shares {
    /// Which servers.
    pub kinds: Vec<Kind>,
    /// Of each, by round: idle and busy.
    pub rounds: Vec<Vec<(f64, f64)>>,
    /// Changes a second that came.
    pub rate: f64,
}

/// Measures one set: all servers at once, since all get the same events and together take less than a core.
///
/// # Errors
/// Where one does not start.
pub fn shares(runtime: &Runtime, settings: &Settings, set: Set) -> Result<Shares> {
    let bed = Bed::new().map_err(doing("a folder for the servers"))?;
    let scripted = runtime.block_on(Scripted::start(&bed, set))?;
    machine::beside_the_client();
    let place = Place { bed: &bed, namesake: &settings.namesake, set, kubeconfig: Some(scripted.kubeconfig.clone()) };
    let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| settings.servers.contains(kind)).collect();
    let servers = kinds.iter().map(|kind| Server::start(*kind, &place)).collect::<Result<Vec<_>>>()?;
    let pids: Vec<_> = servers.iter().map(|server| machine::tree(server.process.pid())).collect();
    let mut rounds = vec![Vec::new(); servers.len()];
    let (mut sent, mut time) = (0, Duration::ZERO);
    for _ in 0..settings.effort.rounds {
        let span = settings.effort.span;
        let read = || -> Vec<Cpu> { pids.iter().map(|pids| Cpu::of(pids)).collect() };
        let share = |before: &[Cpu], wall: Duration| -> Vec<f64> {
            read().iter().zip(before).map(|(now, then)| now.since(then).all / wall.as_secs_f64()).collect()
        };
        let (before, begin) = (read(), Instant::now());
        std::thread::sleep(span);
        let idle = share(&before, begin.elapsed());
        let (before, begin) = (read(), Instant::now());
        sent += runtime.block_on(scripted.update(RATE, span));
        time += begin.elapsed();
        let busy = share(&before, begin.elapsed());
        rounds.iter_mut().zip(idle.into_iter().zip(busy)).for_each(|(row, shares)| row.push(shares));
    }
    let rate = sent as f64 / time.as_secs_f64();
    for server in &servers {
        served(server, set, &scripted)?;
    }
    Ok(Shares { kinds, rounds, rate })
}

/// Where the last change has not arrived, what was measured is something else.
fn served(server: &Server, set: Set, scripted: &Scripted) -> Result<()> {
    let Some((headless, endpoint, wanted)) = scripted.last() else { return Ok(()) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let got = server.address_of(set, headless, endpoint);
        if got == Some(wanted) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{} answers {got:?} and not the last change, {wanted}", server.kind));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Measures every set and prints it.
///
/// # Errors
/// Where a server does not start.
pub fn run(runtime: &Runtime, settings: &Settings) -> Result<()> {
    for &set in &settings.sets {
        let shares = shares(runtime, settings, set)?;
        let mut table = Table::new(&["server", "idle: % of a core", "with changes: %", "CPU µs a change"]);
        for (kind, rounds) in shares.kinds.iter().zip(&shares.rounds) {
            let of =
                |figure: &dyn Fn(&(f64, f64)) -> f64, digits| spread(Spread::of(rounds.iter().map(figure)), digits);
            table.row(vec![
                kind.to_string(),
                of(&|(idle, _)| idle * 100.0, 2),
                of(&|(_, busy)| busy * 100.0, 2),
                of(&|(idle, busy)| (busy - idle) * 1e6 / shares.rate, 1),
            ]);
        }
        let heading = format!(
            "## {:.0} changes a second: a slice of {} endpoints each, among {} imports",
            shares.rate,
            set.endpoints.min(crate::set::SLICE),
            set.imports()
        );
        settings.tell(&format!("updates-{set}.md"), &format!("{heading}\n\n{}", table.render()))?;
    }
    Ok(())
}
