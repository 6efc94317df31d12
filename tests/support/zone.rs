//! A zone made of manifests, asked in every way that must give the same answer.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use namesake::answers::{Options, Store};
use namesake::dns::{DropReason, Outcome, Reply, Transport, respond};
use namesake::model::Change;
use namesake::source::Convert;

use super::answer::Answer;
use super::message::Message;
use super::query::{Ask, Edns, labels};
use super::types::*;
use super::wire::{self, Wire};

/// The default options with some changed: `options(|o| o.ttl = 30)`.
pub fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

/// A synced zone of these manifests with the default options.
#[track_caller]
pub fn zone(manifests: impl AsRef<str>) -> Zone {
    zone_with(Options::default(), manifests)
}

/// A synced zone of these manifests.
#[track_caller]
pub fn zone_with(options: Options, manifests: impl AsRef<str>) -> Zone {
    let changes = changes(&options, manifests.as_ref());
    Zone::new(namesake::feed::load(options, changes))
}

/// What the manifests say, read as `--from DIR` reads them.
#[track_caller]
pub fn changes(options: &Options, manifests: &str) -> Vec<Change> {
    let convert = Convert { pod_names: options.endpoint_pod_names, namespaces: options.namespaces.clone() };
    match namesake::source::folder::read_text("test.yaml", manifests, &convert) {
        Ok(changes) => changes,
        Err(error) => panic!("the test's manifests can't be read: {error:?}\n{manifests}"),
    }
}

/// A zone that is asked.
pub struct Zone {
    pub store: Arc<Store>,
    rng: RefCell<fastrand::Rng>,
    /// In the binary `over_the_wire`: a server that is asked the same.
    wire: Option<RefCell<Wire>>,
}

impl Zone {
    pub fn new(store: Arc<Store>) -> Self {
        let wire = wire::WANTED.then(|| RefCell::new(Wire::of(&store)));
        Self { store, rng: RefCell::new(fastrand::Rng::with_seed(0x0dd_ba11)), wire }
    }

    pub fn options(&self) -> &Options {
        self.store.options()
    }

    /// A name of the first zone: `""` is its apex, and a name with a final dot is absolute.
    pub fn absolute(&self, name: &str) -> String {
        let zone = &self.options().zones[0];
        match name {
            "" => format!("{zone}."),
            name if name.ends_with('.') => name.to_owned(),
            name => format!("{name}.{zone}."),
        }
    }

