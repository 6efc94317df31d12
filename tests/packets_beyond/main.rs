//! Beyond the conformance suite, with real packets: what it does not test and what users suffer from. Each scenario counts
//! what its clients see, and asserts it where something is promised.
//!
//! ```text
//!  hub (nftables)      the controller, clients; exports nothing
//!  east (iptables)     clients, exporter
//!  west (nftables)     clients, exporter
//! ```
//!
//! Clients are threads of this process in the network namespaces of pods: each look-up is a datagram to the cluster's own
//! DNS server, each connection a TCP connection of the pod. Nothing is asked twice.
//!
//! The scenarios come in groups. Those of a group run side by side in namespaces of their own; a group that cuts, kills or
//! measures has one scenario. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "what was counted")]

mod affinity;
mod api;
mod ask;
mod chosen;
#[path = "../clusterset/mod.rs"]
mod clusterset;
mod database;
mod drain;
mod figures;
mod hub;
mod objects;
mod partition;
mod pod;
mod ports;
mod rollout;
mod slices;
mod stage;
mod stream;
mod world;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use testbed::{PacketBed, PacketOptions};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// The clusters: the first is the hub.
const CLUSTERS: [&str; 3] = ["hub", "east", "west"];

/// How a program ends that Ctrl-C stopped.
const STOPPED: u8 = 130;

/// In which order the table shows the scenarios.
const ORDER: [&str; 10] = [
    drain::OLDEST,
    drain::HANDOVER,
    affinity::NAME,
    ports::RENAMED,
    ports::CONFLICTING,
    database::NAME,
    rollout::NAME,
    api::NAME,
    partition::NAME,
    hub::NAME,
];

/// What a run is driven by.
#[derive(Clone)]
struct Drive {
    runtime: tokio::runtime::Handle,
    world: Arc<OnceLock<World>>,
    /// Set by SIGINT or SIGTERM.
    stop: CancellationToken,
}

impl Drive {
    /// A scenario as a trial. A signal ends it, so that the bed can be ended in good order.
    fn trial<F>(&self, name: &str, scenario: impl FnOnce(Arc<OnceLock<World>>) -> F + Send + 'static) -> Trial
    where
        F: Future<Output = ()>,
    {
        let drive = self.clone();
        Trial::test(name, move || {
            drive.runtime.block_on(async {
                tokio::select! {
                    () = drive.stop.cancelled() => Err(Failed::from("stopped by a signal")),
                    () = scenario(drive.world.clone()) => Ok(()),
                }
            })
        })
    }
}

/// A group of scenarios, and the flags that the controller has from then on besides those of its manifest.
struct Group {
    flags: &'static [&'static str],
    trials: Vec<Trial>,
}

