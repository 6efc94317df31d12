//! Queries over TCP: several connections, each with a window of queries under way, from one thread that never sleeps.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::query::Pool;
use crate::slots::Slots;
use crate::tally::Tally;
use crate::udp::{Options, Pace, end};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How often it is looked for lost queries.
const LOOK: u64 = 100_000_000;

/// A client with its connections.
pub struct Client<'a> {
    server: SocketAddr,
    pool: &'a Pool,
    strict: bool,
    patience: Duration,
    window: usize,
    links: Vec<Link>,
    next: usize,
    clock: Instant,
}

struct Link {
    stream: TcpStream,
    slots: Slots,
    /// What the server has not taken yet.
    writing: Vec<u8>,
    written: usize,
    /// What has come; the first `read` octets.
    reading: Box<[u8]>,
    read: usize,
}

impl<'a> Client<'a> {
    /// Opens the connections.
    ///
    /// # Errors
    /// What the system says; `Unsupported` for anything but a window.
    pub fn new(server: SocketAddr, pool: &'a Pool, options: Options) -> io::Result<Self> {
        let Pace::Window(window) = options.pace else {
            return Err(io::Error::new(ErrorKind::Unsupported, "over TCP there is no rate, only a window"));
        };
        let window = window.div_ceil(options.clients).max(1);
        let links = (0..options.clients).map(|_| Link::new(server, window)).collect::<io::Result<_>>()?;
        let Options { strict, patience, .. } = options;
        Ok(Self { server, pool, strict, patience, window, links, next: 0, clock: Instant::now() })
    }

    /// Asks for so long, and waits for the last answers. A connection that the server closes is opened anew; what was
    /// under way on it is lost.
    ///
    /// # Errors
    /// Where no connection comes about.
    pub fn run(&mut self, span: Duration) -> io::Result<Tally> {
        self.ask(span, u64::MAX)
    }

    /// Asks so many queries, however long it takes, else as [`run`](Client::run).
    ///
    /// # Errors
    /// Where no connection comes about.
    pub fn run_queries(&mut self, count: u64) -> io::Result<Tally> {
        self.ask(Duration::MAX, count)
    }

    fn ask(&mut self, span: Duration, most: u64) -> io::Result<Tally> {
        let mut tally = Tally::default();
        let begin = self.now();
        let end = end(begin, span);
        let mut looked = begin;
        loop {
            let now = self.now();
            let sending = now < end && tally.sent < most;
            if !sending && self.links.iter().all(|link| link.slots.open() == 0) {
                break;
            }
            if now - looked > LOOK {
                looked = now;
                let before = now.saturating_sub(self.patience.as_nanos() as u64);
                for link in &mut self.links {
                    // What has come is not lost, however late we are to take it. An end is there once more below.
                    while link.read(self.pool, self.strict, self.clock, &mut tally).is_ok_and(|some| some) {}
                    tally.lost += link.slots.expire(before);
                }
            }
            for link in &mut self.links {
                // At once, not half a window at a time: with the next query goes the acknowledgement of the last answer,
                // for which servers wait that leave TCP's own delay on (Nagle's algorithm), else for 40 ms.
                if sending {
                    link.queue(self.pool, &mut self.next, self.window, most, now, &mut tally);
                }
                let ended = link.write().and_then(|()| link.read(self.pool, self.strict, self.clock, &mut tally));
                if ended.is_err() {
                    tally.closed += 1;
                    tally.lost += link.slots.open() as u64;
                    *link = Link::new(self.server, self.window)?;
                }
            }
        }
        tally.elapsed = Duration::from_nanos(self.now() - begin).min(span.max(Duration::from_nanos(1)));
        Ok(tally)
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

impl Link {
    fn new(server: SocketAddr, window: usize) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            slots: Slots::new(window.next_power_of_two()),
            writing: Vec::new(),
            written: 0,
            // Room for the longest message there is, and half of another.
            reading: vec![0; 3 << 15].into(),
            read: 0,
        })
    }

    /// Fills the window, until so many are sent in all.
    fn queue(&mut self, pool: &Pool, next: &mut usize, window: usize, most: u64, now: u64, tally: &mut Tally) {
        while self.slots.open() < window
            && tally.sent < most
            && let Some(id) = self.slots.take(*next, now)
        {
            let packet = pool.get(*next).packet;
            self.writing.extend((packet.len() as u16).to_be_bytes());
            self.writing.extend(id.to_be_bytes());
            self.writing.extend(&packet[2..]);
            *next = (*next + 1) % pool.len();
            tally.sent += 1;
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.writing.len() {
            match self.stream.write(&self.writing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.writing.clear();
        self.written = 0;
        Ok(())
    }

    /// Takes the answers that are there, as many as there is room for: whether something has come.
    fn read(&mut self, pool: &Pool, strict: bool, clock: Instant, tally: &mut Tally) -> io::Result<bool> {
        match self.stream.read(&mut self.reading[self.read..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.read += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(error) => return Err(error),
        }
        let now = clock.elapsed().as_nanos() as u64;
        let mut at = 0;
        while let Some(reply) = message(&self.reading[at..self.read]) {
            at += 2 + reply.len();
            let id = reply.first_chunk().map(|id| u16::from_be_bytes(*id));
            match id.and_then(|id| self.slots.settle(id)) {
                Some((query, due)) => tally.answer(reply, pool.get(query), strict, now - due),
                None => tally.late += 1,
            }
        }
        self.reading.copy_within(at..self.read, 0);
        self.read -= at;
        Ok(true)
    }
}

/// The first whole message behind its length (RFC 1035 §4.2.2).
pub(crate) fn message(bytes: &[u8]) -> Option<&[u8]> {
    let length = u16::from_be_bytes(*bytes.first_chunk()?);
    bytes.get(2..2 + usize::from(length))
}
