use super::*;
use crate::model::ServiceKey;
use crate::reconcile::plan::{Action, Change};

fn target(name: &str) -> Target {
    Target::Service(ServiceKey::new("shop", name).unwrap())
}

fn job(name: &str, reason: &str) -> Job {
    let key = ServiceKey::new("shop", name).unwrap();
    let cluster = crate::model::ClusterId::new("east").unwrap();
    let change = Change { cluster, action: Action::CreateExport(key), reason: reason.into() };
    Job { target: target(name), changes: vec![change], events: Vec::new() }
}

fn outbox(concurrent: usize, per_second: u32) -> (Outbox, Instant) {
    let now = Instant::now();
    (Outbox::new(WriteLimits { per_second, concurrent }, now), now)
}

fn put(outbox: &mut Outbox, name: &str) {
    outbox.put(target(name), Some(job(name, "")));
}

/// The names of what may go out now.
fn out(outbox: &mut Outbox, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| outbox.next(now)).map(|(target, _)| target.to_string()).collect()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_newest_plan_goes_out_and_none_beside_a_running_one() {
    let (mut outbox, now) = outbox(8, 100);
    outbox.put(target("web"), Some(job("web", "old")));
    put(&mut outbox, "db");
    outbox.put(target("web"), Some(job("web", "new")));
    outbox.put(target("db"), None);
    let (_, sent) = outbox.next(now).unwrap();
    assert_eq!(&*sent.unwrap().changes[0].reason, "new");
    assert_eq!(outbox.next(now), None, "db is not wanted any more");
    assert!(outbox.is_running(&target("web")));
    put(&mut outbox, "web");
    assert_eq!(outbox.next(now), None, "web is under way");
    assert_eq!(outbox.wake(now), None, "and nothing is to be waited for but its end");
    outbox.done(&target("web"), None, true, now);
    assert_eq!(out(&mut outbox, now), [""; 0], "it is to be planned anew");
    put(&mut outbox, "web");
    assert_eq!(out(&mut outbox, now), ["shop/web"]);
}

#[test]
fn mcs_r95_no_more_than_a_few_at_a_time_and_no_more_than_a_rate() {
    let (mut outbox, now) = outbox(2, 10);
    for name in ["a", "b", "c"] {
        put(&mut outbox, name);
    }
    assert_eq!(out(&mut outbox, now), ["shop/a", "shop/b"]);
    let mut large = job("a", "");
    large.changes = vec![large.changes[0].clone(); 25];
    outbox.started(&large);
    outbox.done(&target("a"), None, true, now);
    assert_eq!(out(&mut outbox, now), [""; 0], "more went out than two seconds' worth");
    assert_eq!(outbox.wake(now), Some(now + ms(600)));
    assert_eq!(out(&mut outbox, now + ms(590)), [""; 0]);
    assert_eq!(out(&mut outbox, now + ms(601)), ["shop/c"]);
}

#[test]
fn mcs_r95_what_is_refused_waits_ever_longer_and_delays_nobody() {
    let (mut outbox, mut now) = outbox(8, 100);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        put(&mut outbox, "bad");
        let wake = outbox.wake(now).unwrap();
        pauses.push(wake.saturating_duration_since(now));
        now = wake;
        assert_eq!(out(&mut outbox, now), ["shop/bad"]);
        outbox.done(&target("bad"), Some(&Trouble::Refused(String::new())), false, now);
        put(&mut outbox, "good");
        assert_eq!(out(&mut outbox, now), ["shop/good"]);
        outbox.done(&target("good"), None, true, now);
    }
    assert_eq!(pauses[0], Duration::ZERO);
    assert!((ms(750)..=ms(1000)).contains(&pauses[1]), "{pauses:?}");
    assert!((ms(1500)..=ms(2000)).contains(&pauses[2]), "{pauses:?}");
    assert!((ms(45_000)..=ms(60_000)).contains(&pauses[7]), "{pauses:?}");
    put(&mut outbox, "bad");
    now = outbox.wake(now).unwrap();
    assert_eq!(out(&mut outbox, now), ["shop/bad"]);
    outbox.done(&target("bad"), None, true, now);
    put(&mut outbox, "bad");
    assert_eq!(out(&mut outbox, now), ["shop/bad"], "after a success nothing is held against it");
}

