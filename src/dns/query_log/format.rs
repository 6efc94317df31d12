//! From the two messages to a line. Runs in the writer's thread, on bytes that anybody may have sent.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use super::names::{class_name, type_name};
use crate::dns::Transport;
use crate::metrics::rcode_name;
use crate::telemetry::{json_string, rfc3339};

const HEADER: usize = 12;
const TYPE_OPT: u16 = 41;

/// What a line says.
pub(super) struct Seen {
    peer: SocketAddr,
    id: u16,
    opcode: u8,
    /// Empty without a question.
    qtype: String,
    qclass: String,
    /// Escaped, in lower case.
    name: String,
    proto: &'static str,
    size: usize,
    dnssec_ok: bool,
    bufsize: u16,
    rcode: String,
    flags: String,
    rsize: usize,
    duration: Duration,
}

impl Seen {
    /// Reads both messages. What can't be read is left as CoreDNS leaves it without a question.
    pub(super) fn new(peer: SocketAddr, transport: Transport, query: &[u8], reply: &[u8], duration: Duration) -> Self {
        let (question, name) = question(query).unzip();
        let asked = opt(query);
        let (proto, bufsize) = match transport {
            Transport::Tcp => ("tcp", u16::MAX),
            Transport::Udp => ("udp", asked.map_or(512, |opt| opt.bufsize.max(512))),
        };
        let rcode = u16::from(byte(reply, 3) & 0x0F) | opt(reply).map_or(0, |opt| u16::from(opt.rcode) << 4);
        Self {
            peer,
            id: word(query, 0).unwrap_or_default(),
            opcode: byte(query, 2) >> 3 & 0x0F,
            qtype: question.map(|(qtype, _)| type_name(qtype).into_owned()).unwrap_or_default(),
            qclass: question.map(|(_, qclass)| class_name(qclass).into_owned()).unwrap_or_default(),
            name: name.unwrap_or_else(|| ".".to_owned()),
            proto,
            size: query.len(),
            dnssec_ok: asked.is_some_and(|opt| opt.dnssec_ok),
            bufsize,
            rcode: rcode_name(rcode).map_or_else(|| rcode.to_string(), str::to_owned),
            flags: flags(reply),
            rsize: uncompressed(reply).unwrap_or(reply.len()),
            duration,
        }
    }

    /// CoreDNS's `{common}` format.
    pub(super) fn common(&self, text: &mut String) {
        let dash = |value: &str| if value.is_empty() { "-".to_owned() } else { value.to_owned() };
        // Writing to a String does not fail.
        let _ = match self.ip() {
            IpAddr::V4(ip) => write!(text, "{ip}:{}", self.peer.port()),
            IpAddr::V6(ip) => write!(text, "[{ip}]:{}", self.peer.port()),
        };
        let _ = write!(
            text,
            " - {} \"{} {} {} {} {} {} {}\" {} {} {} {}s",
            self.id,
            dash(&self.qtype),
            dash(&self.qclass),
            self.name,
            self.proto,
            self.size,
            self.dnssec_ok,
            self.bufsize,
            self.rcode,
            dash(&self.flags),
            self.rsize,
            self.duration.as_secs_f64(),
        );
    }

    /// The keys of CoreDNS 1.15's JSON form, in its order.
    pub(super) fn json(&self, at: SystemTime, text: &mut String) {
        let mut line = String::new();
        self.common(&mut line);
        let _ = write!(
            text,
            "{{\"time\":\"{}\",\"level\":\"INFO\",\"msg\":{},\"plugin\":\"log\",\"client_ip\":\"{}\",\
             \"client_port\":{},\"qname\":{},\"qtype\":\"{}\",\"qclass\":\"{}\",\"protocol\":\"{}\",\"id\":{},\
             \"opcode\":{},\"request_size\":{},\"dnssec_ok\":{},\"bufsize\":{},\"rcode\":\"{}\",\
             \"response_size\":{},\"duration_seconds\":{}}}",
            rfc3339(at),
            json_string(&line),
            self.ip(),
            self.peer.port(),
            json_string(&self.name),
            self.qtype,
            self.qclass,
            self.proto,
            self.id,
            self.opcode,
            self.size,
            self.dnssec_ok,
            self.bufsize,
            self.rcode,
            self.rsize,
            self.duration.as_secs_f64(),
        );
    }

    /// An IPv4 client of a dual-stack socket is an IPv4 client.
    fn ip(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }
}

fn byte(message: &[u8], at: usize) -> u8 {
    message.get(at).copied().unwrap_or_default()
}

fn word(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]))
}

/// The header's flags that are set, in CoreDNS's order.
fn flags(message: &[u8]) -> String {
    let (high, low) = (byte(message, 2), byte(message, 3));
    let all = [
        (high & 0x80, "qr"),
        (high & 0x04, "aa"),
        (high & 0x02, "tc"),
        (high & 0x01, "rd"),
        (low & 0x80, "ra"),
        (low & 0x40, "z"),
        (low & 0x20, "ad"),
        (low & 0x10, "cd"),
    ];
    let set: Vec<&str> = all.iter().filter(|(bit, _)| *bit != 0).map(|(_, name)| *name).collect();
    set.join(",")
}

