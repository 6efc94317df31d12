//! The query log: CoreDNS's lines byte for byte (`dns.md` 2.5), and what happens when nobody reads them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use namesake::answers::{Options, Store};
use namesake::dns::{LineFormat, LineLog, Outcome, QueryLog, QueryRecord, Transport, respond};
use namesake::metrics::{Metrics, State};

/// How long dropping a log waits for its last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// How long anything may take that takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// A writer whose text can be looked at, and that waits for a permission before each write where it has a gate.
#[derive(Clone, Default)]
struct Sink {
    text: Arc<Mutex<Vec<u8>>>,
    gate: Option<Arc<Mutex<Receiver<()>>>>,
}

impl Sink {
    fn gated() -> (Self, Sender<()>) {
        let (open, gate) = channel();
        (Self { gate: Some(Arc::new(Mutex::new(gate))), ..Self::default() }, open)
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(gate) = &self.gate {
            // Also the end of the other side is a permission.
            let _ = gate.lock().unwrap().recv();
        }
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new(&["clusterset.local".to_owned()], "multicluster"))
}

fn name(text: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        wire.push(label.len() as u8);
        wire.extend(label.bytes());
    }
    wire.push(0);
    wire
}

/// A query with RD, and an OPT of this size if there is one.
fn query(id: u16, owner: &[u8], qtype: u16, qclass: u16, bufsize: Option<u16>) -> Vec<u8> {
    let mut wire = id.to_be_bytes().to_vec();
    wire.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(bufsize.is_some())]);
    wire.extend(owner);
    wire.extend(qtype.to_be_bytes());
    wire.extend(qclass.to_be_bytes());
    if let Some(size) = bufsize {
        wire.extend([0, 0, 41]);
        wire.extend(size.to_be_bytes());
        wire.extend([0, 0, 0, 0, 0, 0]);
    }
    wire
}

/// The reply to `query` (without its OPT) with this rcode and these records, the flags QR, AA and RD.
fn reply(query: &[u8], rcode: u8, answers: u8, records: &[u8]) -> Vec<u8> {
    let mut wire = query[..2].to_vec();
    wire.extend([0x85, rcode, 0, 1, 0, answers, 0, 0, 0, 0]);
    let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    wire.extend(&query[12..end]);
    wire.extend(records);
    wire
}

/// Drops the log, which writes what waits: `count` lines in all. Where it came back before its time was up they are there
/// at once; a slow machine's writer goes on to the end after it.
fn ended(log: LineLog, sink: &Sink, count: usize) -> Vec<String> {
    let began = Instant::now();
    drop(log);
    while began.elapsed() >= LAST_LINES && sink.lines().len() < count {
        assert!(began.elapsed() < PATIENCE, "{} of {count} lines", sink.lines().len());
        std::thread::sleep(Duration::from_millis(5));
    }
    sink.lines()
}

/// What the log writes of one query.
fn line(format: LineFormat, peer: &str, transport: Transport, query: &[u8], reply: &[u8], nanos: u64) -> String {
    let sink = Sink::default();
    let log = LineLog::start(format, sink.clone(), metrics()).unwrap();
    let (peer, duration) = (peer.parse().unwrap(), Duration::from_nanos(nanos));
    log.record(&QueryRecord { peer, transport, query, reply, duration });
    let lines = ended(log, &sink, 1);
    assert_eq!(lines.len(), 1, "dropping the log writes what waits: {lines:?}");
    lines.into_iter().next().unwrap()
}

const A_RECORD: &[u8] = &[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 1, 0, 5];

#[test]
fn dns_2_5_the_positive_sample_line_byte_for_byte() {
    let query = query(51_234, &name("Hello.demo.svc.clusterset.local"), 1, 1, Some(1_232));
    let mut reply = reply(&query, 0, 1, A_RECORD);
    reply[11] = 1;
    reply.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        line(LineFormat::Text, "10.244.0.7:41254", Transport::Udp, &query, &reply, 213_417),
        r#"[INFO] 10.244.0.7:41254 - 51234 "A IN hello.demo.svc.clusterset.local. udp 60 false 1232" NOERROR qr,aa,rd 96 0.000213417s"#
    );
}

#[test]
fn dns_2_5_the_negative_sample_line_byte_for_byte_from_our_own_answer() {
    let store = Store::new(Options::default());
    store.set_synced();
    let query = query(29_008, &name("nope.demo.svc.clusterset.local"), 28, 1, None);
    let mut out = [0; 1_232];
    let outcome = respond(&store, &query, Transport::Udp, &mut out, &mut fastrand::Rng::with_seed(1));
    let Outcome::Reply(reply) = outcome else { panic!("no reply") };
    assert_eq!(
        line(LineFormat::Text, "[fd00::7]:50759", Transport::Udp, &query, &out[..reply.len], 101_000),
        r#"[INFO] [fd00::7]:50759 - 29008 "AAAA IN nope.demo.svc.clusterset.local. udp 48 false 512" NXDOMAIN qr,aa,rd 150 0.000101s"#
    );
}

