//! A reply to one query, and what a test says about it.

use std::fmt;

use namesake::dns::{Reply, Transport};

use super::message::{Message, Record};
use super::query::Ask;
use super::types::*;
use super::zone::Zone;

/// A reply with the query it answers.
pub struct Answer<'a> {
    pub zone: &'a Zone,
    pub ask: Ask,
    pub reply: Reply,
    pub message: Message,
}

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: Vec<_> = self.ask.name.iter().map(|l| String::from_utf8_lossy(l)).collect();
        let (qtype, class, transport) = (self.ask.qtype, self.ask.qclass, self.ask.transport);
        writeln!(f, "query {}. type {qtype} class {class} {transport:?} EDNS {:?}", name.join("."), self.ask.edns)?;
        write!(f, "{}", self.message)
    }
}

impl Answer<'_> {
    /// `dns.md` 1.0: what holds for every reply to a readable query with one question.
    #[track_caller]
    pub fn check(&self) {
        let (ask, m, options) = (&self.ask, &self.message, self.zone.options());
        assert!(m.bytes.len() <= ask.limit(options.bufsize), "larger than the limit\n{self}");
        assert_eq!(self.reply.qtype, ask.qtype, "the type that is counted\n{self}");
        let dnssec_ok = ask.edns.as_ref().is_some_and(|e| e.dnssec_ok);
        assert_eq!(self.reply.dnssec_ok, dnssec_ok, "the DO that is counted\n{self}");
        if ask.opcode != 0 {
            return;
        }
        assert_eq!(m.recursion_desired(), ask.recursion_desired, "RD copied\n{self}");
        assert_eq!(m.checking_disabled(), ask.checking_disabled, "CD copied\n{self}");
        assert_eq!(m.question.as_deref(), Some(&*ask.question()), "the question byte for byte\n{self}");
        assert_eq!(m.opt.is_some(), ask.edns.is_some(), "an OPT if and only if asked\n{self}");
        if let Some(opt) = &m.opt {
            assert_eq!(opt.class, options.bufsize, "our own UDP size\n{self}");
            assert_eq!(opt.ttl >> 16 & 0xFF, 0, "EDNS version 0\n{self}");
            assert_eq!(opt.ttl & 0x8000 != 0, dnssec_ok, "DO copied\n{self}");
            assert_eq!(opt.ttl & 0x7FFF, 0, "the reserved EDNS flags are 0\n{self}");
            for (code, _) in m.options() {
                let allowed = match code {
                    OPTION_EDE => true,
                    OPTION_NSID => options.nsid.is_some() && self.asked_for(code),
                    OPTION_KEEPALIVE => ask.transport == Transport::Tcp && self.asked_for(code),
                    _ => false,
                };
                assert!(allowed, "option {code} is in the reply\n{self}");
            }
        }
        if m.truncated() {
            assert_eq!(ask.transport, Transport::Udp, "never TC over TCP\n{self}");
        }
        if ask.qclass == IN && matches!(m.rcode(), NOERROR | NXDOMAIN) {
            self.check_data();
        }
    }

    fn asked_for(&self, option: u16) -> bool {
        self.ask.edns.as_ref().is_some_and(|e| e.options.iter().any(|(code, _)| *code == option))
    }

    #[track_caller]
    fn check_data(&self) {
        let (ask, m) = (&self.ask, &self.message);
        assert!(m.authoritative(), "AA=1\n{self}");
        let zone = self.zone_name();
        let zone = zone.as_deref().unwrap_or_else(|| panic!("an answer for a name of no zone\n{self}"));
        assert_eq!(self.reply.zone.map(|z| self.zone.options().zones[usize::from(z)].as_str()), Some(zone), "{self}");
        if m.rcode() == NXDOMAIN {
            assert!(m.answers.is_empty(), "NXDOMAIN with an answer\n{self}");
        }
        if m.answers.is_empty() && !m.truncated() {
            let options = self.zone.options();
            assert_eq!(m.authorities.len(), 1, "a negative answer has exactly one SOA\n{self}");
            let soa = &m.authorities[0];
            assert_eq!((soa.rtype, soa.class), (SOA, IN), "a negative answer has a SOA\n{self}");
            assert_eq!(soa.owner.to_lowercase(), format!("{zone}."), "the SOA is the zone's\n{self}");
            assert_eq!(soa.ttl, options.negttl, "the negative SOA's TTL is N\n{self}");
            assert_eq!(soa.data.split(' ').next_back(), Some(&*options.negttl.to_string()), "MINIMUM is N\n{self}");
            assert!(m.additionals.is_empty(), "a negative answer has nothing additional\n{self}");
        } else {
            assert!(m.authorities.is_empty(), "a positive answer has no authority\n{self}");
            assert!(m.answers.iter().all(|r| r.class == IN && (r.rtype == ask.qtype || ask.qtype == ANY)), "{self}");
            if !matches!(ask.qtype, SRV | NS) {
                assert!(m.additionals.is_empty(), "nothing additional beside A, AAAA and the like\n{self}");
            }
        }
        for glue in &m.additionals {
            assert!(matches!(glue.rtype, A | AAAA) && glue.class == IN, "glue is addresses\n{self}");
            let of = |r: &Record| r.data.split(' ').next_back().is_some_and(|t| t.eq_ignore_ascii_case(&glue.owner));
            assert!(m.answers.iter().any(of), "glue of nobody: {}\n{self}", glue.text());
        }
    }

    /// The longest of the options' zones that the name is in.
    fn zone_name(&self) -> Option<String> {
        let name: Vec<_> = self.ask.name.iter().map(|l| String::from_utf8_lossy(l).to_lowercase()).collect();
        let zones = self.zone.options().zones.iter().filter(|zone| {
            let zone: Vec<_> = zone.split('.').collect();
            name.len() >= zone.len() && name[name.len() - zone.len()..].iter().eq(zone.iter())
        });
        zones.max_by_key(|zone| zone.len()).cloned()
    }

    #[track_caller]
    pub fn rcode(&self, rcode: u16) -> &Self {
        assert_eq!(self.message.rcode(), rcode, "rcode\n{self}");
        self
    }

    /// NOERROR with data.
    #[track_caller]
    pub fn noerror(&self) -> &Self {
        self.rcode(NOERROR);
        assert!(!self.message.answers.is_empty(), "no data\n{self}");
        self
    }

    /// NOERROR, no data, the SOA.
    #[track_caller]
    pub fn nodata(&self) -> &Self {
        self.rcode(NOERROR);
        assert!(self.message.answers.is_empty(), "NODATA wanted\n{self}");
        self
    }

    #[track_caller]
    pub fn nxdomain(&self) -> &Self {
        self.rcode(NXDOMAIN)
    }

    /// REFUSED, with an extended error where an OPT can carry it.
    #[track_caller]
    pub fn refused(&self) -> &Self {
        self.rcode(REFUSED)
    }

    #[track_caller]
    pub fn servfail(&self) -> &Self {
        self.rcode(SERVFAIL)
    }

    /// Exactly this extended error.
    #[track_caller]
    pub fn ede(&self, code: u16) -> &Self {
        assert_eq!(self.message.extended_errors(), [code], "extended error\n{self}");
        self
    }

    #[track_caller]
    pub fn no_ede(&self) -> &Self {
        assert_eq!(self.message.extended_errors(), [0; 0], "extended error\n{self}");
        self
    }

    /// NOERROR with exactly these addresses, each once, at TTL T.
    #[track_caller]
    pub fn addresses<const N: usize>(&self, addresses: [&str; N]) -> &Self {
        self.noerror().same(self.message.answers.iter().map(|r| r.data.clone()), addresses.map(str::to_owned));
        self.ttl(self.zone.options().ttl)
    }

    /// NOERROR with exactly these SRV records, `priority weight port target`, at TTL T.
    #[track_caller]
    pub fn srv<const N: usize>(&self, records: [&str; N]) -> &Self {
        let wanted = records.map(|record| {
            let (numbers, target) = record.rsplit_once(' ').expect("priority weight port target");
            format!("{numbers} {}", self.zone.absolute(target))
        });
        self.noerror().same(self.message.answers.iter().map(|r| r.data.clone()), wanted);
        self.ttl(self.zone.options().ttl)
    }

    /// NOERROR with exactly these targets and ports, `port target`, whatever the weight.
    #[track_caller]
    pub fn targets<const N: usize>(&self, records: [&str; N]) -> &Self {
        let wanted = records.map(|record| {
            let (port, target) = record.split_once(' ').expect("port target");
            format!("{port} {}", self.zone.absolute(target))
        });
        let found = self.message.answers.iter().map(|r| r.data.splitn(3, ' ').nth(2).unwrap_or_default().to_owned());
        self.noerror().same(found, wanted)
    }

    /// Exactly these additional records, `owner address`, at TTL T.
    #[track_caller]
    pub fn glue<const N: usize>(&self, records: [&str; N]) -> &Self {
        let wanted = records.map(|record| {
            let (owner, address) = record.split_once(' ').expect("owner address");
            format!("{} {address}", self.zone.absolute(owner))
        });
        let found = self.message.additionals.iter().map(|r| format!("{} {}", r.owner.to_lowercase(), r.data));
        self.same(found, wanted);
        let ttl = self.zone.options().ttl;
        assert!(self.message.additionals.iter().all(|r| r.ttl == ttl), "glue has TTL T\n{self}");
        self
    }

    /// NOERROR with exactly this one record, as text without owner: `5 HINFO "RFC8482" ""`.
    #[track_caller]
    pub fn record(&self, text: &str) -> &Self {
        let found: Vec<_> = self.noerror().message.answers.iter().map(Record::text).collect();
        let found: Vec<_> = found.iter().filter_map(|r| r.split_once(' ')).map(|(_, rest)| rest).collect();
        assert_eq!(found, [text], "{self}");
        self
    }

    /// The HINFO that stands for ANY (RFC 8482 §4.2).
    #[track_caller]
    pub fn hinfo(&self) -> &Self {
        self.record(&format!("{} HINFO \"RFC8482\" \"\"", self.zone.options().ttl))
    }

    /// Every answer record has this TTL.
    #[track_caller]
    pub fn ttl(&self, ttl: u32) -> &Self {
        assert!(self.message.answers.iter().all(|r| r.ttl == ttl), "TTL {ttl}\n{self}");
        self
    }

    /// How many records the answer section has.
    pub fn count(&self) -> usize {
        self.message.answers.len()
    }

    #[track_caller]
    fn same<const N: usize>(&self, found: impl Iterator<Item = String>, mut wanted: [String; N]) -> &Self {
        let mut found: Vec<_> = found.collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{self}");
        self
    }
}
