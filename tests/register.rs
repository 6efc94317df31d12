//! The register: which test stands for which row of `dns.md` and which case of `cases.md`. A row or case that no test
//! is named after fails here, unless it is listed with the reason why there is none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Chapters of `cases.md` that concern the DNS half, and how many cases each has.
const CHAPTERS: [(&str, u32); 10] = [
    ("dns", 10), // 1
    ("neg", 7),  // 2
    ("srv", 6),  // 3
    ("hdl", 6),  // 4
    ("upd", 9),  // 5
    ("wch", 10), // 6
    ("scl", 6),  // 10
    ("cfg", 6),  // 12
    ("prt", 10), // 13
    ("rsv", 5),  // 14
];

/// Cases without a test, and why.
const NO_CASE: [(&str, &str); 10] = [
    ("upd_02", "the controller's: who withdraws what a dead Service left"),
    ("upd_03", "the controller's: a namespace that comes back"),
    ("upd_04", "the controller's: a Service that comes back under its export"),
    ("upd_05", "the controller's: exports that become valid and invalid"),
    ("upd_06", "the controller's: ports of the derived Service"),
    ("upd_07", "the controller's: mirroring endpoints"),
    ("upd_08", "the controller's: the DNS half writes nothing (main_job counts writes)"),
    ("upd_09", "the controller's: deleting a copy of a slice; that its names go is HDL-04"),
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

/// The names of all tests, with the cases and rows that stand in them.
fn named() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut cases, mut rows) = (BTreeSet::new(), BTreeSet::new());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["src", "tests"].into_iter().flat_map(|folder| tests_below(&root.join(folder))) {
        let words: Vec<&str> = name.split('_').collect();
        for pair in words.windows(2) {
            let numbered = pair[1].len() == 2 && pair[1].bytes().all(|b| b.is_ascii_digit());
            if numbered && CHAPTERS.iter().any(|(chapter, _)| *chapter == pair[0]) {
                cases.insert(pair.join("_"));
            }
        }
        // Rows stand behind `dns`: `dns_l7_l17_…`, also with `dns` again between them.
        let mut behind = false;
        for word in words {
            let (letter, number) = word.split_at(usize::from(!word.is_empty()));
            let row = letter.bytes().all(|b| b.is_ascii_lowercase()) && number.parse::<u32>().is_ok();
            behind = word == "dns" || behind && row;
            if behind && row {
                rows.insert(word.to_owned());
            }
        }
    }
    (cases, rows)
}

/// The names of the functions that are tests, in every file below a folder.
fn tests_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(tests_below(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let function = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some(name) = function.filter(|_| std::mem::take(&mut is_test)) {
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
    let (cases, _) = named();
    let wanted = CHAPTERS.iter().flat_map(|(chapter, last)| (1..=*last).map(move |n| format!("{chapter}_{n:02}")));
    let wrong = compare(wanted, &cases, &NO_CASE);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let (_, rows) = named();
    let wanted = SECTIONS.iter().flat_map(|(section, last)| (1..=*last).map(move |n| format!("{section}{n}")));
    let wrong = compare(wanted, &rows, &NO_ROW);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
