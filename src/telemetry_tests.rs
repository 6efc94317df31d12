//! Tests of the log lines.

use std::sync::{Arc, Mutex};

use super::*;

/// A writer whose lines can be looked at.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines(format: LogFormat, filter: &str, speak: impl FnOnce()) -> Vec<String> {
    let sink = Sink::default();
    let writer = sink.clone();
    tracing::subscriber::with_default(subscriber(format, filter, move || writer.clone()).unwrap(), speak);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn text_looks_like_corednss() {
    let seen = lines(LogFormat::Text, "debug", || {
        tracing::info!(target: "namesake::source::kube", imports = 3, "lists are complete");
        tracing::warn!(target: "namesake::feed", reason = "bad port", what = "a", "skipped");
        tracing::error!(target: "namesake::dns", error = %io::Error::other("no route"), "not sent");
        tracing::debug!(target: "namesake::index", ok = true, "dirty");
    });
    assert_eq!(
        seen,
        [
            "[INFO] source: lists are complete imports=3",
            "[WARNING] feed: skipped reason=\"bad port\" what=a",
            "[ERROR] dns: not sent error=\"no route\"",
            "[DEBUG] index: dirty ok=true",
        ]
    );
}

#[test]
fn json_has_time_level_message_and_fields() {
    let seen = lines(LogFormat::Json, "", || {
        tracing::info!(target: "namesake::source", imports = 3, ratio = 0.5, level = "mine", "say \"hi\"\u{7}");
    });
    let value: serde_json::Value = serde_json::from_str(&seen[0]).unwrap();
    assert_eq!(value["level"], "INFO");
    assert_eq!(value["msg"], "say \"hi\"\u{7}");
    assert_eq!(value["target"], "source");
    assert_eq!(value["imports"], 3);
    assert_eq!(value["ratio"], 0.5);
    assert_eq!(value["field_level"], "mine");
    assert!(value["time"].as_str().unwrap().ends_with('Z'), "{value}");
}

#[test]
fn outside_text_never_breaks_a_line() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let seen = lines(format, "info", || {
            tracing::info!(name = "a\n[ERROR] forged", "first\nsecond\r\u{1b}[31m");
        });
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(!seen[0].contains('\u{1b}'), "{seen:?}");
    }
}

#[test]
fn other_crates_are_quiet_unless_they_are_named() {
    let speak = || {
        tracing::info!(target: "kube_client::client", "chatter");
        tracing::info!(target: "namesake::feed", "news");
    };
    assert_eq!(lines(LogFormat::Text, "debug", speak), ["[INFO] feed: news"]);
    assert_eq!(lines(LogFormat::Text, "kube_client=info", speak).len(), 2);
    // A server that is away is tried all the time; we say it once.
    let fail = || tracing::error!(target: "kube_client::client::builder", "failed with error");
    assert_eq!(lines(LogFormat::Text, "info", fail), Vec::<String>::new());
    assert_eq!(lines(LogFormat::Text, "error,namesake::feed=info", speak), ["[INFO] feed: news"]);
    assert!(lines(LogFormat::Text, "warn", speak).is_empty());
}

#[test]
fn a_filter_that_is_none_is_refused_with_the_remedy() {
    let error = subscriber(LogFormat::Text, "namesake=loud", io::stdout).err().unwrap().to_string();
    assert!(error.contains("namesake=loud") && error.contains("use error, warn, info"), "{error}");
}

#[test]
fn times_are_right_at_the_calendars_corners() {
    let at = |seconds, nanos| rfc3339(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
    assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
    assert_eq!(at(951_782_399, 999_999_999), "2000-02-28T23:59:59.999999Z");
    assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
    assert_eq!(at(1_709_251_199, 0), "2024-02-29T23:59:59.000000Z");
    assert_eq!(at(4_107_542_400, 1_000), "2100-03-01T00:00:00.000001Z");
}
