//! L1 to L6: from the start to the first sync.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use namesake::model::Resource;
use testbed::{Dig, dig};

use crate::api::{Watching, until};
use crate::product::{Namesake, PATIENCE};
use crate::scripted::Scripted;

fn ask(server: SocketAddr, name: &str, kind: &str) -> Dig {
    dig(server, &[name, kind]).unwrap()
}

/// Names that hang on the cluster's data.
const DATA: [&str; 5] = [
    "web.shop.svc.clusterset.local.",
    "nope.shop.svc.clusterset.local.",
    "shop.svc.clusterset.local.",
    "_http._tcp.web.shop.svc.clusterset.local.",
    "db-0.east.db.shop.svc.clusterset.local.",
];

/// L3 and L4, as a client sees them.
fn not_ready(server: SocketAddr) {
    for name in DATA {
        for kind in ["A", "AAAA", "SRV", "TXT"] {
            let reply = ask(server, name, kind);
            assert_eq!((reply.status.as_str(), reply.has("aa")), ("SERVFAIL", false), "{}", reply.text);
            assert!(reply.answer.is_empty() && reply.authority.is_empty(), "{}", reply.text);
            let errors = reply.edns.expect("dig sends an OPT").errors;
            assert_eq!(errors.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [14], "{}", reply.text);
        }
    }
    let soa = ask(server, "clusterset.local.", "SOA");
    assert_eq!((soa.status.as_str(), soa.answer.len()), ("NOERROR", 1), "{}", soa.text);
    assert_eq!(ask(server, "dns-version.clusterset.local.", "TXT").data("TXT"), ["\"1.0.0\""]);
    let svc = ask(server, "svc.clusterset.local.", "A");
    assert_eq!((svc.status.as_str(), svc.answer.len(), svc.authority.len()), ("NOERROR", 0, 1), "{}", svc.text);
    assert_eq!(ask(server, "example.org.", "A").status, "REFUSED");
}

/// What is there from the first moment on, whatever the API server does.
async fn admin_answers(server: &Namesake) {
    server.wait_for("/health", |code, body| (code, body) == (200, "OK")).await;
    assert_eq!(server.get("/ready").await, (503, "multicluster".to_owned()));
    let (code, metrics) = server.get("/metrics").await;
    assert!(code == 200 && metrics.contains("\nnamesake_synced 0\n"), "{metrics}");
}

fn refused(server: SocketAddr) -> bool {
    TcpStream::connect(server).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// Waits until every DNS socket is open. That of TCP, which shows whether the door is shut, is so a moment before UDP's.
async fn bound(server: &Namesake) {
    server.wait_for("/ready?verbose", |_, text| text.contains("[+] dns sockets: bound")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_wch_08_dns_l1_l3_l5_an_api_server_that_never_answers_is_not_waited_for_for_ever() {
    let api = Scripted::start().await;
    api.import("web", "10.1.0.1");
    api.script().silent = true;
    let began = Instant::now();
    let watching = Watching::start(api, &["--startup-timeout", "4s"]);
    admin_answers(&watching).await;
    watching.asked("get", "discovery", 1).await;
    let closed = refused(watching.dns);
    if began.elapsed() < Duration::from_secs(4) {
        assert!(closed, "DNS before the time is out");
    }

    until("DNS is open", async || !refused(watching.dns)).await;
    let opened = began.elapsed();
    assert!(opened >= Duration::from_secs(4), "opened after {opened:?}");
    watching.process.wait_for_line("no complete lists after 4s", PATIENCE).await.unwrap();
    bound(&watching).await;
    not_ready(watching.dns);
    admin_answers(&watching).await;
    let (code, text) = watching.get("/ready?verbose").await;
    assert_eq!(code, 503, "{text}");
    for plural in ["serviceimports", "endpointslices"] {
        assert!(text.contains(plural), "{text}");
    }

    watching.api.change(|script| script.silent = false);
    watching.wait_ready().await;
    assert_eq!(ask(watching.dns, DATA[0], "A").data("A"), ["10.1.0.1"]);
    assert_eq!(ask(watching.dns, DATA[1], "A").status, "NXDOMAIN");
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l1_l6_dns_and_readiness_come_with_the_first_complete_lists() {
    let api = Scripted::start().await;
    api.import("web", "10.1.0.1");
    api.script().silent = true;
    let watching = Watching::start(api, &["--startup-timeout", "1m"]);
    admin_answers(&watching).await;
    watching.asked("get", "discovery", 1).await;
    watching.asked("list", "endpointslices", 1).await;
    assert!(refused(watching.dns));
    watching.api.change(|script| script.silent = false);
    // Long before startup_timeout.
    bound(&watching).await;
    // Whoever asks now gets the whole data at once.
    assert_eq!(ask(watching.dns, DATA[0], "A").data("A"), ["10.1.0.1"]);
    watching.wait_ready().await;
    assert_eq!(watching.get("/ready").await, (200, "OK".to_owned()));
    watching.process.wait_for_line("DNS on ", PATIENCE).await.unwrap();
    assert!(!watching.process.log().unwrap().contains("no complete lists after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l2_l5_half_the_lists_are_not_enough() {
    let api = Scripted::start().await;
    api.import("web", "10.1.0.1");
    api.slice("web-east", "web", "10.0.0.1");
    api.change(|script| script.forbidden = vec![("list", Resource::Slices)]);
    let watching = Watching::start(api, &["--startup-timeout", "100ms"]);
    watching.asked("watch", "serviceimports", 1).await;
    bound(&watching).await;
    watching
        .wait_for("/ready?verbose", |code, text| {
            code == 503 && text.contains("not allowed to list endpointslices.discovery.k8s.io")
        })
        .await;
    // The import is known, and its addresses are; but not whether they are all there is to say.
    not_ready(watching.dns);
    watching.api.change(|script| script.forbidden.clear());
    watching.wait_ready().await;
    assert_eq!(ask(watching.dns, DATA[0], "A").data("A"), ["10.1.0.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l1_l15_a_signal_before_the_first_sync_ends_it() {
    let api = Scripted::start().await;
    api.script().silent = true;
    let watching = Watching::start(api, &["--startup-timeout", "1m", "--lameduck", "1m"]);
    watching.asked("get", "discovery", 1).await;
    watching.process.signal("TERM").unwrap();
    let status = watching.process.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", watching.process.log().unwrap());
}
