//! `Type=notify`, with a real datagram socket in systemd's place. The variables of a process can't be changed safely
//! while it has threads, so this test runs itself as the unit's process.

use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namesake::admin::{Admin, AdminParts, AdminState, ControllerParts};
use namesake::controller::Status;
use namesake::model::Resource;
use namesake::source::Health;
use namesake::systemd::Notifier;

use crate::http::{Bed, LIMIT, one, parts};

/// The unit's process: goes on to the next state of its life at each byte.
fn unit() {
    let bed = Bed::start(&one(), AdminParts { notifier: Notifier::from_env(), ..parts() });
    let next = || {
        // Also the end of the input means to go on.
        let _ = std::io::stdin().read_exact(&mut [0]);
    };
    next();
    for resource in Resource::ALL {
        bed.health.mark_synced(resource);
    }
    bed.state.set_dns_bound();
    next();
    bed.state.set_shutting_down();
    next();
}

/// The same of a controller.
fn controller() {
    let (status, state) = (Arc::new(Status::default()), Arc::new(AdminState::new()));
    let parts = ControllerParts::new(status.clone(), state.clone(), Arc::default(), Notifier::from_env());
    let _admin = Admin::start(&one(), parts).unwrap();
    let next = || {
        let _ = std::io::stdin().read_exact(&mut [0]);
    };
    next();
    {
        let mut view = status.lock();
        (view.complete, view.registries) = (true, Some(Arc::new(Health::of(&[]))));
    }
    next();
    state.set_shutting_down();
    next();
}

#[test]
fn systemd_hears_alive_then_ready_then_stopping() {
    life("systemd::systemd_hears_alive_then_ready_then_stopping", unit, "serving");
}

#[test]
fn systemd_hears_of_a_controller_too() {
    life("systemd::systemd_hears_of_a_controller_too", controller, "running");
}

fn life(test: &str, unit: fn(), ready: &str) {
    if std::env::var_os("NOTIFY_SOCKET").is_some() {
        return unit();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut unit = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "400000")
        .env_remove("WATCHDOG_PID")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut next = unit.stdin.take().unwrap();
    let mut hear = || {
        let mut bytes = [0; 1_024];
        let length = socket.recv(&mut bytes).expect("the unit says nothing any more");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };

    // Not ready yet, but alive.
    for _ in 0..3 {
        assert_eq!(hear(), "WATCHDOG=1\n");
    }
    next.write_all(b"r").unwrap();
    let wanted = |hear: &mut dyn FnMut() -> String, what: &str| {
        let deadline = Instant::now() + LIMIT;
        loop {
            let text = hear();
            if text != "WATCHDOG=1\n" {
                return text;
            }
            assert!(Instant::now() < deadline, "never: {what}");
        }
    };
    assert_eq!(wanted(&mut hear, "ready"), format!("READY=1\nSTATUS={ready}\n"));
    next.write_all(b"s").unwrap();
    assert_eq!(wanted(&mut hear, "stopping"), "STOPPING=1\nSTATUS=shutting down\n");
    // Alive through lameduck.
    assert_eq!(hear(), "WATCHDOG=1\n");
    drop(next);
    assert!(unit.wait().unwrap().success());
}

#[test]
fn without_systemd_nothing_is_said_and_nothing_fails() {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        let notifier = Notifier::from_env();
        assert_eq!(notifier.watchdog_interval(), None::<Duration>);
        notifier.ready("serving");
        notifier.stopping();
    }
}