    /// Asks in every shape that must give the same records: UDP and TCP, with and without EDNS, small and large, in
    /// mixed case, with other flags. What comes back is the reply over TCP with an OPT.
    #[track_caller]
    pub fn ask(&self, name: &str, qtype: u16) -> Answer<'_> {
        self.ask_labels(labels(&self.absolute(name)), qtype)
    }

    #[track_caller]
    pub fn ask_labels(&self, name: Vec<Vec<u8>>, qtype: u16) -> Answer<'_> {
        let plain = Ask::labels(name, qtype);
        let answer = self.send(&plain.clone().tcp().edns(Edns::size(1232)));
        let mixed = || plain.clone().random_case(&mut self.rng.borrow_mut());
        let others = [
            plain.clone(),
            plain.clone().tcp(),
            plain.clone().edns(Edns::size(1232)),
            plain.clone().edns(Edns::size(4096).dnssec_ok()).other_flags(),
            plain.clone().edns(Edns::size(0).option(OPTION_COOKIE, b"cookies!")),
            mixed(),
            mixed().other_flags().tcp(),
            mixed().edns(Edns::size(65535).dnssec_ok()).id(7),
        ];
        for other in others {
            let other = self.send(&other);
            self.compare(&answer, &other);
        }
        answer
    }

    /// The other reply says the same, as far as it had room.
    #[track_caller]
    fn compare(&self, full: &Answer<'_>, other: &Answer<'_>) {
        let (a, b) = (&full.message, &other.message);
        let context = format!("{full}and {other}");
        assert_eq!(a.rcode(), b.rcode(), "one rcode however it is asked\n{context}");
        assert_eq!(a.authoritative(), b.authoritative(), "one AA however it is asked\n{context}");
        if b.opt.is_some() {
            assert_eq!(a.extended_errors(), b.extended_errors(), "one extended error\n{context}");
        }
        if self.options().max_endpoints.is_some() || full.reply.cut {
            return; // each answer is a random part of the set
        }
        let sets = |m: &Message| (Message::set(&m.answers), Message::set(&m.additionals));
        let ((answers, glue), (other_answers, other_glue)) = (sets(a), sets(b));
        let subset = |part: &[String], whole: &[String]| {
            let whole: BTreeSet<_> = whole.iter().collect();
            part.iter().all(|p| whole.contains(p))
        };
        assert!(subset(&other_glue, &glue), "the same additional records, or fewer\n{context}");
        if b.truncated() {
            assert!(subset(&other_answers, &answers), "a truncated answer is a part of the whole\n{context}");
        } else {
            assert_eq!(answers, other_answers, "the same records however it is asked\n{context}");
        }
        let opt = other.ask.edns.as_ref().map_or(0, |_| 11);
        let fits = a.bytes.len() - a.opt.as_ref().map_or(0, |o| 11 + o.rdata.len()) + opt;
        if fits <= other.ask.limit(self.options().bufsize) {
            assert!(!b.truncated(), "no TC where everything fits\n{context}");
            assert_eq!(glue, other_glue, "the same additional records where they fit\n{context}");
        }
    }

    /// Asks once; checks what holds for every reply to a readable query with one question (`dns.md` 1.0).
    #[track_caller]
    pub fn send(&self, ask: &Ask) -> Answer<'_> {
        let (reply, message) = self
            .reply(&ask.wire(), ask.transport)
            .unwrap_or_else(|why| panic!("no reply ({why:?}) to a readable query: {ask:?}"));
        let answer = Answer { zone: self, ask: ask.clone(), reply, message };
        answer.check();
        answer
    }

    /// Sends bytes; checks what holds for every reply whatever was sent.
    #[track_caller]
    pub fn reply(&self, query: &[u8], transport: Transport) -> Result<(Reply, Message), DropReason> {
        let seed = self.rng.borrow_mut().u64(..);
        let fast = outcome("respond", respond, &self.store, query, transport, seed);
        let slow = outcome("respond_slow", namesake::dns::respond_slow, &self.store, query, transport, seed);
        match (&fast, &slow) {
            (Ok((reply, a)), Ok((_, b))) => self.same("both paths", transport, reply, a, b),
            (Err(a), Err(b)) => assert_eq!(a, b, "both paths drop for one reason"),
            _ => panic!("one path replies, the other does not: {fast:?} and {slow:?}"),
        }
        if let Some(wire) = &self.wire
            && wire::as_read(query, transport) == query
        {
            let came = wire.borrow_mut().reply(query, transport, fast.is_err());
            let came = came.map(|bytes| Message::read(&bytes));
            match (&fast, &came) {
                (Ok((reply, a)), Some(b)) => self.same("over the wire", transport, reply, a, b),
                (Err(_), None) => {}
                _ => panic!("respond and the wire differ on whether there is a reply: {fast:?}\n{came:?}"),
            }
        }
        fast
    }

    /// The path for common shapes, the one for everything, and what comes over sockets say the same. Where a set is cut each takes a random
    /// part of it; so they do with additional records that do not all fit.
    #[track_caller]
    fn same(&self, what: &str, transport: Transport, reply: &Reply, a: &Message, b: &Message) {
        let context = format!("{what}:\n{a}and\n{b}");
        assert_eq!((a.id, a.flags), (b.id, b.flags), "id and flags\n{context}");
        assert_eq!(a.rcode(), b.rcode(), "rcode\n{context}");
        assert_eq!(a.question, b.question, "question\n{context}");
        let opt = |m: &Message| m.opt.as_ref().map(|o| (o.class, o.ttl, o.rdata.clone()));
        assert_eq!(opt(a), opt(b), "OPT\n{context}");
        assert_eq!(Message::set(&a.authorities), Message::set(&b.authorities), "authority\n{context}");
        if a.truncated() || reply.cut || self.options().max_endpoints.is_some() {
            return;
        }
        assert_eq!(Message::set(&a.answers), Message::set(&b.answers), "answers\n{context}");
        if transport == Transport::Tcp && a.bytes.len() < 32768 {
            assert_eq!(Message::set(&a.additionals), Message::set(&b.additionals), "glue\n{context}");
        }
    }

    /// Sends bytes that must be dropped.
    #[track_caller]
    pub fn dropped(&self, query: &[u8]) -> DropReason {
        match self.reply(query, Transport::Udp) {
            Ok((_, message)) => panic!("a reply to {query:02x?}\n{message}"),
            Err(reason) => {
                assert_eq!(self.reply(query, Transport::Tcp).err(), Some(reason), "TCP as UDP");
                reason
            }
        }
    }

    /// The whole set of addresses or targets in the answer, asked over TCP.
    #[track_caller]
    pub fn data(&self, name: &str, qtype: u16) -> Vec<String> {
        let ask = Ask::new(&self.absolute(name), qtype).tcp();
        let mut data: Vec<_> = self.send(&ask).message.answers.into_iter().map(|r| r.data).collect();
        data.sort();
        data
    }
}

