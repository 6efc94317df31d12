//! Two paths, one answer: what the fast path writes is what hickory-proto writes of the plain records.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use hickory_proto::op::Message;
use hickory_proto::rr::{DNSClass, Name, RData, Record, rdata};
use hickory_proto::serialize::binary::BinEncodable;
use namesake::answers::{self, Answered, Folded, QueryName, Rdata, Records, Store, Verdict, answer, lookup, records};
use namesake::dns::{Outcome, Reply, Transport, respond_slow};

use crate::packets::Packets;
use crate::{Failures, in_two_threads, plan, rich};

/// How many queries both paths are given.
const QUERIES: u64 = 1_000_000;

#[test]
fn both_paths_give_equal_answers() {
    let (seed, count) = plan(QUERIES);
    let stores = rich::stores();
    in_two_threads(seed, count, |mut rng, count| {
        let (mut packets, mut failures) = (Packets::new(), Failures::default());
        let (mut fast, mut slow) = (vec![0; 65535], vec![0; 65535]);
        let mut compared = 0u64;
        for _ in 0..count {
            let (which, store) = &stores[rng.usize(0..stores.len())];
            let transport = if rng.u8(0..4) == 0 { Transport::Tcp } else { Transport::Udp };
            let query = if rng.bool() { packets.query(&mut rng) } else { packets.hostile(&mut rng) }.to_vec();
            failures.check(&query, || {
                // Options that hickory can't read (an odd client subnet) are none of the fast path's business.
                if Message::from_vec(&query).is_err() {
                    return Ok(());
                }
                let Answered::Reply(ours) = answer(store, &query, transport, &mut fast, &mut rng) else {
                    return Ok(());
                };
                compared += 1;
                let Outcome::Reply(theirs) = respond_slow(store, &query, transport, &mut slow, &mut rng) else {
                    return Err(format!("{which}: the slow path drops it"));
                };
                let all = whole(store, &query, ours.qtype, &mut rng);
                equal(store, (&fast, &ours), (&slow, &theirs), &all).map_err(|e| format!("{which}, {transport:?}: {e}"))
            });
        }
        assert!(compared > count / 4, "{compared} of {count} were compared");
        failures
    })
    .none();
}

fn parse(bytes: &[u8], reply: &Reply) -> Result<Message, String> {
    Message::from_vec(&bytes[..reply.len]).map_err(|e| format!("hickory refuses a reply: {e}"))
}

fn equal(store: &Store, fast: (&[u8], &Reply), slow: (&[u8], &Reply), all: &Whole) -> Result<(), String> {
    let (ours, theirs) = (parse(fast.0, fast.1)?, parse(slow.0, slow.1)?);
    let differ = |what: &str, a: String, b: String| Err(format!("{what}: fast {a}, slow {b}"));
    let (mut meta, mut other) = (ours.metadata, theirs.metadata);
    (meta.truncation, other.truncation) = (false, false); // below
    if meta != other {
        return differ("header", format!("{meta:?}"), format!("{other:?}"));
    }
    if ours.queries != theirs.queries {
        return differ("question", format!("{:?}", ours.queries), format!("{:?}", theirs.queries));
    }
    if ours.edns != theirs.edns {
        return differ("OPT", format!("{:?}", ours.edns), format!("{:?}", theirs.edns));
    }
    if ours.authorities.iter().map(plain).ne(theirs.authorities.iter().map(plain)) {
        return differ("authority", format!("{:?}", ours.authorities), format!("{:?}", theirs.authorities));
    }
    // Parts of a set are taken at random. hickory compresses 128 names at most, so its part may be the smaller.
    let part = |reply: &Reply| reply.truncated || reply.cut;
    let facts = |reply: &Reply| Reply { len: 0, truncated: false, cut: false, ..*reply };
    if facts(fast.1) != facts(slow.1) || (part(fast.1) && !part(slow.1)) {
        return differ("facts", format!("{:?}", fast.1), format!("{:?}", slow.1));
    }
    let (a, b) = (Section::of(&ours.answers), Section::of(&theirs.answers));
    let subset = store.options().max_endpoints.is_some();
    for (path, reply, section) in [("fast", fast.1, &a), ("slow", slow.1, &b)] {
        let right = match (part(reply), subset) {
            (false, false) => section == &all.answers,
            (false, true) => section.ends() == all.answers.ends(),
            (true, false) => section.is_in(&all.answers),
            (true, true) => section.len() < all.answers.len(),
        };
        if !right {
            return Err(format!("{path} {} answers of {}", section.len(), all.answers.len()));
        }
    }
    let fewer = |fast: usize, slow: usize| fast + 1 + fast / 16 < slow;
    let both_families = fast.1.cut && matches!(fast.1.qtype, 1 | 28);
    if fewer(a.len(), b.len()) && !both_families {
        return differ("parts", a.len().to_string(), b.len().to_string());
    }
    let (a, b) = (Section::of(&ours.additionals), Section::of(&theirs.additionals));
    if subset {
        return Ok(()); // of other endpoints in each
    }
    if !(a.is_in(&all.additional) && b.is_in(&all.additional)) {
        return Err("additional records of something else".into());
    }
    if fewer(a.len(), b.len()) || (fast.1.len < 480 && !part(fast.1) && a.len() < all.additional.len()) {
        return differ("additional", a.len().to_string(), b.len().to_string());
    }
    Ok(())
}

