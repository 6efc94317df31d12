//! UDP: one socket, one thread, batches in and batches out.
//!
//! Nothing is queued but in the socket, so a flood costs the receive buffer and no more; nothing is allocated per
//! query; and no error ends the loop. On a wildcard address each datagram's destination is the source of its reply
//! (PRT-07). Why batches, threads and no async: `performance.md` 8.

use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use socket2::{SockAddr, Socket};

use super::handler::Handler;
use super::packet::{Family, V4, V6};
use super::server::Stop;
use super::{Reply, Responder};
use crate::metrics::Drop;

/// Datagrams taken in one system call.
const BATCH: usize = 32;

/// The largest query that is read whole (`dns.md` T20), and the largest reply (`bufsize` allows no more).
const MESSAGE: usize = 4096;

/// How long a worker rests after an error that is not the sender's, so that it does not spin on a broken network.
const AFTER_ERROR: Duration = Duration::from_millis(20);

/// At the end: how long a datagram may still be on its way from the network to the closed-off socket.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// From one buffer to the next. At a distance of 4096 the beginnings of all buffers, which are all that is used of
/// most, would share one set of the first cache and push each other out of it.
const STRIDE: usize = MESSAGE + 3 * 64;

type Buffers = Box<[[u8; STRIDE]; BATCH]>;

/// A worker with everything it needs but its thread.
pub(super) struct Worker<R> {
    pub(super) socket: Socket,
    pub(super) wildcard: bool,
    pub(super) ipv6: bool,
    pub(super) handler: Handler<R>,
    pub(super) stop: Stop,
}

impl<R: Responder> Worker<R> {
    /// Answers until told to stop, and then what is queued.
    pub(super) fn run(self) {
        if self.ipv6 {
            Loop::<V6, R>::new(self).run();
        } else {
            Loop::<V4, R>::new(self).run();
        }
    }
}

/// What is known of the datagram in a buffer.
struct Slot<F: Family> {
    query: usize,
    /// What is still to be sent.
    reply: Option<Reply>,
    peer: Option<F::Address>,
    local: Option<F::Local>,
}

impl<F: Family> Slot<F> {
    const EMPTY: Self = Self { query: 0, reply: None, peer: None, local: None };
}

struct Loop<F: Family, R> {
    worker: Worker<R>,
    /// Headers keep what the kernel wrote into them, so each direction has its own.
    receiving: MultiHeaders<F::Address>,
    sending: MultiHeaders<F::Address>,
    /// With room for the address to leave from, which must be used whenever it is there.
    sending_from: MultiHeaders<F::Address>,
    queries: Buffers,
    replies: Buffers,
    slots: [Slot<F>; BATCH],
    rng: fastrand::Rng,
    family: PhantomData<F>,
}

impl<F: Family, R: Responder> Loop<F, R> {
    fn new(worker: Worker<R>) -> Self {
        Self {
            receiving: Self::receiving_headers(worker.wildcard),
            sending: MultiHeaders::preallocate(BATCH, None),
            sending_from: MultiHeaders::preallocate(BATCH, Some(F::control_space())),
            worker,
            queries: Box::new([[0; STRIDE]; BATCH]),
            replies: Box::new([[0; STRIDE]; BATCH]),
            slots: [Slot::EMPTY; BATCH],
            rng: fastrand::Rng::new(),
            family: PhantomData,
        }
    }

    fn receiving_headers(wildcard: bool) -> MultiHeaders<F::Address> {
        MultiHeaders::preallocate(BATCH, wildcard.then(F::control_space))
    }

    fn run(mut self) {
        let deadline = loop {
            if let Some(deadline) = self.worker.stop.deadline() {
                break deadline;
            }
            match self.receive(MsgFlags::MSG_WAITFORONE) {
                Ok(taken) => self.serve(taken),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => self.rest_after(error),
            }
        };
        self.finish(deadline);
    }

    /// Takes what is there into the buffers, or waits for it: the number of datagrams.
    fn receive(&mut self, flags: MsgFlags) -> nix::Result<usize> {
        let mut buffers = self.queries.each_mut().map(|buffer| [IoSliceMut::new(&mut buffer[..MESSAGE])]);
        let fd = self.worker.socket.as_raw_fd();
        let mut taken = 0;
        let mut spoilt = false;
        for (message, slot) in recvmmsg(fd, &mut self.receiving, buffers.iter_mut(), flags, None)?.zip(&mut self.slots)
        {
            let local = if self.worker.wildcard {
                // Cut control messages cannot be read; the reply then leaves from where the kernel likes.
                spoilt |= message.flags.contains(MsgFlags::MSG_CTRUNC);
                message.cmsgs().ok().and_then(|mut messages| messages.find_map(|message| F::local(&message)))
            } else {
                None
            };
            *slot = Slot { query: message.bytes, peer: message.address, local, ..Slot::EMPTY };
            taken += 1;
        }
        if spoilt {
            // The kernel shortened a header's room for control messages to what it last needed.
            self.receiving = Self::receiving_headers(true);
        }
        Ok(taken)
    }

