//! CFG-06: a rollout under load loses nothing.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testbed::Bed;

use crate::api::until;
use crate::asking::{A, NOERROR, query, receive, receive_tcp, send_tcp, tcp, udp};
use crate::product::{Namesake, PATIENCE, example};

const LAMEDUCK: Duration = Duration::from_secs(3);

/// A thousand queries a second.
const EACH: Duration = Duration::from_millis(1);

/// Calls `send` once per [`EACH`] until it says no. Late calls are made up for, so that the rate holds.
fn paced(mut send: impl FnMut(u16) -> bool) {
    let began = Instant::now();
    for number in 0..u16::MAX {
        let due = began + EACH * u32::from(number);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if !send(number) {
            return;
        }
    }
    panic!("the server did not end in a minute");
}

/// How many replies a client's own buffer surely holds, should its reader have to wait for the machine.
const WINDOW: usize = 100;

/// What became of the queries of a client.
#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    /// Sent, and neither answered nor refused: when each was sent.
    lost: Vec<Instant>,
    /// When the client learned that nobody is there any more.
    ended: Option<Instant>,
}

/// UDP: one socket, replies read beside the queries.
fn over_udp(server: SocketAddr, running: &Arc<AtomicBool>) -> Tally {
    let socket = udp(server);
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let refused = Arc::new(AtomicBool::new(false));
    let under_way = Arc::new(AtomicUsize::new(0));
    let reader = {
        let (socket, refused, under_way) = (socket.try_clone().unwrap(), Arc::clone(&refused), Arc::clone(&under_way));
        thread::spawn(move || {
            let mut seen = Vec::new();
            loop {
                match receive(&socket) {
                    Ok(reply) => {
                        assert_eq!((reply.rcode, reply.answers), (NOERROR, 1));
                        under_way.fetch_sub(1, Ordering::SeqCst);
                        seen.push(reply.id);
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        refused.store(true, Ordering::SeqCst);
                    }
                    // No reply for a fifth of a second: the load is over, or a query is lost and will be missed.
                    Err(_) if refused.load(Ordering::SeqCst) => return seen,
                    Err(_) => {}
                }
            }
        })
    };
    let mut sent = HashMap::new();
    let mut tally = Tally::default();
    paced(|id| {
        let began = Instant::now();
        while under_way.load(Ordering::SeqCst) >= WINDOW && !refused.load(Ordering::SeqCst) {
            assert!(began.elapsed() < Duration::from_secs(20), "{WINDOW} queries are not answered");
            thread::sleep(EACH);
        }
        if refused.load(Ordering::SeqCst) {
            return false;
        }
        under_way.fetch_add(1, Ordering::SeqCst);
        match socket.send(&query(id, "web.shop.svc", A)) {
            Ok(_) => drop(sent.insert(id, Instant::now())),
            // The kernel tells of the closed port here or at the reader, whoever asks first.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => refused.store(true, Ordering::SeqCst),
            Err(error) => panic!("{error}"),
        }
        running.store(true, Ordering::SeqCst);
        true
    });
    tally.ended = Some(Instant::now());
    for id in reader.join().unwrap() {
        assert!(sent.remove(&id).is_some(), "answered twice");
        tally.answered += 1;
    }
    tally.lost = sent.into_values().collect();
    tally
}

/// TCP: one connection, queries pipelined.
fn over_tcp(server: SocketAddr) -> Tally {
    let mut stream = tcp(server);
    let mut reading = stream.try_clone().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let reader = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            let mut seen = Vec::new();
            while let Ok(reply) = receive_tcp(&mut reading) {
                assert_eq!((reply.rcode, reply.answers), (NOERROR, 1));
                seen.push(reply.id);
            }
            over.store(true, Ordering::SeqCst);
            (seen, Instant::now())
        })
    };
    let mut sent = HashMap::new();
    paced(|id| {
        let now = Instant::now();
        if over.load(Ordering::SeqCst) || send_tcp(&mut stream, &query(id, "web.shop.svc", A)).is_err() {
            return false;
        }
        sent.insert(id, now);
        true
    });
    let (seen, ended) = reader.join().unwrap();
    for id in &seen {
        assert!(sent.remove(id).is_some(), "answered twice");
    }
    Tally { answered: seen.len(), lost: sent.into_values().collect(), ended: Some(ended) }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_cfg_06_a_rollout_loses_no_query() {
    let bed = Bed::new().unwrap();
    let example = example().to_string_lossy().into_owned();
    let server = Namesake::start(&bed, &["--from", &example, "--lameduck", "3s"]).unwrap();
    server.wait_ready().await;
    let dns = server.dns;
    let running = Arc::new(AtomicBool::new(false));
    let clients = {
        let running = Arc::clone(&running);
        thread::spawn(move || {
            let udp = thread::spawn(move || over_udp(dns, &running));
            let tcp = over_tcp(dns);
            (udp.join().unwrap(), tcp)
        })
    };
    until("there is load", async || running.load(Ordering::SeqCst)).await;
    tokio::time::sleep(Duration::from_millis(500)).await; // some load before the signal

    let signalled = Instant::now();
    server.process.signal("TERM").unwrap();
    // Unready at once, and healthy all the time: whoever restarts what is unhealthy would cut the lameduck short. An
    // answer that came after the lameduck, on a slow machine, shows nothing.
    let mut unready = None;
    loop {
        let asked = signalled.elapsed();
        let (ready, health) = (server.get("/ready").await.0, server.get("/health").await);
        let answered = signalled.elapsed();
        if answered >= LAMEDUCK {
            break;
        }
        assert_eq!(health, (200, "OK".to_owned()), "after {answered:?}");
        if ready == 503 {
            unready = unready.or(Some(answered));
        } else {
            // The signal may be noticed a moment later than a query that came after it.
            assert!(unready.is_none() && asked < Duration::from_secs(1), "ready {asked:?} after the signal");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("unready {unready:?} after the signal");
    let status = server.process.wait_exit(PATIENCE).await.unwrap();
    let took = signalled.elapsed();
    assert_eq!(status.code(), Some(0), "{}", server.process.log().unwrap());
    assert!(took >= LAMEDUCK, "{took:?}");

    let (udp, tcp) = clients.join().unwrap();
    println!(
        "UDP {} answered, {} lost; TCP {} answered, {} lost",
        udp.answered,
        udp.lost.len(),
        tcp.answered,
        tcp.lost.len()
    );
    for (transport, tally) in [("UDP", udp), ("TCP", tcp)] {
        let ended = tally.ended.unwrap();
        assert!(
            ended >= signalled + LAMEDUCK - Duration::from_millis(100),
            "{transport} ended before the lameduck did"
        );
        // 3.5 s at a thousand a second, where the machine lets us.
        assert!(tally.answered > 1500, "{transport}: {} answers are no load", tally.answered);
        // Who asks while the door closes is refused, or sees the connection end, and asks elsewhere. (That what has
        // arrived by then is answered, `wire` shows.)
        let early = tally.lost.iter().filter(|sent| **sent < signalled + LAMEDUCK).count();
        assert_eq!(early, 0, "{transport}: lost before the door closed");
    }
}
