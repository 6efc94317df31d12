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
    outbox.done(&target("web"), None, now);
    assert_eq!(out(&mut outbox, now), ["shop/web"]);
}

#[test]
fn mcs_r95_no_more_than_a_few_at_a_time_and_no_more_than_a_rate() {
    let (mut outbox, now) = outbox(2, 10);
    for name in ["a", "b", "c"] {
        put(&mut outbox, name);
    }
    assert_eq!(out(&mut outbox, now), ["shop/a", "shop/b"]);
    outbox.spend(25);
    outbox.done(&target("a"), None, now);
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
        outbox.done(&target("bad"), Some(&Trouble::Refused(String::new())), now);
        put(&mut outbox, "good");
        assert_eq!(out(&mut outbox, now), ["shop/good"]);
        outbox.done(&target("good"), None, now);
    }
    assert_eq!(pauses[0], Duration::ZERO);
    assert!((ms(750)..=ms(1000)).contains(&pauses[1]), "{pauses:?}");
    assert!((ms(1500)..=ms(2000)).contains(&pauses[2]), "{pauses:?}");
    assert!((ms(45_000)..=ms(60_000)).contains(&pauses[7]), "{pauses:?}");
    put(&mut outbox, "bad");
    now = outbox.wake(now).unwrap();
    assert_eq!(out(&mut outbox, now), ["shop/bad"]);
    outbox.done(&target("bad"), None, now);
    put(&mut outbox, "bad");
    assert_eq!(out(&mut outbox, now), ["shop/bad"], "after a success nothing is held against it");
}

#[test]
fn mcs_r95_a_member_that_does_not_answer_has_a_pause_as_a_whole() {
    let (mut outbox, now) = outbox(8, 100);
    put(&mut outbox, "a");
    assert_eq!(out(&mut outbox, now), ["shop/a"]);
    outbox.done(&target("a"), Some(&Trouble::Unreachable(String::new())), now);
    put(&mut outbox, "a");
    put(&mut outbox, "b");
    assert_eq!(out(&mut outbox, now + ms(370)), [""; 0]);
    let wake = outbox.wake(now).unwrap();
    assert!((ms(375)..=ms(500)).contains(&(wake - now)));
    assert_eq!(out(&mut outbox, wake).len(), 2);
    outbox.done(&target("b"), Some(&Trouble::Busy(String::new(), Some(ms(9000)))), wake);
    put(&mut outbox, "c");
    assert_eq!(outbox.wake(wake), Some(wake + ms(9000)), "as long as the API server asks for");
    outbox.reached();
    assert_eq!(out(&mut outbox, wake), ["shop/c"], "it answers again");
}

#[test]
fn mcs_r5_what_waits_for_a_namespace_goes_out_when_that_changes() {
    let (mut outbox, now) = outbox(8, 100);
    put(&mut outbox, "a");
    assert_eq!(out(&mut outbox, now), ["shop/a"]);
    outbox.done(&target("a"), Some(&Trouble::NamespaceGone(String::new())), now);
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
