//! Free ports that stay ours: a server that is killed must come back on the port it had.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use crate::error::{Doing, Error, Result};
use crate::place;

/// Reserves a port that nobody listens on, UDP and TCP, IPv4 and IPv6 loopback, for as long as the bed's folder exists.
///
/// The ports lie below the kernel's ephemeral range, so that no outgoing connection can take one while its server is
/// down; a note per port keeps other beds of this user away from it.
pub(crate) fn reserve(bed: &Path) -> Result<u16> {
    let base = place::base()?;
    let _lock = place::lock(&base)?;
    let (low, high) = candidates();
    let span = u32::from(high - low);
    let mut at = random_u32()? % span;
    for _ in 0..span {
        let port = low + at as u16;
        at = (at + 1) % span;
        let note = base.join("ports").join(port.to_string());
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&note) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(Error::new(format!("cannot write {}: {e}", note.display()))),
        };
        if is_free(port) {
            file.write_all(bed.as_os_str().as_encoded_bytes()).doing(note.display())?;
            return Ok(port);
        }
        let _ = fs::remove_file(&note);
    }
    Err(Error::new(format!("no free port between {low} and {high} on the loopback")))
}

fn is_free(port: u16) -> bool {
    let v4 = SocketAddr::from(([127, 0, 0, 1], port));
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    let free = |address| match (TcpListener::bind(address), UdpSocket::bind(address)) {
        (Ok(_), Ok(_)) => true,
        // A machine without IPv6 has no ::1 that anybody could listen on.
        (Err(e), _) => e.kind() == ErrorKind::AddrNotAvailable,
        _ => false,
    };
    free(v4) && free(v6)
}

/// A range below the ephemeral ports, or a plain one where the kernel's range leaves no room below.
fn candidates() -> (u16, u16) {
    let low = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u16>().ok())
        .unwrap_or(32768);
    if low >= 12_000 { (low.saturating_sub(12_000).max(10_000), low) } else { (61_000, 65_500) }
}

/// Randomness of the kernel: for ports and for tokens.
pub(crate) fn random_u32() -> Result<u32> {
    let mut bytes = [0; 4];
    random(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// 128 bits of the kernel's randomness as hex digits.
pub(crate) fn random_hex() -> Result<String> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn random(bytes: &mut [u8]) -> Result<()> {
    use std::io::Read;
    fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(bytes)).doing("reading /dev/urandom")
}
