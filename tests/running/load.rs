//! SCL-04: load below saturation is answered to the last query, and counted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use testbed::Bed;

use crate::api::{metric, until};
use crate::asking::{A, AAAA, NOERROR, NXDOMAIN, SRV, Seen, query, receive, udp};
use crate::product::{Namesake, PATIENCE, example};

const CLIENTS: u32 = 4;
const QUERIES: u32 = 50_000;

/// How many queries a client has under way: four clients together never more than a socket's buffer surely holds, so
/// no reply can be lost on the client's own side.
const WINDOW: usize = 32;

/// What is asked, and what is right.
const MIX: [(&str, u16, u8, u16); 8] = [
    ("web.shop.svc", A, NOERROR, 1),
    ("web.shop.svc", AAAA, NOERROR, 1),
    ("_https._tcp.web.shop.svc", SRV, NOERROR, 1),
    ("db.shop.svc", A, NOERROR, 3),
    ("db-0.west.db.shop.svc", A, NOERROR, 1),
    ("nope.shop.svc", A, NXDOMAIN, 0),
    ("shop.svc", A, NOERROR, 0),
    ("_nope._tcp.db.shop.svc", SRV, NXDOMAIN, 0),
];

/// Asks [`QUERIES`] times, a window of them at once. Every reply must be the right one for its query.
fn client(server: SocketAddr, first: u32) {
    let socket = udp(server);
    let mut waiting: HashMap<u16, (u8, u16)> = HashMap::new();
    let (mut sent, mut answered) = (0, 0);
    while answered < QUERIES {
        while sent < QUERIES && waiting.len() < WINDOW {
            let (name, qtype, rcode, answers) = MIX[((first + sent) % 8) as usize];
            let id = (sent % 60_000) as u16;
            socket.send(&query(id, name, qtype)).unwrap();
            assert!(waiting.insert(id, (rcode, answers)).is_none());
            sent += 1;
        }
        let Seen { id, rcode, answers } = receive(&socket).unwrap_or_else(|error| {
            panic!("{} of {sent} queries were lost ({error})", waiting.len());
        });
        let right = waiting.remove(&id).unwrap_or_else(|| panic!("a reply to nobody, or a second one: {id}"));
        assert_eq!((rcode, answers), right);
        answered += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_scl_04_no_query_is_lost_below_saturation_and_every_one_is_counted() {
    let bed = Bed::new().unwrap();
    let server = Namesake::start(&bed, &["--from", &example().to_string_lossy()]).unwrap();
    server.wait_ready().await;
    // The last line of the start, which comes when it is ready already.
    server.process.wait_for_line("DNS on ", PATIENCE).await.unwrap();
    let lines = server.process.log().unwrap().lines().count();
    let began = Instant::now();
    let dns = server.dns;
    let clients: Vec<_> = (0..CLIENTS).map(|first| thread::spawn(move || client(dns, first))).collect();
    // A scrape in the middle does not disturb, and is not disturbed.
    until("there is load", async || counted(&server).await > 0).await;
    clients.into_iter().for_each(|client| client.join().unwrap());
    let rate = f64::from(CLIENTS * QUERIES) / began.elapsed().as_secs_f64();
    println!("{} queries answered, {rate:.0} a second", CLIENTS * QUERIES);
    let all = u64::from(CLIENTS * QUERIES);
    until("every query is counted", async || counted(&server).await == all).await;
    let (_, metrics) = server.get("/metrics").await;
    for line in metrics.lines().filter(|line| line.starts_with("namesake_dns_drops_total")) {
        assert!(line.ends_with(" 0"), "{line}");
    }
    // Queries are logged only when asked for; a machine with `info` logs is not slower by a line.
    assert_eq!(server.process.log().unwrap().lines().count(), lines, "{}", server.process.log_tail(5));
    // And afterwards it rests.
    let spent = cpu(&server);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(cpu(&server) - spent < 20, "{} ticks in a second of rest", cpu(&server) - spent);
}

/// All queries that the metrics know of.
async fn counted(server: &Namesake) -> u64 {
    let (_, metrics) = server.get("/metrics").await;
    let lines = metrics.lines().filter(|line| line.starts_with("coredns_dns_requests_total"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// CPU time, in ticks of 10 ms.
fn cpu(server: &Namesake) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_scl_04_what_the_kernel_drops_for_lack_of_room_is_counted() {
    const SENT: u32 = 60_000;
    let bed = Bed::new().unwrap();
    let server = Namesake::with_example(&bed).await.unwrap();
    assert_eq!(metric(&server, "namesake_dns_drops_total{reason=\"queue\"}").await, 0.0);
    // As if it had no CPU at all: what comes waits, until the buffers are full.
    server.process.signal("STOP").unwrap();
    let client = udp(server.dns);
    for number in 0..SENT {
        client.send(&query((number % 60_000) as u16, "web.shop.svc", A)).unwrap();
    }
    server.process.signal("CONT").unwrap();
    until("each is answered or counted as dropped", async || {
        let (_, text) = server.get("/metrics").await;
        let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
        let sum = |name| text.lines().filter(|line| line.starts_with(name)).filter_map(count).sum::<f64>();
        let dropped = sum("namesake_dns_drops_total{reason=\"queue\"}");
        dropped > 0.0 && dropped + sum("coredns_dns_requests_total{") == f64::from(SENT)
    })
    .await;
}
