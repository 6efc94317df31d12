//! The house of `DESIGN.md`: which module may know of which, what the pure ones may not touch, and how long a file
//! may be. The table stands in the docs of `src/lib.rs`, and this test reads it there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Most lines a file of code may have.
const LONGEST: usize = 400;

/// Files that may be longer, each with its reason.
const MAY_BE_LONGER: &[(&str, &str)] = &[];

/// Modules that decide and know of no clock, socket, runtime or library of the outside world.
const PURE: [&str; 4] = ["model", "index", "answers", "reconcile"];

/// What code of the pure modules must not name.
const IMPURE: [&str; 17] = [
    "kube::",
    "k8s_openapi",
    "tokio",
    "hickory",
    "axum",
    "http::",
    "prometheus",
    "std::fs",
    "std::env",
    "std::thread",
    "std::process",
    "std::io",
    "TcpStream",
    "UdpSocket",
    "Instant::now",
    "SystemTime::now",
    "fastrand::Rng::new",
];

/// What no code outside tests may hold: outside data never ends the process.
const FORBIDDEN: [&str; 9] = [
    ".unwrap()",
    ".expect(",
    ".unwrap_err()",
    "unsafe ",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "unreachable!(",
    "dbg!(",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|e| e.expect("a folder entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn name_of(file: &Path) -> String {
    file.strip_prefix(root()).expect("inside the package").display().to_string()
}

/// Whether a file of `src` holds nothing but tests.
fn is_test(file: &Path) -> bool {
    let relative = file.strip_prefix(root()).expect("inside the package").with_extension("");
    relative.iter().any(|part| part == "tests" || part.to_string_lossy().ends_with("_tests"))
}

/// The code of a file: without comments, the contents of strings, and `#[cfg(test)]` modules.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("readable");
    without_tests(&without_comments_and_strings(&text))
}

fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = hashes + 2;
            code.push_str("\"\"");
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else if first == '"' {
            code.push_str("\"\"");
            let mut escaped = false;
            let end = rest[1..].find(|c: char| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("'{'") || rest.starts_with("'}'") {
            3
        } else if let Some(escape) = rest.strip_prefix("'\\") {
            escape.find('\'').map_or(rest.len(), |end| end.max(1) + 3)
        } else {
            code.push(first);
            first.len_utf8()
        };
        rest = &rest[skip.min(rest.len())..];
    }
    code
}

/// The number of hashes of a raw string that begins here.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.bytes().take_while(|b| *b == b'#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Without inline modules that are compiled for tests only.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        let item = &rest[at..];
        let (brace, semicolon) = (item.find('{'), item.find(';'));
        let end = match (brace, semicolon) {
            (Some(brace), semicolon) if semicolon.is_none_or(|s| brace < s) => brace + matching_brace(&item[brace..]),
            (_, Some(semicolon)) => semicolon + 1,
            _ => item.len(),
        };
        rest = &item[end..];
    }
    kept + rest
}

/// Where the brace that opens `code` is closed again.
fn matching_brace(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The identifier at the start of `code`.
fn identifier(code: &str) -> &str {
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(code.len());
    &code[..end]
}

/// What follows each `crate::`: one name, or the first names in braces.
fn crate_paths(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        names.extend(first_names(&code[at + "crate::".len()..]));
    }
    names
}

fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else { return vec![identifier(path).to_owned()] };
    let group = &group[..matching_brace(path).saturating_sub(2).min(group.len())];
    let (mut names, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(identifier(group[start..at].trim()).to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// What chains of `super::` reach in the crate's root, in a file that is `depth` modules below it.
fn super_paths(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("super::") {
        let mut path = &rest[at..];
        let mut supers = 0;
        while let Some(after) = path.strip_prefix("super::") {
            path = after;
            supers += 1;
        }
        if supers >= depth {
            names.extend(first_names(path));
        }
        rest = path;
    }
    names
}

/// The top-level module a file of `src` belongs to, and how deep its own module is.
fn module_of(file: &Path) -> Option<(String, usize)> {
    let relative = file.strip_prefix(root().join("src")).ok()?.with_extension("");
    let parts: Vec<_> = relative.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    let depth = if parts.last().is_some_and(|p| p == "mod") { parts.len() - 1 } else { parts.len() };
    let first = parts.first()?.clone();
    (!matches!(&*first, "lib" | "main")).then_some((first, depth))
}

/// The table in the docs of `src/lib.rs`: module → what its row says it knows of.
fn table() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let rows = rows.map(|row| {
        let (module, rest) = row.split_once("`]").expect("a module in brackets");
        let knows = rest.trim_end().trim_end_matches('|').rsplit('|').next().expect("a last column");
        (module.to_owned(), knows.trim().to_owned())
    });
    rows.collect()
}

fn names_in(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What each module may use: what its row names, and what those may use. A row `–` is a module that knows of nothing
/// and serves everyone but the pure ones.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let table = table();
    let aids: BTreeSet<_> = table.iter().filter(|(_, knows)| *knows == "–").map(|(m, _)| m.clone()).collect();
    let mut allowed = BTreeMap::new();
    for (module, knows) in &table {
        let mut open: Vec<String> = if let Some(but) = knows.strip_prefix("all") {
            let but = names_in(but);
            table.keys().filter(|m| !but.contains(m)).cloned().collect()
        } else {
            names_in(knows)
        };
        let mut reached = BTreeSet::new();
        while let Some(next) = open.pop() {
            assert!(table.contains_key(&next), "the row of {module} names {next}, which is no module");
            if reached.insert(next.clone()) && !table[&next].starts_with("all") {
                open.extend(names_in(&table[&next]));
            }
        }
        if knows != "–" && knows != "nothing" && !PURE.contains(&&**module) {
            reached.extend(aids.iter().cloned());
        }
        reached.insert(module.clone());
        allowed.insert(module.clone(), reached);
    }
    allowed
}

/// Who uses whom, with a file that shows it.
fn uses() -> BTreeMap<(String, String), String> {
    let modules: BTreeSet<_> = table().into_keys().collect();
    let mut uses = BTreeMap::new();
    for file in rust_files("src").iter().filter(|f| !is_test(f)) {
        let Some((module, depth)) = module_of(file) else { continue };
        let code = code(file);
        for used in crate_paths(&code).into_iter().chain(super_paths(&code, depth)) {
            if modules.contains(&used) && used != module {
                uses.entry((module.clone(), used)).or_insert_with(|| name_of(file));
            }
        }
    }
    uses
}

#[test]
fn every_module_stands_in_the_table_of_lib_rs() {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let declared: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
        .map(|rest| rest.trim_end_matches(';').to_owned())
        .collect();
    assert_eq!(declared, table().into_keys().collect(), "declared and documented modules differ");
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let allowed = allowed();
    let uses = uses();
    assert!(uses.len() > 10, "the test sees who uses whom: {uses:?}");
    let wrong: Vec<_> = uses
        .iter()
        .filter(|((module, used), _)| !allowed[module].contains(used))
        .map(|((module, used), file)| format!("{module} uses {used}, in {file}"))
        .collect();
    assert!(wrong.is_empty(), "against the arrows (table in src/lib.rs):\n{}", wrong.join("\n"));
}

#[test]
fn nothing_below_uses_what_is_above_it() {
    let uses: BTreeSet<_> = uses().into_keys().collect();
    let mut left: BTreeSet<_> = table().into_keys().collect();
    while let Some(bottom) = left.iter().find(|m| !uses.iter().any(|(by, of)| by == *m && left.contains(of))).cloned() {
        left.remove(&bottom);
    }
    let circle: Vec<_> = uses.iter().filter(|(by, of)| left.contains(by) && left.contains(of)).collect();
    assert!(circle.is_empty(), "modules use each other in a circle: {circle:?}");
}

#[test]
fn the_pure_modules_know_of_no_outside_world() {
    for file in rust_files("src").iter().filter(|f| !is_test(f)) {
        if module_of(file).is_some_and(|(module, _)| PURE.contains(&&*module)) {
            let code = code(file);
            for word in IMPURE {
                assert!(!code.contains(word), "{} names {word}; what it needs comes in as an argument", name_of(file));
            }
        }
    }
}

#[test]
fn no_unsafe_and_no_panic_on_purpose() {
    for file in rust_files("src").iter().filter(|f| !is_test(f)) {
        let code = code(file);
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{} holds {word}; handle the case", name_of(file));
        }
    }
}

#[test]
fn files_have_one_subject_and_at_most_400_lines() {
    for (file, reason) in MAY_BE_LONGER {
        assert!(!reason.is_empty(), "{file} has no reason");
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert!(text.lines().count() > LONGEST, "{file} need not be on the list any more");
    }
    let files = ["src", "tests", "benches", "fuzz"].into_iter().flat_map(rust_files);
    let mut long = Vec::new();
    for file in files.filter(|f| !f.iter().any(|part| part == "target")) {
        let lines = fs::read_to_string(&file).expect("readable").lines().count();
        if lines > LONGEST && !MAY_BE_LONGER.iter().any(|(known, _)| *known == name_of(&file)) {
            long.push(format!("{}: {lines} lines", name_of(&file)));
        }
    }
    assert!(long.is_empty(), "split these, or say in MAY_BE_LONGER why not:\n{}", long.join("\n"));
}

#[test]
fn the_scanner_sees_through_comments_strings_groups_and_tests() {
    let text = r##"
        //! [`x`](crate::doc)
        use crate::{answers::{Options, Store}, model};
        /* crate::comment */
        const A: &str = "crate::string \" crate::still";
        const B: &str = r#"crate::raw"#;
        const C: char = '"'; const D: &[u8] = b"\"crate::bytes";
        fn f<'a>(x: &'a crate::index::Index) { super::super::dns::respond() }
        #[cfg(test)] use crate::cli;
        #[cfg(test)]
        mod tests { use crate::admin; fn g() { x.unwrap() } }
        fn h() -> crate::api::X {}
    "##;
    let code = without_tests(&without_comments_and_strings(text));
    assert_eq!(crate_paths(&code), ["answers", "model", "index", "api"]);
    assert_eq!(super_paths(&code, 2), ["dns"]);
    assert_eq!(super_paths(&code, 3), [""; 0]);
    assert!(!code.contains(".unwrap()"));
}
