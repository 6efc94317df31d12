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
use crate::report::Table;
use crate::rounds::Spread;
use crate::servers::{Kind, Place, Server, address, endpoint_name};
use crate::set::Set;

/// What is compared.
const KINDS: [Kind; 2] = [Kind::Namesake, Kind::CoreDns];

/// Writes for each server.
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
    let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| settings.servers.contains(kind)).collect();
    let servers = kinds.iter().map(|kind| Server::start(*kind, &place)).collect::<Result<Vec<_>>>()?;
    servers.iter().try_for_each(Server::pause)?;
    let client = cluster.admin();
    let samples = if settings.smoke { BLOCK } else { SAMPLES };
    let mut times: Vec<Vec<Sample>> = servers.iter().map(|_| Vec::new()).collect();
    let mut writes = Writes { set, count: 0 };
    let mut last = None;
    for block in 0..samples.div_ceil(BLOCK) {
        for turn in 0..servers.len() {
            let i = (turn + block) % servers.len();
            servers[i].resume()?;
            // What was written for the others comes first.
            last.map_or(Ok(()), |last| servers[i].caught_up(set, last))?;
            for _ in 0..BLOCK {
                let write = writes.next();
                let (address, query) = (servers[i].v4(), packet(&endpoint_name(set, write.headless, 0), A));
                let asking = std::thread::spawn(move || until(address, &query, write.wanted));
                let sent = Instant::now();
                runtime.block_on(cluster::request(&client, "PATCH", &write.path, Some(&write.body)))?;
                let answered = Instant::now();
                let served = asking.join().map_err(|_| "the thread that asks panicked")?.map_err(doing(kinds[i]))?;
                times[i].push(Sample { from_answer: ms(answered, served), from_write: ms(sent, served) });
                last = Some((write.headless, 0, write.wanted));
            }
            servers[i].pause()?;
        }
    }
    let mut lines = String::from("server\twrite\tfrom_answer_ms\tfrom_write_ms\n");
    for (kind, times) in kinds.iter().zip(&times) {
        for (i, Sample { from_answer, from_write }) in times.iter().enumerate() {
            // Writing to a string can't fail.
            let _ = writeln!(lines, "{kind}\t{i}\t{from_answer:.3}\t{from_write:.3}");
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
    let figures: Vec<[f64; 6]> = times.iter().map(|times| figures(times)).collect();
    for (kind, figures) in kinds.iter().zip(&figures) {
        let row = std::iter::once(kind.to_string()).chain(figures.map(|ms| format!("{ms:.2}")));
        table.row(row.collect());
    }
    if let [ours, theirs] = &figures[..] {
        // Where an answer comes before the API server's own there is nothing to divide by.
        let ratio = |i: usize| if theirs[i] > 0.0 { format!("{:.2}", ours[i] / theirs[i]) } else { "–".to_owned() };
        table.row(std::iter::once(format!("{} ÷ {}", kinds[0], kinds[1])).chain((0..6).map(ratio)).collect());
    }
    let heading = format!("## From a write to the answer: {samples} writes each, among {} imports", set.imports());
    settings.tell(&format!("propagation-{set}.md"), &format!("{heading}\n\n{}", table.render()))
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

/// One slice after the other moves to a place where it never was.
struct Writes {
    set: Set,
    count: u32,
}

/// A change of a slice, and what the first of its endpoints has then.
struct Write {
    path: String,
    body: Value,
    headless: u32,
    wanted: Ipv4Addr,
}

impl Writes {
    fn next(&mut self) -> Write {
        let (set, count) = (self.set, self.count);
        self.count += 1;
        let headless = count % set.headless;
        let turn = 1 + (count / set.headless % 100) as u8;
        let mut slice = objects::slice(set, headless, 0, turn);
        let namespace = set.namespace(headless);
        let [a, b, c, d] = set.endpoint_address(headless, 0).octets();
        Write {
            path: format!("/apis/discovery.k8s.io/v1/namespaces/ns-{namespace}/endpointslices/db-{headless}-00000"),
            body: json!({"endpoints": slice["endpoints"].take()}),
            headless,
            wanted: Ipv4Addr::new(a + turn, b, c, d),
        }
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
