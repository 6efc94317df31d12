//! `dns.md` 2.6: our server over real sockets behind a real CoreDNS with `forward`, and with `cache` where it matters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use namesake::answers::{Options, Store};
use namesake::dns::{Bound, QueryLog, QueryRecord, Running, ServerConfig, TcpLimits, Transport};
use namesake::metrics::Metrics;
use support::*;
use testbed::{Bed, CoreDns, Dig, dig};

/// How long something may take that takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);

const WEB: &str = "web.shop.svc.clusterset.local.";
const DB: &str = "db.shop.svc.clusterset.local.";

/// A query as it reached us.
#[derive(Clone)]
struct Seen {
    peer: SocketAddr,
    transport: Transport,
    query: Vec<u8>,
    reply: Vec<u8>,
}

impl Seen {
    fn name(&self) -> String {
        let message = hickory_proto::op::Message::from_vec(&self.query).unwrap();
        message.queries[0].name().to_ascii().to_lowercase()
    }

    fn edns(&self) -> Option<hickory_proto::op::Edns> {
        hickory_proto::op::Message::from_vec(&self.query).unwrap().edns
    }
}

#[derive(Default)]
struct Notebook(Mutex<Vec<Seen>>);

impl QueryLog for Notebook {
    fn record(&self, record: &QueryRecord<'_>) {
        let seen = Seen {
            peer: record.peer,
            transport: record.transport,
            query: record.query.to_vec(),
            reply: record.reply.to_vec(),
        };
        self.0.lock().unwrap().push(seen);
    }
}

/// Our server, and what it was asked.
struct Server {
    running: Running,
    address: SocketAddr,
    notebook: Arc<Notebook>,
    bed: Bed,
}

impl Server {
    fn start(store: &Arc<Store>) -> Self {
        let bed = Bed::new().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], bed.port().unwrap()));
        let notebook = Arc::default();
        Self { running: serve(store, address, &notebook), address, notebook, bed }
    }

    fn of(manifests: &str) -> Self {
        Self::start(&zone(manifests).store)
    }

    async fn coredns(&self, more: &str) -> CoreDns {
        let corefile = format!(
            "clusterset.local:{{port}} {{\n bind 127.0.0.1\n errors\n {more}\n forward . {}\n}}\n",
            self.address
        );
        CoreDns::start_in(&self.bed, &corefile).await.unwrap()
    }

    /// What reached us for a name, in order.
    fn seen(&self, name: &str) -> Vec<Seen> {
        self.notebook.0.lock().unwrap().iter().filter(|seen| seen.name() == name).cloned().collect()
    }
}

fn serve(store: &Arc<Store>, address: SocketAddr, notebook: &Arc<Notebook>) -> Running {
    let metrics = Metrics::new(&["clusterset.local".to_owned()], "multicluster");
    let log: Arc<dyn QueryLog> = Arc::clone(notebook) as Arc<dyn QueryLog>;
    Bound::bind(&ServerConfig::new(vec![address])).unwrap().serve(store, &metrics, Some(&log)).unwrap()
}

fn ask(coredns: &CoreDns, args: &str) -> Dig {
    let args: Vec<_> = args.split_whitespace().collect();
    dig(coredns.address(), &args).unwrap()
}

/// A headless import of so many endpoints.
fn many(count: usize) -> String {
    let endpoints: Vec<_> = (0..count).map(|i| format!("10.1.{}.{}", i / 250, i % 250 + 1)).collect();
    let slices: Vec<_> =
        endpoints.chunks(100).map(|part| part.iter().map(String::as_str).collect::<Vec<_>>()).collect();
    let slices = slices.iter().enumerate();
    let slices: String = slices.map(|(i, part)| slice(&format!("shop/db#{i}"), "east", &["pg/5432"], part)).collect();
    headless("shop/db", &["pg/5432"]) + &slices
}

