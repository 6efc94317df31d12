//! Replies, decoded by hand: bytes matter here (compression, order, what is echoed), and the decoder must not be the
//! encoder's brother. `Message::read` also has hickory-proto read the same bytes.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::types::*;

/// A record as it stands in a reply.
#[derive(Debug, Clone)]
pub struct Record {
    /// In text, as spelled, with final dot.
    pub owner: String,
    /// The first two bytes of the owner: `C0 0C` is a pointer to the question.
    pub owner_bytes: [u8; 2],
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    pub rdata: Vec<u8>,
    /// In text: `10.0.0.1`, `0 50 80 web.shop.svc.clusterset.local.`, `"1.0.0"`.
    pub data: String,
    /// Where it begins in the message.
    pub offset: usize,
}

/// A whole reply.
#[derive(Debug, Clone)]
pub struct Message {
    pub bytes: Vec<u8>,
    pub id: u16,
    pub flags: u16,
    pub counts: [u16; 4],
    /// The question's bytes, where there is exactly one.
    pub question: Option<Vec<u8>>,
    /// Its name in text, as spelled.
    pub qname: String,
    pub answers: Vec<Record>,
    pub authorities: Vec<Record>,
    /// Without the OPT.
    pub additionals: Vec<Record>,
    pub opt: Option<Record>,
}

impl Message {
    /// Reads a reply; whatever is wrong with it fails the test.
    #[track_caller]
    pub fn read(bytes: &[u8]) -> Self {
        let message = Self::parse(bytes).unwrap_or_else(|e| panic!("unreadable reply: {e}\n{bytes:02x?}"));
        let theirs = hickory_proto::op::Message::from_vec(bytes)
            .unwrap_or_else(|e| panic!("hickory-proto can't read the reply: {e}\n{message}"));
        assert_eq!(theirs.answers.len(), message.answers.len(), "answers as hickory-proto counts\n{message}");
        assert_eq!(theirs.authorities.len(), message.authorities.len(), "authorities as hickory-proto counts");
        assert_eq!(theirs.additionals.len(), message.additionals.len(), "additionals as hickory-proto counts");
        assert_eq!(theirs.edns.is_some(), message.opt.is_some(), "OPT as hickory-proto sees it\n{message}");
        assert_eq!(u16::from(theirs.metadata.response_code), message.rcode(), "rcode as hickory-proto reads it");
        message
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut at = 0;
        let header: Vec<u16> = (0..6).map(|_| u16_at(bytes, &mut at)).collect::<Result<_, _>>()?;
        let counts = [header[2], header[3], header[4], header[5]];
        let mut qname = String::new();
        let start = at;
        for _ in 0..counts[0] {
            let question = at;
            qname = name(bytes, &mut at)?.0;
            if bytes[question..at].len() >= 2 && bytes[at - 1] != 0 {
                return Err("a compressed question".into());
            }
            u16_at(bytes, &mut at)?;
            u16_at(bytes, &mut at)?;
        }
        let question = (counts[0] == 1).then(|| bytes[start..at].to_vec());
        let mut sections = [Vec::new(), Vec::new(), Vec::new()];
        for (section, count) in sections.iter_mut().zip(&counts[1..]) {
            for _ in 0..*count {
                section.push(read_record(bytes, &mut at)?);
            }
        }
        if at != bytes.len() {
            return Err(format!("{} bytes after the last record", bytes.len() - at));
        }
        let [answers, authorities, mut additionals] = sections;
        let opts = additionals.iter().filter(|r| r.rtype == OPT).count();
        if opts > 1 || answers.iter().chain(&authorities).any(|r| r.rtype == OPT) {
            return Err("an OPT where none may be".into());
        }
        let opt = match additionals.last() {
            Some(last) if last.rtype == OPT => additionals.pop(),
            _ if opts == 1 => return Err("the OPT is not last".into()),
            _ => None,
        };
        if opt.as_ref().is_some_and(|o| o.owner != ".") {
            return Err("an OPT whose owner is not the root".into());
        }
        let (id, flags) = (header[0], header[1]);
        Ok(Self { bytes: bytes.to_vec(), id, flags, counts, question, qname, answers, authorities, additionals, opt })
    }

