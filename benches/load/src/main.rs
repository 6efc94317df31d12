//! The command `load`; see `benches/README.md`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use load::query::{Asked, Mix, Pool};
use load::set::Set;
use load::udp::{Options, Pace};
use load::{echo, tcp, udp};

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
    /// Ask a server on the loopback that serves a set
    Ask(Ask),
}

#[derive(Args)]
struct Ask {
    /// The server
    server: SocketAddr,
    #[command(flatten)]
    asked: What,
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
struct What {
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

impl What {
    fn asked(&self) -> Asked {
        Asked { set: self.set, mix: self.mix, edns: self.edns, skew: self.skew }
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Echo { listen } => echo::serve(&listen).map_err(|e| e.to_string()),
        Command::Ask(args) => ask(&args),
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
    let options = Options { clients: args.clients, pace, strict: !args.echo };
    let span = Duration::from_secs_f64(args.seconds);
    let tally = if args.tcp {
        tcp::Client::new(args.server, &pool, options).and_then(|mut client| client.run(span))
    } else {
        udp::Client::new(args.server, &pool, options).and_then(|mut client| client.run(span))
    };
    println!("{}", tally.map_err(|e| format!("{}: {e}", args.server))?.describe());
    Ok(())
}
