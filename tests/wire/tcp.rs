//! TCP: pipelining, and what slow, greedy and vanished clients may take.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use namesake::dns::TcpLimits;
use socket2::{Domain, Socket, Type};

use crate::support::{A, AAAA, PATIENCE, Server, ask, client_of, framed, query, until};

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection from another address of this host.
fn connect_from(own: &str, server: &Server) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&format!("{own}:0").parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&server.address.into()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.into()
}

fn try_reply(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

fn reply(stream: &mut TcpStream) -> Vec<u8> {
    try_reply(stream).expect("a reply in time")
}

fn try_ask(stream: &mut TcpStream, id: u16) -> std::io::Result<()> {
    stream.write_all(&framed(&query(id, "a.example", A)))?;
    assert_eq!(try_reply(stream)?[..2], id.to_be_bytes());
    Ok(())
}

fn ask_over(stream: &mut TcpStream, id: u16) {
    try_ask(stream, id).expect("a reply in time");
}

/// Whether the server has closed the connection, by its end or by a reset.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return true,
            Err(_) => return false,
        }
    }
}

fn short() -> TcpLimits {
    let quick = Duration::from_millis(300);
    TcpLimits { idle: quick, read: quick, write: quick, ..TcpLimits::default() }
}

#[test]
fn dns_t21_pipelined_queries_are_all_answered() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    let ids = 0..5000_u16;
    let queries: Vec<u8> =
        ids.clone().flat_map(|id| framed(&query(id, "web.example", [A, AAAA][usize::from(id % 2)]))).collect();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || writing.write_all(&queries).unwrap());
    let mut seen: Vec<u16> = ids
        .clone()
        .map(|_| {
            let reply = reply(&mut stream);
            u16::from_be_bytes([reply[0], reply[1]])
        })
        .collect();
    writer.join().unwrap();
    // RFC 7766 allows any order.
    seen.sort_unstable();
    assert_eq!(seen, ids.collect::<Vec<_>>());
}

#[test]
fn dns_t21_a_message_may_come_in_pieces() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    stream.set_nodelay(true).unwrap();
    let two = [framed(&query(1, "a.example", A)), framed(&query(2, "a.example", A))].concat();
    for byte in two {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(reply(&mut stream)[..2], [0, 1]);
    assert_eq!(reply(&mut stream)[..2], [0, 2]);
}

#[test]
fn dns_t21_messages_of_64_kib_are_read_and_answered() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    let mut long = query(1, "a.example", A);
    long.resize(65_535, 0);
    stream.write_all(&framed(&long)).unwrap();
    assert_eq!(reply(&mut stream)[..2], [0, 1]);
    // More than the server collects before it writes.
    let many: Vec<u8> = (0..30).flat_map(|id| framed(&query(id, "big.example", A))).collect();
    stream.write_all(&many).unwrap();
    for id in 0..30 {
        let reply = reply(&mut stream);
        assert_eq!((reply.len(), reply[1]), (60_000, id));
    }
}

#[test]
fn dns_t21_a_client_that_has_said_all_is_answered() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    stream.write_all(&framed(&query(1, "a.example", A))).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(reply(&mut stream)[..2], [0, 1]);
    assert!(is_closed(&mut stream));
}

#[test]
fn dns_t21_f8_a_resting_connection_stays_until_idle_and_no_longer() {
    let idle = Duration::from_millis(1500);
    let server = Server::with_limits(TcpLimits { idle, ..short() });
    // Noted before, as the server's own time begins after it.
    let mut asked = Instant::now();
    let (mut stream, mut answered) = (connect(&server), 0);
    while answered < 4 {
        let last = std::mem::replace(&mut asked, Instant::now());
        match try_ask(&mut stream, answered) {
            Ok(()) => answered += 1,
            // The machine slept, and we asked too late: another connection.
            Err(error) => {
                let is_end = !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(is_end && last.elapsed() >= idle, "query {answered} after {:?}: {error}", last.elapsed());
                (asked, stream, answered) = (Instant::now(), connect(&server), 0);
            }
        }
        // Longer in all than `idle`, and longer each than `read`, which is not meant here.
        std::thread::sleep(Duration::from_millis(600));
    }
    assert!(is_closed(&mut stream));
    assert_eq!(TcpLimits::default().idle, Duration::from_secs(10), "F8: not below what a forwarder keeps");
}