    fn flag(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    pub fn is_response(&self) -> bool {
        self.flag(0x8000)
    }

    pub fn opcode(&self) -> u8 {
        u8::try_from(self.flags >> 11 & 0xF).unwrap()
    }

    pub fn authoritative(&self) -> bool {
        self.flag(0x0400)
    }

    pub fn truncated(&self) -> bool {
        self.flag(0x0200)
    }

    pub fn recursion_desired(&self) -> bool {
        self.flag(0x0100)
    }

    pub fn recursion_available(&self) -> bool {
        self.flag(0x0080)
    }

    /// The reserved bit Z.
    pub fn reserved(&self) -> bool {
        self.flag(0x0040)
    }

    pub fn authentic_data(&self) -> bool {
        self.flag(0x0020)
    }

    pub fn checking_disabled(&self) -> bool {
        self.flag(0x0010)
    }

    /// With the upper bits of the OPT.
    pub fn rcode(&self) -> u16 {
        let upper = self.opt.as_ref().map_or(0, |o| u16::try_from(o.ttl >> 24).unwrap());
        upper << 4 | self.flags & 0xF
    }

    /// The OPT's options.
    pub fn options(&self) -> Vec<(u16, Vec<u8>)> {
        let Some(opt) = &self.opt else { return Vec::new() };
        let (mut at, mut options) = (0, Vec::new());
        while at < opt.rdata.len() {
            let code = u16_at(&opt.rdata, &mut at).unwrap();
            let len = usize::from(u16_at(&opt.rdata, &mut at).unwrap());
            options.push((code, opt.rdata[at..at + len].to_vec()));
            at += len;
        }
        options
    }

    /// The info codes of its extended errors.
    pub fn extended_errors(&self) -> Vec<u16> {
        let codes = self.options().into_iter().filter(|(code, _)| *code == OPTION_EDE);
        codes.map(|(_, data)| u16::from_be_bytes([data[0], data[1]])).collect()
    }

    /// A section as a sorted set of `owner type data`, owners in lower case.
    pub fn set(records: &[Record]) -> Vec<String> {
        let mut set: Vec<_> = records.iter().map(|r| r.text().to_lowercase()).collect();
        set.sort();
        set
    }
}

impl Record {
    /// `owner TTL TYPE data`.
    pub fn text(&self) -> String {
        format!("{} {} {} {}", self.owner, self.ttl, type_name(self.rtype), self.data)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [(0x8000, "qr"), (0x0400, "aa"), (0x0200, "tc"), (0x0100, "rd"), (0x0080, "ra"), (0x0010, "cd")];
        let flags: Vec<_> = flags.iter().filter(|(bit, _)| self.flag(*bit)).map(|(_, name)| *name).collect();
        writeln!(
            f,
            "  reply: id {:04x}, opcode {}, rcode {}, flags {}, {} bytes, question {}",
            self.id,
            self.opcode(),
            self.rcode(),
            flags.join(" "),
            self.bytes.len(),
            self.qname
        )?;
        let sections = [("answer", &self.answers), ("authority", &self.authorities), ("additional", &self.additionals)];
        for (title, records) in sections {
            for record in records.iter().take(20) {
                writeln!(f, "  {title}: {}", record.text())?;
            }
            if records.len() > 20 {
                writeln!(f, "  {title}: … {} in all", records.len())?;
            }
        }
        if let Some(opt) = &self.opt {
            writeln!(f, "  OPT: size {}, ttl {:08x}, options {:?}", opt.class, opt.ttl, self.options())?;
        }
        Ok(())
    }
}

fn type_name(rtype: u16) -> String {
    let known = [
        (A, "A"),
        (NS, "NS"),
        (CNAME, "CNAME"),
        (SOA, "SOA"),
        (PTR, "PTR"),
        (HINFO, "HINFO"),
        (TXT, "TXT"),
        (AAAA, "AAAA"),
        (SRV, "SRV"),
        (OPT, "OPT"),
    ];
    known.iter().find(|(t, _)| *t == rtype).map_or_else(|| format!("TYPE{rtype}"), |(_, n)| (*n).to_owned())
}

fn u16_at(bytes: &[u8], at: &mut usize) -> Result<u16, String> {
    let pair = bytes.get(*at..*at + 2).ok_or("cut")?;
    *at += 2;
    Ok(u16::from_be_bytes([pair[0], pair[1]]))
}

fn u32_at(bytes: &[u8], at: &mut usize) -> Result<u32, String> {
    Ok(u32::from(u16_at(bytes, at)?) << 16 | u32::from(u16_at(bytes, at)?))
}

/// A name in text, and whether a pointer was used. `at` moves behind it.
fn name(bytes: &[u8], at: &mut usize) -> Result<(String, bool), String> {
    let (mut text, mut position, mut length, mut pointed) = (String::new(), *at, 1, false);
    loop {
        let byte = *bytes.get(position).ok_or("cut in a name")?;
        match byte {
            0 => break,
            1..=63 => {
                let end = position + 1 + usize::from(byte);
                length += 1 + usize::from(byte);
                for b in bytes.get(position + 1..end).ok_or("cut in a label")? {
                    match b {
                        b'.' | b'\\' => text.extend(['\\', char::from(*b)]),
                        0x21..=0x7E => text.push(char::from(*b)),
                        other => text.push_str(&format!("\\{other:03}")),
                    }
                }
                text.push('.');
                position = end;
                if !pointed {
                    *at = position;
                }
            }
            0xC0.. => {
                let mut here = position;
                let target = usize::from(u16_at(bytes, &mut here)? & 0x3FFF);
                if !pointed {
                    *at = here;
                }
                pointed = true;
                if target >= position {
                    return Err("a pointer that does not point back".into());
                }
                position = target;
            }
            _ => return Err("a label of an unknown kind".into()),
        }
        if length > 255 {
            return Err("a name longer than 255 bytes".into());
        }
    }
    if !pointed {
        *at = position + 1;
    }
    if text.is_empty() {
        text.push('.');
    }
    Ok((text, pointed))
}

fn read_record(bytes: &[u8], at: &mut usize) -> Result<Record, String> {
    let offset = *at;
    let owner = name(bytes, at)?.0;
    let owner_bytes = [bytes[offset], bytes[offset + 1]];
    let (rtype, class) = (u16_at(bytes, at)?, u16_at(bytes, at)?);
    let ttl = u32_at(bytes, at)?;
    let rdlength = usize::from(u16_at(bytes, at)?);
    let end = *at + rdlength;
    let rdata = bytes.get(*at..end).ok_or("cut in RDATA")?.to_vec();
    let data = data_text(bytes, *at, end, rtype, &rdata)?;
    *at = end;
    Ok(Record { owner, owner_bytes, rtype, class, ttl, rdata, data, offset })
}

fn data_text(bytes: &[u8], start: usize, end: usize, rtype: u16, rdata: &[u8]) -> Result<String, String> {
    let mut at = start;
    let text = match rtype {
        A => Ipv4Addr::from(<[u8; 4]>::try_from(rdata).map_err(|_| "an A of another length")?).to_string(),
        AAAA => Ipv6Addr::from(<[u8; 16]>::try_from(rdata).map_err(|_| "an AAAA of another length")?).to_string(),
        NS | CNAME | PTR => name(bytes, &mut at)?.0,
        SOA => {
            let (mname, rname) = (name(bytes, &mut at)?.0, name(bytes, &mut at)?.0);
            let numbers: Vec<_> = (0..5).map(|_| u32_at(bytes, &mut at)).collect::<Result<_, _>>()?;
            let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
            format!("{mname} {rname} {}", numbers.join(" "))
        }
        SRV => {
            let (priority, weight, port) = (u16_at(bytes, &mut at)?, u16_at(bytes, &mut at)?, u16_at(bytes, &mut at)?);
            let (target, pointed) = name(bytes, &mut at)?;
            if pointed {
                return Err("a compressed SRV target (RFC 2782 forbids it)".into());
            }
            format!("{priority} {weight} {port} {target}")
        }
        TXT | HINFO => {
            let mut strings = Vec::new();
            while at < end {
                let len = usize::from(bytes[at]);
                let string = bytes.get(at + 1..at + 1 + len).ok_or("cut in a string")?;
                strings.push(format!("\"{}\"", String::from_utf8_lossy(string)));
                at += 1 + len;
            }
            strings.join(" ")
        }
        _ => return Ok(format!("{rdata:02x?}")),
    };
    let used = if matches!(rtype, A | AAAA) { end } else { at };
    if used == end { Ok(text) } else { Err(format!("RDLENGTH does not fit the data of type {rtype}")) }
}
