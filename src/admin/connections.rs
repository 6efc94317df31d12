//! Bounded HTTP connections: whoever dawdles is closed, and there are never too many.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a request's head may take, and a connection may lie idle between two requests (CoreDNS's time-outs are
/// 5 s too).
const HEAD: Duration = Duration::from_secs(5);

/// After this time a connection ends with the request it is at. Prometheus opens a new one.
const LIFETIME: Duration = Duration::from_secs(60);

/// How long that request may take: whoever does not read its answer is closed.
const LAST: Duration = Duration::from_secs(10);

/// Open connections of one listener. What comes then waits in the kernel's queue; each slot is free again in 5 s.
const CONNECTIONS: usize = 256;

/// Most memory for a request's head.
const HEAD_BYTES: usize = 16 * 1024;

/// Bodies are never read; axum refuses to.
const BODY_BYTES: usize = 0;

/// Accepts until told to stop.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let router = router.layer(DefaultBodyLimit::max(BODY_BYTES));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            // Takes the ended ones out of the set.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, router, &stop).await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, or the client was gone already. Not a busy loop in either case.
                tracing::debug!(%error, "a connection to the admin routes was not accepted");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, router: Router, stop: &CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        // A client's mistake is the client's to notice.
        _ = connection.as_mut() => return,
        () = sleep(LIFETIME) => {}
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let last = if stop.is_cancelled() { super::GRACE } else { LAST };
    let _ = timeout(last, connection).await;
}
