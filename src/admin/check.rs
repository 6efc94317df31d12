//! Looking at ourselves from outside: CoreDNS's health self-check, and what systemd is told of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::routes::Shared;

/// CoreDNS's interval and time-out.
const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(3);

/// How often readiness is looked at for systemd until it is there.
const LOOK: Duration = Duration::from_millis(100);

/// Asks `/health` once a second and counts how long it took and whether it failed.
pub(super) async fn health(address: SocketAddr, shared: Arc<Shared>, stop: CancellationToken) {
    let address = reachable(address);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let begin = Instant::now();
        let result = match timeout(LIMIT, ask(address)).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
        };
        if stop.is_cancelled() {
            return;
        }
        let took = begin.elapsed();
        shared.half.health_request(took, result.is_err());
        match result {
            Err(error) => tracing::warn!("Local health request to \"http://{address}/health\" failed: {error}"),
            Ok(()) if took > EVERY => {
                tracing::warn!("Local health request to \"http://{address}/health\" took more than 1s: {took:?}");
            }
            Ok(()) => {}
        }
    }
}

/// The address by which we reach ourselves.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

async fn ask(address: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer).await?;
    if answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    Err(std::io::Error::other(format!("unexpected answer {line:?}")))
}

/// Tells systemd: ready once, alive as long as this runs, stopping at the end. Being alive does not hang on the
/// self-check: whoever fills the admin port with connections must not get the DNS server restarted.
pub(super) async fn notify(shared: Arc<Shared>, stop: CancellationToken) {
    let notifier = shared.half.notifier();
    let mut ready = false;
    let mut alive = Instant::now();
    loop {
        if shared.half.shutting_down() || stop.is_cancelled() {
            notifier.stopping();
            // Alive until the end: lameduck may take longer than the watchdog's patience.
            while let Some(every) = notifier.watchdog_interval() {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep(every) => notifier.alive(),
                }
            }
            return;
        }
        if !ready && shared.half.ready().0 {
            ready = true;
            notifier.ready(shared.half.ready_status());
        }
        if let Some(every) = notifier.watchdog_interval()
            && alive.elapsed() + LOOK >= every
        {
            alive = Instant::now();
            notifier.alive();
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(LOOK) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_reached_by_loopback() {
        for (given, reached) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("10.0.0.1:3", "10.0.0.1:3")] {
            assert_eq!(reachable(given.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