type Responder = fn(&Store, &[u8], Transport, &mut [u8], &mut fastrand::Rng) -> Outcome;

#[track_caller]
fn outcome(
    path: &str,
    respond: Responder,
    store: &Store,
    query: &[u8],
    transport: Transport,
    seed: u64,
) -> Result<(Reply, Message), DropReason> {
    let mut out = vec![0xAA; 65535];
    let mut rng = fastrand::Rng::with_seed(seed);
    match respond(store, query, transport, &mut out, &mut rng) {
        Outcome::Drop(reason) => Err(reason),
        Outcome::Reply(reply) => {
            let message = Message::read(&out[..reply.len]);
            check_bytes(path, query, &reply, &message);
            Ok((reply, message))
        }
    }
}

/// What holds for every reply, also to bytes that can't be read.
#[track_caller]
fn check_bytes(path: &str, query: &[u8], reply: &Reply, message: &Message) {
    let context = format!("{path} to {query:02x?}\n{message}");
    assert!(message.is_response(), "QR=1\n{context}");
    assert_eq!(message.id.to_be_bytes(), query[..2], "the id\n{context}");
    assert_eq!(message.opcode(), query[2] >> 3 & 0xF, "the opcode\n{context}");
    if message.opcode() == 0 {
        assert_eq!(message.recursion_desired(), query[2] & 1 != 0, "RD\n{context}");
    }
    assert!(!message.recursion_available(), "RA=0\n{context}");
    assert!(!message.authentic_data(), "AD=0\n{context}");
    assert!(!message.reserved(), "Z=0\n{context}");
    assert_eq!(reply.rcode, message.rcode(), "the rcode that is counted\n{context}");
    assert_eq!(reply.truncated, message.truncated(), "the TC that is counted\n{context}");
    if !matches!(message.rcode(), NOERROR | NXDOMAIN) {
        assert!(!message.authoritative(), "AA=0 in an error\n{context}");
        let records = message.answers.len() + message.authorities.len() + message.additionals.len();
        assert_eq!(records, 0, "an error is bare\n{context}");
    }
    for record in &message.answers {
        assert_eq!(record.owner, message.qname, "the owner is the question's name, byte for byte\n{context}");
        assert_eq!(record.owner_bytes, [0xC0, 0x0C], "the owner points to the question\n{context}");
        if record.rtype == SRV {
            assert_eq!(record.data, record.data.to_lowercase(), "SRV targets are lower case\n{context}");
        }
    }
    let all: Vec<_> = Message::set(&message.answers);
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "no record twice\n{context}");
}
