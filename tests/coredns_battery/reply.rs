//! Replies, read without judging: CoreDNS sends some that no parser should take (`dns.md` T22), and they are to be
//! compared, not refused.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::support::*;

/// A record; names in lower case, for their case is not compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rr {
    pub owner: String,
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    /// In text. A SOA's serial is `*`.
    pub data: String,
}

impl fmt::Display for Rr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} class {} TYPE{} {}", self.owner, self.ttl, self.class, self.rtype, self.data)
    }
}

/// An OPT record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opt {
    pub size: u16,
    pub version: u8,
    pub flags: u16,
    pub options: Vec<(u16, Vec<u8>)>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub id: u16,
    pub flags: u16,
    pub rcode: u16,
    /// The question's bytes.
    pub question: Vec<u8>,
    pub answers: Vec<Rr>,
    pub authority: Vec<Rr>,
    /// Without OPT.
    pub additional: Vec<Rr>,
    pub opts: Vec<Opt>,
    /// Octets of the longest name; more than 255 is against RFC 1035.
    pub longest_name: usize,
    pub len: usize,
}

impl Reply {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes, at: 0, longest: 0 };
        let header: Vec<u16> = (0..6).map(|_| reader.u16()).collect::<Option<_>>()?;
        for _ in 0..header[2] {
            reader.name()?;
            reader.at += 4;
        }
        let question = bytes.get(12..reader.at)?.to_vec();
        let mut sections = [Vec::new(), Vec::new(), Vec::new()];
        let mut opts = Vec::new();
        for (section, count) in sections.iter_mut().zip(&header[3..]) {
            for _ in 0..*count {
                match reader.record()? {
                    Read::Record(rr) => section.push(rr),
                    Read::Opt(opt, rcode) => opts.push((opt, rcode)),
                }
            }
            section.sort();
        }
        let [answers, authority, additional] = sections;
        let high = opts.first().map_or(0, |(_, high)| u16::from(*high));
        (reader.at == bytes.len()).then(|| Self {
            id: header[0],
            flags: header[1],
            rcode: high << 4 | header[1] & 0xF,
            question,
            answers,
            authority,
            additional,
            opts: opts.into_iter().map(|(opt, _)| opt).collect(),
            longest_name: reader.longest,
            len: bytes.len(),
        })
    }

    pub fn aa(&self) -> bool {
        self.flags & 0x0400 != 0
    }

    pub fn tc(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// Nothing but a header with this rcode.
    pub fn is_bare(&self, rcode: u16) -> bool {
        self.rcode == rcode && self.len == 12 && !self.aa()
    }

    /// The rcode with a question and no data.
    pub fn is_dataless(&self, rcode: u16) -> bool {
        self.rcode == rcode
            && !self.aa()
            && [&self.answers, &self.authority, &self.additional].iter().all(|s| s.is_empty())
    }

    fn is_negative(&self, rcode: u16) -> bool {
        let soa = matches!(&*self.authority, [soa] if soa.rtype == SOA);
        self.rcode == rcode && self.aa() && !self.tc() && soa && self.answers.is_empty() && self.additional.is_empty()
    }

    pub fn is_nodata(&self) -> bool {
        self.is_negative(NOERROR)
    }

    pub fn is_nxdomain(&self) -> bool {
        self.is_negative(NXDOMAIN)
    }

    /// NOERROR with answers and without authority.
    pub fn is_data(&self) -> bool {
        self.rcode == NOERROR && self.aa() && !self.answers.is_empty() && self.authority.is_empty()
    }

    /// Data of these types only.
    pub fn is_data_of(&self, types: &[u16]) -> bool {
        self.is_data() && self.answers.iter().all(|rr| types.contains(&rr.rtype))
    }

    /// The data of the answers of one type.
    pub fn data(&self, rtype: u16) -> impl Iterator<Item = &str> {
        self.answers.iter().filter(move |rr| rr.rtype == rtype).map(|rr| rr.data.as_str())
    }

    pub fn options(&self) -> &[(u16, Vec<u8>)] {
        self.opts.first().map_or(&[], |opt| &opt.options)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rcode {}, flags {:04x}, {} bytes, question {} bytes",
            self.rcode,
            self.flags,
            self.len,
            self.question.len()
        )?;
        let sections = [("answer", &self.answers), ("authority", &self.authority), ("additional", &self.additional)];
        for (title, records) in sections {
            for rr in records.iter().take(12) {
                write!(f, "\n      {title}: {rr}")?;
            }
            if records.len() > 12 {
                write!(f, "\n      {title}: … {} in all", records.len())?;
            }
        }
        for opt in &self.opts {
            write!(
                f,
                "\n      OPT: size {}, version {}, flags {:04x}, options {:?}",
                opt.size, opt.version, opt.flags, opt.options
            )?;
        }
        Ok(())
    }
}

