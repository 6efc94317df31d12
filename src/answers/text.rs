//! Records and names as people read them (RFC 1035 §5.1).

use std::fmt;
use std::net::IpAddr;

use super::records::{Rdata, Record};
use super::rrtype;

/// A name on the wire as dotted text with its final dot; bytes outside the printable are written `\DDD`.
pub(super) fn dotted(wire: &[u8]) -> String {
    let (mut text, mut rest) = (String::new(), wire);
    while let Some((&len, tail)) = rest.split_first().filter(|(len, _)| **len > 0) {
        let (label, after) = tail.split_at(usize::from(len).min(tail.len()));
        for &byte in label {
            match byte {
                b'.' | b'\\' => text.extend(['\\', char::from(byte)]),
                b'!'..=b'~' => text.push(char::from(byte)),
                _ => text.push_str(&format!("\\{byte:03}")),
            }
        }
        text.push('.');
        rest = after;
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

/// The types that have names here; others are `TYPE<number>` (RFC 3597 §5).
const TYPES: [(u16, &str); 16] = [
    (rrtype::A, "A"),
    (rrtype::NS, "NS"),
    (5, "CNAME"),
    (rrtype::SOA, "SOA"),
    (12, "PTR"),
    (rrtype::HINFO, "HINFO"),
    (15, "MX"),
    (rrtype::TXT, "TXT"),
    (rrtype::AAAA, "AAAA"),
    (rrtype::SRV, "SRV"),
    (43, "DS"),
    (48, "DNSKEY"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (rrtype::ANY, "ANY"),
    (257, "CAA"),
];

/// The name of a type.
#[must_use]
pub fn type_name(rrtype: u16) -> String {
    let known = TYPES.iter().find(|(number, _)| *number == rrtype);
    known.map_or_else(|| format!("TYPE{rrtype}"), |(_, name)| (*name).to_owned())
}

/// The type of a name, in any case; also `TYPE<number>`.
#[must_use]
pub fn type_number(name: &str) -> Option<u16> {
    let upper = name.to_ascii_uppercase();
    let known = TYPES.iter().find(|(_, name)| *name == upper).map(|(number, _)| *number);
    known.or_else(|| upper.strip_prefix("TYPE")?.parse().ok())
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} IN ", dotted(&self.owner), self.ttl)?;
        match &self.rdata {
            Rdata::Address(IpAddr::V4(ip)) => write!(f, "A {ip}"),
            Rdata::Address(IpAddr::V6(ip)) => write!(f, "AAAA {ip}"),
            Rdata::Srv { weight, port, target } => write!(f, "SRV 0 {weight} {port} {}", dotted(target)),
            Rdata::Ns(target) => write!(f, "NS {}", dotted(target)),
            Rdata::Soa { mname, rname, serial, minimum } => {
                write!(f, "SOA {} {} {serial} 7200 1800 86400 {minimum}", dotted(mname), dotted(rname))
            }
            Rdata::Txt(text) => write!(f, "TXT \"{text}\""),
            Rdata::Hinfo => f.write_str("HINFO \"RFC8482\" \"\""),
        }
    }
}
