//! L9: the API server is gone, and what is served grows old in plain sight. In real time, since no setting shortens
//! it: 70 seconds, in which the quiet cluster beside it proves that quiet is not stale.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testbed::dig;

use crate::api::{Watching, metric, until};
use crate::scripted::Scripted;

const WEB: &str = "web.shop.svc.clusterset.local.";
const AGE: &str = r#"namesake_watch_last_event_age_seconds{resource="serviceimports"}"#;

/// When `max_stale` strikes.
const EXPIRED: Duration = Duration::from_secs(64);

/// Status, addresses, extended errors.
fn ask(server: SocketAddr) -> (String, Vec<String>, Vec<u16>) {
    let reply = dig(server, &[WEB, "A"]).unwrap();
    let errors = reply.edns.as_ref().map(|edns| edns.errors.iter().map(|(code, _)| *code).collect());
    (reply.status.clone(), reply.data("A").into_iter().map(str::to_owned).collect(), errors.unwrap_or_default())
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
    let lost = Watching::ready(api().await, &["--max-stale", "64s"]).await;
    // Its API server has nothing to tell, and sends no bookmark either: only the ends of its watches show that it is
    // there.
    let quiet = Watching::ready(api().await, &["--max-stale", "64s"]).await;
    lost.asked("watch", "serviceimports", 1).await;
    lost.asked("watch", "endpointslices", 1).await;
    lost.api.change(|script| script.down = true);
    let began = Instant::now();
    until("the watch is down", async || metric(&lost, r#"namesake_watch_up{resource="serviceimports"}"#).await == 0.0)
        .await;

    let (mut stale, mut expired) = (None, None);
    let mut oldest = 0.0_f64;
    while began.elapsed() < EXPIRED + Duration::from_secs(6) {
        let at = began.elapsed();
        let (status, addresses, errors) = ask(lost.dns);
        match (status.as_str(), errors.as_slice()) {
            ("NOERROR", []) => {
                assert!(stale.is_none() && expired.is_none(), "fresh again after {at:?}");
                assert_eq!(addresses, ["10.1.0.1"]);
            }
            ("NOERROR", [3]) => {
                assert!(expired.is_none(), "after {at:?}");
                assert_eq!(addresses, ["10.1.0.1"]);
                if stale.replace(at).is_none() {
                    println!("stale after {at:?}");
                    let bare = dig(lost.dns, &["+noedns", WEB, "A"]).unwrap();
                    assert!(bare.edns.is_none() && bare.data("A") == ["10.1.0.1"], "{}", bare.text);
                    assert!((59..63).contains(&at.as_secs()), "{at:?}");
                }
            }
            ("SERVFAIL", [3]) => {
                assert!(addresses.is_empty());
                if expired.replace(at).is_none() {
                    println!("expired after {at:?}");
                    assert!(at >= EXPIRED - Duration::from_secs(1), "{at:?}");
                }
            }
            other => panic!("{other:?} after {at:?}"),
        }
        assert_eq!(lost.get("/ready").await, (200, "OK".to_owned()), "readiness has no way back");
        assert_eq!(ask(quiet.dns), fresh(), "quiet is not stale, after {at:?}");
        oldest = oldest.max(metric(&quiet, AGE).await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(stale.is_some() && expired.is_some(), "{stale:?} {expired:?}");
    println!("the quiet cluster's data was {oldest} s old at most");
    assert!(oldest < 60.0 && oldest > 30.0, "{oldest}: watches are asked for 40 to 50 s");
    assert!(metric(&lost, AGE).await > EXPIRED.as_secs_f64());
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
    assert!(took < Duration::from_secs(4), "a pause, a list and the tick of a second: {took:?}");
    lost.process.wait_for_line("the data is fresh again", Duration::from_secs(5)).await.unwrap();
}