    /// Answers the datagrams in the first `taken` buffers.
    fn serve(&mut self, taken: usize) {
        let since = Instant::now();
        let buffers = self.queries.iter().zip(self.replies.iter_mut());
        for (slot, (query, reply)) in self.slots.iter_mut().zip(buffers).take(taken) {
            let query = query.get(..slot.query).unwrap_or_default();
            slot.reply = self.worker.handler.respond(query, &mut reply[..MESSAGE], &mut self.rng);
        }
        // One look at the clock for all: a look costs a tenth of an answer, and they leave together.
        let duration = since.elapsed();
        let buffers = self.queries.iter().zip(self.replies.iter());
        for (slot, (query, reply)) in self.slots.iter_mut().zip(buffers).take(taken) {
            if let (Some(answered), Some(peer)) = (slot.reply, &slot.peer)
                && let (Some(query), Some(reply)) = (query.get(..slot.query), reply.get(..answered.len))
            {
                self.worker.handler.answered(answered, query, F::peer(peer), reply, duration);
            } else {
                slot.reply = None;
            }
        }
        self.send(taken);
    }

    /// Sends what the first `taken` buffers hold, one batch per address to leave from: nearly always one.
    fn send(&mut self, taken: usize) {
        let mut from = 0;
        while let Some(first) = self.slots.get(from..taken).and_then(|s| s.iter().position(|slot| slot.reply.is_some()))
        {
            from += first;
            let local = self.slots.get(from).and_then(|slot| slot.local);
            let mut payloads = [[IoSlice::new(&[])]; BATCH];
            let mut peers = [None; BATCH];
            let mut count = 0;
            for (slot, reply) in self.slots.iter_mut().zip(self.replies.iter()).take(taken).skip(from) {
                let Some(answered) = slot.reply.filter(|_| slot.local == local) else { continue };
                if let (Some(payload), Some(peer), Some(bytes)) =
                    (payloads.get_mut(count), peers.get_mut(count), reply.get(..answered.len))
                {
                    *payload = [IoSlice::new(bytes)];
                    *peer = slot.peer;
                    count += 1;
                }
                slot.reply = None;
            }
            let (Some(payloads), Some(peers)) = (payloads.get(..count), peers.get(..count)) else {
                return;
            };
            let info = local.map(F::info);
            let control = info.as_ref().map(F::control);
            let headers = if control.is_some() { &mut self.sending_from } else { &mut self.sending };
            send_all::<F, R>(&self.worker, headers, payloads, peers, control.as_slice());
        }
    }

    /// An error that no datagram caused, such as a lack of memory: go on, but not at full speed.
    fn rest_after(&self, error: Errno) {
        tracing::warn!(%error, "cannot receive over UDP; trying again");
        std::thread::sleep(AFTER_ERROR);
    }

    /// Lets no new datagram in, and answers those that are.
    fn finish(&mut self, deadline: Instant) {
        // A connected socket takes datagrams from its peer alone, and this one is its own peer. Whoever asks from now
        // on reaches another worker or learns at once that the port is closed; what was queued stays queued.
        if let Err(error) = connect_to_itself(&self.worker.socket) {
            tracing::debug!(%error, "cannot close a UDP socket for new queries; the last ones may be lost");
        }
        let mut last_look = false;
        while Instant::now() < deadline {
            match self.receive(MsgFlags::MSG_DONTWAIT) {
                Ok(taken) => {
                    last_look = false;
                    self.serve(taken);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) if !last_look => {
                    last_look = true;
                    std::thread::sleep(LAST_LOOK);
                }
                Err(_) => return,
            }
        }
    }
}

