//! Clients that dawdle, flood or send too much.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::http::{Bed, LIMIT, get, parse};

#[test]
fn clients_that_send_no_whole_head_are_closed_and_more_than_the_limit_only_wait() {
    let bed = Bed::new();
    // More than the 256 that are served at a time; half of them begin a request and never end it.
    let mut idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(bed.address()).unwrap()).collect();
    for stream in idle.iter_mut().step_by(2) {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: ").unwrap();
    }
    // The probe gets its turn when the first ones are closed.
    assert_eq!(get(bed.address(), "/health").code, 200);
    for mut stream in idle {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut rest = Vec::new();
        // Closed or reset, with a 408 or without: but within the time.
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let bed = Bed::new();
    let mut stream = TcpStream::connect(bed.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
    let line = [b"X: ".as_slice(), &[b'x'; 1_000], b"\r\n"].concat();
    // A megabyte, unless we are closed before.
    let sent = (0..1_000).take_while(|_| stream.write_all(&line).is_ok()).count();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(sent < 1_000 || text.starts_with("HTTP/1.1 431"), "{sent} {text:?}");
    assert!(text.is_empty() || parse(&text).code == 431, "{text}");
}

#[test]
fn a_body_is_not_waited_for() {
    let bed = Bed::new();
    let mut stream = TcpStream::connect(bed.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(parse(&text).body, "OK");
}

#[test]
fn nonsense_is_refused_and_the_next_client_is_served() {
    let bed = Bed::new();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..200 {
        let mut stream = TcpStream::connect(bed.address()).unwrap();
        let length = rng.usize(1..200);
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(length).collect();
        stream.write_all(&bytes).unwrap();
    }
    assert_eq!(get(bed.address(), "/health").body, "OK");
}
