//! Chapters 5 and 10, as far as the feed and replies show it: UPD-01, SCL-02, SCL-03, SCL-06.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use namesake::answers::{Options, Store};
use namesake::feed::{Feed, Now, resync};
use namesake::metrics::{Metrics, State};
use namesake::model::{Change, SkipReason, Update};
use namesake::source::Health;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::support::*;

#[test]
fn case_upd_01_the_new_address_is_served_at_once_and_the_old_one_nowhere() {
    let mut live = Live::new(F1.to_owned() + F2);
    live.zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.11"]);
    // A pod that comes back with another address. No time passes: nothing is held back, and no answer is kept.
    live.wait(Duration::from_secs(1)).burst(&[&replace(F2, "10.1.0.11", "10.1.0.99")]);
    live.zone.ask("db-0.east.db.shop.svc", A).addresses(["10.1.0.99"]).ttl(5);
    live.zone.ask("db.shop.svc", A).addresses(["10.1.0.99", "10.1.0.12", "10.2.0.21"]).ttl(5);
    let srv = live.zone.ask("_pg._tcp.db.shop.svc", SRV);
    assert!(!srv.to_string().contains("10.1.0.11"), "{srv}");
    live.burst(&[&clustersetip("shop/web", &["10.96.7.9"], &["http/80"])]);
    live.zone.ask("web.shop.svc", A).addresses(["10.96.7.9"]);
}

#[test]
fn case_upd_01_how_long_others_keep_an_address_is_the_operators_choice() {
    for ttl in [0, 1, 5, 30, 3600] {
        let zone = zone_with(options(|o| o.ttl = ttl), F2);
        zone.ask("db.shop.svc", A).ttl(ttl);
        zone.ask("db-0.east.db.shop.svc", A).ttl(ttl);
    }
}

#[test]
fn case_scl_02_slices_of_clustersetip_imports_make_no_answers_grow() {
    let services: String =
        (0..200).map(|n| clustersetip(&format!("shop/s{n}"), &["10.96.7.7"], &["http/80"])).collect();
    let mut live = Live::new(&services);
    let (before, serial) = (live.zone.store.counts(), live.zone.store.serial().get());
    let ten: Vec<String> = (1..=10).map(|n| format!("pod-{n}=10.1.0.{n}")).collect();
    let ten: Vec<&str> = ten.iter().map(String::as_str).collect();
    let slices: String = (0..200).map(|n| slice(&format!("shop/s{n}"), "east", &["http/80"], &ten)).collect();
    live.apply(slices).wait(Duration::from_secs(5));
    assert_eq!(live.zone.store.counts(), before, "services and endpoint names that are served");
    assert_eq!(live.zone.store.serial().get(), serial, "no record changed");
    live.zone.ask("s7.shop.svc", A).addresses(["10.96.7.7"]);
    live.zone.ask("pod-1.east.s7.shop.svc", A).nxdomain();
}

#[test]
fn case_scl_03_names_at_their_limits_are_served_and_beyond_them_left_out() {
    let (long, host) = ("l".repeat(63), "h".repeat(63));
    // 63 + 1 + 63 + 1 + 3 + 17 = 148 bytes of service, namespace and zone, and an endpoint's two labels in front.
    let service = format!("{long}/{long}");
    let name = format!("{long}.{long}.svc");
    let endpoints = [format!("{host}=10.1.0.1"), "h=10.1.0.2".to_owned()];
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    for (cluster, both) in [("c", true), ("a-cluster.with-a-context", true), (&*long, false)] {
        let zone = zone(headless(&service, &["pg/5432"]) + &slice(&service, cluster, &["pg/5432"], &endpoints));
        zone.ask(&name, A).addresses(["10.1.0.1", "10.1.0.2"]);
        zone.ask(&format!("h.{cluster}.{name}"), A).addresses(["10.1.0.2"]);
        let targets = zone.ask(&format!("_pg._tcp.{name}"), SRV).noerror().count();
        assert_eq!(targets, 1 + usize::from(both), "{cluster}");
    }
    // Dash-joined, these two would be one.
    let zone = zone(
        clustersetip("a-b/c", &["10.96.0.1"], &["http/80"]) + &clustersetip("a/b-c", &["10.96.0.2"], &["http/80"]),
    );
    zone.ask("c.a-b.svc", A).addresses(["10.96.0.1"]);
    zone.ask("b-c.a.svc", A).addresses(["10.96.0.2"]);
}

/// A feed that counts, synced with these manifests.
fn counting(manifests: &str) -> (Feed, Arc<Metrics>, Now) {
    let options = Options::default();
    let metrics = Arc::new(Metrics::new(&options.zones, "multicluster"));
    let (store, health) = (Arc::new(Store::new(options)), Arc::new(Health::new(true)));
    let now = Now::read();
    let mut feed = Feed::new(store, health, Some(Arc::clone(&metrics)), now);
    feed.take(resync(changes(&Options::default(), manifests)), now);
    (feed, metrics, now)
}

