//! The register: which test stands for which row of `dns.md`, which rule of `controller.md` and which case of
//! `cases.md`. A row, rule or case that no test is named after fails here, unless it is listed with the reason why there
//! is none; and a reason that a test has made wrong fails as well.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Chapters of `cases.md`, and how many cases each has.
const CHAPTERS: [(&str, u32); 14] = [
    ("dns", 10), // 1
    ("neg", 7),  // 2
    ("srv", 6),  // 3
    ("hdl", 6),  // 4
    ("upd", 9),  // 5
    ("wch", 10), // 6
    ("cnf", 6),  // 7
    ("del", 5),  // 8
    ("clu", 10), // 9
    ("scl", 6),  // 10
    ("sec", 4),  // 11
    ("cfg", 6),  // 12
    ("prt", 10), // 13
    ("rsv", 5),  // 14
];

/// Cases without a test, and why.
const NO_CASE: [(&str, &str); 2] = [
    (
        "cfg_01",
        "later work: there is no Corefile and no reload of settings yet; a folder's broken edit is in source_folder",
    ),
    ("cfg_05", "later work: there is no Corefile yet"),
];

/// Sections of `dns.md` 1.1 to 1.11 and 2.6 that must be shown, and how many rows each has.
const SECTIONS: [(char, u32); 12] = [
    ('t', 23),
    ('a', 14),
    ('n', 9),
    ('c', 16),
    ('h', 18),
    ('e', 14),
    ('v', 29),
    ('o', 15),
    ('x', 3),
    ('z', 6),
    ('l', 17),
    ('f', 10),
];

/// Rows without a test, and why.
const NO_ROW: [(&str, &str); 2] = [
    ("l13", "not ours to decide: slices of a dead cluster are served until its controller removes them"),
    ("l16", "later work: there is no reload of settings yet"),
];

/// Rules R1 to R98 and corrections D1 to D26 of `controller.md`, chapter 2.
const RULES: [(char, u32); 2] = [('r', 98), ('d', 26)];

/// Rules and corrections without a test, and why.
const NO_RULE: [(&str, &str); 2] = [
    ("d17", "says who makes EndpointSlices in Kubernetes; what we read of them and write is in D3, D18 and R61"),
    ("d25", "says which release has which CoreDNS; the CoreDNS that is built for tests is newer than both"),
];

/// How many scenarios the official conformance suite has (`controller.md` 5.2): one begins with its number, as `c09_…`,
/// and is a function below [`PLAYED`], where one that is on no list of what is played is unused, which the compiler tells.
const SCENARIOS: u32 = 27;

/// Where the scenarios are: not tests of the usual harness, since they need clusters with nodes.
const PLAYED: &str = "tests/packets";

/// What stands in the names of all tests.
#[derive(Default)]
struct Named {
    cases: BTreeSet<String>,
    /// Rows of `dns.md`.
    rows: BTreeSet<String>,
    /// Rules and corrections of `controller.md`.
    rules: BTreeSet<String>,
    scenarios: BTreeSet<String>,
}

fn named() -> Named {
    let mut named = Named::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["src", "tests"].into_iter().flat_map(|folder| tests_below(&root.join(folder))) {
        named.add(&name);
    }
    for name in functions_below(&root.join(PLAYED), |_| true).iter().filter(|name| is_scenario(name)) {
        named.add(name);
        named.scenarios.insert(name[..3].to_owned());
    }
    named
}

impl Named {
    fn add(&mut self, name: &str) {
        let words: Vec<&str> = name.split('_').collect();
        for pair in words.windows(2) {
            let numbered = pair[1].len() == 2 && pair[1].bytes().all(|b| b.is_ascii_digit());
            if numbered && CHAPTERS.iter().any(|(chapter, _)| *chapter == pair[0]) {
                self.cases.insert(pair.join("_"));
            }
        }
        // Rows stand behind `dns`, rules behind `mcs`: `dns_l7_l17_…`, also with the word again between them.
        for (word, found) in [("dns", &mut self.rows), ("mcs", &mut self.rules)] {
            let mut behind = false;
            for this in &words {
                behind = *this == word || behind && is_row(this);
                if behind && is_row(this) {
                    found.insert((*this).to_owned());
                }
            }
        }
    }
}

