//! Measuring servers in turns: every round asks each of them once, so that what changes on the machine between rounds
//! changes for all, and ratios are taken within a round.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::cluster::Result;
use crate::machine::{self, Busy, Cpu, Memory, Spent, Still};
use crate::query::{Asked, Pool};
use crate::servers::{Kind, Server};
use crate::slots::PATIENCE;
use crate::tally::Tally;
use crate::tcp;
use crate::udp::{self, Options, Pace};

/// Asked before it counts, so that caches are as warm as they stay.
const WARM_UP: Duration = Duration::from_millis(300);

/// Between two servers.
const BREATH: Duration = Duration::from_millis(200);

/// Different queries of a pool.
const POOL: usize = 200_000;

/// Sockets over UDP.
const SOCKETS: usize = 8;

/// Connections over TCP.
pub const CONNECTIONS: usize = 20;

/// Over what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
    /// TCP over IPv4.
    Tcp,
}

/// One way of asking.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it is called in tables and files.
    pub name: String,
    /// What is asked.
    pub asked: Asked,
    /// Over what.
    pub transport: Transport,
    /// How hard.
    pub pace: Pace,
    /// Whether the servers with something switched on are asked as well.
    pub variants: bool,
}

impl Scenario {
    /// Whether it is for this server.
    fn is_for(&self, kind: Kind) -> bool {
        let rate = if let Pace::Rate { rate, .. } = self.pace { rate } else { 0.0 };
        kind.most() >= rate && (self.variants || !kind.is_variant())
    }
}

/// How often and how long.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds.
    pub rounds: usize,
    /// Of each server in each round.
    pub span: Duration,
    /// A round in which everything else took more than so much of a core is measured anew, at most as often again as
    /// there are rounds.
    pub others: f64,
}

/// One server in one round.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What came of the load.
    pub tally: Tally,
    /// CPU time of the server.
    pub cpu: Spent,
    /// How busy everything else was, in cores.
    pub others: f64,
    /// What the server holds, right after.
    pub memory: Memory,
}

impl Sample {
    /// CPU microseconds of the server for each answer.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.cpu.all * 1e6 / self.tally.answered.max(1) as f64
    }
}

/// One server in all rounds.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which.
    pub kind: Kind,
    /// By round; the same rounds for every server.
    pub samples: Vec<Sample>,
}

/// What a scenario came to.
#[derive(Debug, Clone)]
pub struct Figures {
    /// What was asked.
    pub scenario: Scenario,
    /// What each server did.
    pub rows: Vec<Row>,
    /// Rounds that were measured anew since something else was busy.
    pub repeated: usize,
    /// Rounds that stayed in although something else was busy.
    pub disturbed: usize,
}

/// Median, least and most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of these; all zero of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(0.0);
        let (n, last) = (values.len(), values.len().saturating_sub(1));
        Self { median: (at(last / 2) + at(n / 2).min(at(last))) / 2.0, min: at(0), max: at(last) }
    }
}

impl Spread {
    /// How one server's figure stands to another's, within each round.
    #[must_use]
    pub fn ratio<T>(one: &[T], other: &[T], figure: impl Fn(&T) -> f64) -> Self {
        Self::of(one.iter().zip(other).map(|(one, other)| figure(one) / figure(other)))
    }
}

impl Figures {
    /// Answers that are not what they must be, of all servers.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.samples).map(|sample| sample.tally.wrong).sum()
    }

    /// The row of a server, if it was there.
    #[must_use]
    pub fn row(&self, kind: Kind) -> Option<&Row> {
        self.rows.iter().find(|row| row.kind == kind)
    }

    /// How one server's figure stands to another's, within each round.
    #[must_use]
    pub fn ratio(&self, one: Kind, other: Kind, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let pairs = self.row(one)?.samples.iter().zip(&self.row(other)?.samples);
        Some(Spread::of(pairs.map(|(one, other)| figure(one) / figure(other).max(f64::MIN_POSITIVE))))
    }

    /// How one server's figure stands to the least of several others', within each round.
    #[must_use]
    pub fn ratio_to_least(&self, one: Kind, others: &[Kind], figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let rows: Vec<&Row> = others.iter().filter_map(|kind| self.row(*kind)).collect();
        let least = |round: usize| rows.iter().map(|row| figure(&row.samples[round])).min_by(f64::total_cmp);
        let ours = self.row(one)?.samples.iter().enumerate();
        let ratios = ours.map(|(round, sample)| Some(figure(sample) / least(round)?.max(f64::MIN_POSITIVE)));
        Some(Spread::of(ratios.collect::<Option<Vec<f64>>>()?))
    }
}

