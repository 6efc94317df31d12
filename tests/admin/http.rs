//! A small HTTP client, and admin routes to ask.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namesake::admin::{Admin, AdminConfig, AdminParts, AdminState};
use namesake::metrics::{Metrics, State};
use namesake::source::Health;
use namesake::systemd::Notifier;

/// No request of these tests takes as long.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request line and reads the answer to its end.
pub(crate) fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    parse(&text)
}

pub(crate) fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "the length is known: {head}");
    Answer { code, head: head.to_owned(), body: body.to_owned() }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path)
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A text with ages as if no time had passed since `began`. An age of more than that is wrong, and stays.
pub(crate) fn ages_from(began: Instant, text: &str) -> String {
    let most = began.elapsed().as_secs();
    let mut parts: Vec<String> = text.split(" s ago").map(str::to_owned).collect();
    let end = parts.len() - 1;
    for part in &mut parts[..end] {
        let digits = part.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if part[digits..].parse::<u64>().is_ok_and(|age| age <= most) {
            part.replace_range(digits.., "0");
        }
    }
    parts.join(" s ago")
}

/// Admin routes, and what they look at.
pub(crate) struct Bed {
    pub(crate) admin: Admin,
    pub(crate) health: Arc<Health>,
    pub(crate) state: Arc<AdminState>,
    pub(crate) metrics: Arc<Metrics>,
}

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// All parts at one free port.
pub(crate) fn one() -> AdminConfig {
    AdminConfig::one(loopback())
}

/// What the routes of a server with slices look at.
pub(crate) fn parts() -> AdminParts {
    AdminParts {
        plugin: "multicluster",
        health: Arc::new(Health::new(true)),
        state: Arc::new(AdminState::new()),
        metrics: Arc::new(Metrics::new(&["clusterset.local".to_owned()], "multicluster")),
        counts: Arc::new(|| State { endpoints: 3, ..State::default() }),
        explain: None,
        notifier: Notifier::default(),
    }
}

impl Bed {
    pub(crate) fn start(config: &AdminConfig, parts: AdminParts) -> Self {
        let (health, state, metrics) = (parts.health.clone(), parts.state.clone(), parts.metrics.clone());
        Self { admin: Admin::start(config, parts).unwrap(), health, state, metrics }
    }

    pub(crate) fn new() -> Self {
        Self::start(&one(), parts())
    }

    /// The one address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.admin.addresses().ready.unwrap()
    }
}