/// Sends queries all at once from one socket; the replies by id, those that came within [`PATIENCE`].
fn at_once(server: SocketAddr, asks: &[Ask]) -> Vec<Option<Message>> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    for (id, ask) in asks.iter().enumerate() {
        socket.send(&ask.clone().id(u16::try_from(id).unwrap()).wire()).unwrap();
    }
    let mut replies = vec![None; asks.len()];
    let mut buffer = vec![0; 65535];
    while replies.iter().any(Option::is_none) {
        let Ok(len) = socket.recv(&mut buffer) else { break };
        let message = Message::read(&buffer[..len]);
        let id = usize::from(message.id);
        replies[id] = Some(message);
    }
    replies
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f1_every_well_formed_query_is_answered() {
    let server = Server::of(&(F1.to_owned() + F2));
    let coredns = server.coredns("").await;
    let names = [
        "",
        "web.shop.svc",
        "_http._tcp.web.shop.svc",
        "db.shop.svc",
        "db-0.east.db.shop.svc",
        "east.db.shop.svc",
        "nope.shop.svc",
        "_tcp.db.shop.svc",
        "shop.svc",
        "svc",
        "dns-version",
        "ns.dns",
        "*.shop.svc",
        "a.b.c.d.e.f.g",
    ];
    for edns in [None, Some(Edns::size(512)), Some(Edns::size(4096).dnssec_ok())] {
        for name in names {
            let name = labels(&if name.is_empty() {
                "clusterset.local".to_owned()
            } else {
                format!("{name}.clusterset.local")
            });
            let asks = DATA_TYPES.map(|qtype| Ask { edns: edns.clone(), ..Ask::labels(name.clone(), qtype) });
            for (ask, reply) in asks.iter().zip(at_once(coredns.address(), &asks)) {
                let reply = reply.unwrap_or_else(|| panic!("no reply to {ask:?}"));
                assert!([NOERROR, NXDOMAIN].contains(&reply.rcode()), "{ask:?}\n{reply}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f1_a_server_that_has_stopped_is_closed_and_not_silent() {
    let server = Server::of(F1);
    let coredns = server.coredns("").await;
    assert_eq!(ask(&coredns, &format!("{WEB} A")).status, "NOERROR");
    server.running.drain(Duration::from_secs(5)).await;
    // Silence would be `i/o timeout`.
    until("CoreDNS is refused", || {
        assert_eq!(ask(&coredns, &format!("{WEB} A")).status, "SERVFAIL");
        coredns.log().unwrap().contains("connection refused")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f2_the_health_check_is_answered_and_a_server_that_is_back_is_used() {
    let store = zone(F1).store;
    let mut server = Server::start(&store);
    let coredns = server.coredns("").await;
    server.running.drain(Duration::from_secs(5)).await;
    for _ in 0..3 {
        assert_eq!(ask(&coredns, &format!("{WEB} A")).status, "SERVFAIL");
    }
    server.running = serve(&store, server.address, &server.notebook);
    until("CoreDNS asks again", || ask(&coredns, &format!("{WEB} A")).data("A") == ["10.96.7.7"]).await;
    until("a health check", || !server.notebook.0.lock().unwrap().iter().all(|seen| seen.name() != ".")).await;
    let check = server.seen(".")[0].clone();
    assert!(check.edns().is_none() && check.transport == Transport::Udp);
    let reply = Message::read(&check.reply);
    assert!(reply.rcode() == REFUSED && reply.opt.is_none(), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f3_cache_keeps_answers_for_5_seconds_at_least_and_negatives_have_a_soa_to_keep() {
    let store = zone_with(options(|o| (o.ttl, o.negttl) = (1, 0)), F1).store;
    let server = Server::start(&store);
    let coredns = server.coredns("cache 30").await;
    for (name, kind, status) in
        [(WEB, "A", "NOERROR"), (WEB, "AAAA", "NOERROR"), ("nope.shop.svc.clusterset.local.", "A", "NXDOMAIN")]
    {
        let began = Instant::now();
        let first = ask(&coredns, &format!("{name} {kind}"));
        assert_eq!(first.status, status, "{}", first.text);
        let before = server.seen(name).len();
        let second = ask(&coredns, &format!("{name} {kind}"));
        let lives = if kind == "A" && status == "NOERROR" { &second.answer } else { &second.authority };
        assert!(lives.len() == 1 && lives[0].ttl <= 5, "{}", second.text);
        // Later it may be another one, or have little time left.
        if began.elapsed() < Duration::from_secs(3) {
            assert_eq!(server.seen(name).len(), before, "the second {name} {kind} came out of the cache");
            assert!(lives[0].ttl > 1, "{}", second.text);
        }
    }
    assert_eq!(ask(&coredns, "dns-version.clusterset.local. TXT").answer[0].ttl, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f4_servfail_until_synced_is_bare_and_does_not_stay() {
    let mut live = Live::unsynced(Options::default());
    let server = Server::start(&live.zone.store);
    let (plain, cached) = (server.coredns("").await, server.coredns("cache 30").await);
    for coredns in [&plain, &cached] {
        let dig = ask(coredns, &format!("+noedns {WEB} A"));
        assert_eq!(dig.status, "SERVFAIL", "{}", dig.text);
        assert!(dig.answer.is_empty() && dig.authority.is_empty() && dig.additional.is_empty(), "{}", dig.text);
    }
    live.resync(F1);
    assert_eq!(ask(&plain, &format!("{WEB} A")).data("A"), ["10.96.7.7"]);
    until("the cache forgets SERVFAIL", || ask(&cached, &format!("+noedns {WEB} A")).data("A") == ["10.96.7.7"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f5_a_partial_answer_is_a_random_part_and_tcp_has_all() {
    let server = Server::of(&many(500));
    let coredns = server.coredns("").await;
    let mut addresses = BTreeSet::new();
    for _ in 0..30 {
        let dig = ask(&coredns, &format!("+ignore +bufsize=1232 {DB} A"));
        assert!(dig.has("tc") && dig.answer.len() > 60, "{} records, {:?}", dig.answer.len(), dig.flags);
        addresses.extend(dig.answer.into_iter().map(|r| r.data));
    }
    assert!(addresses.len() > 400, "30 partial answers show only {} of 500 addresses", addresses.len());
    let whole = ask(&coredns, &format!("+tcp {DB} A"));
    assert!(whole.tcp && !whole.has("tc"), "{}", whole.text);
    assert_eq!(whole.data("A").len(), 500);
    assert!(server.seen(DB).last().is_some_and(|seen| seen.transport == Transport::Tcp));
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f5_an_answer_cached_over_tcp_is_cut_for_udp() {
    let server = Server::of(&many(500));
    let coredns = server.coredns("cache 30").await;
    assert_eq!(ask(&coredns, &format!("+tcp {DB} A")).data("A").len(), 500);
    let dig = ask(&coredns, &format!("+ignore {DB} A"));
    assert!(dig.has("tc") && !dig.answer.is_empty(), "{}", dig.text);
    // Not kept is what was cut: without the one over TCP each UDP query comes to us.
    let coredns = server.coredns("cache 30").await;
    let before = server.seen(DB).len();
    for _ in 0..3 {
        assert!(ask(&coredns, &format!("+ignore {DB} A")).has("tc"));
    }
    // More, should CoreDNS have lost patience and asked again.
    assert!(server.seen(DB).len() >= before + 3, "{} came to us", server.seen(DB).len() - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f6_no_answer_is_larger_than_the_query_allows() {
    let server = Server::of(&many(500));
    for cache in ["", "cache 30"] {
        let coredns = server.coredns(cache).await;
        for (flags, least) in [("+noedns", 27), ("+bufsize=512", 26), ("+bufsize=1232", 70)] {
            for (name, kind, least) in [(DB, "A", least), ("_pg._tcp.db.shop.svc.clusterset.local.", "SRV", least / 7)]
            {
                // CoreDNS would have thrown an answer away that is too large, and sent an empty one.
                let dig = ask(&coredns, &format!("+ignore {flags} {name} {kind}"));
                assert!(dig.has("tc") && dig.answer.len() >= least, "{cache} {flags} {kind}: {}", dig.text);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f7_the_opt_reaches_us_as_it_is_and_nobody_gets_one_who_did_not_ask() {
    let store = zone(F1).store;
    let server = Server::start(&store);
    let coredns = server.coredns("").await;
    let dig = ask(&coredns, &format!("+noedns {WEB} A"));
    assert!(dig.edns.is_none() && server.seen(WEB)[0].edns().is_none(), "{}", dig.text);
    let options = "+bufsize=1400 +dnssec +cdflag +cookie=0123456789abcdef +subnet=192.0.2.0/24";
    let dig = ask(&coredns, &format!("{options} {WEB} A"));
    assert_eq!(dig.data("A"), ["10.96.7.7"]);
    let seen = server.seen(WEB).pop().unwrap();
    let (edns, flags) = (seen.edns().expect("the client's OPT"), seen.query[3]);
    assert!(edns.max_payload() == 1400 && edns.flags().dnssec_ok && flags & 0x10 != 0, "{edns:?}, flags {flags:02x}");
    assert_eq!(edns.options().as_ref().len(), 2, "cookie and subnet: {edns:?}");
    assert!(!dig.text.contains("COOKIE"), "no server cookie, none of the client's own: {}", dig.text);
    // The reason why reaches the client, but not through `cache`.
    store.set_stale(true);
    let errors =
        |dig: &Dig| dig.edns.as_ref().map(|edns| edns.errors.iter().map(|(code, _)| *code).collect::<Vec<_>>());
    assert_eq!(errors(&ask(&coredns, &format!("{WEB} A"))), Some(vec![STALE_ANSWER]));
    let cached = server.coredns("cache 30").await;
    let dig = ask(&cached, &format!("+noedns {WEB} A"));
    assert!(dig.edns.is_none() && dig.data("A") == ["10.96.7.7"], "{}", dig.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f8_a_forwarder_may_ask_as_much_as_it_likes() {
    let server = Server::of(&(F1.to_owned() + F2));
    let coredns = server.coredns("").await;
    for round in 0..20 {
        let asks: Vec<_> = (0..100).map(|i| Ask::new(&format!("n{round}-{i}.shop.svc.clusterset.local."), A)).collect();
        let replies = at_once(coredns.address(), &asks);
        assert!(replies.iter().flatten().filter(|reply| reply.rcode() == NXDOMAIN).count() == 100, "round {round}");
    }
    // One address speaks for all.
    let addresses: BTreeSet<_> = server.notebook.0.lock().unwrap().iter().map(|seen| seen.peer.ip()).collect();
    assert_eq!(addresses.len(), 1);
    // A connection is used again, and may rest for as long as `forward` keeps it.
    for _ in 0..5 {
        assert_eq!(ask(&coredns, &format!("+tcp {WEB} A")).data("A"), ["10.96.7.7"]);
    }
    let peers: BTreeSet<_> = server.seen(WEB).iter().map(|seen| seen.peer).collect();
    assert_eq!(peers.len(), 1, "one TCP connection for all: {peers:?}");
    assert!(TcpLimits::default().idle >= Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f9_each_client_gets_its_own_question_back() {
    let server = Server::of(F1);
    for cache in ["", "cache 30"] {
        let coredns = server.coredns(cache).await;
        for name in ["wEb.ShOp.SvC.cLuStErSeT.LoCaL.", "WEB.shop.svc.clusterset.LOCAL.", WEB] {
            let ask = Ask::new(name, A);
            let reply = at_once(coredns.address(), std::slice::from_ref(&ask)).remove(0).expect("a reply");
            assert_eq!(reply.question.as_deref(), Some(&*ask.question()), "{reply}");
            assert_eq!(reply.answers[0].data, "10.96.7.7");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_f10_notify_is_not_implemented() {
    let server = Server::of(F1);
    let coredns = server.coredns("").await;
    // A bare header: `forward` wants the question back and makes FORMERR of it. An error either way, and at once.
    let dig = ask(&coredns, "+noedns +opcode=NOTIFY clusterset.local. SOA");
    assert!(["NOTIMP", "FORMERR"].contains(&&*dig.status), "{}", dig.text);
    let seen = server.seen("clusterset.local.");
    assert_eq!(seen.len(), 1, "CoreDNS passed it on");
    assert_eq!(Message::read(&seen[0].reply).rcode(), NOTIMP);
}
