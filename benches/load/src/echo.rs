//! The floor: a server that sets the bit that makes a query a response, and sends it back.
//!
//! UDP: one thread, recvmmsg and sendmmsg, nothing else; what it costs is the kernel's share, which no server can go
//! below without leaving the kernel's sockets. TCP: one thread, whole messages, as many at a time as
//! have come.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::thread;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, recvmmsg, sendmmsg};
use socket2::{Domain, Protocol, Socket, Type};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::tcp::message;
use crate::udp::receive_buffer;

/// As many as Namesake takes.
const BATCH: usize = 32;

/// Longer than any query.
const MESSAGE: usize = 4096;

/// From one buffer to the next, so that their beginnings don't push each other out of the first cache.
const STRIDE: usize = MESSAGE + 3 * 64;

/// Sockets that are bound and not served yet.
pub struct Bound {
    pub(crate) sockets: Vec<(SocketAddr, Socket, std::net::TcpListener)>,
}

impl Bound {
    /// Takes these addresses, for UDP and TCP.
    ///
    /// # Errors
    /// Where one is taken.
    pub fn bind(addresses: &[SocketAddr]) -> io::Result<Self> {
        let bind = |address: &SocketAddr| {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            receive_buffer(&socket)?;
            socket.bind(&address.into())?;
            Ok((address, socket, listener))
        };
        Ok(Self { sockets: addresses.iter().map(bind).collect::<io::Result<_>>()? })
    }

    /// The addresses, with real ports.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, ..)| *address).collect()
    }

    /// Echoes until the process ends.
    ///
    /// # Errors
    /// Where a socket breaks.
    pub fn serve(self) -> io::Result<()> {
        let mut threads = Vec::new();
        for (address, socket, listener) in self.sockets {
            threads.push(thread::spawn(move || {
                if address.is_ipv6() { udp::<SockaddrIn6>(&socket) } else { udp::<SockaddrIn>(&socket) }
            }));
            threads.push(thread::spawn(move || {
                tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
                    let listener = TcpListener::from_std(listener)?;
                    loop {
                        let (stream, _) = listener.accept().await?;
                        tokio::spawn(tcp(stream));
                    }
                })
            }));
        }
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| io::Error::other("a thread panicked"))?)
    }
}

fn udp<A: SockaddrLike + Copy>(socket: &Socket) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    let mut receiving = MultiHeaders::<A>::preallocate(BATCH, None);
    let mut sending = MultiHeaders::<A>::preallocate(BATCH, None);
    let mut packets = Box::new([[0; STRIDE]; BATCH]);
    loop {
        let mut lengths = [0; BATCH];
        let mut peers = [None; BATCH];
        let mut count = 0;
        {
            let mut buffers = packets.each_mut().map(|buffer| [IoSliceMut::new(&mut buffer[..MESSAGE])]);
            match recvmmsg(fd, &mut receiving, buffers.iter_mut(), MsgFlags::MSG_WAITFORONE, None) {
                Ok(messages) => {
                    for (message, (length, peer)) in messages.zip(lengths.iter_mut().zip(&mut peers)) {
                        (*length, *peer) = (message.bytes, message.address);
                        count += 1;
                    }
                }
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        packets.iter_mut().take(count).for_each(|packet| packet[2] |= 0x80);
        let mut payloads = [[IoSlice::new(&[])]; BATCH];
        for ((payload, packet), length) in payloads.iter_mut().zip(packets.iter()).zip(lengths) {
            *payload = [IoSlice::new(&packet[..length])];
        }
        let mut sent = 0;
        while sent < count {
            let (payloads, peers) = (payloads[sent..count].iter(), &peers[sent..count]);
            // What can't be sent is that client's loss.
            sent += match sendmmsg(fd, &mut sending, payloads, peers, [], MsgFlags::empty()) {
                Ok(messages) => messages.count().max(1),
                Err(_) => 1,
            };
        }
    }
}

async fn tcp(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 3 << 15];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Ok(()),
            count => filled += count,
        }
        let mut whole = 0;
        while let Some(length) = message(&buffer[whole..filled]).map(<[u8]>::len) {
            if length > 2 {
                buffer[whole + 4] |= 0x80;
            }
            whole += 2 + length;
        }
        stream.write_all(&buffer[..whole]).await?;
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}