/// Calls `label` with every label of the name at `at`, follows pointers, and gives the offset behind the name.
/// `None` for what is no name.
fn walk<'a>(message: &'a [u8], at: usize, mut label: impl FnMut(&'a [u8])) -> Option<usize> {
    let mut at = at;
    let mut behind = None;
    let mut length = 1;
    // A name has at most 127 labels; with as many pointers between them that is the longest walk.
    for _ in 0..256 {
        let first = usize::from(*message.get(at)?);
        match first & 0xC0 {
            0x00 if first == 0 => return Some(behind.unwrap_or(at + 1)),
            0x00 => {
                length += first + 1;
                if length > 255 {
                    return None;
                }
                label(message.get(at + 1..at + 1 + first)?);
                at += 1 + first;
            }
            0xC0 => {
                behind = behind.or(Some(at + 2));
                at = usize::from(word(message, at)? & 0x3FFF);
            }
            _ => return None,
        }
    }
    None
}

/// The offset behind a name, and its length in bytes without compression.
fn name_length(message: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut length = 1;
    let behind = walk(message, at, |label| length += label.len() + 1)?;
    Some((behind, length))
}

/// The first question's type and class, and its name: escaped as miekg/dns does, in lower case.
fn question(message: &[u8]) -> Option<((u16, u16), String)> {
    if word(message, 4)? == 0 {
        return None;
    }
    let mut name = String::new();
    let behind = walk(message, HEADER, |label| {
        for byte in label {
            match byte {
                b'.' | b' ' | b'\'' | b'@' | b';' | b'(' | b')' | b'"' | b'\\' => {
                    name.push('\\');
                    name.push(char::from(*byte));
                }
                b'!'..=b'~' => name.push(char::from(byte.to_ascii_lowercase())),
                _ => {
                    let _ = write!(name, "\\{byte:03}");
                }
            }
        }
        name.push('.');
    })?;
    if name.is_empty() {
        name.push('.');
    }
    Some(((word(message, behind)?, word(message, behind + 2)?), name))
}

/// A record's place in a message.
struct Record {
    /// Of its owner, without compression.
    owner: usize,
    kind: u16,
    class: u16,
    ttl: u32,
    /// Where its data begins.
    data: usize,
    length: usize,
}

/// Calls `each` with every record. `None` where the message ends too early or a name is none.
fn records(message: &[u8], mut each: impl FnMut(&Record) -> Option<()>) -> Option<()> {
    let mut at = HEADER;
    for _ in 0..word(message, 4)? {
        at = walk(message, at, |_| {})? + 4;
    }
    let count = u32::from(word(message, 6)?) + u32::from(word(message, 8)?) + u32::from(word(message, 10)?);
    for _ in 0..count {
        let (behind, owner) = name_length(message, at)?;
        let record = Record {
            owner,
            kind: word(message, behind)?,
            class: word(message, behind + 2)?,
            ttl: u32::from(word(message, behind + 4)?) << 16 | u32::from(word(message, behind + 6)?),
            data: behind + 10,
            length: usize::from(word(message, behind + 8)?),
        };
        each(&record)?;
        at = record.data + record.length;
    }
    Some(())
}

/// What matters of an OPT record.
#[derive(Clone, Copy)]
struct Opt {
    bufsize: u16,
    dnssec_ok: bool,
    /// The upper bits of the rcode.
    rcode: u8,
}

fn opt(message: &[u8]) -> Option<Opt> {
    let mut found = None;
    // What precedes a broken record still counts.
    let _ = records(message, |record| {
        if record.kind == TYPE_OPT {
            let [rcode, _, flags, _] = record.ttl.to_be_bytes();
            found = Some(Opt { bufsize: record.class, dnssec_ok: flags & 0x80 != 0, rcode });
        }
        Some(())
    });
    found
}

/// The length that the message has without compression and without its OPT: what CoreDNS's recorder sees.
fn uncompressed(message: &[u8]) -> Option<usize> {
    let mut length = HEADER;
    let mut at = HEADER;
    for _ in 0..word(message, 4)? {
        let (behind, name) = name_length(message, at)?;
        at = behind + 4;
        length += name + 4;
    }
    records(message, |record| {
        if record.kind == TYPE_OPT {
            return Some(());
        }
        length += record.owner + 10;
        length += match record.kind {
            // NS, CNAME, PTR: one name.
            2 | 5 | 12 => name_length(message, record.data)?.1,
            // SOA: two names and five numbers.
            6 => {
                let (behind, first) = name_length(message, record.data)?;
                first + name_length(message, behind)?.1 + 20
            }
            // MX: a number and a name.
            15 => 2 + name_length(message, record.data + 2)?.1,
            _ => record.length,
        };
        Some(())
    })?;
    Some(length)
}
