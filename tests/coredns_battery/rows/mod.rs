//! The rows of `dns.md` on which a difference may rest, each as narrow as its K and Take columns.

mod messages;
mod names;
mod services;
mod sizes;

use std::collections::BTreeSet;

use crate::compare::{Case, Part};

/// A row that lets the two servers differ.
pub struct Row {
    /// Its id in `dns.md`.
    pub id: &'static str,
    /// What it says, in a few words.
    pub says: &'static str,
    /// The parts of a reply it speaks of.
    pub parts: &'static [Part],
    /// Whether query, state and *both* replies are what it describes.
    pub holds: fn(&Case<'_>) -> bool,
}

/// Everything that follows from other data, or from a name that exists for one and not for the other. What one of them
/// answers alone may also be too large for UDP.
const DATA: &[Part] = &[Part::Rcode, Part::Tc, Part::Answer, Part::Authority, Part::Additional];

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Row> {
    [messages::ROWS, names::ROWS, services::ROWS, sizes::ROWS].into_iter().flatten()
}

/// The rows that explain the differences of a case, and what none explains.
pub fn attribute(case: &Case<'_>) -> (Vec<&'static Row>, BTreeSet<Part>) {
    let mut left = case.differences();
    let mut used = Vec::new();
    if !left.is_empty() {
        for row in all() {
            if row.parts.iter().any(|part| left.contains(part)) && (row.holds)(case) {
                left.retain(|part| !row.parts.contains(part));
                used.push(row);
            }
        }
    }
    (used, left)
}

/// Both replies satisfy these.
fn both(case: &Case<'_>, k: impl Fn(&crate::reply::Reply) -> bool, o: impl Fn(&crate::reply::Reply) -> bool) -> bool {
    case.coredns.as_ref().is_some_and(k) && case.ours.as_ref().is_some_and(o)
}