/// Measures every server that the scenario is for. The calling thread is pinned to the client's core.
///
/// # Errors
/// Where a server can't be asked.
pub fn measure(scenario: &Scenario, servers: &[Server], effort: Effort) -> Result<Figures> {
    machine::pin(machine::CLIENT)?;
    let servers: Vec<&Server> = servers.iter().filter(|server| scenario.is_for(server.kind)).collect();
    let pool = Pool::new(scenario.asked, POOL);
    let mut rows: Vec<Row> = servers.iter().map(|server| Row { kind: server.kind, samples: Vec::new() }).collect();
    let (mut repeated, mut disturbed) = (0, 0);
    // Of what everything else takes, a rate leaves a hundredth of the queries waiting long before it shows in the cost.
    let most = if matches!(scenario.pace, Pace::Rate { .. }) { effort.others / 4.0 } else { effort.others };
    // Another order each time, or one server would always follow the same other one.
    let mut order: Vec<usize> = (0..servers.len()).collect();
    let mut rng = fastrand::Rng::with_seed(7);
    let mut done = 0;
    while done < effort.rounds {
        let mut round = vec![None; servers.len()];
        rng.shuffle(&mut order);
        for &i in &order {
            let server = servers[i];
            let sample = once(scenario, server, &pool, effort.span);
            round[i] = Some(sample.map_err(|error| server.lost(&format!("asking ({}): {error}", scenario.name)))?);
            // The control planes were held still: they do what they have to.
            std::thread::sleep(BREATH);
        }
        let busy = round.iter().flatten().any(|sample: &Sample| sample.others > most);
        if busy && repeated < effort.rounds {
            repeated += 1;
            continue;
        }
        disturbed += usize::from(busy);
        done += 1;
        rows.iter_mut().zip(round).for_each(|(row, sample)| row.samples.extend(sample));
    }
    Ok(Figures { scenario: scenario.clone(), rows, repeated, disturbed })
}

fn once(scenario: &Scenario, server: &Server, pool: &Pool, span: Duration) -> io::Result<Sample> {
    let address = if scenario.transport == Transport::Udp6 { server.v6() } else { server.v4() };
    let _still = Still::begin();
    let mut client = Client::new(scenario, address, pool, server.kind != Kind::Echo)?;
    client.run(WARM_UP)?;
    let pids = machine::tree(server.process.pid());
    let me = [std::process::id()];
    let (busy, ours, before, begin) = (Busy::now(), Cpu::of(&me), Cpu::of(&pids), Instant::now());
    let tally = client.run(span)?;
    let cpu = Cpu::of(&pids).since(&before);
    let own = Cpu::of(&me).since(&ours).all;
    let others = machine::others(busy, Busy::now(), cpu.all + own, begin.elapsed());
    Ok(Sample { tally, cpu, others, memory: Memory::of(&pids) })
}

enum Client<'a> {
    Udp(udp::Client<'a>),
    Tcp(tcp::Client<'a>),
}

impl<'a> Client<'a> {
    fn new(scenario: &Scenario, address: SocketAddr, pool: &'a Pool, strict: bool) -> io::Result<Self> {
        let tcp = scenario.transport == Transport::Tcp;
        let clients = if tcp { CONNECTIONS } else { SOCKETS };
        let options = Options { clients, pace: scenario.pace, strict, patience: PATIENCE };
        if tcp {
            tcp::Client::new(address, pool, options).map(Self::Tcp)
        } else {
            udp::Client::new(address, pool, options).map(Self::Udp)
        }
    }

    fn run(&mut self, span: Duration) -> io::Result<Tally> {
        match self {
            Self::Udp(client) => client.run(span),
            Self::Tcp(client) => client.run(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, costs: [u64; 2]) -> Row {
        let sample = |answered| Sample {
            tally: Tally { answered, ..Tally::default() },
            cpu: Spent { all: 1.0, ..Spent::default() },
            others: 0.0,
            memory: Memory::default(),
        };
        Row { kind, samples: costs.map(|cost| sample(1_000_000 / cost)).to_vec() }
    }

    #[test]
    fn the_best_of_others_is_found_anew_in_each_round() {
        let asked = Asked { set: crate::set::Set::of(100), mix: crate::query::Mix::Mix, edns: false, skew: false };
        let (transport, pace) = (Transport::Tcp, Pace::Window(1));
        let figures = Figures {
            scenario: Scenario { name: String::new(), asked, transport, pace, variants: true },
            rows: vec![row(Kind::Namesake, [2, 2]), row(Kind::Nsd, [4, 10]), row(Kind::Knot, [8, 5])],
            repeated: 0,
            disturbed: 0,
        };
        let ratio = figures.ratio_to_least(Kind::Namesake, &[Kind::Nsd, Kind::Knot, Kind::Hickory], Sample::cost);
        assert_eq!(ratio.map(|ratio| ((ratio.min * 100.0).round(), (ratio.max * 100.0).round())), Some((40.0, 50.0)));
        assert_eq!(figures.ratio_to_least(Kind::Namesake, &[Kind::Bind], Sample::cost), None);
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([]), Spread { median: 0.0, min: 0.0, max: 0.0 });
    }
}