#[test]
fn prt_08_a_message_must_end_in_time_even_when_it_goes_on() {
    let server = Server::with_limits(TcpLimits { idle: PATIENCE, ..short() });
    let mut stream = connect(&server);
    ask_over(&mut stream, 1);
    stream.write_all(&[0xff, 0xff]).unwrap();
    let began = Instant::now();
    // One byte at a time: the time runs from the first one.
    while stream.write_all(&[0]).is_ok() {
        assert!(began.elapsed() < PATIENCE, "a dawdling client is not given up");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_closed(&mut stream));
    assert_eq!(server.dropped("slow"), 1);
}

#[test]
fn prt_08_a_client_that_never_reads_is_given_up() {
    let server = Server::with_limits(TcpLimits { idle: PATIENCE, read: PATIENCE, ..short() });
    let mut stream = connect(&server);
    let many: Vec<u8> = (0..100).flat_map(|id| framed(&query(id, "big.example", A))).collect();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    loop {
        match stream.write(&many) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("a client that does not read is kept"),
            Err(_) => break,
        }
    }
    assert!(server.asked() < 2000, "replies wait in a bounded buffer, but {} queries were answered", server.asked());
    assert_eq!(server.dropped("slow"), 1);
}

/// A connection whose client keeps next to nothing for its program to read.
fn connect_narrow(server: &Server) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn prt_08_a_client_that_was_given_up_is_forgotten_by_the_kernel_too() {
    let server = Server::with_limits(TcpLimits { idle: PATIENCE, read: PATIENCE, ..short() });
    let mut stream = connect_narrow(&server);
    let many: Vec<u8> = (0..20).flat_map(|id| framed(&query(id, "big.example", A))).collect();
    stream.write_all(&many).unwrap();
    until("it is given up", || server.dropped("slow") == 1);
    // Until the reset is here: what is read before makes room for more.
    let own = stream.local_addr().unwrap().port();
    let pair = format!(" 0100007F:{own:04X} 0100007F:{:04X} ", server.address.port());
    until("it is reset", || !std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&pair));
    let mut rest = Vec::new();
    let error = stream.read_to_end(&mut rest).expect_err("a reset, since nobody holds the rest for it");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(rest.len() < 20_000, "{} bytes", rest.len());
}

#[test]
fn dns_t21_what_cannot_be_a_message_ends_the_connection_after_the_replies_due() {
    let server = Server::at("127.0.0.1:0");
    for nonsense in [&[0, 0][..], &[0, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]] {
        let mut stream = connect(&server);
        let more = framed(&query(2, "a.example", A)).repeat(1000);
        let bytes = [&framed(&query(1, "a.example", A)), nonsense, &more].concat();
        stream.write_all(&bytes).unwrap();
        assert_eq!(reply(&mut stream)[..2], [0, 1]);
        let mut rest = Vec::new();
        // A reset would make some clients forget the reply.
        stream.read_to_end(&mut rest).expect("an end, not a reset");
        assert!(rest.is_empty(), "nothing after nonsense is answered");
    }
}

#[test]
fn dns_t2_a_response_over_tcp_is_dropped_and_the_next_query_answered() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    let mut response = query(1, "a.example", A);
    response[2] |= 0x80;
    stream.write_all(&[framed(&response), framed(&query(2, "a.example", A))].concat()).unwrap();
    assert_eq!(reply(&mut stream)[..2], [0, 2]);
}

#[test]
fn dns_t19_a_panic_over_tcp_costs_one_query() {
    let server = Server::at("127.0.0.1:0");
    let mut stream = connect(&server);
    stream.write_all(&[framed(&query(1, "panic.example", A)), framed(&query(2, "a.example", A))].concat()).unwrap();
    let servfail = reply(&mut stream);
    assert_eq!((servfail.len(), servfail[1], servfail[3]), (12, 1, 2));
    assert_eq!(reply(&mut stream)[1], 2);
}

