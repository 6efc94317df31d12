//! The command `load`; see `benches/README.md`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use load::modes::queries::SCENARIOS;
use load::modes::{self, Settings};
use load::query::{Asked, Mix, Pool};
use load::rounds::Effort;
use load::servers::Kind;
use load::set::Set;
use load::slots::PATIENCE;
use load::udp::{Options, Pace};
use load::{echo, hickory, objects, query, tcp, udp, zone};

/// DNS load, an echo as the floor, and the comparison of servers on the same data.
#[derive(Parser)]
#[command(name = "load")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Echo queries as responses: what the kernel's sockets alone cost
    Echo {
        /// Where to listen, over UDP and TCP
        #[arg(required = true)]
        listen: Vec<SocketAddr>,
    },
    /// Serve a set by hickory-server, from a hash map
    Hickory {
        /// Where to listen, over UDP and TCP
        #[arg(required = true)]
        listen: Vec<SocketAddr>,
        /// small, 20k, 100k, 1m, or a number of services
        #[arg(long, default_value = "small")]
        set: Set,
    },
    /// Ask a server on the loopback that serves a set
    Ask(Ask),
    /// Write a set's data: a folder for `namesake dns --from`, a zone file, and queries for dnsperf
    Data {
        #[command(flatten)]
        asked: Questions,
        /// The folder, which must not be there yet
        #[arg(long)]
        out: PathBuf,
        /// How many queries
        #[arg(long, default_value_t = 200_000)]
        queries: usize,
    },
    /// Start servers side by side and compare them; `benches/run` builds and installs what this needs
    Compare(Compare),
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// CPU time, latency and lost queries, of every server
    Queries,
    /// From the start to the first answers, and memory, beside CoreDNS
    Start,
    /// The most memory that is held while all lists are read again, beside CoreDNS
    Relist,
    /// CPU time of 1,000 changes a second, beside CoreDNS
    Updates,
    /// From a write at the API server to the answer, beside CoreDNS
    Propagation,
    /// The figures for 100 to 100,000 services
    Growth,
}

#[derive(Args)]
struct Compare {
    /// What to measure; all of it if nothing is said
    #[arg(value_enum)]
    what: Vec<What>,
    /// Our binary
    #[arg(long)]
    namesake: PathBuf,
    /// The servers
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "echo,namesake,nsd,knot,bind,powerdns,hickory,coredns,namesake-any,namesake-log,coredns-log"
    )]
    servers: Vec<Kind>,
    /// The sets: small, 20k, 100k, 1m, or a number of services; by default those that suit what is measured
    #[arg(long, value_delimiter = ',')]
    sets: Vec<Set>,
    /// The ways of asking, of `queries`; by default all of small sets, and some of large ones
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(SCENARIOS))]
    scenarios: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each server is asked in a round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Measure a round anew in which everything else took more than so much of a core
    #[arg(long, default_value_t = 0.2)]
    others: f64,
    /// Where tables, lines and pictures go
    #[arg(long, default_value = "target/benches")]
    out: PathBuf,
    /// Where `cargo bench --bench reconcile` left its figures, which `growth` shows too
    #[arg(long, default_value = "target/criterion")]
    criterion: PathBuf,
    /// Show that everything runs, with a small set and one short round; the figures mean nothing
    #[arg(long)]
    smoke: bool,
}

#[derive(Args)]
struct Ask {
    /// The server
    server: SocketAddr,
    #[command(flatten)]
    asked: Questions,
    /// Over TCP
    #[arg(long)]
    tcp: bool,
    /// Sockets or connections
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Queries outstanding at all times
    #[arg(long, default_value_t = 256)]
    window: usize,
    /// Queries a second instead
    #[arg(long)]
    rate: Option<f64>,
    /// Of those so many at once
    #[arg(long, default_value_t = 1)]
    burst: u32,
    /// For so many seconds
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// The server is an echo: answers say nothing
    #[arg(long)]
    echo: bool,
}

#[derive(Args)]
struct Questions {
    /// small, 20k, 100k, 1m, or a number of services
    #[arg(long, default_value = "small")]
    set: Set,
    /// mix, or one kind of query alone
    #[arg(long, default_value = "mix")]
    mix: Mix,
    /// With EDNS
    #[arg(long)]
    edns: bool,
    /// Some names far more often than others
    #[arg(long)]
    skew: bool,
}

