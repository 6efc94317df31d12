//! Queries over UDP, from one thread that never sleeps, in batches.
//!
//! Several sockets, each connected to the server, so that its replies spread as those of several clients. *Saturating*
//! keeps a window of queries outstanding. *Paced* sends them when they are due, whatever is outstanding, and counts the
//! time from when a query was due: a server that stalls is not spared the queries that would have come meanwhile.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::query::{LONGEST, Pool};
use crate::slots::Slots;
use crate::tally::Tally;

/// Datagrams in one system call.
const BATCH: usize = 32;

/// The largest answer that is read.
const MESSAGE: usize = 4096;

/// What a socket may hold that is not taken yet, in octets: as much as Namesake's.
const BUFFER: usize = 4 << 20;

/// How often it is looked for lost queries.
const LOOK: u64 = 100_000_000;

/// Gives a socket its receive buffer, as Namesake does: beyond the limit of the machine (`net.core.rmem_max`) where that is
/// allowed.
///
/// # Errors
/// Where there is no such socket.
pub fn receive_buffer(socket: &Socket) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBufForce, &BUFFER).or_else(|_| socket.set_recv_buffer_size(BUFFER))
}

/// How hard to ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// So many queries are outstanding at all times.
    Window(usize),
    /// So many queries a second, so many at once.
    Rate {
        /// Queries a second.
        rate: f64,
        /// Queries that are due at the same moment.
        burst: u32,
    },
}

/// How to ask.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Sockets or connections.
    pub clients: usize,
    /// How hard.
    pub pace: Pace,
    /// Answers must be what the queries' answers are; not for an echo.
    pub strict: bool,
    /// How long an answer may take before it counts as lost: [`PATIENCE`](crate::slots::PATIENCE) in what is measured.
    pub patience: Duration,
}

/// A client with its sockets.
pub struct Client<'a> {
    pool: &'a Pool,
    options: Options,
    links: Vec<Link>,
    next: usize,
    clock: Instant,
}

struct Link {
    socket: UdpSocket,
    slots: Slots,
    receiving: MultiHeaders<SockaddrStorage>,
    sending: MultiHeaders<SockaddrStorage>,
    replies: Box<[[u8; MESSAGE]; BATCH]>,
    queries: Box<[[u8; LONGEST]; BATCH]>,
}

impl<'a> Client<'a> {
    /// Opens the sockets.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(server: SocketAddr, pool: &'a Pool, options: Options) -> io::Result<Self> {
        let room = match options.pace {
            Pace::Window(window) => window.div_ceil(options.clients).next_power_of_two(),
            Pace::Rate { .. } => 4096,
        };
        let links = (0..options.clients).map(|_| Link::new(server, room)).collect::<io::Result<_>>()?;
        Ok(Self { pool, options, links, next: 0, clock: Instant::now() })
    }

    /// Asks for so long, and waits for the last answers. What was due by then is sent, also where we are late with it.
    ///
    /// # Errors
    /// Where nobody listens, or the system refuses.
    pub fn run(&mut self, span: Duration) -> io::Result<Tally> {
        self.ask(span, u64::MAX)
    }

    /// Asks so many queries, however long it takes, and waits for the last answers.
    ///
    /// # Errors
    /// As [`run`](Client::run).
    pub fn run_queries(&mut self, count: u64) -> io::Result<Tally> {
        self.ask(Duration::MAX, count)
    }

    fn ask(&mut self, span: Duration, most: u64) -> io::Result<Tally> {
        let mut tally = Tally::default();
        let begin = self.now();
        let end = end(begin, span);
        let (mut looked, mut sent) = (begin, begin);
        let mut due = Due::new(self.options.pace, begin);
        let mut turn = 0;
        loop {
            let now = self.now();
            let in_time = match self.options.pace {
                Pace::Window(_) => now < end,
                Pace::Rate { .. } => now < end || due.left(end - 1) > 0,
            };
            let sending = in_time && tally.sent < most;
            if !sending && self.links.iter().all(|link| link.slots.open() == 0) {
                break;
            }
            if now - looked > LOOK {
                looked = now;
                let before = now.saturating_sub(self.options.patience.as_nanos() as u64);
                for link in &mut self.links {
                    // What has come is not lost, however late we are to take it.
                    while link.receive(self.pool, self.options.strict, self.clock, &mut tally)? > 0 {}
                    tally.lost += link.slots.expire(before);
                }
            }
            let count = self.links.len();
            let link = &mut self.links[turn];
            turn = (turn + 1) % count;
            link.receive(self.pool, self.options.strict, self.clock, &mut tally)?;
            if sending {
                sent = now;
                let most = usize::try_from(most - tally.sent).unwrap_or(BATCH).min(BATCH);
                match self.options.pace {
                    // Half of the window at a time, so that there are batches on both sides.
                    Pace::Window(window) => {
                        let share = window / count;
                        let want = share.saturating_sub(link.slots.open());
                        if want > 0 && (want >= share / 2 || link.slots.open() == 0) {
                            link.send(self.pool, &mut self.next, want.min(most), |_| now, &mut tally)?;
                        }
                    }
                    Pace::Rate { .. } => {
                        let want = due.take(now.min(end - 1), most);
                        if want > 0 {
                            let first = due.sent - want as u64;
                            let at = |i: usize| due.time(first + i as u64);
                            link.send(self.pool, &mut self.next, want, at, &mut tally)?;
                        }
                    }
                }
            }
        }
        tally.elapsed = Duration::from_nanos(self.now() - begin).min(span.max(Duration::from_nanos(sent - begin)));
        Ok(tally)
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

/// When a run of this span ends; never at its beginning.
pub(crate) fn end(begin: u64, span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).map_or(u64::MAX, |span| begin.saturating_add(span.max(1)))
}

