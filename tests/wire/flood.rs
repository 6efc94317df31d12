//! A flood costs the socket's buffer and nothing else.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{A, Server, client_of, query, resident_kb, until};

/// How much more memory a flood may leave behind, in kB: pages that the allocator and the threads touch late.
const FLAT_KB: u64 = 2048;

/// In a process of its own, since memory is measured.
#[test]
fn scl_04_a_flood_of_ten_seconds_leaves_memory_flat_and_the_server_answering() {
    const CHILD: &str = "NAMESAKE_TEST_FLOOD";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("flood::scl_04_a_flood_of_ten_seconds_leaves_memory_flat_and_the_server_answering")
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
        assert!(said.contains("1 passed"), "the child ran the test");
        return;
    }
    let server = Server::at("127.0.0.1:0");
    let over = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..2)
        .map(|_| {
            let (over, address) = (Arc::clone(&over), server.address);
            std::thread::spawn(move || {
                // Nobody reads the replies.
                let sockets: Vec<_> = (0..16).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
                let message = query(1, "web.shop.svc.clusterset.local", A);
                while !over.load(Ordering::Relaxed) {
                    for socket in &sockets {
                        let _ = socket.send_to(&message, address);
                    }
                }
            })
        })
        .collect();
    until("the flood has come", || server.asked() > 10_000);
    let began = Instant::now();
    let mut most = 0;
    let before = resident_kb();
    while began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
        most = most.max(resident_kb());
    }
    over.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    println!("{} queries answered; resident {before} kB at first, at most {most} kB", server.asked());
    assert!(most < before + FLAT_KB, "{before} kB became {most} kB");
    // The first ones may still find a full buffer.
    let client = client_of(server.address);
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    until("the server answers again", || {
        client.send(&query(9, "a.example", A)).unwrap();
        client.recv(&mut [0; 512]).is_ok()
    });
}
