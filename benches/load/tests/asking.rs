//! The load against servers that behave and servers that do not: what it counts is what happened.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use load::echo::Bound;
use load::hickory::{self, Zone};
use load::query::{A, Asked, Kind, Mix, Pool, packet};
use load::set::Set;
use load::tally::Tally;
use load::udp::{Options, Pace};
use load::{servers, tcp, udp};

/// How many are asked, several times what is under way at once: a number of queries and no span, in which a busy machine may
/// get nothing done.
const MANY: u64 = 1_000;

/// For an answer that comes: longer than any machine stalls.
const PATIENCE: Duration = Duration::from_secs(60);

fn pool() -> Pool {
    Pool::new(Asked { set: Set::of(100), mix: Mix::Mix, edns: true, skew: false }, 1_000)
}

/// An echo of both families.
fn echo() -> [SocketAddr; 2] {
    let bound = Bound::bind(&[(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()]).unwrap();
    let addresses = bound.addresses();
    thread::spawn(|| bound.serve());
    [addresses[0], addresses[1]]
}

fn options(pace: Pace) -> Options {
    Options { clients: 4, pace, strict: false, patience: PATIENCE }
}

fn over_udp(server: SocketAddr, options: Options) -> Tally {
    let pool = pool();
    udp::Client::new(server, &pool, options).unwrap().run_queries(MANY).unwrap()
}

/// Answers over UDP with what `change` makes of the answer of an echo, one after the other.
fn server(change: impl Fn(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        loop {
            let (length, peer) = socket.recv_from(&mut buffer).unwrap();
            let mut reply = buffer[..length].to_vec();
            reply[2] |= 0x80;
            for reply in change(reply) {
                socket.send_to(&reply, peer).unwrap();
            }
        }
    });
    address
}

#[test]
fn an_echo_answers_every_query_over_udp_and_tcp() {
    for address in echo() {
        let tally = over_udp(address, options(Pace::Window(64)));
        assert_eq!((tally.sent, tally.answered), (MANY, MANY), "{}", tally.describe());
        assert_eq!((tally.wrong, tally.late), (0, 0), "{}", tally.describe());
        assert_eq!(tally.latency.total(), tally.answered);
        let pool = pool();
        // Several queries under way on each connection, and one.
        for window in [64, 4] {
            let options = options(Pace::Window(window));
            let tally = tcp::Client::new(address, &pool, options).unwrap().run_queries(MANY).unwrap();
            assert_eq!((tally.sent, tally.answered), (MANY, MANY), "{}", tally.describe());
            assert_eq!((tally.wrong, tally.late, tally.closed), (0, 0, 0), "{}", tally.describe());
        }
    }
}

