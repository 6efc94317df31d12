//! Queries of every kind, and what a bad line, a bad program or a bad person makes of them.

use fastrand::Rng;

use crate::rich;

/// Types that are asked for: ours, those that are not looked up, and some that nobody has.
const TYPES: [u16; 22] = [1, 28, 33, 255, 2, 6, 16, 5, 12, 15, 13, 64, 65, 46, 0, 41, 249, 250, 251, 252, 253, 254];

/// The source of packets.
pub(crate) struct Packets {
    /// On the wire.
    names: Vec<Vec<u8>>,
    packet: Vec<u8>,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self { names: rich::names().iter().map(|name| wire(name)).collect(), packet: Vec::with_capacity(2048) }
    }

    /// A well-formed query.
    pub(crate) fn query(&mut self, rng: &mut Rng) -> &[u8] {
        let packet = &mut self.packet;
        packet.clear();
        let flags = if rng.u8(0..4) == 0 { [rng.u8(..) & 0x07, rng.u8(..)] } else { [1, 0] };
        packet.extend([rng.u8(..), rng.u8(..), flags[0], flags[1], 0, 1, 0, 0, 0, 0, 0, 0]);
        let name = &self.names[rng.usize(0..self.names.len())];
        let huge = name.starts_with(b"\x04huge") || name.windows(5).any(|part| part == b"\x04huge");
        // The largest set costs a thousand times what the others do.
        let name = if huge && rng.u8(0..8) != 0 { &self.names[0] } else { name };
        packet.extend(name);
        if rng.u8(0..3) == 0 {
            packet[12..].iter_mut().filter(|b| b.is_ascii_alphabetic()).for_each(|b| *b ^= rng.u8(..) & 0x20);
        }
        let ours = rng.bool();
        let qtype = TYPES[rng.usize(0..if ours { 4 } else { TYPES.len() })];
        let class = if rng.u8(0..32) == 0 { [0, 3] } else { [0, 1] };
        packet.extend(qtype.to_be_bytes());
        packet.extend(class);
        if rng.bool() {
            opt(packet, rng);
        }
        packet
    }

    /// Anything: most often a query with one to four things wrong, sometimes noise.
    pub(crate) fn hostile(&mut self, rng: &mut Rng) -> &[u8] {
        if rng.u8(0..16) == 0 {
            let noise = (0..rng.usize(0..600)).map(|_| rng.u8(..));
            self.packet.clear();
            self.packet.extend(noise);
            if rng.bool() && self.packet.len() > 12 {
                self.packet[2..12].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, rng.u8(0..2)]);
            }
            return &self.packet;
        }
        self.query(rng);
        for _ in 0..rng.u8(0..5) {
            self.spoil(rng);
        }
        self.packet.truncate(65535);
        &self.packet
    }

    fn spoil(&mut self, rng: &mut Rng) {
        let len = self.packet.len();
        let name = self.names[rng.usize(0..self.names.len())].clone();
        let packet = &mut self.packet;
        if len == 0 {
            packet.push(rng.u8(..));
            return;
        }
        let at = rng.usize(0..len);
        match rng.u8(0..16) {
            0 => packet[at] ^= 1 << rng.u8(0..8),
            1 => packet[at] = rng.u8(..),
            2 => packet[at] = [0, 1, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFF][rng.usize(0..8)],
            3 => drop(packet.splice(at..at, (0..rng.usize(1..9)).map(|_| rng.u8(..)).collect::<Vec<_>>())),
            4 => drop(packet.drain(at..(at + rng.usize(1..9)).min(len))),
            5 => packet.truncate(at),
            6 => packet.extend((0..rng.usize(1..64)).map(|_| rng.u8(..))),
            // Counts: none, one, two, very many.
            7 if len >= 12 => {
                let count = [[0, 0], [0, 1], [0, 2], [0, 3], [0xFF, 0xFF], [0x80, 0]][rng.usize(0..6)];
                let field = 4 + 2 * rng.usize(0..4);
                packet[field..field + 2].copy_from_slice(&count);
            }
            8 if len >= 12 => packet[2] = rng.u8(..) & 0x7F,
            // A pointer, near or far, backwards, forwards or to itself.
            9 => {
                let to = [at, 12, 13, at.saturating_sub(2), at + 2, 0, rng.usize(0..0x4000)][rng.usize(0..7)];
                let pointer = (0xC000 | to as u16 & 0x3FFF).to_be_bytes();
                packet.splice(at..(at + 2).min(len), pointer);
            }
            // The question's name ends in a pointer to a name behind the message, or to itself.
            10 if len > 18 => {
                let end = 12 + packet[12..].iter().position(|b| *b == 0).unwrap_or(0);
                let to = [12, end + 2, end, len][rng.usize(0..4)];
                packet.splice(end..(end + 1).min(len), (0xC000 | to as u16 & 0x3FFF).to_be_bytes());
            }
            11 => {
                opt(packet, rng);
                if rng.bool() {
                    opt(packet, rng);
                }
            }
            12 => record(packet, rng, &name),
            // Names at the limits: 63, 64, 254, 255, 256 octets.
            13 if len >= 17 => {
                let (label, count) =
                    [(63, 3), (63, 4), (1, 127), (1, 126), (1, 128), (62, 4), (61, 4)][rng.usize(0..7)];
                let long: Vec<u8> =
                    (0..count).flat_map(|_| [&[label as u8][..], &vec![b'x'; label]].concat()).collect();
                packet.splice(12..12, long);
            }
            14 if len >= 17 => {
                let byte = [0, b'.', b'\\', b'"', 0xFF, b' ', b'_', b'*'][rng.usize(0..8)];
                packet.splice(12..12, [2, byte, b'a']);
            }
            _ => drop(packet.splice(at..at, name)),
        }
    }
}

