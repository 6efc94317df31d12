//! How many instructions an answer takes, counted by valgrind's callgrind: a figure that does not depend on the
//! machine's load, unlike time.
//!
//! This binary is its own workload: run with `answer KIND COUNT` it answers so many queries of that kind (`mix`, or
//! one of `mix::Kind`), which is also what to profile:
//!
//! ```text
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*answer_each*' \
//!     target/release/deps/instructions-… answer mix 20000
//! callgrind_annotate callgrind.out.…
//! ```
//!
//! Run without, it counts the instructions of that: those in the loop that answers, so that set-up does not count,
//! of many queries less those of none, so that nothing else does.

#[path = "support/mix.rs"]
mod mix;

use std::path::Path;
use std::process::{Command, ExitCode};

use fastrand::Rng;
use mix::{Kind, SMALL};
use namesake::answers::{Options, Store};
use namesake::dns::{Outcome, Transport, respond};
use namesake::feed::load;

/// The most that a query of the mix may take.
const LIMIT: f64 = 800.0;

/// How many queries are counted.
const COUNT: u32 = 20_000;

/// How many different queries there are of a kind.
const POOL: usize = 5_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match &args[..] {
        [_, answer, kind, count] if answer == "answer" => {
            answer_some(kind, count.parse().expect("a number"));
            ExitCode::SUCCESS
        }
        _ if cfg!(debug_assertions) => {
            println!("not counted: build with --release");
            ExitCode::SUCCESS
        }
        _ => gate(),
    }
}

/// The workload. Everything but the last loop is the same for every kind and count.
fn answer_some(kind: &str, count: u32) {
    let store = load(Options::default(), SMALL.imports(0).chain(SMALL.slices(0)).collect());
    let mut rng = Rng::with_seed(7);
    let mut pools: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    for of in Kind::ALL {
        pools.push((format!("{of:?}"), (0..POOL).map(|_| of.query(SMALL, &mut rng)).collect()));
    }
    let mixed = (0..POOL).map(|_| Kind::of_the_mix(&mut rng).query(SMALL, &mut rng)).collect::<Vec<_>>();
    pools.push(("Opt".to_owned(), mixed.iter().cloned().map(mix::with_opt).collect()));
    pools.push(("mix".to_owned(), mixed));
    let (_, queries) = pools.iter().find(|(name, _)| name == kind).expect("a kind of query");
    println!("{} octets", answer_each(&store, queries, count, &mut rng));
}

/// What is counted.
#[inline(never)]
fn answer_each(store: &Store, queries: &[Vec<u8>], count: u32, rng: &mut Rng) -> usize {
    let mut out = vec![0; 1232];
    let mut octets = 0;
    for query in queries.iter().cycle().take(count as usize) {
        match respond(store, query, Transport::Udp, &mut out, rng) {
            Outcome::Reply(reply) => octets += reply.len,
            Outcome::Drop(reason) => panic!("dropped: {reason:?}"),
        }
    }
    octets
}

fn gate() -> ExitCode {
    let scratch = tempfile::tempdir().expect("a folder");
    let base = instructions(scratch.path(), "mix", 0);
    let per_query = |kind: &str| (instructions(scratch.path(), kind, COUNT) as f64 - base as f64) / f64::from(COUNT);
    println!("instructions a query:");
    for kind in Kind::ALL.map(|kind| format!("{kind:?}")).into_iter().chain(["Opt".to_owned()]) {
        let name = if kind == "Opt" { "the mix with EDNS" } else { &kind };
        println!("  {name:18} {:6.0}", per_query(&kind));
    }
    let mix = per_query("mix");
    println!("  {:18} {mix:6.0}, {LIMIT} allowed", "the mix");
    // Less than this is no answer: then nothing was counted.
    if (100.0..=LIMIT).contains(&mix) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What callgrind counts of one run.
fn instructions(scratch: &Path, kind: &str, count: u32) -> u64 {
    let file = scratch.join(format!("{kind}-{count}"));
    let program = std::env::current_exe().expect("this binary");
    let valgrind = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no", "--toggle-collect=*answer_each*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["answer", kind, &count.to_string()])
        .output()
        .expect("valgrind runs: install the package valgrind");
    assert!(valgrind.status.success(), "{}", String::from_utf8_lossy(&valgrind.stderr));
    let profile = std::fs::read_to_string(&file).expect("what callgrind wrote");
    let totals = profile.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    totals.and_then(|n| n.trim().parse().ok()).expect("a line of totals")
}
