//! A live CoreDNS: the oracle that answers are compared with, and the server that forwards to ours.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bed::Bed;
use crate::binaries::binaries;
use crate::dig::dig;
use crate::error::{Doing, Error, Result};
use crate::process::Process;

/// A running CoreDNS on a loopback port of its own. It ends when dropped.
pub struct CoreDns {
    process: Process,
    address: SocketAddr,
}

impl CoreDns {
    /// Starts CoreDNS with this Corefile, in which `{port}` stands for its port, in a bed of its own, and waits until
    /// it answers.
    ///
    /// ```text
    /// .:{port} {
    ///     bind 127.0.0.1
    ///     forward clusterset.local 127.0.0.1:1053
    /// }
    /// ```
    pub async fn start(corefile: &str) -> Result<CoreDns> {
        CoreDns::start_in(&Bed::new()?, corefile).await
    }

    /// As [`start`](CoreDns::start), in a bed that is there already.
    pub async fn start_in(bed: &Bed, corefile: &str) -> Result<CoreDns> {
        for attempt in 1.. {
            match CoreDns::start_once(bed, corefile).await {
                Err(e) if attempt < 4 && e.to_string().contains("address already in use") => {}
                other => return other,
            }
        }
        unreachable!("the loop above ends by returning")
    }

    async fn start_once(bed: &Bed, corefile: &str) -> Result<CoreDns> {
        if !corefile.contains("{port}") {
            return Err(Error::new("the Corefile for CoreDNS needs {port} where its port goes"));
        }
        let port = bed.port()?;
        let name = format!("coredns-{port}");
        let file = bed.file(&format!("{name}.corefile"), &corefile.replace("{port}", &port.to_string()))?;
        let process = bed.process(&name, binaries()?.join("coredns")).arg("-conf").arg(file).spawn()?;
        let server = CoreDns { process, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        server.wait_ready().await?;
        Ok(server)
    }

    async fn wait_ready(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            // Class CHAOS is answered by CoreDNS itself, whatever its plugins wait for or forward to.
            let address = self.address;
            let probe = move || dig(address, &["+time=1", "CH", "TXT", "version.bind"]);
            let answer = tokio::task::spawn_blocking(probe).await.doing("asking CoreDNS")?;
            if let Some(status) = self.process.exited()? {
                return Err(self.process.error(&format!("ended ({status}) while it was starting")));
            }
            match answer {
                Ok(_) => return Ok(()),
                Err(e) if Instant::now() > deadline => {
                    return Err(self.process.error(&format!("does not answer in time ({e})")));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Where it listens, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has logged.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }

    /// The process, for signals.
    pub fn process(&self) -> &Process {
        &self.process
    }
}
