//! L9: the API server is gone, and what is served grows old in plain sight. In real time, since no setting shortens
//! it: 75 seconds, in which the quiet cluster beside it proves that quiet is not stale.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testbed::dig;

use crate::api::{Watching, metric, until};
use crate::product::{Namesake, PATIENCE};
use crate::scripted::Scripted;

const WEB: &str = "web.shop.svc.clusterset.local.";
const AGE: &str = r#"namesake_watch_last_event_age_seconds{resource="serviceimports"}"#;

/// When data is called stale, in seconds.
const STALE: f64 = 60.0;

/// When `max_stale` strikes: long enough after that for the time between to be seen.
const EXPIRED: Duration = Duration::from_secs(70);

/// Status, addresses, extended errors.
fn ask(server: SocketAddr) -> (String, Vec<String>, Vec<u16>) {
    let reply = dig(server, &[WEB, "A"]).unwrap();
    let errors = reply.edns.as_ref().map(|edns| edns.errors.iter().map(|(code, _)| *code).collect());
    (reply.status.clone(), reply.data("A").into_iter().map(str::to_owned).collect(), errors.unwrap_or_default())
}

/// How old the data is, as the server says of the watch that is quiet for longer.
async fn age(server: &Namesake) -> f64 {
    metric(server, AGE).await.max(metric(server, &AGE.replace("serviceimports", "endpointslices")).await)
}

fn fresh() -> (String, Vec<String>, Vec<u16>) {
    ("NOERROR".to_owned(), vec!["10.1.0.1".to_owned()], vec![])
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_l9_old_data_says_so_after_a_minute_ends_at_max_stale_and_quiet_data_is_not_old() {
    let api = || async {
        let api = Scripted::start().await;
        api.import("web", "10.1.0.1");
        api.slice("web-east", "web", "10.0.0.1");
        api
    };
    let lost = Watching::ready(api().await, &["--max-stale", "70s"]).await;
    // Its API server has nothing to tell, and sends no bookmark either: only the ends of its watches show that it is
    // there.
    let quiet = Watching::ready(api().await, &["--max-stale", "70s"]).await;
    lost.asked("watch", "serviceimports", 1).await;
    lost.asked("watch", "endpointslices", 1).await;
    lost.api.change(|script| script.down = true);
    until("the watch is down", async || metric(&lost, r#"namesake_watch_up{resource="serviceimports"}"#).await == 0.0)
        .await;

    // All is judged by the age that the server itself tells: read after an answer it says whether the answer came too
    // early. Whether one came too late the age of the round before says, and a round is time enough for the server's
    // tick, should the machine have stood still.
    let began = Instant::now();
    let (mut before, mut now) = (0.0, 0.0);
    let (mut stale, mut expired) = (false, None::<Instant>);
    let mut oldest = 0.0_f64;
    while expired.is_none_or(|at| at.elapsed() < Duration::from_secs(5)) {
        assert!(began.elapsed() < EXPIRED + 2 * PATIENCE, "{before} s old, stale: {stale}");
        (before, now) = (now, age(&lost).await);
        let (status, addresses, errors) = ask(lost.dns);
        match (status.as_str(), errors.as_slice()) {
            ("NOERROR", []) => {
                assert!(!stale && expired.is_none(), "fresh again, {now} s old");
                assert!(before < STALE + 2.0, "fresh, {before} s old");
                assert_eq!(addresses, ["10.1.0.1"]);
            }
            ("NOERROR", [3]) => {
                assert!(expired.is_none(), "served again, {now} s old");
                assert!(before < EXPIRED.as_secs_f64() + 2.0, "served, {before} s old");
                assert_eq!(addresses, ["10.1.0.1"]);
                if !stale {
                    let now = age(&lost).await;
                    println!("stale, {now} s old");
                    assert!(now > STALE, "{now}");
                    let bare = dig(lost.dns, &["+noedns", WEB, "A"]).unwrap();
                    assert!(bare.edns.is_none() && bare.data("A") == ["10.1.0.1"], "{}", bare.text);
                    stale = true;
                }
            }
            ("SERVFAIL", [3]) => {
                assert!(addresses.is_empty());
                if expired.is_none() {
                    let now = age(&lost).await;
                    println!("expired, {now} s old");
                    assert!(now > EXPIRED.as_secs_f64(), "{now}");
                    expired = Some(Instant::now());
                }
            }
            other => panic!("{other:?}, {now} s old"),
        }
        assert_eq!(lost.get("/ready").await, (200, "OK".to_owned()), "readiness has no way back");
        assert_eq!(ask(quiet.dns), fresh(), "quiet is not stale, {now} s after the other one");
        oldest = oldest.max(metric(&quiet, AGE).await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(stale, "it was never said that the data is stale");
    println!("the quiet cluster's data was {oldest} s old at most");
    assert!(oldest < 60.0 && oldest > 30.0, "{oldest}: watches are asked for 40 to 50 s");
    // What comes from us, not from the cluster, is never stale.
    let version = dig(lost.dns, &["dns-version.clusterset.local.", "TXT"]).unwrap();
    assert_eq!(version.data("TXT"), ["\"1.0.0\""]);
    for line in ["answers go on and say so (EDE 3)", "older than max_stale"] {
        let count = lost.process.log().unwrap().matches(line).count();
        assert_eq!(count, 1, "{line}: {}", lost.process.log().unwrap());
    }

    lost.api.change(|script| script.down = false);
    let took = until("it is fresh again", async || ask(lost.dns) == fresh()).await;
    println!("fresh {took:?} after the API server's return");
    lost.process.wait_for_line("the data is fresh again", PATIENCE).await.unwrap();
}
