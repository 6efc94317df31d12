//! Of the servers that read from an API server: from the start to the first right answers, memory, and what a list that
//! is read again costs. Namesake and CoreDNS in turns.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{Bed, Cluster, Part};
use tokio::runtime::Runtime;

use super::Settings;
use super::propagation::Write;
use crate::cluster::{self, Result, doing};
use crate::machine::{self, Cpu, Memory};
use crate::objects::slices_of_each;
use crate::report::{Table, spread};
use crate::rounds::Spread;
use crate::servers::{Kind, Place, Server, Started};
use crate::set::Set;

/// After the first answers a server still puts things in order; then its memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);

/// How long a list may take to be read again.
const PATIENCE: Duration = Duration::from_secs(300);

/// Starts a server, looks at it a moment later, and ends it.
fn once(kind: Kind, place: &Place<'_>) -> Result<(Started, Memory)> {
    let server = Server::start(kind, place)?;
    std::thread::sleep(SETTLE);
    Ok((server.started, Memory::of(&machine::tree(server.process.pid()))))
}

/// Starts both servers in turns, so often each, of every set.
///
/// # Errors
/// Where one does not start.
pub fn start(runtime: &Runtime, settings: &Settings) -> Result<()> {
    for &set in &settings.sets {
        let bed = Bed::new().map_err(doing("a folder for the servers"))?;
        // No load is made meanwhile, so the API server may have both cores: elsewhere it has its own, and most of a start
        // is waiting for it.
        let cluster = runtime.block_on(cluster::start(&bed, set))?;
        let kubeconfig = Some(cluster.kubeconfig());
        let place = Place { bed: &bed, namesake: &settings.namesake, set, kubeconfig };
        let kinds = settings.live();
        let mut all: Vec<Vec<(Started, Memory)>> = vec![Vec::new(); kinds.len()];
        // The API server has just been written to and reads some things for the first time: a start of each that does
        // not count.
        kinds.iter().try_for_each(|kind| once(*kind, &place).map(drop))?;
        for round in 0..settings.effort.rounds {
            for turn in 0..kinds.len() {
                let i = (turn + round) % kinds.len();
                all[i].push(once(kinds[i], &place)?);
            }
        }
        let mut table = Table::new(&["server", "ready after s", "CPU s", "PSS MB", "RSS MB", "peak RSS MB"]);
        for (kind, starts) in kinds.iter().zip(&all) {
            let of = |figure: &dyn Fn(&(Started, Memory)) -> f64| spread(Spread::of(starts.iter().map(figure)), 2);
            table.row(vec![
                kind.to_string(),
                of(&|(start, _)| start.ready),
                of(&|(start, _)| start.cpu),
                of(&|(_, memory)| memory.pss as f64 / 1e6),
                of(&|(_, memory)| memory.rss as f64 / 1e6),
                of(&|(_, memory)| memory.peak as f64 / 1e6),
            ]);
        }
        if let [ours, theirs] = &all[..] {
            let of = |figure: &dyn Fn(&(Started, Memory)) -> f64| spread(Spread::ratio(ours, theirs, figure), 3);
            table.row(vec![
                format!("{} ÷ {}", kinds[0], kinds[1]),
                of(&|(start, _)| start.ready),
                of(&|(start, _)| start.cpu),
                of(&|(_, memory)| memory.pss as f64),
                of(&|(_, memory)| memory.rss as f64),
                of(&|(_, memory)| memory.peak as f64),
            ]);
        }
        let (imports, endpoints) = (set.imports(), set.all_endpoints());
        let heading = format!(
            "## Start and memory: {imports} imports, {endpoints} endpoints, {} starts each",
            settings.effort.rounds
        );
        settings.tell(&format!("start-{set}.md"), &format!("{heading}\n\n{}", table.render()))?;
    }
    Ok(())
}

/// Lets the API server forget its history and start anew, so that both servers read all lists again: what that takes at
/// most, beside what they hold otherwise.
///
/// # Errors
/// Where a server does not start, or the lists are not read.
pub fn relist(runtime: &Runtime, settings: &Settings) -> Result<()> {
    settings.sets.iter().try_for_each(|set| relist_of(runtime, settings, *set))
}

