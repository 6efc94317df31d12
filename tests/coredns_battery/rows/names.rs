//! Rows about names that are no service's: the apex, infrastructure, namespaces (1.2, 1.3), and what holds for every
//! name (1.8).

use super::{DATA, Row, both};
use crate::compare::{Case, Part};
use crate::reply::{Reply, Rr};
use crate::support::*;
use crate::world::{Kind, Place};

/// One HINFO, as RFC 8482 §4.2 has it, at the asked name.
pub(super) fn is_hinfo(o: &Reply) -> bool {
    o.is_data()
        && matches!(&*o.answers, [rr] if rr.rtype == HINFO && rr.data == r#""RFC8482" """#)
        && o.additional.is_empty()
}

/// NODATA, or to ANY the HINFO. `ns.dns` holds nothing where no `nameserver` is set.
pub(super) fn exists_without_data(c: &Case<'_>) -> impl Fn(&Reply) -> bool {
    let any = c.qtype() == ANY && c.node != Some(Kind::Empty) && !at(c, "ns.dns");
    move |o| if any { is_hinfo(o) } else { o.is_nodata() }
}

fn at(c: &Case<'_>, name: &str) -> bool {
    c.place == Place::Infrastructure(name.to_owned())
}

fn has_import(c: &Case<'_>, namespace: &str) -> bool {
    c.world.imports.keys().any(|(ns, _)| ns == namespace)
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "A2",
        says: "NS at the apex: none with `bind`; always one (D15)",
        parts: DATA,
        holds: |c| {
            let ns = |o: &Reply| o.is_data() && o.data(NS).eq(["ns.dns.clusterset.local."]) && o.additional.is_empty();
            c.place == Place::Apex && c.qtype() == NS && both(c, Reply::is_nodata, ns)
        },
    },
    Row {
        id: "A4",
        says: "TXT at the apex NXDOMAIN; NODATA (D9)",
        parts: DATA,
        holds: |c| c.place == Place::Apex && c.qtype() == TXT && both(c, Reply::is_nxdomain, Reply::is_nodata),
    },
    Row {
        id: "A5",
        says: "ANY at the apex NODATA; HINFO (D16)",
        parts: DATA,
        holds: |c| c.place == Place::Apex && c.qtype() == ANY && both(c, Reply::is_nodata, is_hinfo),
    },
    Row {
        id: "A7",
        says: r#"dns-version "1.1.0"; "1.0.0" (D1)"#,
        parts: DATA,
        holds: |c| {
            let version = |text: &'static str| {
                move |r: &Reply| r.is_data() && r.answers.iter().map(|rr| (rr.ttl, &*rr.data)).eq([(28800, text)])
            };
            at(c, "dns-version") && c.qtype() == TXT && both(c, version(r#""1.1.0""#), version(r#""1.0.0""#))
        },
    },
    Row {
        id: "A8",
        says: "other types at dns-version NXDOMAIN; NODATA",
        parts: DATA,
        holds: |c| at(c, "dns-version") && both(c, Reply::is_nxdomain, exists_without_data(c)),
    },
    Row {
        id: "A9",
        says: "ns.dns with upper case in the zone NXDOMAIN; as in lower case",
        parts: DATA,
        holds: |c| {
            let zone = &c.ask.name[c.ask.name.len().saturating_sub(2)..];
            let cased = zone.iter().flatten().any(u8::is_ascii_uppercase);
            at(c, "ns.dns") && cased && both(c, Reply::is_nxdomain, exists_without_data(c))
        },
    },
    Row {
        id: "A10",
        says: "TXT at ns.dns NXDOMAIN; NODATA",
        parts: DATA,
        holds: |c| at(c, "ns.dns") && c.qtype() == TXT && both(c, Reply::is_nxdomain, Reply::is_nodata),
    },
    Row {
        id: "O2",
        says: "PTR at ns.dns, which is no service, NXDOMAIN; NODATA",
        parts: DATA,
        holds: |c| at(c, "ns.dns") && c.qtype() == PTR && both(c, Reply::is_nxdomain, Reply::is_nodata),
    },
    Row {
        id: "A11",
        says: "dns NXDOMAIN; NODATA, an empty non-terminal (D8)",
        parts: DATA,
        holds: |c| at(c, "dns") && both(c, Reply::is_nxdomain, Reply::is_nodata),
    },
    Row {
        id: "A14",
        says: "SOA at a missing name NODATA; NXDOMAIN (D9)",
        parts: DATA,
        holds: |c| {
            let missing = c.node.is_none() && !matches!(c.place, Place::Apex | Place::Outside);
            c.qtype() == SOA && missing && both(c, Reply::is_nodata, Reply::is_nxdomain)
        },
    },
    Row {
        id: "N2",
        says: "TXT at svc NXDOMAIN; NODATA",
        parts: DATA,
        holds: |c| at(c, "svc") && c.qtype() == TXT && both(c, Reply::is_nxdomain, Reply::is_nodata),
    },
    Row {
        id: "N3",
        says: "pod NODATA; NXDOMAIN",
        parts: DATA,
        holds: |c| at(c, "pod") && both(c, Reply::is_nodata, Reply::is_nxdomain),
    },
    Row {
        id: "N4",
        says: "a namespace whose imports have no names NODATA; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Place::Namespace(ns) = &c.place else { return false };
            has_import(c, ns) && c.node.is_none() && both(c, Reply::is_nodata, Reply::is_nxdomain)
        },
    },
    Row {
        id: "N5",
        says: "a namespace without imports NODATA; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Place::Namespace(ns) = &c.place else { return false };
            let there = c.world.namespaces.contains(ns) && !has_import(c, ns);
            there && c.qtype() != SOA && both(c, Reply::is_nodata, Reply::is_nxdomain)
        },
    },
    Row {
        id: "N7",
        says: "TXT at a namespace that exists NXDOMAIN; NODATA",
        parts: DATA,
        holds: |c| {
            let exists = matches!(c.place, Place::Namespace(_)) && c.node == Some(Kind::Empty);
            exists && c.qtype() == TXT && both(c, Reply::is_nxdomain, Reply::is_nodata)
        },
    },
    Row {
        id: "N9",
        says: "`pods insecure` answers in the clusterset zone too; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Place::Pod(left) = &c.place else { return false };
            let exposed =
                left.last().is_some_and(|ns| c.world.namespaces.contains(ns) && c.options.namespaces.contains(ns));
            exposed && left.len() < 3 && both(c, |k| k.is_data() || k.is_nodata(), Reply::is_nxdomain)
        },
    },
    Row {
        id: "D11",
        says: "a negative answer lives for `ttl`; for `negttl`",
        parts: &[Part::Authority],
        holds: |c| {
            let lives = |ttl: u32| {
                let end = format!(" {ttl}");
                let is = move |soa: &Rr| soa.rtype == SOA && soa.ttl == ttl && soa.data.ends_with(&end);
                move |r: &Reply| matches!(&*r.authority, [soa] if is(soa))
            };
            both(c, lives(c.options.ttl), lives(c.options.negttl))
        },
    },
    Row {
        id: "D11",
        says: "the SOA's MINIMUM is `ttl`; it is `negttl` here too",
        parts: &[Part::Answer],
        holds: |c| {
            let soa = |minimum: u32, ttl: u32| {
                let end = format!(" {minimum}");
                move |r: &Reply| matches!(&*r.answers, [soa] if soa.ttl == ttl && soa.data.ends_with(&end))
            };
            let (ttl, negttl) = (c.options.ttl, c.options.negttl);
            c.place == Place::Apex && c.qtype() == SOA && both(c, soa(ttl, ttl), soa(negttl, ttl))
        },
    },
    Row {
        id: "O7",
        says: "ANY at a name with data NODATA; HINFO (D16)",
        parts: DATA,
        holds: |c| {
            let exists = c.node.is_some_and(|kind| kind != Kind::Empty) && c.place != Place::Apex;
            c.qtype() == ANY && exists && both(c, Reply::is_nodata, is_hinfo)
        },
    },
];