#[test]
fn mcs_r95_a_member_that_does_not_answer_has_a_pause_as_a_whole() {
    let (mut outbox, now) = outbox(8, 100);
    put(&mut outbox, "a");
    assert_eq!(out(&mut outbox, now), ["shop/a"]);
    outbox.done(&target("a"), Some(&Trouble::Unreachable(String::new())), false, now);
    put(&mut outbox, "a");
    put(&mut outbox, "b");
    assert_eq!(out(&mut outbox, now + ms(370)), [""; 0]);
    let wake = outbox.wake(now).unwrap();
    assert!((ms(375)..=ms(500)).contains(&(wake - now)));
    assert!(out(&mut outbox, wake).contains(&"shop/b".to_owned()));
    outbox.done(&target("b"), Some(&Trouble::Busy(String::new(), Some(ms(9000)))), false, wake);
    put(&mut outbox, "c");
    assert_eq!(outbox.wake(wake), Some(wake + ms(9000)), "as long as the API server asks for");
    put(&mut outbox, "b");
    outbox.reached();
    let now = out(&mut outbox, wake);
    assert!(now.contains(&"shop/b".to_owned()) && now.contains(&"shop/c".to_owned()), "it answers again: {now:?}");
}

#[test]
fn mcs_r5_what_waits_for_a_namespace_goes_out_when_that_changes() {
    let (mut outbox, now) = outbox(8, 100);
    put(&mut outbox, "a");
    assert_eq!(out(&mut outbox, now), ["shop/a"]);
    outbox.done(&target("a"), Some(&Trouble::NamespaceGone(String::new())), false, now);
    put(&mut outbox, "a");
    assert_eq!(out(&mut outbox, now + ms(60_000)), [""; 0], "not tried while it is going");
    outbox.namespace_changed(&Label::new("other").unwrap());
    assert_eq!(out(&mut outbox, now + ms(60_000)), [""; 0]);
    outbox.namespace_changed(&Label::new("shop").unwrap());
    assert_eq!(out(&mut outbox, now + ms(60_000)), ["shop/a"]);
}

#[test]
fn of_many_jobs_only_the_names_are_kept() {
    let (mut outbox, now) = outbox(10_000, 10_000);
    for n in 0..1000 {
        put(&mut outbox, &format!("s{n}"));
    }
    assert_eq!(outbox.len(), 1000);
    let sent: Vec<_> = std::iter::from_fn(|| outbox.next(now)).collect();
    assert_eq!(sent.len(), 1000);
    assert_eq!(sent.iter().filter(|(_, job)| job.is_some()).count(), KEPT);
}

/// A job that only writes a status, with words that tell it from others.
fn status(name: &str, words: &str) -> Job {
    let key = ServiceKey::new("shop", name).unwrap();
    let condition = crate::reconcile::objects::Condition {
        kind: "Ready".into(),
        status: crate::reconcile::objects::Status::True,
        reason: "Exported".into(),
        message: words.into(),
        generation: 1,
        since: crate::reconcile::objects::Time(0),
    };
    let mut job = job(name, "");
    job.changes[0].action = Action::ApplyExportStatus(key, vec![condition]);
    job
}

#[test]
fn one_who_stands_by_keeps_nothing_of_what_others_have_written() {
    let (mut outbox, now) = outbox(8, 100);
    for _ in 0..10_000 {
        put(&mut outbox, "web");
        outbox.put(target("web"), None);
    }
    assert_eq!((outbox.len(), outbox.ready[0].len(), outbox.wake(now)), (0, 0, None));
    put(&mut outbox, "web");
    assert_eq!(out(&mut outbox, now), ["shop/web"]);
    outbox.done(&target("web"), Some(&Trouble::Refused(String::new())), false, now);
    put(&mut outbox, "web");
    assert_eq!(out(&mut outbox, now), [""; 0], "its gate counts");
}