/// hickory-server with a set, on both families.
fn hickory(set: Set) -> [SocketAddr; 2] {
    let zone = Zone::of(set).unwrap();
    let bound = Bound::bind(&[(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()]).unwrap();
    let addresses = bound.addresses();
    thread::spawn(|| hickory::serve(bound, zone));
    [addresses[0], addresses[1]]
}

#[test]
fn hickory_answers_every_kind_of_query_rightly_over_udp_and_tcp() {
    let set = Set::of(100);
    let addresses = hickory(set);
    let options = Options { strict: true, ..options(Pace::Window(64)) };
    for (mix, edns) in [(Mix::Mix, true), (Mix::Mix, false), (Mix::Only(Kind::HeadlessSrv), true)] {
        let pool = Pool::new(Asked { set, mix, edns, skew: false }, 1_000);
        for address in addresses {
            let udp = udp::Client::new(address, &pool, options).unwrap().run_queries(MANY).unwrap();
            let tcp = tcp::Client::new(address, &pool, options).unwrap().run_queries(MANY).unwrap();
            for tally in [udp, tcp] {
                let what = tally.describe();
                assert_eq!((tally.sent, tally.answered), (MANY, MANY), "{mix:?}: {what}");
                assert_eq!((tally.wrong, tally.late, tally.closed), (0, 0, 0), "{mix:?}: {what}");
            }
        }
    }
}

#[test]
fn hickory_says_the_addresses_of_the_set() {
    let set = Set::of(100);
    let [server, _] = hickory(set);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.connect(server).unwrap();
    let ask = |name: &str| {
        let mut reply = [0; 512];
        socket.send(&packet(name, A)).unwrap();
        let length = socket.recv(&mut reply).unwrap();
        servers::address(&reply[..length])
    };
    assert_eq!(ask(&servers::endpoint_name(set, 3, 17)), Some(set.endpoint_address(3, 17)));
    assert_eq!(ask(&format!("{}.svc.clusterset.local", set.service(40))), Some(set.service_address(40)));
    assert_eq!(ask("none-1.ns-0.svc.clusterset.local"), None);
}

#[test]
fn a_rate_is_kept_whole_bursts_at_a_time() {
    let [address, _] = echo();
    let pool = pool();
    let options = options(Pace::Rate { rate: 10_000.0, burst: 500 });
    let tally = udp::Client::new(address, &pool, options).unwrap().run(Duration::from_millis(200)).unwrap();
    // Four bursts are due before the end: at 0, 50, 100 and 150 ms. A client that is late with them sends them all the same.
    assert_eq!(tally.sent + tally.unsent, 2_000, "{}", tally.describe());
}

#[test]
fn what_is_not_answered_is_lost_and_never_counts_twice() {
    let deaf = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let patience = Duration::from_millis(200);
    let pool = pool();
    let options = Options { patience, ..options(Pace::Window(64)) };
    let began = Instant::now();
    let tally = udp::Client::new(deaf.local_addr().unwrap(), &pool, options).unwrap().run_queries(128).unwrap();
    assert_eq!((tally.sent, tally.lost, tally.answered), (128, 128, 0), "{}", tally.describe());
    // Not before the first window is given up is there a second one.
    assert!(began.elapsed() > 2 * patience, "{:?}", began.elapsed());
}

#[test]
fn an_answer_to_another_query_or_another_name_is_seen() {
    // Each query has an answer of another id, which says something else, and then its own. The client looks at the first: it
    // comes to the same socket.
    let another_id = server(|reply| {
        let mut other = reply.clone();
        // Above the slot's number: as if the slot had been used once more.
        other[0] ^= 0x80;
        other[14] ^= 1;
        vec![other, reply]
    });
    let tally = over_udp(another_id, options(Pace::Window(16)));
    assert_eq!((tally.late, tally.answered), (MANY, MANY), "{}", tally.describe());
    assert_eq!((tally.wrong, tally.lost), (0, 0), "{}", tally.describe());
    let another_name = server(|mut reply| {
        reply[14] ^= 1;
        vec![reply]
    });
    let tally = over_udp(another_name, options(Pace::Window(16)));
    assert_eq!((tally.answered, tally.wrong), (MANY, MANY), "{}", tally.describe());
}

#[test]
fn an_answer_without_records_is_wrong_where_there_should_be_some() {
    let [address, _] = echo();
    let pool = Pool::new(Asked { set: Set::of(100), mix: Mix::Only(Kind::ServiceA), edns: false, skew: false }, 100);
    let options = Options { clients: 1, strict: true, ..options(Pace::Window(16)) };
    let tally = udp::Client::new(address, &pool, options).unwrap().run_queries(MANY).unwrap();
    assert_eq!((tally.answered, tally.wrong), (MANY, MANY), "{}", tally.describe());
}

#[test]
fn a_connection_that_the_server_closes_is_opened_anew_and_its_queries_are_lost() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().for_each(drop));
    let pool = pool();
    let tally = tcp::Client::new(address, &pool, options(Pace::Window(16))).unwrap().run_queries(MANY).unwrap();
    assert!(tally.closed > 0 && tally.answered == 0 && tally.lost == tally.sent, "{}", tally.describe());
}

#[test]
fn nobody_listening_is_an_error_and_not_a_slow_server() {
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let pool = pool();
    let mut client = udp::Client::new((Ipv4Addr::LOCALHOST, port).into(), &pool, options(Pace::Window(16))).unwrap();
    assert!(client.run_queries(MANY).is_err());
}