/// When queries are due.
struct Due {
    begin: u64,
    rate: f64,
    burst: u64,
    sent: u64,
}

impl Due {
    fn new(pace: Pace, begin: u64) -> Self {
        match pace {
            Pace::Window(_) => Self { begin, rate: 0.0, burst: 1, sent: 0 },
            Pace::Rate { rate, burst } => Self { begin, rate, burst: u64::from(burst.max(1)), sent: 0 },
        }
    }

    /// How many are due and not sent.
    fn left(&self, now: u64) -> u64 {
        let steps = ((now - self.begin) as f64 / 1e9 * self.rate / self.burst as f64) as u64 + 1;
        steps * self.burst - self.sent
    }

    /// How many to send now, at most so many.
    fn take(&mut self, now: u64, most: usize) -> usize {
        let want = self.left(now).min(most as u64);
        self.sent += want;
        want as usize
    }

    /// When the query with this number was due.
    fn time(&self, number: u64) -> u64 {
        self.begin + ((number / self.burst * self.burst) as f64 / self.rate * 1e9) as u64
    }
}

impl Link {
    fn new(server: SocketAddr, room: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
        receive_buffer(&socket)?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.connect(&server.into())?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: socket.into(),
            slots: Slots::new(room),
            receiving: MultiHeaders::preallocate(BATCH, None),
            sending: MultiHeaders::preallocate(BATCH, None),
            replies: Box::new([[0; MESSAGE]; BATCH]),
            queries: Box::new([[0; LONGEST]; BATCH]),
        })
    }

    /// Takes the answers that are there, as many as fit into one system call: how many.
    fn receive(&mut self, pool: &Pool, strict: bool, clock: Instant, tally: &mut Tally) -> io::Result<usize> {
        if self.slots.open() == 0 {
            return Ok(0);
        }
        let mut lengths = [0; BATCH];
        let mut count = 0;
        {
            let mut buffers = self.replies.each_mut().map(|buffer| [IoSliceMut::new(buffer)]);
            let fd = self.socket.as_raw_fd();
            match recvmmsg(fd, &mut self.receiving, buffers.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                Ok(messages) => {
                    for (message, length) in messages.zip(&mut lengths) {
                        *length = message.bytes;
                        count += 1;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
        let now = clock.elapsed().as_nanos() as u64;
        for (reply, length) in self.replies.iter().zip(lengths).take(count) {
            let reply = &reply[..length];
            let id = reply.first_chunk().map(|id| u16::from_be_bytes(*id));
            match id.and_then(|id| self.slots.settle(id)) {
                Some((query, due)) => tally.answer(reply, pool.get(query), strict, now.saturating_sub(due)),
                None => tally.late += 1,
            }
        }
        Ok(count)
    }

    /// Sends the next queries of the pool.
    fn send(
        &mut self,
        pool: &Pool,
        next: &mut usize,
        want: usize,
        due: impl Fn(usize) -> u64,
        tally: &mut Tally,
    ) -> io::Result<()> {
        let mut ids = [0; BATCH];
        let mut lengths = [0; BATCH];
        let mut count = 0;
        while count < want {
            let Some(id) = self.slots.take(*next, due(count)) else { break };
            let packet = pool.get(*next).packet;
            let buffer = &mut self.queries[count];
            buffer[..packet.len()].copy_from_slice(packet);
            buffer[..2].copy_from_slice(&id.to_be_bytes());
            (ids[count], lengths[count]) = (id, packet.len());
            *next = (*next + 1) % pool.len();
            count += 1;
        }
        let mut payloads = [[IoSlice::new(&[])]; BATCH];
        for ((payload, buffer), length) in payloads.iter_mut().zip(self.queries.iter()).zip(lengths) {
            *payload = [IoSlice::new(&buffer[..length])];
        }
        let nowhere = [None; BATCH];
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        let mut sent = match sendmmsg(fd, &mut self.sending, payloads[..count].iter(), &nowhere[..count], [], flags) {
            Ok(sent) => sent.count(),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => 0,
            Err(error) => return Err(error.into()),
        };
        // What stopped a batch is forgotten with it: nobody listening would look like a short batch for ever. A message
        // that goes alone leaves its error to the next receive.
        if (1..count).contains(&sent) && self.socket.send(&self.queries[sent][..lengths[sent]]).is_ok() {
            sent += 1;
        }
        for id in &ids[sent..count] {
            self.slots.settle(*id);
        }
        tally.sent += sent as u64;
        tally.unsent += (want - sent) as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_due_at_their_rate_and_in_bursts() {
        let mut due = Due::new(Pace::Rate { rate: 1e6, burst: 100 }, 5_000);
        assert_eq!((due.take(5_000, 32), due.take(5_000, 200), due.take(104_999, 200)), (32, 68, 0));
        assert_eq!((due.time(99), due.time(100)), (5_000, 105_000));
        assert_eq!((due.left(105_000), due.take(105_000, 200), due.left(105_000)), (100, 100, 0));
    }
}
