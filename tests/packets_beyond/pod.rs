//! A pod that asks: the test's own threads with sockets in the pod's network namespace.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::rr::{RData, RecordType};
use testbed::{Cluster, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use crate::ask::{self, Connection, PATIENCE, Trouble};

/// A pod of a cluster, as a client of services.
#[derive(Clone)]
pub struct ClientPod {
    pub cluster: Cluster,
    pub address: IpAddr,
    /// What stands in its resolv.conf: the cluster's own DNS.
    pub nameserver: IpAddr,
    network: Network,
}

impl ClientPod {
    /// The running pod that has this address.
    pub fn new(cluster: &Cluster, address: IpAddr, nameserver: IpAddr) -> Self {
        let network = cluster.pod_network(address).unwrap();
        Self { cluster: cluster.clone(), address, nameserver, network }
    }

    /// Runs something in a thread of its own inside the pod's network, with a runtime of that thread alone: every socket
    /// that it makes is the pod's.
    pub fn start<T, F, W>(&self, work: W) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
        W: FnOnce() -> F + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        // The thread tells its end by the channel: nobody joins it.
        let thread = self.network.run(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            // Nobody listens any more where a test has failed meanwhile.
            let _ = done.send(runtime.block_on(work()));
        });
        thread.unwrap();
        result
    }

    /// Runs something inside the pod's network and waits for it.
    pub async fn run<T, F, W>(&self, work: W) -> T
    where
        T: Send + 'static,
        F: Future<Output = T>,
        W: FnOnce() -> F + Send + 'static,
    {
        self.start(work).await.expect("a thread in a pod's network has ended with an error")
    }

    /// The records of a name, once.
    pub async fn look_up(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, Trouble> {
        let (server, name) = (self.nameserver, name.to_owned());
        self.run(move || async move { ask::look_up(server, &name, kind).await }).await
    }

    /// The addresses of a name, once.
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Trouble> {
        let (server, name) = (self.nameserver, name.to_owned());
        self.run(move || async move { ask::addresses(server, &name, RecordType::A).await }).await
    }

    /// One look-up and one connection to the address that it gave: the pod that answers.
    pub async fn reach(&self, name: &str, port: u16) -> Result<String, Trouble> {
        let (server, name) = (self.nameserver, name.to_owned());
        self.run(move || async move {
            let addresses = ask::addresses(server, &name, RecordType::A).await?;
            ask::connect((addresses[0], port).into(), PATIENCE).await.said
        })
        .await
    }

    /// The same, a number of times one after the other.
    pub async fn reach_often(&self, name: &str, port: u16, times: usize) -> Vec<Result<String, Trouble>> {
        let (server, name) = (self.nameserver, name.to_owned());
        self.run(move || async move {
            let mut said = Vec::with_capacity(times);
            for _ in 0..times {
                said.push(match ask::addresses(server, &name, RecordType::A).await {
                    Ok(addresses) => ask::connect((addresses[0], port).into(), PATIENCE).await.said,
                    Err(trouble) => Err(trouble),
                });
            }
            said
        })
        .await
    }

    /// One connection to an address that is known.
    pub async fn connect(&self, address: IpAddr, port: u16, patience: Duration) -> Connection {
        self.run(move || async move { ask::connect((address, port).into(), patience).await }).await
    }

    /// Connects to a server that echoes and exchanges a byte every 50 ms, on the same connection, until it breaks or
    /// `stop` comes.
    pub fn hold(&self, name: &str, port: u16) -> Held {
        let (stop, mut stopped) = oneshot::channel::<()>();
        let (server, name) = (self.nameserver, name.to_owned());
        let result = self.start(move || async move {
            let mut exchanges = 0;
            let addresses = match ask::addresses(server, &name, RecordType::A).await {
                Ok(addresses) => addresses,
                Err(trouble) => return (exchanges, Some(trouble.to_string())),
            };
            let mut stream = match tokio::net::TcpStream::connect((addresses[0], port)).await {
                Ok(stream) => stream,
                Err(e) => return (exchanges, Some(e.to_string())),
            };
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = &mut stopped => return (exchanges, None),
                }
                let mut echo = [0; 1];
                let exchange = async {
                    stream.write_all(b"x").await?;
                    stream.read_exact(&mut echo).await
                };
                match tokio::time::timeout(PATIENCE, exchange).await {
                    Ok(Ok(_)) => exchanges += 1,
                    Ok(Err(e)) => return (exchanges, Some(e.to_string())),
                    Err(_) => return (exchanges, Some(format!("no echo within {PATIENCE:?}"))),
                }
            }
        });
        Held { stop, result }
    }
}

/// A connection that is held open.
pub struct Held {
    stop: oneshot::Sender<()>,
    result: oneshot::Receiver<(usize, Option<String>)>,
}

impl Held {
    /// Closes it: how many bytes went there and back, and why it broke, if it did.
    pub async fn close(self) -> (usize, Option<String>) {
        let _ = self.stop.send(());
        self.result.await.expect("the thread of a connection has ended with an error")
    }
}
