//! UDP: who is answered, from where, and what the loop survives.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{A, AAAA, PATIENCE, Server, ask, client_of, query, until};

#[test]
fn prt_07_replies_leave_from_the_address_that_was_asked() {
    let server = Server::at("0.0.0.0:0");
    for ip in ["127.0.0.1", "127.0.0.2", "127.8.9.10"] {
        // The client is connected: a reply from any other address would not reach it.
        let client = client_of(server.reached_at(ip));
        for id in 0..50 {
            ask(&client, &query(id, "a.example", A));
        }
    }
}

#[test]
fn prt_07_replies_leave_from_the_address_that_was_asked_in_both_families_of_one_socket() {
    let server = Server::at("[::]:0");
    for ip in ["::1", "127.0.0.1", "127.0.0.2"] {
        let client = client_of(server.reached_at(ip));
        for id in 0..50 {
            ask(&client, &query(id, "a.example", A));
        }
    }
}

#[test]
fn prt_07_one_batch_with_several_destinations_is_answered_from_each() {
    let server = Server::start(&namesake::dns::ServerConfig {
        udp_workers: Some(1),
        ..namesake::dns::ServerConfig::new(vec!["0.0.0.0:0".parse().unwrap()])
    });
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for round in 0..200_u16 {
        // Sent back to back, so that most rounds make batches of several destinations.
        for last in 1..=24_u16 {
            let id = (round << 8) | last;
            client.send_to(&query(id, "a.example", A), server.reached_at(&format!("127.0.0.{last}"))).unwrap();
        }
        for _ in 1..=24_u16 {
            let mut reply = [0; 512];
            let (_, from) = client.recv_from(&mut reply).expect("every query is answered");
            let std::net::IpAddr::V4(from) = from.ip() else { panic!("not IPv4") };
            assert_eq!(from.octets()[3], reply[1], "round {round}: the id names the address that was asked");
        }
    }
}

#[test]
fn prt_06_ten_thousand_clients_that_are_gone_cost_nobody_else_anything() {
    let server = Server::at("127.0.0.1:0");
    // Source port 0 cannot be had without a raw socket, which needs a privilege: the test `prt_06_…` in `src/dns/udp.rs`
    // sends to port 0 directly.
    let patient = client_of(server.address);
    for id in 0..10_000 {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
        gone.send_to(&query(id, "a.example", A), server.address).unwrap();
        drop(gone);
        if id % 1000 == 0 {
            ask(&patient, &query(id, "a.example", A));
        }
    }
    until("all are taken", || server.asked() == 10_010);
    let before = cpu_of_workers(&server);
    std::thread::sleep(Duration::from_secs(1));
    let spent = cpu_of_workers(&server) - before;
    assert!(spent < Duration::from_millis(100), "nothing to do, but its threads ran {spent:?} in a second");
    ask(&patient, &query(1, "a.example", A));
}

/// CPU time of the server's UDP threads, which other tests of this process do not share.
fn cpu_of_workers(server: &Server) -> Duration {
    let name = format!("udp:{}/", server.address.port());
    let mut nanoseconds = 0;
    let mut threads = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread of another test may end between the two lines.
        let task = task.unwrap().path();
        if std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(&name)) {
            let statistics = std::fs::read_to_string(task.join("schedstat")).unwrap();
            nanoseconds += statistics.split_whitespace().next().unwrap().parse::<u64>().unwrap();
            threads += 1;
        }
    }
    assert_eq!(threads, 2, "the workers are found");
    Duration::from_nanos(nanoseconds)
}

#[test]
fn rsv_01_a_and_aaaa_from_one_socket_are_both_answered() {
    let server = Server::at("127.0.0.1:0");
    let client = client_of(server.address);
    let mut pairs = 0_u32;
    while pairs < 100_000 {
        // Eight pairs under way at once, as a resolver library's threads would have; every second pair shares one id.
        let mut waiting: HashMap<(u16, u16), u32> = HashMap::new();
        for step in 0..8_u32 {
            let pair = pairs + step;
            let id = u16::try_from(pair & 0x7fff).unwrap();
            let second = if pair.is_multiple_of(2) { id } else { id | 0x8000 };
            for (id, qtype) in [(id, A), (second, AAAA)] {
                client.send(&query(id, "web.shop.svc.clusterset.local", qtype)).unwrap();
                *waiting.entry((id, qtype)).or_default() += 1;
            }
        }
        while !waiting.is_empty() {
            let mut reply = [0; 512];
            let len = client.recv(&mut reply).expect("both are answered");
            let id = u16::from_be_bytes([reply[0], reply[1]]);
            let qtype = match reply[len - 4..len] {
                [192, 0, 2, 1] => A,
                [0, 0, 0, 1] => AAAA,
                _ => panic!("a reply to nobody"),
            };
            assert_eq!(waiting.remove(&(id, qtype)), Some(1), "no cross-talk, no second reply");
        }
        pairs += 8;
    }
    assert_eq!(server.asked(), 200_000);
}

#[test]
fn dns_t20_queries_up_to_4096_bytes_are_read_whole() {
    let server = Server::at("127.0.0.1:0");
    let client = client_of(server.address);
    for len in [512, 513, 1232, 4095, 4096] {
        let mut long = query(9, "a.example", A);
        long.resize(len, 0);
        ask(&client, &long);
    }
    assert_eq!(server.responder.longest.load(Ordering::Relaxed), 4096);
    // Longer ones are cut, and still answered: nothing is worse for a forwarder than silence (F1).
    let mut longer = query(9, "a.example", A);
    longer.resize(9000, 0);
    ask(&client, &longer);
}

#[test]
fn dns_t19_a_panic_costs_one_query() {
    let server = Server::at("127.0.0.1:0");
    let client = client_of(server.address);
    for id in 0..10 {
        let reply = ask(&client, &query(id, "panic.example", A));
        assert_eq!(reply.len(), 12);
        assert_eq!(reply[3] & 0x0f, 2, "SERVFAIL");
        ask(&client, &query(id, "a.example", A));
    }
    assert_eq!(server.responder.asked.load(Ordering::Relaxed), 20);
    assert_eq!(server.counted("coredns_panics_total"), 10);
}

#[test]
fn dns_t1_t2_short_datagrams_and_responses_get_no_reply() {
    let server = Server::at("127.0.0.1:0");
    let client = client_of(server.address);
    let mut response = query(5, "a.example", A);
    response[2] |= 0x80;
    for nonsense in [&[][..], &[0], &[0; 11], &response] {
        client.send(nonsense).unwrap();
    }
    // Sent last, from the same port to the same worker: what it gets is the first reply there is.
    ask(&client, &query(6, "a.example", A));
    assert_eq!(server.asked(), 5);
    assert_eq!((server.dropped("short"), server.dropped("response")), (3, 1));
}

#[test]
fn dns_f8_many_queries_of_one_flow_are_all_answered() {
    let server = Server::at("127.0.0.1:0");
    let client = client_of(server.address);
    // A hundred at once: what a client's own receive buffer surely holds.
    for round in 0..50 {
        let ids = round * 100..(round + 1) * 100;
        for id in ids.clone() {
            client.send(&query(id, "a.example", A)).unwrap();
        }
        let mut seen: Vec<u16> = Vec::new();
        for _ in ids.clone() {
            let mut reply = [0; 512];
            client.recv(&mut reply).expect("no rate limit, no loss");
            seen.push(u16::from_be_bytes([reply[0], reply[1]]));
        }
        seen.sort_unstable();
        assert_eq!(seen, ids.collect::<Vec<_>>());
    }
}