enum Read {
    Record(Rr),
    Opt(Opt, u8),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    longest: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at + count)?;
        self.at += count;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }

    fn name(&mut self) -> Option<String> {
        let (mut text, mut at, mut len, mut pointed) = (String::new(), self.at, 1, false);
        loop {
            let octet = usize::from(*self.bytes.get(at)?);
            if octet >= 0xC0 {
                let target = (octet & 0x3F) << 8 | usize::from(*self.bytes.get(at + 1)?);
                if !pointed {
                    self.at = at + 2;
                }
                if target >= at {
                    return None; // a loop
                }
                (at, pointed) = (target, true);
                continue;
            }
            let label = self.bytes.get(at + 1..at + 1 + octet)?;
            at += 1 + octet;
            if octet == 0 {
                break;
            }
            len += 1 + octet;
            let text_of = |b: &u8| {
                if b.is_ascii_graphic() && !b".\\".contains(b) {
                    char::from(*b).to_string()
                } else {
                    format!("\\{b:03}")
                }
            };
            text.extend(label.iter().map(|b| text_of(&b.to_ascii_lowercase())));
            text.push('.');
        }
        if !pointed {
            self.at = at;
        }
        self.longest = self.longest.max(len);
        Some(if text.is_empty() { ".".to_owned() } else { text })
    }

    fn record(&mut self) -> Option<Read> {
        let owner = self.name()?;
        let (rtype, class, ttl) = (self.u16()?, self.u16()?, self.u32()?);
        let len = usize::from(self.u16()?);
        let end = self.at + len;
        if rtype == OPT {
            let mut options = Vec::new();
            while self.at < end {
                let (code, len) = (self.u16()?, usize::from(self.u16()?));
                options.push((code, self.take(len)?.to_vec()));
            }
            let [high, version, flags @ ..] = ttl.to_be_bytes();
            return Some(Read::Opt(Opt { size: class, version, flags: u16::from_be_bytes(flags), options }, high));
        }
        let data = match rtype {
            A => Ipv4Addr::from(<[u8; 4]>::try_from(self.take(len)?).ok()?).to_string(),
            AAAA => Ipv6Addr::from(<[u8; 16]>::try_from(self.take(len)?).ok()?).to_string(),
            NS | CNAME | PTR => self.name()?,
            SRV => format!("{} {} {} {}", self.u16()?, self.u16()?, self.u16()?, self.name()?),
            SOA => {
                let (mname, rname) = (self.name()?, self.name()?);
                self.u32()?; // the serials are two servers' clocks
                format!("{mname} {rname} * {} {} {} {}", self.u32()?, self.u32()?, self.u32()?, self.u32()?)
            }
            TXT | HINFO => {
                let mut strings = Vec::new();
                while self.at < end {
                    let len = usize::from(*self.take(1)?.first()?);
                    strings.push(format!("{:?}", String::from_utf8_lossy(self.take(len)?)));
                }
                strings.join(" ")
            }
            _ => format!("{:02x?}", self.take(len)?),
        };
        (self.at == end).then_some(Read::Record(Rr { owner, rtype, class, ttl, data }))
    }
}
