//! A constant stream of look-ups and connections out of one pod, and what came of each of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::MissedTickBehavior;

use crate::ask::{self, PATIENCE, Trouble};
use crate::pod::ClientPod;

/// No more attempts than these are under way at a time; what is due beyond them is left out and counted.
const UNDER_WAY: usize = 512;

/// What takes longer than this is called slow: the kernel sends a connection's first packet again after a second.
const SLOW: Duration = Duration::from_millis(900);

/// What is asked for, and how often.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A whole name, of an address.
    pub name: String,
    pub port: u16,
    pub every: Duration,
    /// How long a connection may take until it has failed.
    pub patience: Duration,
}

impl Wanted {
    /// A connection every 10 ms.
    pub fn new(name: &str, port: u16) -> Self {
        Self { name: name.to_owned(), port, every: Duration::from_millis(10), patience: PATIENCE }
    }

    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }
}

/// One look-up, and the connection to what it gave.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When the name was asked for.
    pub at: Instant,
    /// When the address was known and the connection begun, if it was.
    pub connected_at: Option<Instant>,
    /// Where the connection went.
    pub address: Option<IpAddr>,
    /// From which port.
    pub port: u16,
    /// Until everything was said, or had failed.
    pub took: Duration,
    /// The pod that answered, by its name.
    pub outcome: Result<String, Trouble>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    attempts: Mutex<Vec<Attempt>>,
    left_out: std::sync::atomic::AtomicUsize,
}

/// A stream that is running. Dropped, it ends.
pub struct Stream {
    shared: Arc<Shared>,
    ended: oneshot::Receiver<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Stream {
    /// Starts asking out of a pod.
    pub fn start(pod: &ClientPod, wanted: Wanted) -> Self {
        let shared = Arc::new(Shared::default());
        let ended = pod.start({
            let (shared, server) = (shared.clone(), pod.nameserver);
            move || ask_on(shared, server, wanted)
        });
        Self { shared, ended }
    }

    /// What came of the attempts until now.
    pub fn so_far(&self) -> Tally {
        Tally::new(self.attempts().clone(), self.shared.left_out.load(Ordering::Relaxed))
    }

    /// Stops asking, and waits for what is under way.
    pub async fn stop(mut self) -> Tally {
        self.shared.stop.store(true, Ordering::Relaxed);
        (&mut self.ended).await.expect("the thread of a stream has ended with an error");
        self.so_far()
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, Vec<Attempt>> {
        self.shared.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask_on(shared: Arc<Shared>, server: IpAddr, wanted: Wanted) {
    let (permits, wanted) = (Arc::new(Semaphore::new(UNDER_WAY)), Arc::new(wanted));
    let mut ticks = tokio::time::interval(wanted.every);
    // A client that was held up asks on at its pace, and not in a burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !shared.stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            shared.left_out.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (shared, wanted) = (shared.clone(), wanted.clone());
        tokio::spawn(async move {
            let attempt = once(server, &wanted).await;
            shared.attempts.lock().unwrap_or_else(PoisonError::into_inner).push(attempt);
            drop(permit);
        });
    }
    // All permits together: nothing is under way any more.
    permits.acquire_many(UNDER_WAY as u32).await.ok();
}

async fn once(server: IpAddr, wanted: &Wanted) -> Attempt {
    let at = Instant::now();
    let mut attempt =
        Attempt { at, connected_at: None, address: None, port: 0, took: Duration::ZERO, outcome: Err(Trouble::Own) };
    match ask::addresses(server, &wanted.name, RecordType::A).await {
        Err(trouble) => attempt.outcome = Err(trouble),
        Ok(addresses) => {
            let address = addresses[fastrand::usize(..addresses.len())];
            attempt.connected_at = Some(Instant::now());
            attempt.address = Some(address);
            let connection = ask::connect((address, wanted.port).into(), wanted.patience).await;
            attempt.port = connection.port;
            attempt.outcome = connection.said;
        }
    }
    attempt.took = at.elapsed();
    attempt
}

/// What came of the attempts of a stream, in the order in which they were begun.
#[derive(Clone)]
pub struct Tally {
    pub attempts: Vec<Attempt>,
    /// Attempts that were due and not made, since too many were under way.
    pub left_out: usize,
}

impl Tally {
    fn new(mut attempts: Vec<Attempt>, left_out: usize) -> Self {
        attempts.sort_by_key(|attempt| attempt.at);
        Self { attempts, left_out }
    }

    /// The attempts that were begun in this time.
    pub fn between(&self, from: Instant, to: Instant) -> Self {
        let within = self.attempts.iter().filter(|attempt| (from..to).contains(&attempt.at));
        Self { attempts: within.cloned().collect(), left_out: 0 }
    }

    pub fn len(&self) -> usize {
        self.attempts.len()
    }

    pub fn failures(&self) -> impl Iterator<Item = (&Attempt, Trouble)> {
        self.attempts.iter().filter_map(|attempt| attempt.outcome.as_ref().err().map(|trouble| (attempt, *trouble)))
    }

    pub fn failed(&self) -> usize {
        self.failures().count()
    }

    /// How many were answered late: a packet was lost, or somebody was too busy.
    pub fn slow(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.outcome.is_ok() && attempt.took > SLOW).count()
    }

    /// How many failed by what.
    pub fn troubles(&self) -> BTreeMap<Trouble, usize> {
        let mut troubles = BTreeMap::new();
        self.failures().for_each(|(_, trouble)| *troubles.entry(trouble).or_default() += 1);
        troubles
    }

    /// How many look-ups failed.
    pub fn failed_lookups(&self) -> usize {
        self.failures().filter(|(_, trouble)| trouble.is_lookup()).count()
    }

    /// How often each pod answered.
    pub fn pods(&self) -> BTreeMap<&str, usize> {
        let mut pods = BTreeMap::new();
        for attempt in &self.attempts {
            if let Ok(pod) = &attempt.outcome {
                *pods.entry(pod.as_str()).or_default() += 1;
            }
        }
        pods
    }

    /// How often the pods of a cluster answered; their names begin with its id.
    pub fn answered_by(&self, cluster: &str) -> usize {
        let prefix = format!("{cluster}-");
        self.pods().iter().filter(|(pod, _)| pod.starts_with(&prefix)).map(|(_, count)| count).sum()
    }

    /// From when to when attempts failed, relative to `from`.
    pub fn failing(&self, from: Instant) -> Option<(f64, f64)> {
        let seconds = |attempt: &Attempt| {
            if attempt.at >= from { (attempt.at - from).as_secs_f64() } else { -(from - attempt.at).as_secs_f64() }
        };
        let first = self.failures().next().map(|(attempt, _)| seconds(attempt))?;
        self.failures().last().map(|(attempt, _)| (first, seconds(attempt)))
    }

    /// `1200 asked, 3 failed (refused 2, timed out 1), 4 slower than 900ms`.
    pub fn words(&self) -> String {
        let troubles: Vec<_> = self.troubles().iter().map(|(trouble, count)| format!("{trouble} {count}")).collect();
        let why = if troubles.is_empty() { String::new() } else { format!(" ({})", troubles.join(", ")) };
        let left_out = if self.left_out == 0 { String::new() } else { format!(", {} not asked", self.left_out) };
        let slow = if self.slow() == 0 { String::new() } else { format!(", {} slower than {SLOW:?}", self.slow()) };
        format!("{} asked, {} failed{why}{slow}{left_out}", self.len(), self.failed())
    }
}