fn groups(drive: &Drive) -> Vec<Group> {
    macro_rules! trial {
        ($name:literal, $scenario:expr) => {
            drive.trial($name, async |world| $scenario(world.get().expect("the clusters are there")).await)
        };
    }
    let alone = |trial| Group { flags: &[], trials: vec![trial] };
    vec![
        Group {
            flags: &[],
            trials: vec![
                trial!("the_oldest_exporter_leaves_and_no_connection_fails", |w| drain::oldest(w, false)),
                trial!("without_drain_a_handover_with_a_gap_fails", |w| drain::handover(w, false)),
                trial!("session_affinity_holds_across_clusters", affinity::across_clusters),
                trial!("a_renamed_port_is_reached_in_both_clusters", ports::renamed),
                trial!("a_conflicting_port_is_reached_in_its_own_cluster_only", ports::conflicting),
                trial!("the_pods_of_a_headless_database_find_each_other", database::peers),
            ],
        },
        alone(trial!("a_rolling_update_of_pods_that_linger_fails_nobody", rollout::careful)),
        alone(trial!("a_rolling_update_of_pods_that_go_at_once_is_counted", rollout::careless)),
        Group {
            flags: &[drain::DRAIN, partition::TTL, partition::GRACE],
            trials: vec![
                trial!("drained_the_oldest_exporter_leaves_and_no_connection_fails", |w| drain::oldest(w, true)),
                trial!("drained_a_handover_with_a_gap_fails_nobody", |w| drain::handover(w, true)),
            ],
        },
        alone(trial!("api_servers_restart_and_nothing_is_lost", api::restarts)),
        alone(trial!("a_cluster_cut_off_for_a_minute_heals", partition::for_a_minute)),
        alone(trial!("a_hub_dead_for_a_minute_stops_no_traffic", hub::for_a_minute)),
    ]
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("threads can be had");
    let drive = Drive { runtime: runtime.handle().clone(), world: Arc::default(), stop: CancellationToken::new() };
    let groups = groups(&drive);
    let is_wanted = |trial: &Trial| !arguments.is_filtered_out(trial) && !arguments.is_ignored(trial);
    if arguments.list || !groups.iter().flat_map(|group| &group.trials).any(is_wanted) {
        let trials = groups.into_iter().flat_map(|group| group.trials).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    // Before the first process of the bed: from here on, no signal ends this process by its default action.
    let entered = runtime.enter();
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let [interrupt, terminate] = signals.map(|signal| signal.expect("signals can be had"));
    let stopping = runtime.spawn(stopped_by(interrupt, terminate, drive.stop.clone()));
    drop(entered);
    let code = run(&arguments, groups, &drive);
    // Nothing that holds a cluster is left after this: the bed is ended.
    stopping.abort();
    drop(drive);
    runtime.shutdown_timeout(Duration::from_secs(20));
    code
}

/// The clusters, the groups one after the other, the table.
fn run(arguments: &Arguments, groups: Vec<Group>, drive: &Drive) -> ExitCode {
    let began = Instant::now();
    let options = PacketOptions { names: CLUSTERS.map(str::to_owned).into(), dual_stack: false };
    let started = drive.runtime.block_on(async {
        tokio::select! {
            () = drive.stop.cancelled() => None,
            started = PacketBed::start(options) => Some(started),
        }
    });
    let bed = match started {
        None => return ExitCode::from(STOPPED),
        Some(Err(e)) => {
            eprintln!("packets_beyond: the clusters can't be made: {e}");
            eprintln!("packets_beyond: `tests/run --no-packets` runs all other tests");
            return ExitCode::FAILURE;
        }
        Some(Ok(bed)) => bed,
    };
    println!("{} with Namesake in them after {:.0} s", CLUSTERS.join(", "), began.elapsed().as_secs_f64());
    let world = drive.world.get_or_init(|| World::new(bed));
    let mut failed = false;
    for group in groups {
        let trials: Vec<_> = group.trials.into_iter().filter(|trial| !arguments.is_filtered_out(trial)).collect();
        if trials.is_empty() {
            continue;
        }
        if !group.flags.is_empty() && !drive.stop.is_cancelled() {
            drive.runtime.block_on(world.set_controller_flags(group.flags));
        }
        let arguments = Arguments { test_threads: Some(trials.len()), ..arguments.clone() };
        failed |= libtest_mimic::run(&arguments, trials).has_failed();
        if drive.stop.is_cancelled() {
            return ExitCode::from(STOPPED);
        }
    }
    println!("{}", world.table(&ORDER));
    println!("{:.0} s in all", began.elapsed().as_secs_f64());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Ends all trials by the first SIGINT or SIGTERM, after which the bed is ended in good order, and this program by the
/// second: then the kernel ends the clusters' processes, and the next bed removes what is left.
async fn stopped_by(mut interrupt: Signal, mut terminate: Signal, stop: CancellationToken) {
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if stop.is_cancelled() {
            std::process::exit(STOPPED.into());
        }
        eprintln!("packets_beyond: stopping: the clusters are ended; once more, and they are left to the kernel");
        stop.cancel();
    }
}
