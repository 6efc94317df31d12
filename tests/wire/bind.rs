//! Taking addresses: both transports or none, and nobody beside us.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use namesake::dns::{BindError, Bound, ServerConfig, probe};

use crate::support::{A, Server, ask, client_of, config, query};

fn taken(result: Result<impl Sized, BindError>, transport: &str) -> String {
    match result {
        Err(error @ BindError::InUse { transport: which, .. }) if which == transport => error.to_string(),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("was not refused"),
    }
}

/// A port that was free a moment ago, on an address that no other test uses: none takes it meanwhile.
fn free(ip: &str) -> SocketAddr {
    Bound::bind(&config(&format!("{ip}:0"))).unwrap().addresses()[0]
}

#[test]
fn cfg_02_port_0_is_one_free_port_for_both_transports() {
    let bound = Bound::bind(&config("127.0.0.1:0")).unwrap();
    let address = bound.addresses()[0];
    assert_ne!(address.port(), 0);
    assert!(UdpSocket::bind(address).is_err(), "UDP is ours");
    assert!(TcpListener::bind(address).is_err(), "TCP is ours");
}

#[test]
fn cfg_02_a_second_instance_is_refused() {
    let first = Bound::bind(&config("127.0.0.1:0")).unwrap();
    let address = first.addresses()[0];
    let message = taken(Bound::bind(&config(&address.to_string())), "TCP");
    assert!(message.contains(&address.to_string()) && message.contains("another instance"), "{message}");
    assert!(message.contains("ss -lntup"), "the remedy: {message}");
    taken(probe(&config(&address.to_string())), "TCP");
}

#[test]
fn cfg_02_a_second_instance_is_refused_at_the_wildcard_and_beside_it() {
    let specific = Bound::bind(&config("127.0.0.1:0")).unwrap();
    let port = specific.addresses()[0].port();
    taken(Bound::bind(&config(&format!("0.0.0.0:{port}"))), "TCP");
    taken(Bound::bind(&config(&format!("[::]:{port}"))), "TCP");
    let wildcard = Bound::bind(&config("0.0.0.0:0")).unwrap();
    let port = wildcard.addresses()[0].port();
    taken(Bound::bind(&config(&format!("127.0.0.2:{port}"))), "TCP");
}

#[test]
fn cfg_02_the_refused_instance_leaves_the_first_one_answering() {
    let server = Server::at("127.0.0.1:0");
    for _ in 0..20 {
        taken(Bound::bind(&config(&server.address.to_string())), "TCP");
        // Each from a port of its own, which may be any worker's.
        ask(&client_of(server.address), &query(7, "a.example", A));
    }
}

#[test]
fn cfg_02_a_foreign_holder_of_udp_alone_is_found_also_when_it_shares() {
    let holder = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&"127.77.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, address)
    };
    let (held, address) = holder();
    taken(Bound::bind(&config(&address.to_string())), "UDP");
    taken(probe(&config(&address.to_string())), "UDP");
    drop(held);
    Bound::bind(&config(&address.to_string())).expect("free again, and nothing was left behind");
    // Any TCP client of the machine may have the same port, and then the wildcard is refused for that.
    let refused = |transport| {
        let (_held, address) = holder();
        let wildcard = Bound::bind(&config(&format!("0.0.0.0:{}", address.port())));
        matches!(wildcard, Err(BindError::InUse { transport: which, .. }) if which == transport)
    };
    assert!((0..20).any(|_| refused("UDP")), "the wildcard shared a port with a foreign holder");
}

#[test]
fn dns_l1_a_probe_takes_nothing() {
    let free = free("127.77.0.2");
    for _ in 0..3 {
        probe(&config(&free.to_string())).unwrap();
    }
    Bound::bind(&config(&free.to_string())).unwrap();
}

#[test]
fn dns_l1_until_bound_clients_are_refused_at_once() {
    let free = free("127.77.0.3");
    probe(&config(&free.to_string())).unwrap();
    let client = client_of(free);
    client.send(&query(1, "a.example", A)).unwrap();
    let error = client.recv(&mut [0; 512]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn cfg_02_several_addresses_and_both_families_are_served() {
    let config = ServerConfig {
        udp_workers: Some(1),
        ..ServerConfig::new(vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()])
    };
    let server = Server::start(&config);
    let addresses = server.running.as_ref().unwrap().addresses().to_vec();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        ask(&client_of(address), &query(3, "a.example", A));
    }
}

#[test]
fn cfg_02_both_wildcards_stand_beside_each_other() {
    let both = |port| ServerConfig {
        udp_workers: Some(1),
        ..ServerConfig::new(["0.0.0.0", "[::]"].map(|ip| format!("{ip}:{port}").parse().unwrap()).to_vec())
    };
    // Between the two, any client of the machine may get the port.
    let free = || both(free("[::]").port());
    let config = (0..20).map(|_| free()).find(|both| probe(both).is_ok()).expect("both wildcards at once");
    let server = Server::start(&config);
    ask(&client_of(server.reached_at("127.0.0.1")), &query(3, "a.example", A));
    ask(&client_of(server.reached_at("::1")), &query(3, "a.example", A));
}

#[test]
fn cfg_02_an_address_listed_twice_is_named() {
    for pair in [["127.0.0.1:5399", "127.0.0.1:5399"], ["0.0.0.0:5399", "127.0.0.1:5399"], ["[::1]:5399", "[::]:5399"]]
    {
        let config = ServerConfig::new(pair.map(|address| address.parse().unwrap()).to_vec());
        let error = Bound::bind(&config).unwrap_err();
        assert!(matches!(error, BindError::Twice { .. }), "{error}");
        assert!(error.to_string().contains(pair[1]), "{error}");
    }
    assert!(matches!(Bound::bind(&ServerConfig::new(Vec::new())), Err(BindError::Nowhere)));
}

#[test]
fn cfg_02_an_address_of_another_host_is_named() {
    let error = Bound::bind(&config("192.0.2.7:0")).unwrap_err();
    assert!(matches!(error, BindError::NotHere { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.7:0 is not an address of this host"), "{error}");
}
