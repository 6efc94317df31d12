//! The query log: one line a query, in CoreDNS's format, and never at the cost of an answer.
//!
//! ```text
//!  record() ─► 16 bounded queues ─► one thread: parse, format, write
//!            full? drop and count
//! ```
//!
//! The threads that answer copy the two messages into a queue of memory that was set aside before, and that is all:
//! they never wait (a queue that is locked for longer than a moment counts as full), allocate or format. Each thread
//! has a queue of its own as long as there are no more than [`QUEUES`] of them. The lines of one thread are in order;
//! those of several threads may change places within [`PAUSE`].

mod format;
mod names;

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime};

use super::{QueryLog, QueryRecord, Transport};
use crate::metrics::Metrics;

/// How a query is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineFormat {
    /// `[INFO] ` and CoreDNS's `{common}` format.
    #[default]
    Text,
    /// One JSON object, as CoreDNS 1.15 with `-log-format=json`.
    Json,
}

/// How many queues there are. A thread keeps the one it got first.
const QUEUES: usize = 16;

/// Memory for messages that wait, of each queue. Untouched memory is not resident: an idle log costs nothing.
const QUEUE_BYTES: usize = 512 * 1024;

/// How many queries may wait in each queue.
const QUEUE_RECORDS: usize = 4096;

/// The writer's pause between two rounds: so long may a line take, and so seldom is it woken.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the end of the process waits for the last lines: a reader that hangs must not keep us alive.
const LAST_LINES: Duration = Duration::from_secs(2);

/// How often a lock is tried. It is held for the time of two copies, so only a descheduled holder exhausts this.
const TRIES: u32 = 64;

/// A query that waits; its messages are in the queue's bytes.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    peer: SocketAddr,
    transport: Transport,
    query: usize,
    reply: usize,
    duration: Duration,
    at: SystemTime,
}

/// A queue. Two vectors that never grow beyond the capacity they begin with.
#[derive(Debug)]
struct Queue {
    records: Vec<Waiting>,
    bytes: Vec<u8>,
}

impl Queue {
    fn new() -> Self {
        Self { records: Vec::with_capacity(QUEUE_RECORDS), bytes: Vec::with_capacity(QUEUE_BYTES) }
    }

    /// Copies the record, or says that there is no room.
    fn push(&mut self, record: &QueryRecord<'_>) -> bool {
        let length = record.query.len() + record.reply.len();
        if self.records.len() == self.records.capacity() || self.bytes.capacity() - self.bytes.len() < length {
            return false;
        }
        self.bytes.extend_from_slice(record.query);
        self.bytes.extend_from_slice(record.reply);
        self.records.push(Waiting {
            peer: record.peer,
            transport: record.transport,
            query: record.query.len(),
            reply: record.reply.len(),
            duration: record.duration,
            at: SystemTime::now(),
        });
        true
    }
}

#[derive(Debug)]
struct Shared {
    queues: [Mutex<Queue>; QUEUES],
    /// The writer sleeps until someone wakes it.
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// The query log that writes lines. Dropping it writes what waits, for two seconds at most, and ends its thread.
pub struct LineLog {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    writer: Thread,
    /// Nothing is sent: its other side is gone when the writer has ended. The lock makes it shareable.
    ended: Mutex<Receiver<()>>,
}

impl LineLog {
    /// Starts the thread that writes lines to `out`. Drops are counted in `metrics`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(format: LineFormat, out: impl Write + Send + 'static, metrics: Arc<Metrics>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queues: std::array::from_fn(|_| Mutex::new(Queue::new())),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let (ending, ended) = channel();
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("query-log".to_owned()).spawn(move || {
                write_lines(&shared, format, out);
                drop::<Sender<()>>(ending);
            })?
        };
        Ok(Self { shared, metrics, writer: thread.thread().clone(), ended: Mutex::new(ended) })
    }

    fn push(&self, record: &QueryRecord<'_>) -> bool {
        let Some(queue) = self.shared.queues.get(own_queue()) else { return false };
        for _ in 0..TRIES {
            match queue.try_lock() {
                Ok(mut queue) => return queue.push(record),
                Err(TryLockError::Poisoned(queue)) => return queue.into_inner().push(record),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        false
    }
}

impl QueryLog for LineLog {
    fn record(&self, record: &QueryRecord<'_>) {
        if !self.push(record) {
            self.metrics.query_log_dropped(1);
        }
        // One wake-up (a system call) per round of the writer at most.
        if self.shared.asleep.load(Ordering::Relaxed) && self.shared.asleep.swap(false, Ordering::AcqRel) {
            self.writer.unpark();
        }
    }
}

impl Drop for LineLog {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.writer.unpark();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("whoever reads the query log does not take its last lines; they are lost");
        }
    }
}

impl fmt::Debug for LineLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineLog").finish_non_exhaustive()
    }
}

/// The queue of this thread.
fn own_queue() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % QUEUES;
    }
    OWN.try_with(|own| *own).unwrap_or(0)
}

/// Writes until it is told to stop and nothing waits.
fn write_lines(shared: &Shared, format: LineFormat, mut out: impl Write) {
    // Swapped with each queue in turn, so a lock is held for the time of a swap.
    let mut taken = Queue::new();
    let mut text = String::new();
    let mut failed = false;
    loop {
        // Before the queues are looked at: what comes after this look is seen in the next round.
        let stop = shared.stop.load(Ordering::Acquire);
        let mut written = false;
        for queue in &shared.queues {
            {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                if queue.records.is_empty() {
                    continue;
                }
                std::mem::swap(&mut *queue, &mut taken);
            }
            written = true;
            format_all(&taken, format, &mut text);
            taken.records.clear();
            taken.bytes.clear();
            let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            text.clear();
            // Said once, not once a round: a closed pipe stays closed.
            if let Err(error) = result
                && !failed
            {
                failed = true;
                tracing::error!(%error, "the query log can't be written; its lines are lost");
            }
        }
        if written {
            if !stop {
                thread::park_timeout(PAUSE);
            }
            continue;
        }
        if stop {
            return;
        }
        if shared.asleep.swap(true, Ordering::AcqRel) {
            thread::park();
            // Also after a wake-up without reason: look, then sleep again.
            shared.asleep.store(false, Ordering::Release);
        }
        // The first time it only says that it is going to sleep, and looks once more.
    }
}

/// One line for each record.
fn format_all(queue: &Queue, format: LineFormat, text: &mut String) {
    let mut rest = queue.bytes.as_slice();
    for record in &queue.records {
        let Some((query, more)) = rest.split_at_checked(record.query) else { return };
        let Some((reply, more)) = more.split_at_checked(record.reply) else { return };
        rest = more;
        let seen = format::Seen::new(record.peer, record.transport, query, reply, record.duration);
        match format {
            LineFormat::Text => {
                text.push_str("[INFO] ");
                seen.common(text);
            }
            LineFormat::Json => seen.json(record.at, text),
        }
        text.push('\n');
    }
}
