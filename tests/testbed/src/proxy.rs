//! A network that can fail: a TCP proxy that cuts, swallows or delays what passes through it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::access;
use crate::bed::Bed;
use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};

/// What the network does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// Passes everything on, each piece this much later.
    Open(Duration),
    /// Refuses new connections; the old ones are gone.
    Cut,
    /// Takes everything and passes nothing on.
    Hole,
    /// The proxy itself ends.
    Over,
}

/// A TCP proxy on a loopback port. It has a thread and a runtime of its own, so a test that blocks does not stop it.
/// It ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    connections: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
    cluster: Option<Cluster>,
    // The port is ours for as long as the bed lives.
    _bed: Bed,
}

impl Cluster {
    /// A network in front of the API server that can fail; [`Proxy::kubeconfig`] leads through it.
    pub fn proxy(&self) -> Result<Proxy> {
        let mut proxy = Proxy::start(self.bed(), self.address())?;
        proxy.cluster = Some(self.clone());
        let to = proxy.kubeconfig_path(&self.kubeconfig());
        proxy.rewrite(&self.kubeconfig(), &to)?;
        Ok(proxy)
    }
}

impl Proxy {
    /// A network in front of any TCP server.
    pub fn start(bed: &Bed, upstream: SocketAddr) -> Result<Proxy> {
        let address = SocketAddr::from(([127, 0, 0, 1], bed.port()?));
        let (weather, watching) = watch::channel(Weather::Open(Duration::ZERO));
        let connections = Arc::new(AtomicUsize::new(0));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().doing("the proxy's runtime")?;
        // Bound here, so that the first connection of the caller is not refused.
        let listener = std::net::TcpListener::bind(address).doing(format!("listening on {address}"))?;
        listener.set_nonblocking(true).doing(address)?;
        let counter = connections.clone();
        let thread = std::thread::Builder::new()
            .name("testbed-proxy".into())
            .spawn(move || {
                runtime.block_on(async {
                    match TcpListener::from_std(listener) {
                        Ok(listener) => serve(listener, address, upstream, watching, counter).await,
                        Err(e) => eprintln!("testbed: the proxy on {address} cannot listen: {e}"),
                    }
                });
            })
            .doing("the proxy's thread")?;
        Ok(Proxy { address, weather, connections, thread: Some(thread), cluster: None, _bed: bed.clone() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig, through the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.as_ref().map_or_else(PathBuf::new, |cluster| self.kubeconfig_path(&cluster.kubeconfig()))
    }

    /// The same access as in `file`, but through the proxy: a new kubeconfig beside it.
    pub fn kubeconfig_through(&self, file: &Path) -> Result<PathBuf> {
        let to = self.kubeconfig_path(file);
        self.rewrite(file, &to)?;
        Ok(to)
    }

    /// As [`Cluster::kubeconfig_for_service_account`], through the proxy.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let cluster = self.cluster.as_ref().ok_or_else(|| Error::new("this proxy stands before no cluster"))?;
        self.kubeconfig_through(&cluster.kubeconfig_for_service_account(namespace, name).await?)
    }

    /// How many connections it has taken so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Drops all connections and refuses new ones.
    pub fn cut(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Keeps connections and takes new ones, and passes nothing on: as a firewall that drops packets.
    pub fn black_hole(&self) {
        self.weather.send_replace(Weather::Hole);
    }

    /// Passes everything on this much later, in each direction.
    pub fn delay(&self, by: Duration) {
        self.weather.send_replace(Weather::Open(by));
    }

    /// Passes everything on at once again, also what a black hole has held back.
    pub fn heal(&self) {
        self.weather.send_replace(Weather::Open(Duration::ZERO));
    }

    fn kubeconfig_path(&self, file: &Path) -> PathBuf {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("cluster");
        file.with_file_name(format!("{stem}-through-{}.kubeconfig", self.address.port()))
    }

    fn rewrite(&self, from: &Path, to: &Path) -> Result<()> {
        let mut config = access::read_json(from)?;
        let clusters = config["clusters"].as_array_mut();
        for entry in clusters.ok_or_else(|| Error::new(format!("{}: no clusters", from.display())))? {
            entry["cluster"]["server"] = json!(format!("https://{}", self.address));
            // The certificate is the API server's own, whatever address leads to it.
            entry["cluster"]["tls-server-name"] = json!("localhost");
        }
        access::write_json(to, &config)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.weather.send_replace(Weather::Over);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    upstream: SocketAddr,
    mut weather: watch::Receiver<Weather>,
    connections: Arc<AtomicUsize>,
) {
    let mut listener = Some(listener);
    loop {
        let now = *weather.borrow_and_update();
        match now {
            Weather::Over => return,
            // Without a listener the kernel refuses, as it does for a machine without that server.
            Weather::Cut => listener = None,
            Weather::Open(_) | Weather::Hole if listener.is_none() => match TcpListener::bind(address).await {
                Ok(bound) => listener = Some(bound),
                Err(e) => {
                    eprintln!("testbed: the proxy on {address} cannot listen again: {e}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ => {}
        }
        let accept = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = weather.changed() => if changed.is_err() { return },
            accepted = accept => if let Ok((client, _)) = accepted {
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(connection(client, upstream, weather.clone()));
            },
        }
    }
}

/// One connection, until either side ends it or the weather does.
async fn connection(client: TcpStream, upstream: SocketAddr, weather: watch::Receiver<Weather>) {
    let mut bad = weather.clone();
    let mut fair = weather.clone();
    let pass = async {
        // In a black hole the connection stands, but the other side has not heard of it yet.
        if fair.wait_for(|now| matches!(now, Weather::Open(_))).await.is_err() {
            return;
        }
        let Ok(server) = TcpStream::connect(upstream).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        tokio::join!(
            pump(client_read, server_write, weather.clone()),
            pump(server_read, client_write, weather.clone())
        );
    };
    tokio::select! {
        _ = bad.wait_for(|now| matches!(now, Weather::Cut | Weather::Over)) => {}
        () = pass => {}
    }
}

/// One direction. Reading and writing are apart, so that a delay does not become a limit of throughput.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut weather: watch::Receiver<Weather>) {
    let (queue, mut queued) = mpsc::channel::<(Instant, Vec<u8>)>(256);
    let now = weather.clone();
    let read = async move {
        loop {
            let mut piece = vec![0; 16 * 1024];
            let Ok(length @ 1..) = from.read(&mut piece).await else { return };
            piece.truncate(length);
            let delay = if let Weather::Open(by) = *now.borrow() { by } else { Duration::ZERO };
            if queue.send((Instant::now() + delay, piece)).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, piece)) = queued.recv().await {
            tokio::time::sleep_until(due).await;
            if weather.wait_for(|now| matches!(now, Weather::Open(_))).await.is_err() {
                return;
            }
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}
