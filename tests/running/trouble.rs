//! What keeps it from running: said in a line with a remedy, and with the exit code that tells a supervisor whether
//! to try again.

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::json;
use testbed::Bed;

use crate::api::kubeconfig;
use crate::asking::{A, NOERROR, ask, udp};
use crate::product::{Namesake, PATIENCE, binary, example};

/// `namesake dns` to its end, which must come soon.
fn ran(args: &[&str]) -> Output {
    let began = Instant::now();
    let mut command = Command::new(binary());
    command.arg("dns").args(args).stdin(Stdio::null());
    for name in ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(began.elapsed() < PATIENCE, "{args:?} took {:?}", began.elapsed());
    output
}

#[track_caller]
fn fails(args: &[&str], words: &[&str]) {
    let output = ran(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: no {word:?} in {said:?}");
    }
    assert!(said.lines().all(|line| line.starts_with("namesake: ")) && said.lines().count() == 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_instance_on_the_same_address_is_refused_and_the_first_goes_on() {
    let bed = Bed::new().unwrap();
    let first = Namesake::with_example(&bed).await.unwrap();
    let (dns, admin) = (first.dns.to_string(), first.admin.to_string());
    let example = example().to_string_lossy().into_owned();
    let free = || format!("127.0.0.1:{}", bed.port().unwrap());
    let others = [
        (dns.clone(), free(), vec![dns.as_str(), "in use"]),
        (format!("0.0.0.0:{}", first.dns.port()), free(), vec!["in use"]),
        (free(), admin.clone(), vec![admin.as_str(), "in use", "--admin"]),
    ];
    for (listen, admin, words) in others {
        fails(&["--from", &example, "--listen", &listen, "--admin", &admin], &words);
        let socket = udp(first.dns);
        for id in 0..50 {
            assert_eq!(ask(&socket, id, "web.shop.svc", A).rcode, NOERROR, "the first one answers all");
        }
        assert_eq!(first.get("/ready").await, (200, "OK".to_owned()));
    }
}

#[test]
fn what_can_not_be_started_ends_with_1_and_a_remedy() {
    let bed = Bed::new().unwrap();
    let at = |args: &[&str]| -> Vec<String> {
        let ports = [format!("127.0.0.1:{}", bed.port().unwrap()), format!("127.0.0.1:{}", bed.port().unwrap())];
        let places = ["--listen", &ports[0], "--admin", &ports[1]];
        args.iter().chain(&places).map(|arg| (*arg).to_owned()).collect()
    };
    let fails = |args: &[&str], words: &[&str]| {
        let args = at(args);
        fails(&args.iter().map(String::as_str).collect::<Vec<_>>(), words);
    };
    let nowhere = bed.dir().join("nowhere").to_string_lossy().into_owned();
    fails(&["--from", &nowhere], &[&nowhere, "there is no such folder", "--from"]);
    let file = bed.file("web.yaml", "").unwrap().to_string_lossy().into_owned();
    fails(&["--from", &file], &[&file, "not a folder"]);
    fails(&["--kubeconfig", &nowhere], &[&nowhere, "--kubeconfig"]);
    let config = kubeconfig(&bed, "kubeconfig", 1, &json!({}));
    fails(&["--kubeconfig", &config, "--context", "elsewhere"], &["elsewhere", "here", "--context"]);
    let broken = bed.file("broken", "{").unwrap().to_string_lossy().into_owned();
    fails(&["--kubeconfig", &broken], &[&broken, "--kubeconfig"]);
}

/// Credentials may come from a program, and programs hang.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_do_not_come_keep_nobody_from_dns_admin_or_a_signal() {
    let bed = Bed::new().unwrap();
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["300"],
                               "interactiveMode": "Never"}});
    let config = kubeconfig(&bed, "kubeconfig", 1, &exec);
    let server = Namesake::start(&bed, &["--kubeconfig", &config, "--startup-timeout", "500ms"]).unwrap();
    server.wait_for("/health", |code, body| (code, body) == (200, "OK")).await;
    server.process.wait_for_line("DNS on ", PATIENCE).await.unwrap();
    assert_eq!(ask(&udp(server.dns), 1, "web.shop.svc", A).rcode, 2, "SERVFAIL");
    assert_eq!(server.get("/ready").await.0, 503);
    server.process.signal("TERM").unwrap();
    let status = server.process.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", server.process.log().unwrap());
}