/// An OPT of some kind, right or wrong, and its count.
fn opt(packet: &mut Vec<u8>, rng: &mut Rng) {
    let size = [512u16, 1232, 4096, 65535, 0, 511, 513, 600, rng.u16(..)][rng.usize(0..9)].to_be_bytes();
    let version = if rng.u8(0..16) == 0 { rng.u8(..) } else { 0 };
    let mut options: Vec<u8> = Vec::new();
    for _ in 0..rng.u8(0..3) {
        match rng.u8(0..8) {
            0 | 1 => options.extend([0, 3, 0, 0]),
            2 => options.extend([0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]),
            3 => options.extend([0, 8, 0, 7, 0, 1, 24, 0, 10, 0, 0]),
            4 => options.extend([0, 12, 0, 3, 0, 0, 0]),
            5 => options.extend([0, 11, 0, 0]),
            6 => options.extend([rng.u8(..), rng.u8(..), 0, 2, rng.u8(..), rng.u8(..)]),
            _ => options.extend((0..rng.u8(0..9)).map(|_| rng.u8(..))),
        }
    }
    packet.push(0);
    packet.extend([0, 41, size[0], size[1], 0, version, rng.u8(0..2) << 7, 0, 0, options.len() as u8]);
    packet.extend(options);
    count(packet, 10);
}

/// A record that has no business in a query, or some (TSIG, SIG(0), the SOA of an IXFR), in some section.
fn record(packet: &mut Vec<u8>, rng: &mut Rng, name: &[u8]) {
    let owner: &[u8] = match rng.u8(0..3) {
        0 => &[0xC0, 12],
        1 => &[0],
        _ => name,
    };
    let kind = [250u16, 24, 6, 1, 28, 33, 16, 41, 46, 2, 5, 65, 255, rng.u16(..)][rng.usize(0..14)];
    let data: Vec<u8> = match kind {
        250 => {
            b"\x08hmac-md5\x07sig-alg\x03reg\x03int\0\0\0\0\0\0\x01\x01\x2c\0\x10xxxxxxxxxxxxxxxx\0\0\0\0\0\0".to_vec()
        }
        6 => b"\xC0\x0C\xC0\x0C\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01".to_vec(),
        1 => vec![10, 0, 0, 1],
        _ => (0..rng.usize(0..32)).map(|_| rng.u8(..)).collect(),
    };
    packet.extend(owner);
    packet.extend(kind.to_be_bytes());
    packet.extend([if kind == 250 { 0 } else { rng.u8(0..2) }, if kind == 250 { 255 } else { 1 }, 0, 0, 0, rng.u8(..)]);
    let length = if rng.u8(0..8) == 0 { rng.u16(..) } else { data.len() as u16 };
    packet.extend(length.to_be_bytes());
    packet.extend(data);
    count(packet, [6, 8, 10, 10][rng.usize(0..4)]);
}

/// One more in a section.
fn count(packet: &mut [u8], field: usize) {
    if let Some([_, low]) = packet.get_mut(field..field + 2) {
        *low = low.wrapping_add(1);
    }
}

/// The wire form of dotted text, whatever it is.
fn wire(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut wire: Vec<u8> = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    wire.push(0);
    wire
}
