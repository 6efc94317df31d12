//! One query, both replies, and where they differ.

use std::collections::BTreeSet;
use std::fmt;

use namesake::answers::Options;
use namesake::dns::Transport;

use crate::reply::Reply;
use crate::support::*;
use crate::world::{Import, Kind, Place, Slice, World};

/// A part of a reply that can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// One of the two says nothing.
    Silence,
    /// The question's bytes, or its absence.
    Question,
    /// Opcode, RD, RA, AD, CD, Z.
    Flags,
    Rcode,
    Aa,
    Tc,
    Answer,
    Authority,
    Additional,
    /// How many OPTs, their version and flags.
    Opt,
    OptSize,
    OptOptions,
}

/// One query and what came of it.
pub struct Case<'a> {
    pub world: &'a World,
    pub options: &'a Options,
    pub ask: &'a Ask,
    pub place: Place,
    /// What is at the name, by the tree of `World`.
    pub node: Option<Kind>,
    pub coredns: Option<Reply>,
    pub ours: Option<Reply>,
    /// The same query's replies over TCP, where a reply over UDP was cut.
    pub whole: Option<(Reply, Reply)>,
}

impl Case<'_> {
    pub fn differences(&self) -> BTreeSet<Part> {
        let (k, o) = match (&self.coredns, &self.ours) {
            (Some(k), Some(o)) => (k, o),
            (None, None) => return BTreeSet::new(),
            _ => return BTreeSet::from([Part::Silence]),
        };
        const OTHER_BITS: u16 = !0x060F;
        let shape = |r: &Reply| r.opts.iter().map(|opt| (opt.version, opt.flags)).collect::<Vec<_>>();
        let sizes = |r: &Reply| r.opts.iter().map(|opt| opt.size).collect::<Vec<_>>();
        let parts = [
            (Part::Question, k.question != o.question),
            (Part::Flags, k.flags & OTHER_BITS != o.flags & OTHER_BITS),
            (Part::Rcode, k.rcode != o.rcode),
            (Part::Aa, k.aa() != o.aa()),
            (Part::Tc, k.tc() != o.tc()),
            (Part::Answer, k.answers != o.answers),
            (Part::Authority, k.authority != o.authority),
            (Part::Additional, k.additional != o.additional),
            (Part::Opt, shape(k) != shape(o)),
            (Part::OptSize, k.opts.len() == o.opts.len() && sizes(k) != sizes(o)),
            (Part::OptOptions, k.options() != o.options()),
        ];
        parts.into_iter().filter(|(_, differs)| *differs).map(|(part, _)| part).collect()
    }

    pub fn qtype(&self) -> u16 {
        self.ask.qtype
    }

    pub fn udp(&self) -> bool {
        self.ask.transport == Transport::Udp
    }

    /// The labels left of a service's name, and what that service is, where there is an import.
    pub fn import(&self) -> Option<(&[String], &Import, &[Slice])> {
        let Place::Service(key, left) = &self.place else { return None };
        Some((left, self.world.imports.get(key)?, self.world.slices(key)))
    }

    /// The labels left of a service's name, as text.
    pub fn left(&self) -> Vec<&str> {
        match &self.place {
            Place::Service(_, left) => left.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ask = self.ask;
        let name: Vec<_> = ask.name.iter().map(|l| String::from_utf8_lossy(l).escape_debug().to_string()).collect();
        let extra = [("answers", &ask.answers), ("authorities", &ask.authorities), ("additionals", &ask.additionals)];
        let extra: String =
            extra.iter().filter(|(_, r)| !r.is_empty()).map(|(n, r)| format!(", {} {n}", r.len())).collect();
        writeln!(
            f,
            "{}. type {} class {} opcode {}, {:?}, flags {:04x}, EDNS {:?}{extra}",
            name.join("."),
            ask.qtype,
            ask.qclass,
            ask.opcode,
            ask.transport,
            ask.flags(),
            ask.edns
        )?;
        writeln!(f, "   differ:  {:?}; at {:?}, node {:?}", self.differences(), self.place, self.node)?;
        for (who, reply) in [("CoreDNS", &self.coredns), ("ours   ", &self.ours)] {
            match reply {
                Some(reply) => writeln!(f, "   {who}: {reply}")?,
                None => writeln!(f, "   {who}: no reply")?,
            }
        }
        if let Some((k, o)) = &self.whole {
            writeln!(
                f,
                "   over TCP: CoreDNS {} answers and {} more, ours {} and {}",
                k.answers.len(),
                k.additional.len(),
                o.answers.len(),
                o.additional.len()
            )?;
        }
        Ok(())
    }
}
