//! What is asked: kinds of queries in their shares, as packets that are ready to send, each with what its answer is.

use std::str::FromStr;

use fastrand::Rng;

pub use crate::kinds::Kind;
use crate::set::{Set, ZONE, cluster};

/// Where the id ends and the question begins (RFC 1035 §4.1.1).
pub const HEADER: usize = 12;

/// More than any query of ours has.
pub const LONGEST: usize = 160;

/// Names of the kinds on the command line.
const NAMES: [(&str, Kind); 7] = [
    ("service-a", Kind::ServiceA),
    ("headless-a", Kind::HeadlessA),
    ("endpoint-a", Kind::EndpointA),
    ("service-srv", Kind::ServiceSrv),
    ("nxdomain", Kind::NxDomain),
    ("nodata", Kind::NoData),
    ("headless-srv", Kind::HeadlessSrv),
];

/// The mix, or one kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// All kinds in their shares.
    Mix,
    /// One kind.
    Only(Kind),
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "mix" {
            return Ok(Self::Mix);
        }
        let kind = NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| Self::Only(*kind));
        kind.ok_or_else(|| format!("a mix is mix, {}", NAMES.map(|(name, _)| name).join(", ")))
    }
}

/// What is asked, and how.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Of which services.
    pub set: Set,
    /// Which kinds.
    pub mix: Mix,
    /// With an OPT that allows 1232 octets.
    pub edns: bool,
    /// Some services far more often than others (Zipf, exponent 1), instead of all alike.
    pub skew: bool,
}

/// What an answer must be.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    rcode: u8,
    /// Records of the answer section, unless it is cut short; at least so many.
    records: u16,
}

impl Expected {
    /// Whether this header is of such an answer.
    #[must_use]
    pub fn fits(self, header: &[u8; HEADER]) -> bool {
        let records = u16::from_be_bytes([header[6], header[7]]);
        let truncated = header[2] & 2 != 0;
        header[3] & 15 == self.rcode && (truncated || records == self.records)
    }
}

/// Packets ready to send.
#[derive(Debug, Default)]
pub struct Pool {
    bytes: Vec<u8>,
    queries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    begin: u32,
    end: u32,
    question: u16,
    expected: Expected,
}

/// One query of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The packet; its id is 0.
    pub packet: &'a [u8],
    /// Where the question ends in it.
    pub question_end: usize,
    /// What its answer must be.
    pub expected: Expected,
}

impl Pool {
    /// So many queries, the same for the same arguments.
    #[must_use]
    pub fn new(asked: Asked, count: usize) -> Self {
        let mut rng = Rng::with_seed(7);
        let mut pool = Self::default();
        for _ in 0..count {
            let (name, qtype, expected) = question(asked, &mut rng);
            pool.push(&name, qtype, asked.edns, expected);
        }
        pool
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The query with this number.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn get(&self, i: usize) -> Query<'_> {
        let entry = &self.queries[i];
        let packet = &self.bytes[entry.begin as usize..entry.end as usize];
        Query { packet, question_end: usize::from(entry.question), expected: entry.expected }
    }

    fn push(&mut self, name: &str, qtype: u16, edns: bool, expected: Expected) {
        let begin = self.bytes.len() as u32;
        let packet = packet(name, qtype);
        self.bytes.extend(&packet);
        if edns {
            self.bytes.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
            self.bytes[begin as usize + HEADER - 1] = 1;
        }
        let end = self.bytes.len() as u32;
        assert!((end - begin) as usize <= LONGEST, "{name} is too long");
        self.queries.push(Entry { begin, end, question: packet.len() as u16, expected });
    }
}

/// A query's packet with the id 0 and without EDNS.
#[must_use]
pub fn packet(name: &str, qtype: u16) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(label.len() as u8);
        packet.extend(label.bytes());
    }
    packet.push(0);
    packet.extend(qtype.to_be_bytes());
    packet.extend([0, 1]);
    packet
}

/// The same queries as lines for dnsperf: a name and a type each.
pub fn lines(asked: Asked, count: usize) -> impl Iterator<Item = String> {
    let mut rng = Rng::with_seed(7);
    (0..count).map(move |_| {
        let (name, qtype, _) = question(asked, &mut rng);
        let qtype = match qtype {
            A => "A",
            AAAA => "AAAA",
            _ => "SRV",
        };
        format!("{name}. {qtype}")
    })
}

