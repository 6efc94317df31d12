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
use std::sync::Arc;
use std::time::Instant;

use libtest_mimic::{Arguments, Failed, Trial};
use testbed::{PacketBed, PacketOptions};
use tokio::runtime::Runtime;

use crate::world::World;

/// The clusters: the first is the hub.
const CLUSTERS: [&str; 3] = ["hub", "east", "west"];

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

/// A group of scenarios, and the flags that the controller has from then on besides those of its manifest.
struct Group {
    flags: &'static [&'static str],
    trials: Vec<Trial>,
}

fn groups(runtime: &Arc<Runtime>, world: &Arc<World>) -> Vec<Group> {
    macro_rules! trial {
        ($name:literal, $scenario:expr) => {{
            let (runtime, world) = (runtime.clone(), world.clone());
            Trial::test($name, move || {
                runtime.block_on($scenario(world));
                Ok::<(), Failed>(())
            })
        }};
    }
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
        Group { flags: &[], trials: vec![trial!("a_rolling_update_of_pods_that_linger_fails_nobody", rollout::careful)] },
        Group { flags: &[], trials: vec![trial!("a_rolling_update_of_pods_that_go_at_once_is_counted", rollout::careless)] },
        Group {
            flags: &[drain::DRAIN, partition::TTL, partition::GRACE],
            trials: vec![
                trial!("drained_the_oldest_exporter_leaves_and_no_connection_fails", |w| drain::oldest(w, true)),
                trial!("drained_a_handover_with_a_gap_fails_nobody", |w| drain::handover(w, true)),
            ],
        },
        Group { flags: &[], trials: vec![trial!("api_servers_restart_and_nothing_is_lost", api::restarts)] },
        Group { flags: &[], trials: vec![trial!("a_cluster_cut_off_for_a_minute_heals", partition::for_a_minute)] },
        Group { flags: &[], trials: vec![trial!("a_hub_dead_for_a_minute_stops_no_traffic", hub::for_a_minute)] },
    ]
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().unwrap());
    let began = Instant::now();
    let bed = runtime.block_on(PacketBed::start(PacketOptions { names: CLUSTERS.map(str::to_owned).into(), ..Default::default() }));
    let world = Arc::new(World::new(bed.unwrap_or_else(|e| panic!("the packet bed: {e}"))));
    println!("three clusters with Namesake in them after {:.0} s", began.elapsed().as_secs_f64());
    let mut failed = false;
    for group in groups(&runtime, &world) {
        if !group.flags.is_empty() {
            runtime.block_on(world.set_controller_flags(group.flags));
        }
        let side_by_side = Some(group.trials.len());
        let conclusion = libtest_mimic::run(&Arguments { test_threads: side_by_side, ..arguments.clone() }, group.trials);
        failed |= conclusion.has_failed();
    }
    println!("\n{}", world.table(&ORDER));
    println!("{:.0} s in all", began.elapsed().as_secs_f64());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
