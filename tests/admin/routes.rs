//! Paths, methods, addresses, and the request to ourselves.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};

use namesake::admin::{Admin, AdminConfig, AdminParts};
use namesake::metrics::State;

use crate::http::{Bed, get, loopback, one, parts, request, until};

#[test]
fn unknown_paths_say_what_there_is_and_other_methods_are_refused() {
    let bed = Bed::start(&one(), AdminParts { explain: Some(Arc::new(|_, _| Ok(String::new()))), ..parts() });
    let missing = get(bed.address(), "/healthz");
    assert_eq!(missing.code, 404);
    assert_eq!(
        missing.body,
        "/healthz is not here. What is:\n/health\n/ready\n/ready?verbose\n/metrics\n/explain?name=NAME&type=TYPE\n"
    );
    for path in ["/health", "/ready", "/metrics", "/explain"] {
        let refused = request(bed.address(), "POST", path);
        assert_eq!(refused.code, 405, "{path}");
        assert!(refused.head.to_ascii_lowercase().contains("allow: get"), "{}", refused.head);
    }
    let head = request(bed.address(), "HEAD", "/health");
    assert_eq!((head.code, head.body.as_str()), (200, ""));
}

#[test]
fn parts_with_addresses_of_their_own_are_there_and_nowhere_else() {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let config = AdminConfig { ready: Some(v6), explain: None, ..one() };
    let explain: namesake::admin::Explain = Arc::new(|_: &str, _: &str| Ok(String::new()));
    let bed = Bed::start(&config, AdminParts { explain: Some(explain), ..parts() });
    let at = *bed.admin.addresses();
    assert_eq!(at.health, at.metrics, "equal addresses share a listener, also with port 0");
    let (health, ready) = (at.health.unwrap(), at.ready.unwrap());
    assert!(health.port() != 0 && ready.port() != 0 && ready.is_ipv6());
    assert_eq!(get(health, "/health").code, 200);
    assert_eq!(get(health, "/metrics").code, 200);
    assert_eq!(get(health, "/ready").code, 404);
    assert_eq!(get(health, "/explain?name=x").code, 404, "a part without an address is nowhere");
    assert_eq!(get(ready, "/ready").code, 503);
    assert_eq!(get(ready, "/health").body, "/health is not here. What is:\n/ready\n/ready?verbose\n");
}

#[test]
fn a_taken_address_is_an_error_with_place_and_remedy() {
    let taken = TcpListener::bind(loopback()).unwrap();
    let address = taken.local_addr().unwrap();
    let error =
        Admin::start(&AdminConfig { metrics: Some(address), ready: Some(address), ..one() }, parts()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("can't listen on {address} for ready, metrics")), "{text}");
    assert!(text.contains("stop the program that has this port, or choose another one with --admin"), "{text}");
    // 192.0.2.0/24 is for documentation: no machine has it.
    let nowhere = AdminConfig { health: "192.0.2.1:8080".parse().ok(), ..one() };
    let text = Admin::start(&nowhere, parts()).unwrap_err().to_string();
    assert!(text.contains("this machine has no such address"), "{text}");
}

#[test]
fn after_the_end_the_port_is_free() {
    let bed = Bed::new();
    let address = bed.address();
    // A connection that is open must not hold it up.
    let _idle = std::net::TcpStream::connect(address).unwrap();
    assert_eq!(get(address, "/health").code, 200);
    drop(bed);
    TcpListener::bind(address).unwrap();
}

#[test]
fn metrics_are_prometheus_text_with_what_the_counts_say() {
    let bed = Bed::new();
    bed.metrics.panicked();
    let scrape = get(bed.address(), "/metrics");
    assert_eq!(scrape.code, 200);
    let head = scrape.head.to_ascii_lowercase();
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    for line in ["namesake_endpoints 3", "namesake_synced 0", "coredns_panics_total 1"] {
        assert!(scrape.body.lines().any(|shown| shown == line), "{line} in {}", scrape.body);
    }
}

#[test]
fn health_is_asked_once_a_second_and_counted() {
    let bed = Bed::start(&AdminConfig { health: "0.0.0.0:0".parse().ok(), ..one() }, parts());
    let value = |name: &str| {
        let text = get(bed.address(), "/metrics").body;
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    until("two requests to ourselves", || value("coredns_health_request_duration_seconds_count") >= 2.0);
    assert_eq!(value("coredns_health_request_failures_total"), 0.0);
}

#[test]
fn explain_asks_the_closure_with_a_for_its_default_and_says_what_is_missing() {
    let explain: namesake::admin::Explain = Arc::new(|name: &str, kind: &str| match kind {
        "A" | "SRV" => Ok(format!("{name} {kind}\n")),
        _ => Err(format!("{kind} is no type; use A, AAAA or SRV\n")),
    });
    let bed = Bed::start(&one(), AdminParts { explain: Some(explain), ..parts() });
    let at = bed.address();
    assert_eq!(get(at, "/explain?name=a.b%2Dc.svc.clusterset.local.").body, "a.b-c.svc.clusterset.local. A\n");
    assert_eq!(get(at, "/explain?type=SRV&name=x").body, "x SRV\n");
    let refused = get(at, "/explain?name=x&type=LOUD");
    assert_eq!((refused.code, refused.body.as_str()), (400, "LOUD is no type; use A, AAAA or SRV\n"));
    let missing = get(at, "/explain");
    assert_eq!(missing.code, 400);
    assert!(missing.body.starts_with("say which name: /explain?name="), "{}", missing.body);
    assert_eq!(get(Bed::new().address(), "/explain?name=x").code, 404, "without a closure there is no route");
}

#[test]
fn probes_are_answered_while_scrapes_hang() {
    let (entered, arrivals) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let counts = move || {
        entered.send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        State::default()
    };
    let bed = Bed::start(&one(), AdminParts { counts: Arc::new(counts), ..parts() });
    let at = bed.address();
    std::thread::scope(|scope| {
        let scrapes: Vec<_> = (0..8).map(|_| scope.spawn(move || get(at, "/metrics").code)).collect();
        arrivals.recv().unwrap();
        for _ in 0..20 {
            assert_eq!(get(at, "/health").code, 200);
            assert_eq!(get(at, "/ready").code, 503);
        }
        assert!(scrapes.iter().all(|scrape| !scrape.is_finished()), "the scrapes hang all the time");
        drop(open);
        for scrape in scrapes {
            assert_eq!(scrape.join().unwrap(), 200);
        }
    });
}