#[test]
fn dns_2_5_tcp_has_the_largest_bufsize_and_do_and_extended_rcodes_show() {
    let mut query = query(1, &name("a.example"), 33, 1, Some(4_096));
    let flags = query.len() - 4;
    query[flags] = 0x80;
    let mut reply = reply(&query, 0, 0, &[]);
    reply[11] = 1;
    reply.extend([0, 0, 41, 4, 208, 1, 0, 0x80, 0, 0, 0]);
    assert_eq!(
        line(LineFormat::Text, "[::ffff:10.0.0.9]:53000", Transport::Tcp, &query, &reply, 2_000_000_000),
        r#"[INFO] 10.0.0.9:53000 - 1 "SRV IN a.example. tcp 38 true 65535" BADVERS qr,aa,rd 27 2s"#
    );
    // A size below 512 means 512 (RFC 6891 §6.2.3).
    let small = self::query(2, &name("a.example"), 33, 1, Some(100));
    let text = line(LineFormat::Text, "10.0.0.9:1", Transport::Udp, &small, &reply, 5);
    assert!(text.contains("udp 38 false 512\"") && text.ends_with(" 0.000000005s"), "{text}");
}

#[test]
fn dns_2_5_names_are_escaped_and_types_and_classes_without_a_name_are_numbers() {
    let mut owner = vec![9];
    owner.extend(b"A.b \"\\\n\xff~");
    owner.push(0);
    for (qtype, qclass, words) in
        [(65_280, 255, "TYPE65280 CLASS255"), (0, 3, "None CH"), (255, 254, "ANY NONE"), (65, 1, "HTTPS IN")]
    {
        let query = query(7, &owner, qtype, qclass, None);
        let text = line(LineFormat::Text, "10.0.0.9:1", Transport::Udp, &query, &reply(&query, 5, 0, &[]), 1);
        let expected = format!(r#" - 7 "{words} a\.b\ \"\\\010\255~. udp 27 false 512" REFUSED qr,aa,rd 27 "#);
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn dns_2_5_all_flags_in_corednss_order_and_a_dash_where_nothing_is() {
    let query = query(7, &name(""), 2, 1, None);
    let mut all = reply(&query, 0, 0, &[]);
    (all[2], all[3]) = (0x87, 0xF3);
    let text = line(LineFormat::Text, "10.0.0.9:1", Transport::Udp, &query, &all, 1);
    assert!(text.contains(r#""NS IN . udp 17 false 512" NXDOMAIN qr,aa,tc,rd,ra,z,ad,cd 17 "#), "{text}");
    let header = [0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let text = line(LineFormat::Text, "10.0.0.9:1", Transport::Udp, &header, &[0; 12], 1);
    assert!(text.contains(r#" - 9 "- - . udp 12 false 512" NOERROR - 12 "#), "{text}");
}

#[test]
fn dns_2_5_json_has_the_keys_of_1_15_and_the_line_as_msg() {
    let query = query(51_234, &name("hello.demo.svc.clusterset.local"), 1, 1, Some(1_232));
    let reply = reply(&query, 0, 1, A_RECORD);
    let text = line(LineFormat::Json, "10.244.0.7:41254", Transport::Udp, &query, &reply, 213_417);
    let keys = "time level msg plugin client_ip client_port qname qtype qclass protocol id opcode request_size \
                dnssec_ok bufsize rcode response_size duration_seconds";
    let places: Vec<usize> = keys.split_whitespace().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_object().unwrap().len(), keys.split_whitespace().count());
    assert_eq!(
        value["msg"],
        r#"10.244.0.7:41254 - 51234 "A IN hello.demo.svc.clusterset.local. udp 60 false 1232" NOERROR qr,aa,rd 96 0.000213417s"#
    );
    assert_eq!(value["client_port"], 41_254);
    assert_eq!(value["duration_seconds"], 0.000_213_417);
    assert_eq!(value["dnssec_ok"], false);
}

#[test]
fn random_bytes_never_panic_and_never_break_a_line() {
    let sink = Sink::default();
    let metrics = metrics();
    let log = LineLog::start(LineFormat::Text, sink.clone(), Arc::clone(&metrics)).unwrap();
    let mut rng = fastrand::Rng::with_seed(9);
    let peer: SocketAddr = "10.0.0.9:1".parse().unwrap();
    let (duration, transport) = (Duration::from_nanos(1), Transport::Udp);
    let count = 20_000;
    for _ in 0..count {
        let mut bytes = |most| {
            let length = rng.usize(..most);
            std::iter::repeat_with(|| rng.u8(..)).take(length).collect::<Vec<u8>>()
        };
        let (mut query, mut reply) = (bytes(80), bytes(160));
        // Few records, so that parsing gets somewhere.
        for message in [&mut query, &mut reply] {
            for (at, byte) in message.iter_mut().enumerate().take(12).skip(4) {
                *byte = if at % 2 == 0 { 0 } else { *byte % 3 };
            }
        }
        log.record(&QueryRecord { peer, transport, query: &query, reply: &reply, duration });
    }
    let lost = dropped(&metrics);
    let lines = ended(log, &sink, count - lost);
    assert_eq!(lines.len() + lost, count);
    assert!(lines.len() > 1_000, "{}", lines.len());
    assert!(lines.iter().all(|line| line.starts_with("[INFO] 10.0.0.9:1 - ") && line.ends_with('s')));
}

fn dropped(metrics: &Metrics) -> usize {
    let text = metrics.render(State::default()).unwrap();
    let line = text.lines().find(|line| line.starts_with("namesake_query_log_dropped_total ")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_full_queue_drops_and_counts_and_never_waits() {
    let (sink, open) = Sink::gated();
    let metrics = metrics();
    let log = LineLog::start(LineFormat::Text, sink.clone(), Arc::clone(&metrics)).unwrap();
    let query = query(1, &name("hello.demo.svc.clusterset.local"), 1, 1, None);
    let reply = reply(&query, 0, 1, A_RECORD);
    let record = QueryRecord {
        peer: "10.0.0.9:1".parse().unwrap(),
        transport: Transport::Udp,
        query: &query,
        reply: &reply,
        duration: Duration::from_nanos(1),
    };
    // The writer holds one batch at the gate, and the queue fills up behind it. Nothing opens the gate meanwhile, so
    // a record() that waited would wait for ever.
    let count = 20_000;
    for _ in 0..count {
        log.record(&record);
    }
    let lost = dropped(&metrics);
    assert!(lost >= count - 2 * 4_096, "{lost}");
    drop(open);
    assert_eq!(ended(log, &sink, count - lost).len() + lost, count, "every query is a line or counted as lost");
}

#[test]
fn a_reader_that_hangs_does_not_keep_the_process_from_ending() {
    let (sink, open) = Sink::gated();
    let log = LineLog::start(LineFormat::Text, sink.clone(), metrics()).unwrap();
    let (peer, duration) = ("10.0.0.9:1".parse().unwrap(), Duration::from_nanos(1));
    log.record(&QueryRecord { peer, transport: Transport::Udp, query: &[0; 12], reply: &[0; 12], duration });
    // Returns although nothing opens the gate.
    drop(log);
    assert!(sink.lines().is_empty());
    drop(open);
}

#[test]
fn many_threads_lose_nothing_that_is_not_counted_and_a_sleeping_writer_is_woken() {
    let sink = Sink::default();
    let metrics = metrics();
    let log = LineLog::start(LineFormat::Text, sink.clone(), Arc::clone(&metrics)).unwrap();
    let query = query(1, &name("hello.demo.svc.clusterset.local"), 1, 1, None);
    let reply = reply(&query, 0, 1, A_RECORD);
    let record = |port| {
        log.record(&QueryRecord {
            peer: SocketAddr::from(([10, 0, 0, 9], port)),
            transport: Transport::Udp,
            query: &query,
            reply: &reply,
            duration: Duration::from_nanos(1),
        });
    };
    // One by one: each must come out without another one behind it, whether the writer looks again by itself (it
    // does for 20 ms) or sleeps, which nobody can see from outside.
    for port in 1..=20 {
        std::thread::sleep(Duration::from_millis(u64::from(port % 4) * 20));
        record(port);
        let deadline = Instant::now() + PATIENCE;
        // A writer that stands still with the queue in its hands has it count as full.
        while sink.lines().len() + dropped(&metrics) < usize::from(port) {
            assert!(Instant::now() < deadline, "line {port} never came");
            std::thread::yield_now();
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let record = &record;
            scope.spawn(move || (0..5_000).for_each(|_| record(thread + 100)));
        }
    });
    let (all, lost) = (20 + 8 * 5_000, dropped(&metrics));
    assert_eq!(ended(log, &sink, all - lost).len() + lost, all);
}
