//! What changes cost: so many slices a second move their endpoints, and nobody asks anything. One server at a time: the
//! others are held still, or they would take the core in turns, and who has to wait gets more changes in one go.

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

/// After it has caught up a server still puts things in order.
const SETTLE: Duration = Duration::from_secs(1);

/// CPU time of each server in one round, as a share of a core: while nothing happens, and while changes come.
pub struct Shares {
    /// Which servers.
    pub kinds: Vec<Kind>,
    /// Of each, by round: idle and busy.
    pub rounds: Vec<Vec<(f64, f64)>>,
    /// Changes a second that came.
    pub rate: f64,
}

/// Measures one set, its servers in turns.
///
/// # Errors
/// Where one does not start, or a change does not arrive.
pub fn shares(runtime: &Runtime, settings: &Settings, set: Set) -> Result<Shares> {
    let bed = Bed::new().map_err(doing("a folder for the servers"))?;
    let scripted = runtime.block_on(Scripted::start(&bed, set))?;
    machine::beside_the_client();
    let place = Place { bed: &bed, namesake: &settings.namesake, set, kubeconfig: Some(scripted.kubeconfig.clone()) };
    let kinds = settings.live();
    let servers = kinds.iter().map(|kind| Server::start(*kind, &place)).collect::<Result<Vec<_>>>()?;
    servers.iter().try_for_each(Server::pause)?;
    let mut rounds = vec![Vec::new(); servers.len()];
    let (mut sent, mut time) = (0, Duration::ZERO);
    for round in 0..settings.effort.rounds {
        for turn in 0..servers.len() {
            let i = (turn + round) % servers.len();
            let server = &servers[i];
            server.resume()?;
            // What came for the others meanwhile is not what is measured.
            served(server, set, &scripted)?;
            std::thread::sleep(SETTLE);
            let pids = machine::tree(server.process.pid());
            let (before, begin) = (Cpu::of(&pids), Instant::now());
            std::thread::sleep(settings.effort.span);
            let idle = share(&pids, &before, begin);
            let (before, begin) = (Cpu::of(&pids), Instant::now());
            sent += runtime.block_on(scripted.update(RATE, settings.effort.span));
            time += begin.elapsed();
            // To the last change, so that none of the work is missed.
            served(server, set, &scripted)?;
            rounds[i].push((idle, share(&pids, &before, begin)));
            server.pause()?;
        }
    }
    Ok(Shares { kinds, rounds, rate: sent as f64 / time.as_secs_f64() })
}

/// The share of a core that processes took since `begin`.
fn share(pids: &[u32], before: &Cpu, begin: Instant) -> f64 {
    Cpu::of(pids).since(before).all / begin.elapsed().as_secs_f64()
}

/// Where the last change has not arrived, what was measured is something else.
fn served(server: &Server, set: Set, scripted: &Scripted) -> Result<()> {
    scripted.last().map_or(Ok(()), |last| server.caught_up(set, last))
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
        if let [ours, theirs] = &shares.rounds[..] {
            let of = |figure: &dyn Fn(&(f64, f64)) -> f64| spread(Spread::ratio(ours, theirs, figure), 3);
            table.row(vec![
                format!("{} ÷ {}", shares.kinds[0], shares.kinds[1]),
                of(&|(idle, _)| *idle),
                of(&|(_, busy)| *busy),
                of(&|(idle, busy)| busy - idle),
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
