//! From a write to the API server until the new address is answered: the server is asked all the time, and every sample
//! is one write. Namesake and CoreDNS watch the same API server in turns: while one is measured the other is held still,
//! or one would wait for the core until the other has taken the change in.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::Bed;
use tokio::runtime::Runtime;

use super::Settings;
use crate::cluster::{self, Result, doing};
use crate::machine;
use crate::objects;
use crate::query::{A, packet};
use crate::report::{Table, spread};
use crate::rounds::Spread;
use crate::servers::{Place, Server, address, endpoint_name};
use crate::set::Set;

/// Writes for each server in a round: the worst of so many is a round's worst.
const SAMPLES: usize = 200;

/// Writes for one server before it is another's turn.
const BLOCK: usize = 10;

/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks at the answers: the API server needs the core too.
const PAUSE: Duration = Duration::from_micros(50);

/// After which a query that got no answer is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// Writes and waits, so often.
///
/// # Errors
/// Where a server does not start, or a change never arrives.
pub fn run(runtime: &Runtime, settings: &Settings) -> Result<()> {
    settings.sets.iter().try_for_each(|set| run_of(runtime, settings, *set))
}

fn run_of(runtime: &Runtime, settings: &Settings, set: Set) -> Result<()> {
    let bed = Bed::new().map_err(doing("a folder for the servers"))?;
    let cluster = runtime.block_on(cluster::start(&bed, set))?;
    machine::beside_the_client();
    let place = Place { bed: &bed, namesake: &settings.namesake, set, kubeconfig: Some(cluster.kubeconfig()) };
    let kinds = settings.live();
    let servers = kinds.iter().map(|kind| Server::start(*kind, &place)).collect::<Result<Vec<_>>>()?;
    servers.iter().try_for_each(Server::pause)?;
    let samples = if settings.smoke { BLOCK } else { SAMPLES };
    let mut run = Run { runtime, client: cluster.admin(), servers: &servers, set, writes: 0, last: None };
    // What the API server does for the first time does not count.
    for i in 0..servers.len() {
        run.turn(i, 1)?;
    }
    let mut lines = String::from("round\tserver\twrite\tfrom_answer_ms\tfrom_write_ms\n");
    let mut rounds: Vec<Vec<[f64; 6]>> = vec![Vec::new(); servers.len()];
    for round in 0..settings.effort.rounds {
        let mut times: Vec<Vec<Sample>> = servers.iter().map(|_| Vec::new()).collect();
        for block in 0..samples.div_ceil(BLOCK) {
            for turn in 0..servers.len() {
                let i = (turn + block) % servers.len();
                times[i].extend(run.turn(i, BLOCK)?);
            }
        }
        for ((kind, times), rounds) in kinds.iter().zip(&times).zip(&mut rounds) {
            for (i, Sample { from_answer, from_write }) in times.iter().enumerate() {
                // Writing to a string can't fail.
                let _ = writeln!(lines, "{round}\t{kind}\t{i}\t{from_answer:.3}\t{from_write:.3}");
            }
            rounds.push(figures(times));
        }
    }
    settings.keep(&format!("propagation-{set}.tsv"), &lines)?;
    let mut table = Table::new(&[
        "server",
        "API answered → served ms: median",
        "p90",
        "worst",
        "write sent → served ms: median",
        "p90",
        "worst",
    ]);
    let row = |name: String, rounds: &[[f64; 6]]| {
        let of = |i: usize| spread(Spread::of(rounds.iter().map(|figures| figures[i])), 2);
        std::iter::once(name).chain((0..6).map(of)).collect()
    };
    for (kind, rounds) in kinds.iter().zip(&rounds) {
        table.row(row(kind.to_string(), rounds));
    }
    if let [ours, theirs] = &rounds[..] {
        let of = |i: usize| {
            // Where an answer comes before the API server's own there is nothing to divide by.
            let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| theirs[i] > 0.0);
            let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours[i] / theirs[i]).collect();
            if ratios.is_empty() { "–".to_owned() } else { spread(Spread::of(ratios), 2) }
        };
        table.row(std::iter::once(format!("{} ÷ {}", kinds[0], kinds[1])).chain((0..6).map(of)).collect());
    }
    let (imports, rounds) = (set.imports(), settings.effort.rounds);
    let heading =
        format!("## From a write to the answer: {rounds} times {samples} writes each, among {imports} imports");
    settings.tell(&format!("propagation-{set}.md"), &format!("{heading}\n\n{}", table.render()))
}

