//! TCP (RFC 7766): a bounded accept loop, and connections on which queries may be pipelined.
//!
//! All whole messages that have arrived are answered, and their replies leave in one write. Answers wait for nothing,
//! so none overtakes another and replies keep the order of their queries; RFC 7766 §6.2.1.1 allows any order, and
//! clients match by id. A connection holds what it has not read or written yet, never more than one message in and
//! [`REPLIES`] and one message out; and it holds it for a bounded time.

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::{HEADER, Handler};
use super::limits::{Connections, Place, TcpLimits};
use super::{Responder, server::Stop};
use crate::metrics::Drop;

/// Length of the length before each message.
const PREFIX: usize = 2;

/// Where replies are collected no further, but sent.
const REPLIES: usize = 16 << 10;

/// What a connection reads into at first: a few queries.
const FIRST_READ: usize = 512;

/// What a connection keeps between messages, however large the last one was.
const KEPT: usize = 4096;

/// First and longest rest after an accept that failed for lack of files or memory.
const ACCEPT_REST: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// When we stop: how long bytes that have already arrived may take to be noticed.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// How long, after our last byte, a client's own last bytes are awaited: a socket closed with unread data resets the
/// connection, which may cost the client the replies that it has not read yet.
const LINGER: Duration = Duration::from_millis(200);

thread_local! {
    /// Where a reply is written before its length is known: one per thread, since no answer waits.
    static REPLY: RefCell<(Box<[u8]>, fastrand::Rng)> =
        RefCell::new((vec![0; usize::from(u16::MAX)].into_boxed_slice(), fastrand::Rng::new()));
}

/// A listener with everything it needs but its task.
pub(super) struct Listener<R> {
    pub(super) listener: TcpListener,
    pub(super) limits: TcpLimits,
    pub(super) handler: Arc<Handler<R>>,
    pub(super) connections: Arc<Connections>,
    pub(super) stop: Stop,
    /// The tasks of open connections.
    pub(super) tasks: TaskTracker,
    /// Ends connections whatever they do.
    pub(super) cut: CancellationToken,
}

impl<R: Responder> Listener<R> {
    /// Accepts until told to stop, and then who is already waiting.
    pub(super) async fn run(self) {
        let mut rest = ACCEPT_REST.0;
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.wait() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    rest = ACCEPT_REST.0;
                    self.admit(stream, peer);
                }
                // That client's loss alone, and its place in the queue is free.
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept TCP connections; trying again");
                    tokio::select! {
                        () = self.stop.wait() => break,
                        () = sleep(rest) => {}
                    }
                    rest = (rest * 2).min(ACCEPT_REST.1);
                }
            }
        }
        // Those that the kernel has accepted for us would be reset.
        while let Ok(Ok((stream, peer))) = timeout(Duration::ZERO, self.listener.accept()).await {
            self.admit(stream, peer);
        }
    }

    /// Gives a connection its task, or closes it.
    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let Some(place) = self.connections.admit(peer.ip()) else {
            self.handler.dropped(Drop::Connections);
            return;
        };
        // Replies leave in one write: nothing is gained by waiting for more. Without it they would only be later.
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            stream,
            peer,
            limits: self.limits.clone(),
            handler: Arc::clone(&self.handler),
            stop: self.stop.clone(),
            input: Vec::new(),
            output: Vec::new(),
            closing: None,
            owed: None,
            _place: place,
        };
        let cut = self.cut.clone();
        self.tasks.spawn(async move {
            cut.run_until_cancelled(connection.run()).await;
        });
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    // accept(2): errors of the new connection come out of accept as well.
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
    )
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed it, rested too long, or we stop.
    Done,
    /// It was lost while we had something to say.
    Lost,
    /// The client took too long to send a message or to take replies.
    Slow,
    /// What came cannot be a DNS message.
    Nonsense,
}

struct Connection<R> {
    stream: TcpStream,
    peer: SocketAddr,
    limits: TcpLimits,
    handler: Arc<Handler<R>>,
    stop: Stop,
    /// Bytes that came and are not answered: after each round at most the beginning of one message.
    input: Vec<u8>,
    /// Replies that are not sent.
    output: Vec<u8>,
    /// When we stop: from when on nothing is awaited any more.
    closing: Option<Instant>,
    /// Bytes that had arrived by then, and are still to be read.
    owed: Option<usize>,
    _place: Place,
}

impl<R: Responder> Connection<R> {
    async fn run(mut self) {
        match self.converse().await {
            End::Done => self.part().await,
            End::Lost => self.handler.dropped(Drop::Send),
            End::Slow => self.handler.dropped(Drop::Slow),
            End::Nonsense => {
                self.handler.dropped(Drop::Short);
                // The messages before it were good ones, and have replies on their way.
                self.part().await;
            }
        }
    }

