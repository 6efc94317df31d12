//! The 27 scenarios of the official conformance suite of the Multi-Cluster Services API, written anew and played with real
//! packets: on clusters with real kubelets, containers and kube-proxies, with Namesake deployed as its README says.
//!
//! They have the suite's namespaces, objects, images by name, waits and commands. Each is played with IPv4 alone and with
//! both families, by way of a CoreDNS that forwards to Namesake; those about names also by CoreDNS's own multicluster
//! plugin, which reads what our controller writes, and with a cache in between.
//!
//! `cargo test --test packets -- FILTER` works as for any test: a trial is called `dual-stack/forward/c02_…`. Only the
//! clusters that it needs are started, once for all trials, and they end on every way out: at the end, by a failure, a
//! panic, Ctrl-C or SIGTERM. At the end stand a table and, in the target folder, `conformance/report.yaml` and
//! `report.html`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a scenario fails by panicking")]
#![allow(clippy::print_stderr, reason = "this is a program: what stops it is told there")]

#[path = "../clusterset/mod.rs"]
mod clusterset;

mod asking;
mod beds;
mod connectivity;
mod dns;
mod grid;
mod headless_dns;
mod imports;
mod merging;
mod objects;
mod page;
mod play;
mod readme;
mod report;
mod scenarios;
mod slices;
mod stage;
mod table;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use beds::Beds;
use grid::{Cell, Family};
use play::Theatre;
use report::Report;

/// How many scenarios are played side by side unless `--test-threads` says otherwise. They wait more than they work, but
/// each begins with two or three pods; with more of them at once, two cores are late for the suite's four seconds a command.
const SIDE_BY_SIDE: usize = 4;

/// How a program ends that Ctrl-C stopped.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads.get_or_insert(SIDE_BY_SIDE);
    asking::check_the_reading();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be had");
    let theatre = Theatre {
        runtime: runtime.handle().clone(),
        beds: Arc::new(OnceLock::new()),
        played: Arc::new(Mutex::new(Vec::new())),
        stop: CancellationToken::new(),
    };
    let cells = grid::cells();
    let trials: Vec<Trial> = cells.iter().map(|cell| trial(*cell, &theatre)).collect();
    let needed: Vec<bool> =
        trials.iter().map(|trial| !args.is_filtered_out(trial) && !args.is_ignored(trial)).collect();
    let families: Vec<Family> = Family::ALL
        .into_iter()
        .filter(|family| cells.iter().zip(&needed).any(|(cell, needed)| *needed && cell.column.family == *family))
        .collect();
    if args.list || families.is_empty() {
        return libtest_mimic::run(&args, trials).exit_code();
    }
    // Before the first process of a bed: from here on, no signal may end us by its default action.
    let stopping = {
        let _here = runtime.enter();
        let [interrupt, terminate] =
            [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).expect("signals can be had"));
        tokio::spawn(stopped_by(interrupt, terminate, theatre.stop.clone()))
    };
    let code = run(&args, trials, &families, &theatre, &runtime);
    // Nothing that holds a cluster is left after this: the beds are ended.
    stopping.abort();
    drop(theatre);
    runtime.shutdown_timeout(Duration::from_secs(20));
    code
}

fn trial(cell: Cell, theatre: &Theatre) -> Trial {
    let theatre = theatre.clone();
    Trial::test(cell.name(), move || theatre.play(cell))
}

/// The beds, the trials, the report.
fn run(args: &Arguments, trials: Vec<Trial>, families: &[Family], theatre: &Theatre, runtime: &Runtime) -> ExitCode {
    let began = Instant::now();
    let started = runtime.block_on(async {
        tokio::select! {
            () = theatre.stop.cancelled() => None,
            started = Beds::start(families) => Some(started),
        }
    });
    match started {
        None => return ExitCode::from(STOPPED),
        Some(Err(e)) => {
            eprintln!("packets: the clusters for the conformance scenarios can't be made: {e}");
            eprintln!("packets: `tests/run --no-packets` runs all other tests");
            return ExitCode::FAILURE;
        }
        Some(Ok(beds)) => drop(theatre.beds.set(beds)),
    }
    let trials_of_all = trials.len();
    play::keep_panics();
    let conclusion = libtest_mimic::run(args, trials);
    if theatre.stop.is_cancelled() {
        eprintln!("packets: stopped by a signal; no report is written");
        return ExitCode::from(STOPPED);
    }
    let beds = theatre.beds.get().expect("they were started");
    let played = std::mem::take(&mut *theatre.played.lock().unwrap_or_else(PoisonError::into_inner));
    let report = Report::new(played, trials_of_all, runtime.block_on(beds.facts()), began.elapsed());
    print!("{}", table::of(&report));
    match report.write() {
        Ok(folder) => println!("report.yaml and report.html in {}", folder.display()),
        Err(e) => {
            eprintln!("packets: the report can't be written: {e}");
            return ExitCode::FAILURE;
        }
    }
    if let Err(e) = readme::check(&report) {
        eprintln!("packets: {e}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Ends all trials by the first SIGINT or SIGTERM, after which the beds are ended in good order, and this program by the
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
        eprintln!("packets: stopping: the clusters are ended; once more, and they are left to the kernel");
        stop.cancel();
    }
}