/// How often a change was timed, over all kinds of service.
fn timed(metrics: &Metrics) -> u64 {
    let text = metrics.render(State::default()).expect("metrics");
    let counts = text.lines().filter(|l| l.starts_with("coredns_kubernetes_dns_programming_duration_seconds_count"));
    counts.map(|line| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a count")).sum()
}

#[test]
fn case_scl_06_each_change_of_a_slice_is_timed_once_and_a_list_of_the_same_is_none() {
    let timed_slice = |address: &str, at: SystemTime| {
        let at = namesake::telemetry::rfc3339(at);
        let slice = slice("shop/db", "east", &["pg/5432"], &[&format!("db-0={address}")]);
        replace(
            &slice,
            "labels:",
            &format!("annotations: {{endpoints.kubernetes.io/last-change-trigger-time: {at:?}}}, labels:"),
        )
    };
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let all = |slice: &str| headless("shop/db", &["pg/5432"]) + slice;
    let (mut feed, metrics, mut now) = counting(&all(&timed_slice("10.1.0.1", long_ago)));
    assert_eq!(timed(&metrics), 0, "what was there before us was not programmed by us");
    let mut take = |updates: Vec<Update>, feed: &mut Feed| {
        now.instant += Duration::from_secs(1);
        feed.take(updates, now);
    };
    let of = |manifests: &str| changes(&Options::default(), manifests);
    // A list that brings the same again, and then a change of the import alone.
    take(resync(of(&all(&timed_slice("10.1.0.1", long_ago)))).collect(), &mut feed);
    let renamed = headless("shop/db", &["postgres/5432"]);
    take(of(&renamed).into_iter().map(Update::Change).collect(), &mut feed);
    assert_eq!(timed(&metrics), 0, "an hour-old change is not programmed now");
    for (number, address) in ["10.1.0.2", "10.1.0.3"].into_iter().enumerate() {
        let slice = timed_slice(address, SystemTime::now());
        take(of(&slice).into_iter().map(Update::Change).collect(), &mut feed);
        take(of(&slice).into_iter().map(Update::Change).collect(), &mut feed);
        assert_eq!(timed(&metrics), number as u64 + 1);
    }
}

#[test]
fn case_dns_05_an_object_full_of_bad_parts_fills_no_log_and_holds_nothing_up() {
    let bad: Vec<String> = (0..20_000).map(|n| format!("224.0.{}.{}", n / 256, n % 256)).collect();
    let slice = |extra: &str| {
        let endpoints: Vec<&str> = std::iter::once(extra).chain(bad.iter().map(String::as_str)).collect();
        slice("shop/db", "east", &["pg/5432"], &endpoints)
    };
    let (mut feed, _, mut now) = counting(&(headless("shop/db", &["pg/5432"]) + &slice("10.1.0.1")));
    let of = |manifests: &str| changes(&Options::default(), manifests).into_iter().map(Update::Change);
    let next = of(&slice("10.1.0.2")).collect::<Vec<_>>();
    let skips = |feed: &Feed| {
        let index = feed.index();
        let index = index.read().expect("the index");
        index.tally().skips().map(|(reason, _, count)| (reason, count)).collect::<Vec<_>>()
    };
    assert_eq!(skips(&feed), [(SkipReason::ForbiddenAddress, 20_000)], "all are counted");
    // The same parts at other places would be 20,000 news, each compared with 20,000 olds.
    let cpu = || {
        let used = getrusage(UsageWho::RUSAGE_THREAD).expect("what this thread used");
        Duration::from_micros(used.user_time().num_microseconds().unsigned_abs())
    };
    let before = cpu();
    now.instant += Duration::from_secs(1);
    feed.take(next, now);
    // Of the CPU, since what else the machine does takes time and no CPU of ours.
    let took = cpu() - before;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let mut effects = namesake::index::Effects::default();
    let mut index = namesake::index::Index::new();
    for change in of(&slice("10.1.0.1")) {
        index.apply(change, &mut effects);
    }
    assert_eq!(effects.skipped.len(), 11, "ten lines, and one that says how many more");
    assert!(effects.skipped[10].1.what.contains("19990 more"), "{:?}", effects.skipped[10]);
    let explained = index.slices_of(&namesake::model::ServiceKey::new("shop", "db").expect("a key"));
    assert_eq!(explained[0].1.skipped.len(), 20_000, "explain has all of them");
    assert!(matches!(of(&slice("10.1.0.1")).next(), Some(Update::Change(Change::Slice(..)))));
}