#[test]
fn dns_t21_one_client_has_so_many_connections_and_others_theirs() {
    let server = Server::with_limits(TcpLimits { max_connections: 5, max_per_client: 3, ..TcpLimits::default() });
    let mut first: Vec<_> = (0..3).map(|_| connect_from("127.0.0.1", &server)).collect();
    first.iter_mut().for_each(|stream| ask_over(stream, 1));
    assert!(is_closed(&mut connect_from("127.0.0.1", &server)), "a fourth of one client");
    let mut second: Vec<_> = (0..2).map(|_| connect_from("127.0.0.2", &server)).collect();
    second.iter_mut().for_each(|stream| ask_over(stream, 1));
    assert!(is_closed(&mut connect_from("127.0.0.3", &server)), "a sixth in all");
    first.iter_mut().chain(&mut second).for_each(|stream| ask_over(stream, 2));
    assert_eq!(server.dropped("connections"), 2);
    drop(first);
    until("places are free again", || {
        let mut stream = connect_from("127.0.0.3", &server);
        let sent = stream.write_all(&framed(&query(3, "a.example", A)));
        sent.is_ok() && matches!(stream.read(&mut [0; 2]), Ok(2))
    });
}

#[test]
fn prt_08_two_thousand_bad_clients_do_not_disturb_a_good_one_nor_udp() {
    let server = Server::at("127.0.0.1:0");
    let mut good = connect_from("127.0.0.1", &server);
    ask_over(&mut good, 1);
    // From several addresses, since one alone may not have so many.
    let mut bad = Vec::new();
    for number in 0..2000 {
        let mut stream = connect_from(["127.0.1.1", "127.0.1.2", "127.0.1.3"][number % 3], &server);
        match number % 4 {
            0 => {}
            1 => stream.write_all(&[0]).unwrap(),
            2 => stream.write_all(&[0xff, 0xff]).unwrap(),
            _ => {
                let many: Vec<u8> = (0..20).flat_map(|id| framed(&query(id, "big.example", A))).collect();
                stream.write_all(&many).unwrap();
            }
        }
        bad.push(stream);
    }
    let udp = client_of(server.address);
    for id in 0..2000 {
        ask_over(&mut good, id);
        ask(&udp, &query(id, "a.example", A));
    }
    let mut other = connect_from("127.0.0.1", &server);
    ask_over(&mut other, 1);
    drop(bad);
    ask_over(&mut good, 1);
}

#[test]
fn prt_08_a_thousand_idle_and_a_hundred_dawdling_clients_do_not_disturb_udp() {
    let server = Server::at("127.0.0.1:0");
    let _idle: Vec<_> = (0..1000).map(|number| connect_from(["127.0.1.1", "127.0.1.2"][number % 2], &server)).collect();
    let mut dawdling: Vec<_> = (0..100).map(|_| connect_from("127.0.1.3", &server)).collect();
    let udp = client_of(server.address);
    let message = framed(&query(1, "a.example", A));
    for (step, byte) in message.iter().enumerate() {
        for stream in &mut dawdling {
            // Those that were given up do not matter here.
            let _ = stream.write_all(&[*byte]);
        }
        for id in 0..200 {
            ask(&udp, &query(id, "a.example", A));
        }
        assert!(server.asked() >= (step + 1) * 200);
    }
}

/// The child's part runs in a process of its own, since it uses up the process's files.
#[test]
fn prt_08_without_files_connections_wait_and_nothing_spins() {
    const CHILD: &str = "NAMESAKE_TEST_NO_FILES";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 256 && exec \"$0\" --exact --nocapture \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg("tcp::prt_08_without_files_connections_wait_and_nothing_spins")
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"), "the child ran the test");
        return;
    }
    let server = Server::at("127.0.0.1:0");
    let udp = client_of(server.address);
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut statistics = std::fs::File::open("/proc/self/stat").unwrap();
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    let mut cpu = || {
        use std::io::Seek;
        let mut text = String::new();
        statistics.rewind().unwrap();
        statistics.read_to_string(&mut text).unwrap();
        let fields: Vec<i64> =
            text.rsplit(')').next().unwrap().split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // User and system time in ticks of 10 ms; before them stand the state, which is no number, and ten numbers.
        fields[10] + fields[11]
    };
    client.connect(&server.address.into()).unwrap();
    let mut client: TcpStream = client.into();
    client.write_all(&framed(&query(1, "a.example", A))).unwrap();
    let before = cpu();
    for id in 0..100 {
        ask(&udp, &query(id, "a.example", A));
        std::thread::sleep(Duration::from_millis(20));
    }
    let spent = cpu() - before;
    assert!(spent < 40, "accepting spins: {spent} ticks in two seconds");
    assert_eq!(server.asked(), 100, "nothing could be accepted");
    drop(files);
    assert_eq!(reply(&mut client)[..2], [0, 1], "the one that waited is served");
}