/// Sends every payload to its peer. What cannot be sent is skipped and counted: it is that client's loss alone.
fn send_all<F: Family, R: Responder>(
    worker: &Worker<R>,
    headers: &mut MultiHeaders<F::Address>,
    payloads: &[[IoSlice<'_>; 1]],
    peers: &[Option<F::Address>],
    control: &[nix::sys::socket::ControlMessage<'_>],
) {
    let fd = worker.socket.as_raw_fd();
    let mut sent = 0;
    while let (Some(payloads @ [_, ..]), Some(peers)) = (payloads.get(sent..), peers.get(sent..)) {
        // A call ends before the first message that fails; the next call begins with it, and names the error.
        match sendmmsg(fd, headers, payloads.iter(), peers, control, MsgFlags::empty()).map(Iterator::count) {
            Ok(count @ 1..) => sent += count,
            Err(Errno::EINTR) => {}
            // The send buffer stayed full for `SEND_PATIENCE`: the rest would wait as long each.
            Err(Errno::EAGAIN) => {
                payloads.iter().for_each(|_| worker.handler.dropped(Drop::Send));
                return;
            }
            Ok(0) | Err(_) => {
                worker.handler.dropped(Drop::Send);
                sent += 1;
            }
        }
    }
}

fn connect_to_itself(socket: &Socket) -> std::io::Result<()> {
    let mut address = socket.local_addr()?;
    if let Some(mut own) = address.as_socket().filter(|own| own.ip().is_unspecified()) {
        own.set_ip(match own {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
        address = SockAddr::from(own);
    }
    socket.connect(&address)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::Arc;

    use nix::sys::socket::{SockaddrIn, setsockopt, sockopt};

    use super::*;
    use crate::dns::{DropReason, Outcome, Transport};
    use crate::metrics::{Metrics, State};

    struct Nobody;

    impl Responder for Nobody {
        fn respond(&self, _: &[u8], _: Transport, _: &mut [u8], _: &mut fastrand::Rng) -> Outcome {
            Outcome::Drop(DropReason::Short)
        }
    }

    fn worker() -> (Worker<Nobody>, Metrics) {
        let metrics = Metrics::new(&[], "kubernetes");
        let shard = metrics.dns_shard("dns://:53", false);
        let worker = Worker {
            socket: UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            wildcard: true,
            ipv6: false,
            handler: Handler::new(Arc::new(Nobody), shard, None, Transport::Udp),
            stop: Stop::default(),
        };
        (worker, metrics)
    }

    #[test]
    fn prt_06_what_cannot_be_sent_does_not_keep_back_the_rest() {
        let (worker, metrics) = worker();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let port = client.local_addr().unwrap().port();
        let good = Some(SockaddrIn::new(127, 0, 0, 1, port));
        // EINVAL, as for a query with source port 0; and EACCES, since broadcasts are not permitted.
        let port_0 = Some(SockaddrIn::new(127, 0, 0, 1, 0));
        let broadcast = Some(SockaddrIn::new(255, 255, 255, 255, port));
        let texts: [&[u8]; 7] = [b"no", b"1", b"no", b"no", b"2", b"3", b"no"];
        let payloads = texts.map(|text| [IoSlice::new(text)]);
        let peers = [port_0, good, broadcast, port_0, good, good, broadcast];
        let mut headers = MultiHeaders::preallocate(BATCH, Some(V4::control_space()));
        let info = V4::info(Ipv4Addr::LOCALHOST);
        for _ in 0..3 {
            send_all::<V4, Nobody>(&worker, &mut headers, &payloads, &peers, &[V4::control(&info)]);
            for expected in [b"1", b"2", b"3"] {
                let mut text = [0; 2];
                assert_eq!(client.recv(&mut text).expect("sent all the same"), 1);
                assert_eq!(&text[..1], expected);
            }
        }
        let counted = metrics.render(State::default()).unwrap();
        assert!(counted.contains("namesake_dns_drops_total{reason=\"send\"} 12"), "{counted}");
    }

    #[test]
    fn prt_07_a_datagram_that_does_not_say_where_it_came_to_spoils_no_later_one() {
        let (worker, _) = worker();
        let address = worker.socket.local_addr().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address.as_socket().unwrap()).unwrap();
        let mut state = Loop::<V4, Nobody>::new(worker);
        let local_of_next = |state: &mut Loop<V4, Nobody>| {
            client.send(b"query").unwrap();
            assert_eq!(state.receive(MsgFlags::MSG_WAITFORONE), Ok(1));
            state.slots[0].local
        };
        // The option is not set yet, as while a socket is being set up.
        assert_eq!(local_of_next(&mut state), None);
        setsockopt(&state.worker.socket, sockopt::Ipv4PacketInfo, &true).unwrap();
        // The kernel cut the first one's message, which makes the headers new.
        let _cut = local_of_next(&mut state);
        assert_eq!(local_of_next(&mut state), Some(Ipv4Addr::LOCALHOST));
        assert_eq!(local_of_next(&mut state), Some(Ipv4Addr::LOCALHOST));
    }
}
