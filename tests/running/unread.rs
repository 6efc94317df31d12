//! Logs that nobody reads: whoever collects them has ended, or hangs with its pipe full. Neither is a reason to end,
//! to stop answering, to miss a change, or to ignore a signal.

use std::io::{PipeReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testbed::{Bed, http};

use crate::api::{folder, replace, until};
use crate::asking::{A, NOERROR, ask, query, receive_tcp, send_tcp, tcp, udp};
use crate::changes::{ODD, WEB};
use crate::product::{PATIENCE, binary};

/// A program whose output goes into pipes of the test; killed at the end.
struct Unread {
    bed: Bed,
    child: Child,
    dns: SocketAddr,
    admin: SocketAddr,
    /// Standard output and standard error, while somebody may read them.
    pipes: Option<(PipeReader, PipeReader)>,
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Unread {
    fn start(args: &[&str]) -> Self {
        let bed = Bed::new().unwrap();
        let objects = folder(&bed, &[("web.yaml", WEB)]);
        let [dns, admin] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap())));
        let ((out_reader, out), (err_reader, err)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let child = Command::new(binary())
            .args(["dns", "--from", &objects])
            .args([format!("--listen={dns}"), format!("--admin={admin}")])
            .args(args)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap();
        Self { bed, child, dns, admin, pipes: Some((out_reader, err_reader)) }
    }

    fn lives(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
    }

    async fn get(&self, path: &str) -> (u16, String) {
        http::get(self.admin, path, PATIENCE).await.unwrap_or_default()
    }

    async fn ready(&mut self) {
        until("it is ready, or has ended", async || {
            self.get("/ready").await.0 == 200 || self.child.try_wait().unwrap().is_some()
        })
        .await;
        self.lives();
    }

    /// Both transports, the admin routes, and an edit that has to be logged.
    async fn works(&mut self, round: u8) {
        let socket = udp(self.dns);
        for id in 0..50 {
            assert_eq!(ask(&socket, id, "nope.shop.svc", A).rcode, 3, "UDP");
        }
        let mut stream = tcp(self.dns);
        for id in 0..50 {
            send_tcp(&mut stream, &query(id, "nope.shop.svc", A)).unwrap();
            receive_tcp(&mut stream).expect("a reply over TCP");
        }
        for path in ["/health", "/ready", "/metrics"] {
            assert_eq!(self.get(path).await.0, 200, "{path}");
        }
        // An error, the end of it, and a part that is left out: each is a line, each from another place.
        replace(&self.bed, "web.yaml", "{");
        until("the broken edit is seen", async || {
            self.get("/metrics").await.1.contains("namesake_watch_up{resource=\"serviceimports\"} 0")
        })
        .await;
        let odd =
            ODD.replace("10.96.7.8", &format!("10.96.7.{round}")).replace("name: odd", &format!("name: odd-{round}"));
        replace(&self.bed, "web.yaml", &odd);
        let name = format!("odd-{round}.shop.svc");
        until("the good edit is served", async || ask(&socket, 99, &name, A).answers == 1).await;
        self.lives();
    }

    async fn ends(&mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        until("it ends", async || self.child.try_wait().unwrap().is_some()).await;
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// `namesake dns | head -1`, and no stderr either.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_is_gone_stops_nothing() {
    for args in [&["--query-log"][..], &["--log-format=json"]] {
        let mut program = Unread::start(args);
        program.pipes = None;
        program.ready().await;
        for round in 1..=3 {
            program.works(round).await;
        }
        program.ends().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_hangs_stops_nothing() {
    for args in [&["--query-log"][..], &["--log-level=trace", "--log-format=json"]] {
        let mut program = Unread::start(args);
        program.ready().await;
        // A pipe holds 64 KiB: some 600 lines of queries, and as much again at each other level.
        let socket = udp(program.dns);
        for id in 0..5000 {
            assert_eq!(ask(&socket, id, "web.shop.svc", A).rcode, NOERROR, "UDP");
        }
        for round in 1..=3 {
            program.works(round).await;
        }
        program.ends().await;
        let (mut out, _) = program.pipes.take().unwrap();
        let mut log = String::new();
        out.read_to_string(&mut log).unwrap();
        assert!(log.contains("DNS on "), "{log}");
    }
}
