//! From a write to the API server until the new address is answered, by Namesake and CoreDNS at once: both watch the
//! same API server, both are asked without a pause worth naming, and every sample is one write.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
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

/// Writes.
const SAMPLES: usize = 200;

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
    let client = cluster.admin();
    let samples = if settings.smoke { 10 } else { SAMPLES };
    // Milliseconds from the API server's answer, which can be less than nothing, and from the write.
    let mut times = vec![(Vec::new(), Vec::new()); servers.len()];
    for sample in 0..samples {
        let i = sample as u32 * 7 % set.headless;
        // Each sample of a service moves it to another place.
        let turn = 1 + (sample as u32 * 7 / set.headless % 100) as u8;
        let mut slice = objects::slice(set, i, 0, turn);
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/ns-{}/endpointslices/db-{i}-00000", set.namespace(i));
        let body = json!({"endpoints": slice["endpoints"].take()});
        let [a, b, c, d] = set.endpoint_address(i, 0).octets();
        let wanted = Ipv4Addr::new(a + turn, b, c, d);
        let addresses: Vec<SocketAddr> = servers.iter().map(Server::v4).collect();
        let query = packet(&endpoint_name(set, i, 0), A);
        let asking = std::thread::spawn(move || until(&addresses, &query, wanted));
        let sent = Instant::now();
        runtime.block_on(cluster::request(&client, "PATCH", &path, Some(&body)))?;
        let answered = Instant::now();
        let served = asking.join().map_err(|_| "the thread that asks panicked")??;
        for ((from_answer, from_write), at) in times.iter_mut().zip(served) {
            let ms = |since: Instant| match at.checked_duration_since(since) {
                Some(after) => after.as_secs_f64() * 1e3,
                None => -(since - at).as_secs_f64() * 1e3,
            };
            from_answer.push(ms(answered));
            from_write.push(ms(sent));
        }
    }
    let mut table = Table::new(&[
        "server",
        "API answered → served ms: median",
        "p90",
        "worst",
        "write sent → served ms: median",
        "p90",
        "worst",
    ]);
    let p90 = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.get(values.len() * 9 / 10).copied().unwrap_or(0.0)
    };
    for (kind, (from_answer, from_write)) in kinds.iter().zip(&times) {
        let mut row = vec![kind.to_string()];
        for values in [from_answer, from_write] {
            let spread = Spread::of(values.iter().copied());
            row.extend([spread.median, p90(values), spread.max].map(|ms| format!("{ms:.2}")));
        }
        table.row(row);
    }
    let heading = format!("## From a write to the answer: {samples} writes among {} imports", set.imports());
    settings.tell(&format!("propagation-{set}.md"), &format!("{heading}\n\n{}", table.render()))
}

/// Asks servers for one address until each has answered it: when.
fn until(servers: &[SocketAddr], query: &[u8], wanted: Ipv4Addr) -> Result<Vec<Instant>> {
    let open = |server: &SocketAddr| -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        socket.send(query)?;
        Ok(socket)
    };
    let sockets = servers.iter().map(open).collect::<std::io::Result<Vec<_>>>().map_err(doing("asking"))?;
    let mut served: Vec<Option<Instant>> = vec![None; servers.len()];
    let begin = Instant::now();
    let mut asked = vec![begin; servers.len()];
    let mut reply = [0; 512];
    while served.contains(&None) {
        for (i, socket) in sockets.iter().enumerate().filter(|(i, _)| served[*i].is_none()).collect::<Vec<_>>() {
            match socket.recv(&mut reply) {
                Ok(length) if address(&reply[..length]) == Some(wanted) => {
                    served[i] = Some(Instant::now());
                    continue;
                }
                Err(_) if asked[i].elapsed() < AGAIN => continue,
                _ => {}
            }
            asked[i] = Instant::now();
            socket.send(query).map_err(doing("asking"))?;
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{wanted} is not answered within {PATIENCE:?} by all of {servers:?}"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(served.into_iter().flatten().collect())
}
