//! The whole set is listed again while queries stream in, and none gets a false negative.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::objects::{headless, import, slice};
use super::rig::{PATIENCE, Rig, until};

/// How many services of each kind there are.
const SERVICES: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn main_job_dns_l10_l11_a_full_relist_gives_no_false_negative() {
    let rig = Rig::ready().await;
    let mut objects = String::new();
    for n in 0..SERVICES {
        objects += &import("v1beta1", &format!("web-{n}"), &format!("10.97.0.{n}"));
        objects += &headless("v1beta1", &format!("db-{n}"));
    }
    rig.cluster.apply(&objects).await.unwrap();
    let slices: String = (0..SERVICES)
        .map(|n| {
            let address = format!("10.98.0.{n}");
            slice(&format!("db-{n}-east"), &format!("db-{n}"), "east", &[("pod", &address, true)])
        })
        .collect();
    rig.cluster.apply(&slices).await.unwrap();
    for n in 0..SERVICES {
        rig.until(&format!("web-{n}.demo.svc"), "A", &[&format!("10.97.0.{n}")]).await;
        rig.until(&format!("db-{n}.demo.svc"), "A", &[&format!("10.98.0.{n}")]).await;
    }

    let stream = Stream::start(&[rig.dns, rig.dns, rig.coredns.address()]);
    until(PATIENCE, "the stream runs", async || stream.asked() > 1000).await;
    for round in 1..=3 {
        let before = rig.cluster.audit().unwrap();
        // The version that the watches stand at is forgotten by etcd and by the API server: they get 410.
        let other =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: other}}, data: {{round: \"{round}\"}}}}");
        rig.cluster.apply(&other).await.unwrap();
        rig.cluster.compact().await.unwrap();
        rig.cluster.kill_api().unwrap();
        rig.cluster.start_api().await.unwrap();
        for resource in ["serviceimports", "endpointslices"] {
            until(PATIENCE, &format!("{resource} are listed again"), async || {
                let audit = rig.cluster.audit().unwrap().since(&before);
                audit.service_account("namesake", "namesake-dns").verb("list").resource(resource).count() > 0
            })
            .await;
        }
        // And the list was taken in: what is applied now comes by the watch that follows it.
        let (name, ip) = (format!("after-{round}"), format!("10.99.0.{round}"));
        rig.cluster.apply(&import("v1beta1", &name, &ip)).await.unwrap();
        rig.until(&format!("{name}.demo.svc"), "A", &[&ip]).await;
    }
    let asked = stream.end();
    println!("{asked} queries during three full relists, each answered");
    assert!(asked > 5_000, "{asked}");
}

/// Queries for names that exist, one after another from each of a few threads.
struct Stream {
    over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    threads: Vec<std::thread::JoinHandle<Result<(), String>>>,
}

impl Stream {
    fn start(servers: &[SocketAddr]) -> Stream {
        let (over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads = servers
            .iter()
            .map(|server| {
                let (server, over, asked) = (*server, over.clone(), asked.clone());
                std::thread::spawn(move || {
                    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                    socket.connect(server).unwrap();
                    socket.set_read_timeout(Some(PATIENCE)).unwrap();
                    for n in (0..SERVICES).cycle() {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        for name in [format!("web-{n}.demo"), format!("db-{n}.demo"), format!("pod.east.db-{n}.demo")] {
                            ask(&socket, &name).map_err(|e| format!("{server}: {name}: {e}"))?;
                            asked.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        Stream { over, asked, threads }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Ends it; panics with the first query that was not answered as it should.
    fn end(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            if let Err(e) = thread.join().unwrap() {
                panic!("{e}");
            }
        }
        self.asked.load(Ordering::Relaxed)
    }
}

/// One query of type A. Written by hand: `dig` takes a process for each, and a stream must be fast.
fn ask(socket: &UdpSocket, name: &str) -> Result<(), String> {
    let mut query = vec![0x4d, 0x43, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').chain(["svc", "clusterset", "local", ""]) {
        query.push(label.len() as u8);
        query.extend(label.bytes());
    }
    query.extend([0, 1, 0, 1]);
    socket.send(&query).map_err(|e| e.to_string())?;
    let mut reply = [0; 512];
    let length = socket.recv(&mut reply).map_err(|e| format!("no answer ({e})"))?;
    let (rcode, answers) = (reply[3] & 15, u16::from_be_bytes([reply[6], reply[7]]));
    if length > 12 && rcode == 0 && answers == 1 { Ok(()) } else { Err(format!("rcode {rcode}, {answers} answers")) }
}
