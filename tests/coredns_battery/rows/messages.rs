//! Rows about whole messages: 1.1, and the types and classes that ask for something else than records.

use super::{Row, both};
use crate::compare::{Case, Part};
use crate::reply::Reply;
use crate::support::*;
use crate::world::Place;

const EVERYTHING: &[Part] = &[
    Part::Question,
    Part::Rcode,
    Part::Aa,
    Part::Tc,
    Part::Answer,
    Part::Authority,
    Part::Additional,
    Part::Opt,
    Part::OptSize,
    Part::OptOptions,
    Part::Flags,
];

/// Our refusals carry exactly this extended error where there is an OPT to carry it.
fn refused_with(code: u16) -> impl Fn(&Reply) -> bool {
    move |o| o.is_dataless(REFUSED) && o.options() == [(OPTION_EDE, code.to_be_bytes().to_vec())]
}

fn refused_plainly(k: &Reply) -> bool {
    k.is_dataless(REFUSED) && k.options().is_empty()
}

fn stated(case: &Case<'_>) -> Option<u16> {
    case.ask.edns.as_ref().map(|edns| edns.size)
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "T4",
        says: "NOTIFY is answered as a query; NOTIMP, header only",
        parts: EVERYTHING,
        holds: |c| {
            c.ask.opcode == 4 && both(c, |k| !k.is_bare(NOTIMP) && k.flags >> 11 & 0xF == 4, |o| o.is_bare(NOTIMP))
        },
    },
    Row {
        id: "T9",
        says: "two OPTs are accepted; FORMERR with one OPT",
        parts: EVERYTHING,
        holds: |c| {
            let two = c.ask.edns.is_some() && c.ask.additionals.iter().any(|r| r.starts_with(&[0, 0, 41]));
            two && both(c, |k| k.rcode != FORMERR, |o| o.is_dataless(FORMERR) && o.opts.len() == 1)
        },
    },
    Row {
        id: "T10",
        says: "an OPT below a name is accepted; FORMERR",
        parts: EVERYTHING,
        holds: |c| {
            let named = c.ask.additionals.iter().any(|r| r.starts_with(b"\x01x\x00\x00\x29"));
            named && both(c, |k| k.rcode != FORMERR, |o| o.is_dataless(FORMERR))
        },
    },
    Row {
        id: "T11",
        says: "BADVERS with UDP size 0 and without DO; our size, and DO as asked",
        parts: &[Part::Opt, Part::OptSize],
        holds: |c| {
            let asked = c.ask.edns.as_ref().is_some_and(|edns| edns.dnssec_ok);
            let flags = |dnssec_ok| if dnssec_ok { 0x8000 } else { 0 };
            let is = |size: u16, flags: u16| {
                move |r: &Reply| {
                    r.is_dataless(BADVERS)
                        && r.opts[0].size == size
                        && r.opts[0].version == 0
                        && r.opts[0].flags == flags
                }
            };
            both(c, is(0, 0), is(c.options.bufsize, flags(asked)))
        },
    },
    Row {
        id: "T15",
        says: "the OPT's size is the client's number; it is ours (D18)",
        parts: &[Part::OptSize],
        holds: |c| {
            let size = |wanted: Option<u16>| {
                move |r: &Reply| r.rcode != BADVERS && r.opts.first().map(|opt| opt.size) == wanted
            };
            both(c, size(stated(c)), size(Some(c.options.bufsize)))
        },
    },
    Row {
        id: "T17",
        says: "out of zone REFUSED; with EDE 20 (D22)",
        parts: &[Part::OptOptions],
        holds: |c| c.place == Place::Outside && both(c, refused_plainly, refused_with(NOT_AUTHORITATIVE)),
    },
    Row {
        id: "T20",
        says: "UDP queries are cut at 512 bytes: FORMERR; read up to 4096",
        parts: EVERYTHING,
        holds: |c| {
            let long = c.udp() && c.ask.wire().len() > 512;
            long && both(
                c,
                |k| k.is_dataless(FORMERR) && k.opts.is_empty(),
                |o| o.rcode != FORMERR || matches!(c.qtype(), 0 | OPT | TKEY | TSIG),
            )
        },
    },
    Row {
        id: "O10",
        says: "0, OPT, TKEY, TSIG and MAILA, MAILB as types are looked up; FORMERR, NOTIMP",
        parts: EVERYTHING,
        holds: |c| {
            let rcode = match c.qtype() {
                0 | OPT | TKEY | TSIG => FORMERR,
                MAILA | MAILB => NOTIMP,
                _ => return false,
            };
            let looked_up = |k: &Reply| k.is_nodata() || k.is_nxdomain() || k.is_dataless(REFUSED);
            c.ask.opcode == 0 && both(c, looked_up, |o| o.is_dataless(rcode))
        },
    },
    Row {
        id: "X1",
        says: "transfer of the apex REFUSED; with EDE 18",
        parts: &[Part::OptOptions],
        holds: |c| {
            matches!(c.qtype(), AXFR | IXFR)
                && c.place == Place::Apex
                && both(c, refused_plainly, refused_with(PROHIBITED))
        },
    },
    Row {
        id: "X12",
        says: "transfer of a name below the apex REFUSED; with EDE 20",
        parts: &[Part::OptOptions],
        holds: |c| {
            let below = !matches!(c.place, Place::Apex | Place::Outside);
            matches!(c.qtype(), AXFR | IXFR) && below && both(c, refused_plainly, refused_with(NOT_AUTHORITATIVE))
        },
    },
];