/// The servers, and what was written.
struct Run<'a> {
    runtime: &'a Runtime,
    client: kube::Client,
    servers: &'a [Server],
    set: Set,
    /// So many.
    writes: u32,
    /// What was written last: service, endpoint, address.
    last: Option<(u32, u32, Ipv4Addr)>,
}

impl Run<'_> {
    /// Lets one of the servers, which are all held still, take so many writes in.
    fn turn(&mut self, i: usize, count: usize) -> Result<Vec<Sample>> {
        let server = &self.servers[i];
        server.resume()?;
        // What was written for the others comes first.
        self.last.map_or(Ok(()), |last| server.caught_up(self.set, last))?;
        let samples = (0..count).map(|_| self.write(server)).collect();
        server.pause()?;
        samples
    }

    fn write(&mut self, server: &Server) -> Result<Sample> {
        let write = Write::new(self.set, self.writes);
        self.writes += 1;
        let (address, query) = (server.v4(), packet(&endpoint_name(self.set, write.headless, 0), A));
        let asking = std::thread::spawn(move || until(address, &query, write.wanted));
        let sent = Instant::now();
        self.runtime.block_on(cluster::request(&self.client, "PATCH", &write.path, Some(&write.body)))?;
        let answered = Instant::now();
        let served = asking.join().map_err(|_| "the thread that asks panicked")?.map_err(doing(server.kind))?;
        self.last = Some(write.served());
        Ok(Sample { from_answer: ms(answered, served), from_write: ms(sent, served) })
    }
}

/// What one write took until its address was answered, in milliseconds.
struct Sample {
    /// From the API server's answer to the write; less than nothing where the address was served before that.
    from_answer: f64,
    /// From before the write.
    from_write: f64,
}

/// Median, nine of ten and the worst, of both.
fn figures(samples: &[Sample]) -> [f64; 6] {
    let of = |figure: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let spread = Spread::of(values.iter().copied());
        [spread.median, values.get(values.len() * 9 / 10).copied().unwrap_or(0.0), spread.max]
    };
    let ([a, b, c], [d, e, f]) = (of(|sample| sample.from_answer), of(|sample| sample.from_write));
    [a, b, c, d, e, f]
}

fn ms(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_secs_f64() * 1e3,
        None => -(from - to).as_secs_f64() * 1e3,
    }
}

/// A change of a slice, and what the first of its endpoints has then.
pub(super) struct Write {
    pub(super) path: String,
    pub(super) body: Value,
    headless: u32,
    wanted: Ipv4Addr,
}

impl Write {
    /// The one after so many: one slice after the other moves to a place where it was not for long.
    pub(super) fn new(set: Set, count: u32) -> Self {
        let headless = count % set.headless;
        let turn = 1 + (count / set.headless % 100) as u8;
        let mut slice = objects::slice(set, headless, 0, turn);
        let namespace = set.namespace(headless);
        let [a, b, c, d] = set.endpoint_address(headless, 0).octets();
        Self {
            path: format!("/apis/discovery.k8s.io/v1/namespaces/ns-{namespace}/endpointslices/db-{headless}-00000"),
            body: json!({"endpoints": slice["endpoints"].take()}),
            headless,
            wanted: Ipv4Addr::new(a + turn, b, c, d),
        }
    }

    /// What is answered after it: service, endpoint, address.
    pub(super) fn served(&self) -> (u32, u32, Ipv4Addr) {
        (self.headless, 0, self.wanted)
    }
}

/// Asks a server for one address until it answers it: when.
fn until(server: SocketAddr, query: &[u8], wanted: Ipv4Addr) -> Result<Instant> {
    let open = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open().map_err(doing("asking"))?;
    let begin = Instant::now();
    let mut asked: Option<Instant> = None;
    let mut reply = [0; 512];
    loop {
        match socket.recv(&mut reply) {
            Ok(length) if address(&reply[..length]) == Some(wanted) => return Ok(Instant::now()),
            Err(_) if asked.is_some_and(|asked| asked.elapsed() < AGAIN) => std::thread::sleep(PAUSE),
            _ => {
                asked = Some(Instant::now());
                socket.send(query).map_err(doing("asking"))?;
            }
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{wanted} is not answered within {PATIENCE:?}"));
        }
    }
}
