//! Rows about replies that do not fit (1.10).

use std::collections::BTreeSet;

use super::{Row, both};
use crate::compare::{Case, Part};
use crate::reply::{Reply, Rr};
use crate::support::*;

fn within(part: &[Rr], whole: &[Rr]) -> bool {
    let whole: BTreeSet<_> = whole.iter().collect();
    let part: BTreeSet<_> = part.iter().collect();
    part.is_subset(&whole)
}

/// Both replies over UDP are parts of what each says over TCP, and those are alike.
fn parts_of_the_same(c: &Case<'_>) -> bool {
    let (Some(k), Some(o), Some((whole_k, whole_o))) = (&c.coredns, &c.ours, &c.whole) else { return false };
    let of = |part: &Reply, whole: &Reply| {
        within(&part.answers, &whole.answers) && within(&part.additional, &whole.additional)
    };
    c.udp()
        && whole_k.answers == whole_o.answers
        && whole_k.additional == whole_o.additional
        && of(k, whole_k)
        && of(o, whole_o)
}

/// What the client can take, and what of it we use.
fn limits(c: &Case<'_>) -> (usize, usize) {
    let stated = c.ask.edns.as_ref().map_or(512, |edns| edns.size.max(512));
    (usize::from(stated), usize::from(stated.min(c.options.bufsize)))
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "Z1",
        says: "cut from the end; as many records from a random start",
        parts: &[Part::Answer],
        holds: |c| {
            // SRV targets are of different lengths, so that one more or less may fit.
            let slack = if c.qtype() == SRV { 1 } else { 0 };
            let count = |r: &Reply| r.answers.len();
            let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
            k.tc() && o.tc() && count(k).abs_diff(count(o)) <= slack && parts_of_the_same(c)
        },
    },
    Row {
        id: "D19",
        says: "TC for glue that does not fit; none, and whole RRsets (V28)",
        parts: &[Part::Tc, Part::Additional],
        holds: |c| {
            let Some((whole, _)) = &c.whole else { return false };
            let complete = |r: &Reply| r.answers == whole.answers;
            let k = |k: &Reply| k.tc() && complete(k) && k.additional.len() < whole.additional.len();
            let o = |o: &Reply| {
                !o.tc() && complete(o) && o.additional.len() < whole.additional.len() && o.len <= limits(c).1
            };
            both(c, k, o) && parts_of_the_same(c)
        },
    },
    Row {
        id: "Z6",
        says: "as large as the client says; our `bufsize` is the limit",
        parts: &[Part::Tc, Part::Answer, Part::Additional],
        holds: |c| {
            let (theirs, ours) = limits(c);
            let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
            // What we left out would have been too much: full to within two records.
            let full = o.len <= ours && o.len + 160 > ours;
            theirs > ours && k.len > ours && full && k.answers.len() >= o.answers.len() && parts_of_the_same(c)
        },
    },
];
