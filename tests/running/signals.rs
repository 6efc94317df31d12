//! L15, and 2.5: what each signal does.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use testbed::Bed;

use crate::api::until;
use crate::asking::{A, NOERROR, ask, udp};
use crate::product::{Namesake, PATIENCE, example};

async fn started(bed: &Bed, more: &[&str]) -> Namesake {
    let example = example().to_string_lossy().into_owned();
    let args: Vec<&str> = ["--from", &example].into_iter().chain(more.iter().copied()).collect();
    let server = Namesake::start(bed, &args).unwrap();
    server.wait_ready().await;
    server
}

fn answers(server: &Namesake) {
    assert_eq!(ask(&udp(server.dns), 7, "web.shop.svc", A).rcode, NOERROR);
}

/// Waits for the end, which must come long before the minute that is set where nothing is to be waited for; the exit
/// code, and how long it took.
async fn end(server: &Namesake) -> (Option<i32>, Duration) {
    let began = Instant::now();
    let status = server.process.wait_exit(PATIENCE).await.unwrap();
    (status.code(), began.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l15_sigterm_and_sigint_are_lameduck_and_then_the_end() {
    for signal in ["TERM", "INT"] {
        let bed = Bed::new().unwrap();
        let server = started(&bed, &["--lameduck", "1s"]).await;
        let began = Instant::now();
        server.process.signal(signal).unwrap();
        // What is served meanwhile the next test sees, whose lameduck no slow machine outlasts.
        let (code, _) = end(&server).await;
        assert_eq!(code, Some(0), "{signal}: {}", server.process.log().unwrap());
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(1), "{signal}: {took:?}");
        assert!(TcpStream::connect(server.dns).is_err() && TcpStream::connect(server.admin).is_err());
        let log = server.process.log().unwrap();
        assert!(log.contains(&format!("SIG{signal}")) && log.contains("stopped"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l15_a_second_signal_ends_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT"), ("TERM", "QUIT")] {
        let bed = Bed::new().unwrap();
        let server = started(&bed, &["--lameduck", "1m"]).await;
        server.process.signal(first).unwrap();
        server.wait_for("/ready", |code, body| code == 503 && body == "Shutting down").await;
        // Nothing but the second signal ends it.
        answers(&server);
        assert_eq!(server.get("/health").await, (200, "OK".to_owned()));
        server.process.signal(second).unwrap();
        let (code, _) = end(&server).await;
        assert_eq!(code, Some(0), "{first}, {second}: {}", server.process.log().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l15_sigquit_ends_at_once() {
    let bed = Bed::new().unwrap();
    let server = started(&bed, &["--lameduck", "1m"]).await;
    server.process.signal("QUIT").unwrap();
    let (code, _) = end(&server).await;
    assert_eq!(code, Some(0), "{}", server.process.log().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l15_sighup_sigusr1_and_sigusr2_are_ignored() {
    let bed = Bed::new().unwrap();
    let server = started(&bed, &[]).await;
    for signal in ["HUP", "USR1", "USR2"] {
        server.process.signal(signal).unwrap();
        answers(&server);
    }
    // A later signal is taken later, so the earlier ones have had their turn.
    server.process.signal("TERM").unwrap();
    assert_eq!(end(&server).await.0, Some(0));
    let log = server.process.log().unwrap();
    assert!(log.contains("SIGTERM") && !log.contains("SIGHUP"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l15_a_client_that_dawdles_holds_the_end_up_for_grace_and_no_longer() {
    use std::io::Write;
    let bed = Bed::new().unwrap();
    let server = started(&bed, &["--grace", "1s", "--tcp-read", "1m"]).await;
    let mut stream = crate::asking::tcp(server.dns);
    crate::asking::send_tcp(&mut stream, &crate::asking::query(1, "web.shop.svc", A)).unwrap();
    crate::asking::receive_tcp(&mut stream).unwrap();
    stream.write_all(&[0]).unwrap(); // half of the next message's length
    until("it is idle but for that", async || server.get("/health").await.0 == 200).await;
    server.process.signal("TERM").unwrap();
    let (code, took) = end(&server).await;
    let log = server.process.log().unwrap();
    assert_eq!(code, Some(0), "{log}");
    assert!(took >= Duration::from_millis(900), "{took:?}");
    assert!(log.contains("1 connections were cut"), "{log}");
}
