//! The way of a line to where it is read: handed over, and never waited for.
//!
//! ```text
//!  any thread ─► [bounded queue] ─► one thread ─► stdout
//!          full? drop and count
//! ```
//!
//! Whoever collects our lines may hang with its pipe full. Then lines are lost; but the thread that had something to
//! say goes on, be it the one that takes changes in or the one that answers TCP.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How many lines may wait. A line has some hundred bytes.
const WAITING: usize = 4096;

/// Takes lines from any thread.
#[derive(Debug, Clone)]
pub(super) struct Sink {
    lines: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl Sink {
    /// Starts the thread that writes to `out`. `lost` makes the line that tells of lines that were lost.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        lost_line: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, queue) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&lost);
        thread::Builder::new().name("log".to_owned()).spawn(move || write(&queue, out, &counter, lost_line))?;
        Ok(Self { lines, lost })
    }

    /// Waits until what was said before is written, but not longer than `within`.
    pub(super) fn flush(&self, within: Duration) {
        let (done, wait) = sync_channel(1);
        // A full queue is not waited for: who does not read now will not in a moment.
        if self.lines.try_send(Message::Flush(done)).is_ok() {
            // Written, too late, or nobody is there to write: there is nothing more to do in any case.
            let _: Result<(), RecvTimeoutError> = wait.recv_timeout(within);
        }
    }
}

fn write(queue: &Receiver<Message>, mut out: impl Write, lost: &AtomicU64, lost_line: impl Fn(u64) -> String) {
    while let Ok(message) = queue.recv() {
        // A reader that is gone stays gone; what it does not want to know is no one else's trouble.
        match message {
            Message::Line(line) => drop(out.write_all(&line).and_then(|()| out.flush())),
            Message::Flush(done) => drop(done.try_send(())),
        }
        // The queue had no room when they came, so they belong behind what was in it.
        let missing = lost.swap(0, Relaxed);
        if missing > 0 {
            drop(out.write_all(lost_line(missing).as_bytes()).and_then(|()| out.flush()));
        }
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Hand<'a>;

    fn make_writer(&'a self) -> Hand<'a> {
        Hand(self)
    }
}

/// Hands one line over. It comes in one piece.
#[derive(Debug)]
pub(super) struct Hand<'a>(&'a Sink);

impl Write for Hand<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.lines.try_send(Message::Line(line.to_vec())).is_err() {
            self.0.lost.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::time::Instant;

    use super::*;

    /// Writes into memory, once the gate is open.
    #[derive(Clone, Default)]
    #[allow(clippy::type_complexity)] // a test's
    struct Gate(Arc<(Mutex<(bool, Vec<u8>)>, Condvar)>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (state, opened) = &*self.0;
            let mut state = opened.wait_while(state.lock().unwrap(), |(open, _)| !*open).unwrap();
            state.1.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn say(sink: &Sink, line: &str) {
        sink.make_writer().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn nobody_waits_for_a_reader_that_hangs_and_afterwards_it_learns_what_it_missed() {
        let gate = Gate::default();
        let sink = Sink::start(gate.clone(), |lost| format!("{lost} lost\n")).unwrap();
        let began = Instant::now();
        // One line may be on its way to the gate beside those that wait.
        for number in 0..WAITING + 1 + 100 {
            say(&sink, &format!("{number}\n"));
        }
        sink.flush(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let (state, opened) = &*gate.0;
        state.lock().unwrap().0 = true;
        opened.notify_all();
        // Every line is written or counted in the end. Room comes by and by: a flush before that would not wait (the queue is full).
        let said = WAITING + 1 + 100;
        let (text, lost) = loop {
            let text = String::from_utf8(state.lock().unwrap().1.clone()).unwrap();
            let lost: usize =
                text.lines().filter_map(|l| l.strip_suffix(" lost")).map(|n| n.parse::<usize>().unwrap()).sum();
            let lines = text.lines().filter(|line| !line.ends_with(" lost")).count();
            if lines + lost >= said {
                assert_eq!(lines + lost, said, "nothing twice");
                break (text, lost);
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{lines} written and {lost} lost of {said}");
            std::thread::yield_now();
        };
        assert!((100..=101).contains(&lost), "{lost}");
        assert!(text.starts_with("0\n"), "in the order they were said");
    }

    #[test]
    fn a_flush_waits_for_the_lines_before_it_and_no_longer_than_it_should() {
        let gate = Gate::default();
        let sink = Sink::start(gate.clone(), |_| String::new()).unwrap();
        say(&sink, "first\n");
        let began = Instant::now();
        sink.flush(Duration::from_millis(100));
        assert!(began.elapsed() >= Duration::from_millis(100), "the gate is closed");
        gate.0.0.lock().unwrap().0 = true;
        gate.0.1.notify_all();
        say(&sink, "second\n");
        sink.flush(Duration::from_secs(20));
        assert_eq!(gate.0.0.lock().unwrap().1, b"first\nsecond\n");
    }
}