impl Questions {
    fn asked(&self) -> Asked {
        Asked { set: self.set, mix: self.mix, edns: self.edns, skew: self.skew }
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Echo { listen } => {
            echo::Bound::bind(&listen).and_then(echo::Bound::serve).map_err(|e| format!("echo: {e}"))
        }
        Command::Hickory { listen, set } => {
            // What takes long comes first: a port that is bound is served.
            let zone = hickory::Zone::of(set);
            let served = zone.and_then(|zone| hickory::serve(echo::Bound::bind(&listen)?, zone));
            served.map_err(|e| format!("hickory: {e}"))
        }
        Command::Ask(args) => ask(&args),
        Command::Data { asked, out, queries } => data(asked.asked(), &out, queries),
        Command::Compare(args) => compare(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ask(args: &Ask) -> Result<(), String> {
    if !args.server.ip().is_loopback() {
        return Err(format!("{} is not on the loopback, and load goes nowhere else", args.server));
    }
    let pool = Pool::new(args.asked.asked(), 200_000);
    let pace = match args.rate {
        Some(rate) => Pace::Rate { rate, burst: args.burst },
        None => Pace::Window(args.window),
    };
    let options = Options { clients: args.clients, pace, strict: !args.echo, patience: PATIENCE };
    let span = Duration::from_secs_f64(args.seconds);
    let tally = if args.tcp {
        tcp::Client::new(args.server, &pool, options).and_then(|mut client| client.run(span))
    } else {
        udp::Client::new(args.server, &pool, options).and_then(|mut client| client.run(span))
    };
    println!("{}", tally.map_err(|e| format!("{}: {e}", args.server))?.describe());
    Ok(())
}

fn data(asked: Asked, out: &Path, queries: usize) -> Result<(), String> {
    let written = || -> io::Result<()> {
        fs::create_dir(out)?;
        objects::write_folder(asked.set, &out.join("folder"))?;
        let mut file = BufWriter::new(File::create(out.join("zone"))?);
        zone::write(asked.set, &mut file)?;
        file.flush()?;
        let mut file = BufWriter::new(File::create(out.join("queries"))?);
        query::lines(asked, queries).try_for_each(|line| writeln!(file, "{line}"))?;
        file.flush()
    };
    written().map_err(|e| format!("{}: {e}", out.display()))?;
    println!("{0}/folder, {0}/zone, {0}/queries", out.display());
    Ok(())
}

fn compare(args: Compare) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    // Clients of API servers are made outside of it, and need it.
    let _inside = runtime.enter();
    let absolute = |path: &Path| path.canonicalize().map_err(|e| format!("{}: {e}", path.display()));
    let (rounds, seconds) = if args.smoke { (1, 0.5) } else { (args.rounds.max(1), args.seconds) };
    let settings = |sets: &str| -> Result<Settings, String> {
        let suited = || sets.split(',').map(str::parse).collect::<Result<Vec<Set>, _>>();
        let sets = match &args.sets[..] {
            _ if args.smoke => vec![Set::of(200)],
            [] => suited()?,
            asked => asked.to_vec(),
        };
        Ok(Settings {
            namesake: absolute(&args.namesake)?,
            servers: args.servers.clone(),
            sets,
            scenarios: args.scenarios.clone(),
            effort: Effort { rounds, span: Duration::from_secs_f64(seconds), others: args.others },
            out: args.out.clone(),
            criterion: args.criterion.clone(),
            smoke: args.smoke,
        })
    };
    let all = What::value_variants();
    // What goes wrong in one measurement leaves the others as they are.
    let mut wrong = Vec::new();
    for what in all.iter().filter(|what| args.what.is_empty() || args.what.contains(what)) {
        type Run = fn(&tokio::runtime::Runtime, &Settings) -> Result<(), String>;
        let (sets, run): (_, Run) = match what {
            What::Queries => ("small,100k,1m", modes::queries::run),
            What::Start => ("20k", modes::live::start),
            What::Relist => ("1m", modes::live::relist),
            What::Updates => ("small,100k", modes::updates::run),
            What::Propagation => ("small,20k", modes::propagation::run),
            What::Growth => ("small", modes::growth::run),
        };
        if let Err(error) = settings(sets).and_then(|settings| run(&runtime, &settings)) {
            eprintln!("load: {error}");
            wrong.push(error);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("what went wrong:\n{}", wrong.join("\n"))) }
}