fn relist_of(runtime: &Runtime, settings: &Settings, set: Set) -> Result<()> {
    let bed = Bed::new().map_err(doing("a folder for the servers"))?;
    let cluster = runtime.block_on(cluster::start(&bed, set))?;
    machine::beside_the_client();
    let kubeconfig = Some(cluster.kubeconfig());
    let place = Place { bed: &bed, namesake: &settings.namesake, set, kubeconfig };
    let servers = settings.live().into_iter().map(|kind| Server::start(kind, &place)).collect::<Result<Vec<_>>>()?;
    let memory = |server: &Server| Memory::of(&machine::tree(server.process.pid()));
    let mut all: Vec<Vec<(Memory, Memory)>> = vec![Vec::new(); servers.len()];
    for round in 0..settings.effort.rounds {
        quiet(&servers, 3)?;
        let before: Vec<Memory> = servers.iter().map(memory).collect();
        servers.iter().for_each(|server| machine::forget_peak(&machine::tree(server.process.pid())));
        let taken = |server: &Server| runtime.block_on(taken_in(server.admin()));
        let ours = servers.iter().find(|server| server.kind == Kind::Namesake);
        let wanted = ours.map(|ours| taken(ours).map(|count| count + list_length(set))).transpose()?;
        runtime.block_on(restart(&cluster, round))?;
        let begin = Instant::now();
        while let (Some(ours), Some(wanted)) = (ours, wanted)
            && taken(ours)? < wanted
        {
            if begin.elapsed() > PATIENCE {
                return Err("namesake did not read the lists again".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        // CoreDNS does not say when it has read them. Its old version is compacted, so it hears of a new write by way of
        // a new list of slices alone; it waits up to half a minute before it asks for its other lists again.
        let write = Write::new(set, u32::try_from(round).unwrap_or(0));
        runtime.block_on(cluster::request(&cluster.admin(), "PATCH", &write.path, Some(&write.body)))?;
        servers.iter().try_for_each(|server| server.caught_up_within(set, write.served(), PATIENCE))?;
        quiet(&servers, 15)?;
        all.iter_mut().zip(&servers).zip(before).for_each(|((all, server), before)| all.push((before, memory(server))));
    }
    let mut table = Table::new(&["server", "before: RSS MB", "most while lists are read MB", "÷", "after MB"]);
    for (server, rounds) in servers.iter().zip(&all) {
        let of =
            |figure: &dyn Fn(&(Memory, Memory)) -> f64, digits| spread(Spread::of(rounds.iter().map(figure)), digits);
        table.row(vec![
            server.kind.to_string(),
            of(&|(before, _)| before.rss as f64 / 1e6, 1),
            of(&|(_, after)| after.peak as f64 / 1e6, 1),
            of(&|(before, after)| after.peak as f64 / before.rss as f64, 2),
            of(&|(_, after)| after.rss as f64 / 1e6, 1),
        ]);
    }
    let (imports, endpoints, rounds) = (set.imports(), set.all_endpoints(), settings.effort.rounds);
    let heading = format!("## All lists read again: {imports} imports, {endpoints} endpoints, {rounds} times");
    settings.tell(&format!("relist-{set}.md"), &format!("{heading}\n\n{}", table.render()))
}

/// Waits until none of them does anything worth naming, so often in a row as it is looked.
fn quiet(servers: &[Server], times: usize) -> Result<()> {
    let begin = Instant::now();
    let mut quiet = 0;
    while quiet < times {
        if begin.elapsed() > PATIENCE {
            return Err(format!("a server is still busy after {PATIENCE:?}"));
        }
        let pids: Vec<u32> = servers.iter().flat_map(|server| machine::tree(server.process.pid())).collect();
        let before = Cpu::of(&pids);
        std::thread::sleep(SETTLE);
        let busy = Cpu::of(&pids).since(&before).all > 0.05 * SETTLE.as_secs_f64();
        quiet = if busy { 0 } else { quiet + 1 };
    }
    Ok(())
}

/// Objects in the lists that Namesake reads.
fn list_length(set: Set) -> u64 {
    u64::from(set.imports() + set.headless * slices_of_each(set))
}

/// Objects that Namesake has taken in since its start.
pub(super) async fn taken_in(admin: SocketAddr) -> Result<u64> {
    let (_, text) = testbed::http::get(admin, "/metrics", Duration::from_secs(10)).await.map_err(doing("metrics"))?;
    let values = text.lines().filter(|line| line.starts_with("namesake_updates_total"));
    Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64)
}

async fn restart(cluster: &Cluster, round: usize) -> Result<()> {
    // Something has to happen that the watches have not seen, or they go on where they were.
    let meta = json!({"namespace": "default", "name": format!("later-{round}")});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta});
    cluster::request(&cluster.admin(), "POST", "/api/v1/namespaces/default/configmaps", Some(&map)).await?;
    cluster.compact().await.map_err(doing("compacting"))?;
    cluster.kill(Part::Api).map_err(doing("ending the API server"))?;
    cluster.start_api().await.map_err(doing("starting the API server"))?;
    machine::beside_the_client();
    Ok(())
}