/// The type of IPv4 addresses.
pub const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;

fn question(asked: Asked, rng: &mut Rng) -> (String, u16, Expected) {
    let set = asked.set;
    let kind = match asked.mix {
        Mix::Only(kind) => kind,
        Mix::Mix => Kind::of_the_mix(rng),
    };
    let service = pick(set.services, asked.skew, rng);
    let headless = pick(set.headless, asked.skew, rng);
    let all = set.endpoints as u16;
    let (name, qtype, rcode, records) = match kind {
        Kind::ServiceA => (set.service(service), A, 0, 1),
        Kind::HeadlessA => (set.headless(headless), A, 0, all),
        Kind::EndpointA => {
            let pod = rng.u32(0..set.endpoints);
            (format!("pod-{pod}.cluster-{}.{}", cluster(headless), set.headless(headless)), A, 0, 1)
        }
        Kind::ServiceSrv => (format!("_http._tcp.{}", set.service(service)), SRV, 0, 1),
        Kind::NxDomain => (format!("none-{service}.ns-{}", set.namespace(service)), A, 3, 0),
        Kind::NoData => (set.service(service), AAAA, 0, 0),
        Kind::HeadlessSrv => (format!("_http._tcp.{}", set.headless(headless)), SRV, 0, all),
    };
    (format!("{name}.svc.{ZONE}"), qtype, Expected { rcode, records })
}

/// One of `n`: all alike, or the first the most often, the k-th about a k-th as often.
fn pick(n: u32, skew: bool, rng: &mut Rng) -> u32 {
    if !skew {
        return rng.u32(0..n);
    }
    // The inverse of the logarithm, which is what the sum of 1/k grows by.
    let rank = (rng.f64() * f64::from(n + 1).ln()).exp() as u32;
    rank.clamp(1, n) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(mix: Mix) -> Asked {
        Asked { set: Set::of(1100), mix, edns: false, skew: false }
    }

    #[test]
    fn packets_and_lines_ask_the_same() {
        let pool = Pool::new(asked(Mix::Mix), 500);
        for (i, line) in lines(asked(Mix::Mix), 500).enumerate() {
            let query = pool.get(i);
            let (mut name, mut at) = (String::new(), HEADER);
            while query.packet[at] != 0 {
                let end = at + 1 + usize::from(query.packet[at]);
                name.push_str(std::str::from_utf8(&query.packet[at + 1..end]).unwrap());
                name.push('.');
                at = end;
            }
            assert_eq!(line.split(' ').next(), Some(&*name));
            assert_eq!(query.question_end, at + 5);
        }
    }

    #[test]
    fn every_kind_has_its_share() {
        let negative = lines(asked(Mix::Mix), 20_000).filter(|line| line.starts_with("none-")).count();
        assert!((1_800..2_200).contains(&negative), "{negative} of 20,000 for 10 %");
    }

    #[test]
    fn skew_asks_the_first_most() {
        let mut rng = Rng::with_seed(1);
        let mut counts = [0; 1000];
        (0..100_000).for_each(|_| counts[pick(1000, true, &mut rng) as usize] += 1);
        assert!(counts[0] > 6 * counts[9] && counts[9] > 6 * counts[99], "{:?}", &counts[..12]);
        assert!(counts.iter().sum::<u32>() == 100_000);
    }

    #[test]
    fn an_answer_with_too_few_records_or_another_rcode_does_not_fit() {
        let pool = Pool::new(asked(Mix::Only(Kind::HeadlessA)), 1);
        let expected = pool.get(0).expected;
        let header = |flags: [u8; 2], records| [0, 0, flags[0], flags[1], 0, 1, 0, records, 0, 0, 0, 0];
        assert!(expected.fits(&header([0x84, 0], 20)));
        assert!(expected.fits(&header([0x86, 0], 3)), "cut short");
        assert!(!expected.fits(&header([0x84, 0], 19)) && !expected.fits(&header([0x84, 3], 20)));
    }
}