/// Whether this is a letter and a number, as rows and rules are.
fn is_row(word: &str) -> bool {
    let (letter, number) = word.split_at(usize::from(!word.is_empty()));
    letter.bytes().all(|b| b.is_ascii_lowercase()) && number.parse::<u32>().is_ok()
}

/// Whether a function with this name is a scenario: `c` and its number in two digits come first.
fn is_scenario(name: &str) -> bool {
    name.split_once('_').is_some_and(|(first, _)| first.len() == 3 && first.starts_with('c') && is_row(first))
}

/// The names of the functions that are tests, in every file below a folder.
fn tests_below(folder: &Path) -> Vec<String> {
    functions_below(folder, |line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// The names of the functions in every file below a folder that have such a line since the function before.
fn functions_below(folder: &Path, counts: fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(functions_below(&path, counts));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_counted = false;
            for line in text.lines().map(str::trim) {
                is_counted |= counts(line);
                let function = line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ");
                if let Some(name) = function.filter(|_| std::mem::take(&mut is_counted)) {
                    names.push(name.split('(').next().unwrap().to_owned());
                }
            }
        }
    }
    names
}

/// What is wanted and not named, and what is excused although it is named.
fn compare(wanted: impl Iterator<Item = String>, named: &BTreeSet<String>, excused: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for id in wanted {
        match (named.contains(&id), excused.iter().find(|(other, _)| *other == id)) {
            (false, None) => wrong.push(format!("{id}: no test is named after it")),
            (true, Some((_, why))) => wrong.push(format!("{id}: there is a test, so this is wrong: {why}")),
            _ => {}
        }
    }
    wrong
}

#[test]
fn every_case_has_a_test_or_a_reason() {
    let Named { cases, .. } = named();
    let wanted = CHAPTERS.iter().flat_map(|(chapter, last)| (1..=*last).map(move |n| format!("{chapter}_{n:02}")));
    let wrong = compare(wanted, &cases, &NO_CASE);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let Named { rows, .. } = named();
    let wanted = SECTIONS.iter().flat_map(|(section, last)| (1..=*last).map(move |n| format!("{section}{n}")));
    let wrong = compare(wanted, &rows, &NO_ROW);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_and_correction_has_a_test_or_a_reason() {
    let Named { rules, .. } = named();
    let wanted = RULES.iter().flat_map(|(letter, last)| (1..=*last).map(move |n| format!("{letter}{n}")));
    let wrong = compare(wanted, &rules, &NO_RULE);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_scenario_of_the_conformance_suite_is_played() {
    let Named { scenarios, .. } = named();
    let wrong = compare((1..=SCENARIOS).map(|n| format!("c{n:02}")), &scenarios, &[]);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_read_as_they_are_meant() {
    let mut named = Named::default();
    for name in
        ["mcs_r8_r54_x", "mcs_r95_clu_04_x", "dns_c9_d17_x", "c09_mcs_r59_x", "c9_no", "mcs_2_r1", "case_wch_10"]
    {
        named.add(name);
    }
    assert_eq!(named.rules, ["r54", "r59", "r8", "r95"].map(str::to_owned).into());
    assert_eq!(named.rows, ["c9", "d17"].map(str::to_owned).into());
    let scenarios: Vec<_> = ["c09_mcs_r59_x", "c9_no", "c091_no", "x09_no", "c09"].map(is_scenario).into();
    assert_eq!(scenarios, [true, false, false, false, false]);
    assert_eq!(named.cases, ["clu_04", "wch_10"].map(str::to_owned).into());
}

#[test]
fn a_missing_test_and_a_reason_too_many_are_both_found() {
    let named = ["r1", "r3"].map(str::to_owned).into();
    let wanted = ["r1", "r2", "r3", "r4"].map(str::to_owned);
    let wrong = compare(wanted.into_iter(), &named, &[("r3", "none yet"), ("r4", "none needed")]);
    assert_eq!(wrong, ["r2: no test is named after it", "r3: there is a test, so this is wrong: none yet"]);
}