#[test]
fn mcs_r95_endpoints_do_not_wait_behind_the_words_of_an_outage() {
    let (mut outbox, now) = outbox(100, 1000);
    for n in 0..20 {
        outbox.put(target(&format!("s{n}")), Some(status(&format!("s{n}"), "Unreachable: z.")));
    }
    for n in 0..10 {
        put(&mut outbox, &format!("e{n}"));
    }
    outbox.put(target("s19"), Some(job("s19", "its endpoints changed, too")));
    let order = out(&mut outbox, now);
    let last = order.iter().position(|name| name == "shop/s19").unwrap();
    assert!(last < 13 && order[..last].iter().filter(|name| name.starts_with("shop/s")).count() == 1, "{order:?}");
    assert_eq!(order.len(), 30);
}

#[test]
fn mcs_r95_what_somebody_changes_back_is_written_ever_more_slowly() {
    let (mut outbox, mut now) = outbox(8, 100);
    let (mut told, mut pauses) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        outbox.put(target("web"), Some(status("web", "the same")));
        let wake = outbox.wake(now).unwrap();
        pauses.push(wake.saturating_duration_since(now).as_secs());
        now = wake;
        let (_, sent) = outbox.next(now).unwrap();
        outbox.started(&sent.unwrap());
        told.extend(outbox.done(&target("web"), None, true, now));
    }
    assert_eq!(told, [6, 7, 8, 9, 10, 11, 12]);
    assert!(pauses[..6].iter().all(|pause| *pause == 0) && pauses[11] >= 12, "{pauses:?}");
    for n in 0..20 {
        outbox.put(target("db"), Some(status("db", &format!("something new: {n}"))));
        let (_, sent) = outbox.next(now).unwrap();
        outbox.started(&sent.unwrap());
        assert_eq!(outbox.done(&target("db"), None, true, now), None);
    }
}

#[test]
fn mcs_r95_an_error_about_one_object_pauses_that_one_and_errors_about_many_pause_all() {
    let (mut outbox, now) = outbox(8, 100);
    let fail = |outbox: &mut Outbox, name: &str| {
        put(outbox, name);
        assert_eq!(out(outbox, now), [format!("shop/{name}")]);
        outbox.done(&target(name), Some(&Trouble::Broken(String::new())), false, now);
    };
    for name in ["a", "b", "c", "d"] {
        fail(&mut outbox, name);
    }
    put(&mut outbox, "good");
    assert_eq!(out(&mut outbox, now), ["shop/good"]);
    outbox.done(&target("good"), None, true, now);
    for name in ["e", "f", "g", "h", "i"] {
        fail(&mut outbox, name);
    }
    put(&mut outbox, "good");
    assert_eq!(out(&mut outbox, now), [""; 0], "the API server is broken");
}

#[test]
fn mcs_r57_r95_what_somebody_changes_back_each_time_waits_ever_longer_though_statuses_lie_between() {
    let (mut outbox, now) = outbox(8, 1000);
    let status = |generation| {
        let condition = crate::reconcile::objects::Condition {
            kind: "Ready".into(),
            status: crate::reconcile::objects::Status::True,
            reason: "Ready".into(),
            message: "".into(),
            generation,
            since: crate::reconcile::objects::Time(generation),
        };
        let key = ServiceKey::new("shop", "web").unwrap();
        let mut job = job("web", "");
        job.changes[0].action = Action::ApplyExportStatus(key, vec![condition]);
        job
    };
    let mut told = Vec::new();
    for round in 0..8 {
        for job in [job("web", ""), status(round)] {
            outbox.put(target("web"), Some(job));
            if let Some((_, Some(job))) = outbox.next(now) {
                outbox.started(&job);
                told.extend(outbox.done(&target("web"), None, true, now));
            }
        }
    }
    assert_eq!(told, [6], "from then on it waits");
    assert!(outbox.wake(now).is_some_and(|wake| wake > now));
    assert!(outbox.next(now + ms(1000)).is_some(), "and is tried again");
}

#[test]
fn endpoints_that_come_and_go_are_no_quarrel() {
    let (mut outbox, now) = outbox(8, 1000);
    for round in 0..20 {
        let mut job = job("web", "");
        if round % 2 == 0 {
            job.changes.clear();
        }
        job.changes.extend(self::job("db", "").changes);
        outbox.put(target("web"), Some(job));
        let (_, job) = outbox.next(now).unwrap();
        outbox.started(&job.unwrap());
        assert_eq!(outbox.done(&target("web"), None, true, now), None);
    }
}