/// All that there is to be said to a query.
#[derive(Debug)]
struct Whole {
    answers: Section,
    additional: Section,
}

fn whole(store: &Store, query: &[u8], qtype: u16, rng: &mut Rng) -> Whole {
    let mut folded = Folded::default();
    let name = QueryName::read(&query[12..], &mut folded).expect("a name of the common shape");
    let asked = &query[12..12 + name.len()];
    let all = lookup(store, &name, qtype, |verdict| match verdict {
        Verdict::Data(zone, data) => records(store, zone, asked, data, rng),
        _ => Records::default(),
    });
    Whole { answers: Section::count(all.answers), additional: Section::count(all.additional) }
}

/// hickory's record as one of ours: names byte by byte, in the case they are in.
fn plain(record: &Record) -> answers::Record {
    let wire = |name: &Name| name.to_bytes().expect("a name");
    let text = |txt: &rdata::TXT| String::from_utf8_lossy(&txt.txt_data.concat()).into_owned();
    let rdata = match &record.data {
        RData::A(ip) => Rdata::Address(ip.0.into()),
        RData::AAAA(ip) => Rdata::Address(ip.0.into()),
        RData::SRV(srv) if srv.priority == 0 => {
            Rdata::Srv { weight: srv.weight, port: srv.port, target: wire(&srv.target) }
        }
        RData::NS(ns) => Rdata::Ns(wire(&ns.0)),
        RData::SOA(soa) if (soa.refresh, soa.retry, soa.expire) == (7200, 1800, 86400) => {
            Rdata::Soa { mname: wire(&soa.mname), rname: wire(&soa.rname), serial: soa.serial, minimum: soa.minimum }
        }
        RData::TXT(txt) => Rdata::Txt(text(txt)),
        RData::HINFO(info) if (&*info.cpu, &*info.os) == (b"RFC8482", b"") => Rdata::Hinfo,
        other => panic!("what is {other:?}?"),
    };
    assert_eq!(record.dns_class, DNSClass::IN);
    answers::Record { owner: wire(&record.name), ttl: record.ttl, rdata }
}

/// Records and how often each is there.
#[derive(Debug, PartialEq, Eq)]
struct Section(HashMap<answers::Record, usize>);

impl Section {
    fn of(records: &[Record]) -> Self {
        Self::count(records.iter().map(plain))
    }

    fn count(records: impl IntoIterator<Item = answers::Record>) -> Self {
        let mut counts = HashMap::new();
        for record in records {
            *counts.entry(record).or_insert(0) += 1;
        }
        Self(counts)
    }

    fn len(&self) -> usize {
        self.0.values().sum()
    }

    /// How many endpoints they stand for: SRV records of one target stand for one.
    fn ends(&self) -> usize {
        let targets = self.0.keys().filter_map(|record| match &record.rdata {
            Rdata::Srv { target, .. } => Some(target),
            _ => None,
        });
        let targets: HashSet<_> = targets.collect();
        if targets.is_empty() { self.len() } else { targets.len() }
    }

    fn is_in(&self, all: &Self) -> bool {
        self.0.iter().all(|(record, count)| all.0.get(record).is_some_and(|there| count <= there))
    }
}
