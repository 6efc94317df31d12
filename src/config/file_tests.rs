//! The settings file: what is read, and what a person is told when it can't be.

use std::path::Path;

use super::*;
use crate::config::dns::Key;

fn read(text: &str) -> Result<Vec<(Key, Given)>, String> {
    parse(Path::new("dns.yaml"), text).map_err(|error| error.to_string())
}

fn complaint(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn values_are_taken_as_they_were_typed_with_their_lines() {
    let settings = read("version: 1\nttl: 5\nzone: [a.test, b.test]\nlisten:\n- 127.0.0.1:53\n- '[::1]:53'\nno_endpoints: true\ndns_version: 1.10\nnameserver: 10.0.0.1\nnsid:\n").unwrap();
    let flat: Vec<_> = settings
        .iter()
        .map(|(key, given)| format!("{} {}", given.place.of(key.spec()), given.values.join(" ")))
        .collect();
    assert_eq!(
        flat,
        [
            "dns.yaml:2: ttl 5",
            "dns.yaml:3: zone a.test b.test",
            "dns.yaml:4: listen 127.0.0.1:53 [::1]:53",
            "dns.yaml:7: no_endpoints true",
            "dns.yaml:8: dns_version 1.10",
            "dns.yaml:9: nameserver 10.0.0.1",
        ]
    );
}

#[test]
fn unknown_keys_are_refused_with_line_and_nearest_key_all_at_once() {
    assert_eq!(
        complaint("version: 1\nzones: [a]\nttl: 5\nlog-format: json\nforward: { to: 8.8.8.8 }\n"),
        "dns.yaml:2: zones: no such key; did you mean zone?\n\
         dns.yaml:4: log-format: no such key; did you mean log_format?\n\
         dns.yaml:5: forward: no such key; `namesake dns --help` has them all, with _ for -"
    );
}

#[test]
fn the_version_is_needed_and_must_be_known() {
    assert_eq!(complaint("ttl: 5\n"), "dns.yaml:1: no version; put `version: 1` in the first line");
    assert_eq!(
        complaint("# later\nversion: 2\nshards: 4\n"),
        "dns.yaml:2: version 2: not a format that this namesake reads; write `version: 1` and the keys of `namesake dns --help`"
    );
}

#[test]
fn what_is_no_yaml_names_its_line() {
    for (text, line) in [
        ("version: 1\nttl: 5\nttl: 6\n", 3),
        ("version: 1\nttl: [5\n", 2),
        ("version: 1\nttl: {a: 1}\n", 2),
        ("version: 1\nttl: [5, 6]\n", 2),
        ("version: 1\nzone:\n- {a: b}\n", 3),
        ("version: 1\nzone: {a: b}\n", 2),
        ("version: 1\n---\nversion: 1\n", 2),
        ("- version\n", 1),
        ("version: 1\n  ttl: 5\n", 2),
        ("just text\n", 1),
    ] {
        let complaint = complaint(text);
        let place = complaint.split(": ").next().unwrap_or_default();
        let found: i64 = place.rsplit(':').next().and_then(|n| n.parse().ok()).unwrap_or(-1);
        assert!((found - line).abs() <= 1, "{text:?}: {complaint}");
        assert!(complaint.contains("; "), "{complaint} has no remedy");
    }
}

#[test]
fn an_empty_or_missing_file_is_refused() {
    assert!(complaint("").starts_with("dns.yaml"), "{}", complaint(""));
    let missing = super::read::<Key>(Path::new("/nonexistent/dns.yaml")).unwrap_err().to_string();
    assert_eq!(
        missing,
        "/nonexistent/dns.yaml: No such file or directory (os error 2); give a readable file to --config"
    );
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let mut rng = fastrand::Rng::with_seed(7);
    let good = super::super::example::<Key>();
    for _ in 0..2000 {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = read(&text);
        }
    }
}