    async fn converse(&mut self) -> End {
        let mut started = None;
        loop {
            let now = Instant::now();
            let deadline = if self.input.is_empty() {
                if self.is_over(now) {
                    return End::Done;
                }
                started = None;
                now + self.limits.idle
            } else {
                // From its first byte: one byte a second does not prolong it.
                *started.get_or_insert(now) + self.limits.read
            };
            match self.read(deadline).await {
                Read::Some => {}
                Read::End => return End::Done,
                Read::Stop => continue, // which looks whether anything is left
                Read::Late if self.input.is_empty() => return End::Done,
                Read::Late => return End::Slow,
            }
            let since = Instant::now();
            let waiting = self.input.len();
            loop {
                let answered = self.answer(since);
                if !self.output.is_empty()
                    && let Err(end) = self.write().await
                {
                    return end;
                }
                match answered {
                    Round::Full => {}
                    Round::Finished => break,
                    Round::Nonsense => return End::Nonsense,
                }
            }
            if self.input.len() < waiting {
                // The message that had begun is answered, and what is left is the beginning of another.
                started = None;
                if self.is_over(since) {
                    return End::Done;
                }
            }
        }
    }

    /// Waits for bytes: until `deadline`, and when we stop only for what had arrived and the rest of a message that has
    /// begun.
    async fn read(&mut self, deadline: Instant) -> Read {
        let room = self.input.len().clamp(FIRST_READ, usize::from(u16::MAX));
        self.input.reserve(room);
        let more = !self.input.is_empty() || self.owed.is_some_and(|owed| owed > 0);
        let stop = async {
            self.stop.wait().await;
            let closing = *self.closing.get_or_insert_with(|| Instant::now() + LAST_LOOK);
            if more {
                std::future::pending::<()>().await;
            }
            sleep_until(closing.into()).await;
        };
        let read = async {
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.input) => Some(read),
                () = stop => None,
            }
        };
        match timeout_at(deadline.into(), read).await {
            Ok(Some(Ok(octets @ 1..))) => {
                self.owed = self.owed.map(|owed| owed.saturating_sub(octets));
                Read::Some
            }
            Ok(Some(_)) => Read::End,
            Ok(None) => Read::Stop,
            Err(_) => Read::Late,
        }
    }

    /// Whether we stop, and what had arrived by then has been read. How much that was is asked once, or a client that
    /// goes on sending would go on being answered.
    fn is_over(&mut self, now: Instant) -> bool {
        if self.closing.is_none_or(|closing| closing > now) {
            return false;
        }
        *self.owed.get_or_insert_with(|| arrived(&self.stream)) == 0
    }

    /// Answers the whole messages in `input` until `output` holds enough.
    fn answer(&mut self, since: Instant) -> Round {
        let mut rest = self.input.as_slice();
        let mut nonsense = false;
        while self.output.len() < REPLIES
            && let Some((prefix, after)) = rest.split_first_chunk::<PREFIX>()
        {
            let len = usize::from(u16::from_be_bytes(*prefix));
            if len < HEADER {
                nonsense = true;
                break;
            }
            let Some((query, after)) = after.split_at_checked(len) else {
                break;
            };
            answer_one(&self.handler, query, self.peer, since, &mut self.output);
            rest = after;
        }
        let full = self.output.len() >= REPLIES;
        let answered = self.input.len() - rest.len();
        self.input.drain(..answered);
        if self.input.is_empty() {
            self.input.shrink_to(KEPT);
        }
        match (nonsense, full) {
            (true, _) => Round::Nonsense,
            (false, true) => Round::Full,
            (false, false) => Round::Finished,
        }
    }

    /// Sends all replies, or gives the client up.
    async fn write(&mut self) -> Result<(), End> {
        let written = timeout(self.limits.write, self.stream.write_all(&self.output)).await;
        self.output.clear();
        self.output.shrink_to(KEPT);
        match written {
            Ok(done) => done.map_err(|_| End::Lost),
            // What it did not take would stay in the kernel for minutes, in case it changes its mind.
            Err(_) => Err(self.stream.set_zero_linger().map_or(End::Lost, |()| End::Slow)),
        }
    }

    /// Says that no more is coming, and gives the client a moment to say the same.
    async fn part(mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        self.input.clear();
        self.input.reserve(KEPT);
        let deadline = Instant::now() + LINGER;
        while let Ok(Ok(1..)) = timeout_at(deadline.into(), self.stream.read_buf(&mut self.input)).await {
            self.input.clear();
        }
    }
}

/// What came of waiting for bytes.
enum Read {
    Some,
    End,
    Late,
    /// We stop, and nothing came for a moment.
    Stop,
}

/// How many bytes have arrived and are not read, up to the longest message. The kernel is asked, since the runtime may
/// not have heard of them.
fn arrived(stream: &TcpStream) -> usize {
    let mut bytes = [MaybeUninit::uninit(); u16::MAX as usize];
    SockRef::from(stream).peek(&mut bytes).unwrap_or(0)
}

/// What came of answering.
enum Round {
    /// There may be more to answer.
    Full,
    /// What is left is the beginning of a message, or nothing.
    Finished,
    /// What is left cannot be a message.
    Nonsense,
}

/// Appends the reply to `query`, if there is one, with its length.
fn answer_one<R: Responder>(
    handler: &Handler<R>,
    query: &[u8],
    peer: SocketAddr,
    since: Instant,
    output: &mut Vec<u8>,
) {
    REPLY.with_borrow_mut(|(reply, rng)| {
        let Some(answered) = handler.respond(query, reply, rng) else { return };
        if let (Some(bytes), Ok(prefix)) = (reply.get(..answered.len), u16::try_from(answered.len)) {
            handler.answered(answered, query, peer, bytes, since.elapsed());
            output.extend_from_slice(&prefix.to_be_bytes());
            output.extend_from_slice(bytes);
        }
    });
}

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
